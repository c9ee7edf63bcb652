//! `[control.probe]`: transfers that measure what an access carries, and what they may cost.
//!
//! At the device they say when and how it probes accesses with `estimator = "probe"`. At the proxy
//! they bound what it serves to each address of a device.

use std::path::PathBuf;
use std::time::Duration;

use braid_core::control::ProbeSettings;
use braid_core::estimate::MIN_PROBE_BYTES;
use serde::{Deserialize, Serialize};

use super::super::text;
use crate::Role;
use crate::diagnostic::Problem;

/// Flows of one probe at most.
pub const MAX_FLOWS: u32 = 32;

/// Shortest and longest transfer: less is slow start alone, more than a minute is no probe.
const DURATIONS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(200)..=Duration::from_secs(60);

/// Time that an interval leaves beside a transfer at least, for handshakes and for traffic.
const GAP: Duration = Duration::from_secs(3);

/// Longest interval, and longest time without traffic in which probes go on.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Transfers that a proxy serves at one time, at most: with 33 connections each they leave others
/// their part of the 1024 files that a process may have open.
const MAX_AT_ONCE: u32 = 16;

/// `[control.probe]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transfers {
    /// At the device: parallel flows of plain TCP, 1 to 32.
    pub flows: u32,
    /// At the device: length of a transfer, 200 ms to 60 s; at the proxy: of the longest that is
    /// served.
    #[serde(with = "text::duration")]
    pub duration: Duration,
    /// At the device: mean time between two transfers of one direction over an access, `duration`
    /// and 3 s to 24 h; at the proxy: half of it is the least time between two to one address.
    #[serde(with = "text::duration")]
    pub interval: Duration,
    /// At the device: time after the last traffic in which probes go on, up to 24 h.
    #[serde(with = "text::duration")]
    pub rest: Duration,
    /// Bytes that one transfer may move, 1000000 or more.
    pub probe_bytes: u64,
    /// At the device: bytes of an access within any hour, 1000000 or more. Probes are spread so
    /// that they last for it.
    pub hour_bytes: u64,
    /// Bytes of an access, at the proxy of an address of a device, within any 24 h, 1000000 or
    /// more.
    pub day_bytes: u64,
    /// At the device: bytes of an access within any 30 days, 1000000 or more.
    pub month_bytes: u64,
    /// At the device: file that remembers these bytes over a restart.
    pub ledger: PathBuf,
    /// At the proxy: whether it serves transfers.
    pub serve: bool,
    /// At the proxy: transfers at one time, 1 to 16.
    pub at_once: u32,
}

impl Default for Transfers {
    fn default() -> Self {
        let probe = ProbeSettings::default();
        Self {
            flows: probe.flows,
            duration: Duration::from_millis(probe.duration_ms),
            interval: Duration::from_millis(probe.interval_ms),
            // A stop at a light or a station is no rest; a night in a garage is.
            rest: Duration::from_secs(600),
            probe_bytes: probe.bytes_per_probe,
            hour_bytes: probe.bytes_per_hour,
            day_bytes: probe.bytes_per_day,
            month_bytes: probe.bytes_per_month,
            ledger: "/var/lib/braid/probes.json".into(),
            serve: false,
            // One fills what an access has for its second; more fill what the proxy has.
            at_once: 2,
        }
    }
}

impl Transfers {
    /// Checks what an end is to do.
    ///
    /// # Errors
    /// A value out of range, or a key of the other end.
    pub fn check(&self, role: Role) -> Result<(), Problem> {
        let at = |key: &str, what: &str| Err(Problem::at_key(&["control", "probe", key], what));
        if role == Role::Device && self.serve {
            return at("serve", "transfers are served by the proxy: set it there");
        }
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            return at("flows", "expected 1 to 32 flows");
        }
        if !DURATIONS.contains(&self.duration) {
            return at("duration", "expected a transfer of 200 ms to 60 s");
        }
        if !(self.duration + GAP..=LONGEST).contains(&self.interval) {
            return at(
                "interval",
                "expected an interval of the duration and 3 s, up to 24 h",
            );
        }
        if self.rest > LONGEST {
            return at("rest", "expected up to 24 h");
        }
        if !(1..=MAX_AT_ONCE).contains(&self.at_once) {
            return at("at_once", "expected 1 to 16 transfers");
        }
        let bounds = [
            ("probe_bytes", self.probe_bytes),
            ("hour_bytes", self.hour_bytes),
            ("day_bytes", self.day_bytes),
            ("month_bytes", self.month_bytes),
        ];
        match bounds.iter().find(|(_, bytes)| *bytes < MIN_PROBE_BYTES) {
            Some((key, _)) => at(
                key,
                "expected 1000000 bytes or more: less is slow start alone",
            ),
            None => Ok(()),
        }
    }
}
