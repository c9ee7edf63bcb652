//! Media that several links share, so that what one sends delays the others.

use std::time::Duration;

use braid_core::Time;
use serde::{Deserialize, Serialize};

/// The packet at the head of a station's queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    /// When it became the station's to send.
    pub arrival: Time,
    /// Physical-layer data rate towards its receiver, Mbit/s; `None`: the
    /// medium's default.
    pub phy_mbps: Option<f64>,
}

/// What a medium needs of the queues behind its stations. A station is what
/// contends for the medium: a device's uplink, or an access point with the
/// downlinks of all its devices.
pub trait Stations {
    /// The packet that station `s` would send next, if any.
    fn head(&self, s: usize) -> Option<Head>;
    /// Calls `f` with the IP bytes of the packets, in sending order from the
    /// head, that station `s` could put into one frame with the head (same
    /// receiver) and that arrived by `by`, until `f` returns false.
    fn waiting(&self, s: usize, by: Time, f: &mut dyn FnMut(u32) -> bool);
    /// Whether the radio channel garbles the next packet of station `s`
    /// (the link's own loss model). Drawn once per packet and transmission.
    fn garbled(&mut self, s: usize) -> bool;
    /// Of the first packets of station `s`, in sending order, those with
    /// `true` in `ok` were received at `at` and leave the queue; the others
    /// stay at its head, in order, for another transmission.
    fn sent(&mut self, s: usize, ok: &[bool], at: Time);
    /// The first `packets` packets of station `s` are given up.
    fn gave_up(&mut self, s: usize, packets: u32, at: Time);
}

/// A shared medium. Like every model it is told the time and never looks at a clock.
pub trait Medium: Send {
    /// When something happens next if no packet arrives before; `None` when idle.
    fn next_event(&self, stations: &dyn Stations) -> Option<Time>;
    /// Brings the medium up to `now`.
    fn advance(&mut self, now: Time, stations: &mut dyn Stations);
    /// What happened since the start.
    fn stats(&self) -> MediumStats;
}

/// Counters of a medium.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediumStats {
    /// Time during which the channel was occupied by a transmission, its
    /// acknowledgement and the gap between them.
    pub busy: Duration,
    /// Transmission attempts, a collision counted once.
    pub rounds: u64,
    /// Rounds in which more than one station sent.
    pub collisions: u64,
    /// Per station.
    pub stations: Vec<StationStats>,
}

/// Counters of one station of a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StationStats {
    /// Packets received by their receiver.
    pub delivered_packets: u64,
    /// Their IP bytes.
    pub delivered_bytes: u64,
    /// Transmissions that ended in a collision.
    pub collided: u64,
    /// Packets given up at the retry limit.
    pub dropped_packets: u64,
    /// Time this station occupied the channel, acknowledgements excluded.
    pub airtime: Duration,
}
