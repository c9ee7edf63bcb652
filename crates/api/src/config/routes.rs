//! `[routes]`: the system's routes.

use serde::{Deserialize, Serialize};

/// `[routes]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Routes {
    /// Have new connections that are not bonded leave by accesses that work, where the system's
    /// routes lead by one that does not, or is not to be used.
    pub manage: bool,
}

impl Default for Routes {
    fn default() -> Self {
        Self { manage: true }
    }
}
