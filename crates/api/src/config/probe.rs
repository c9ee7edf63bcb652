//! `[probe]`: probes of accesses.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;

/// `[probe]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Probe {
    /// Send, or answer, probes.
    pub enabled: bool,
    /// UDP port of the responder, and TCP port of the check whether MPTCP passes, 1 to 65535.
    pub port: u16,
    /// Where nobody answers probes, ask the other ends of subflows by TCP.
    #[serde(alias = "knock")]
    pub tcp: bool,
    /// Seconds between two probes of an access on which nothing flows, 1 to 3600.
    pub idle_interval: u32,
    /// Probe backups, and accesses that wait in an order, while nothing flows on them, too.
    pub idle_backups: bool,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            enabled: true,
            port: Self::PORT,
            tcp: true,
            idle_interval: 1,
            idle_backups: false,
        }
    }
}

impl Probe {
    /// UDP port of the responder, and TCP port of the check whether MPTCP passes, where no other
    /// is configured.
    pub const PORT: u16 = 7724;

    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.port == 0 {
            return Err(Problem::at_key(&["probe", "port"], "a port is 1 to 65535"));
        }
        if !(1..=3600).contains(&self.idle_interval) {
            let what = "expected 1 to 3600 seconds between probes";
            return Err(Problem::at_key(&["probe", "idle_interval"], what));
        }
        Ok(())
    }
}
