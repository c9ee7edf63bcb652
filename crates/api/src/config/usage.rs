//! `[usage]`: where it is remembered how much of their caps accesses have used.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[usage]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// File that outlives the daemon and the machine's restarts.
    pub ledger: PathBuf,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            ledger: "/var/lib/braid/usage.json".into(),
        }
    }
}
