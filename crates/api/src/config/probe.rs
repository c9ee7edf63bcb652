//! `[probe]`: probes of accesses.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;

/// `[probe]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Probe {
    /// Send, or answer, probes.
    pub enabled: bool,
    /// UDP port of the answerer, and TCP port of the check whether MPTCP passes, 1 to 65535.
    pub port: u16,
    /// Where nobody answers probes, ask the other ends of subflows by TCP.
    pub knock: bool,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            enabled: true,
            port: Self::PORT,
            knock: true,
        }
    }
}

impl Probe {
    /// UDP port of the answerer, and TCP port of the check whether MPTCP passes, where no other
    /// is configured.
    pub const PORT: u16 = 7724;

    pub(super) fn check(&self) -> Result<(), Problem> {
        match self.port {
            0 => Err(Problem::at_key(&["probe", "port"], "a port is 1 to 65535")),
            _ => Ok(()),
        }
    }
}
