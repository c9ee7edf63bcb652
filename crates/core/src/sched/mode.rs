//! Modes of schedulers, as scenarios and the API name them.

use serde::{Deserialize, Serialize};

/// Mode of a round-robin scheduler: what it does when the window of the path whose turn it
/// is has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrrMode {
    /// Waits: the shares are exact, and the slowest path, for its weight, limits
    /// the rest (MPTCP v0.96: `cwnd_limited` N).
    Strict,
    /// Passes it over: every window is filled (MPTCP v0.96: `cwnd_limited` Y).
    WorkConserving,
}

impl WrrMode {
    /// The word that scenarios and the API use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::WorkConserving => "work-conserving",
        }
    }
}
