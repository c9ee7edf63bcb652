//! `[registration]`: a device names its accesses to the proxy.

use serde::{Deserialize, Serialize};

use crate::Role;
use crate::diagnostic::Problem;
use crate::registration::{MAX_NAME, is_name};

/// `[registration]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Registration {
    /// Register accesses at the proxy; take registrations of devices, at the proxy.
    pub enabled: bool,
    /// Name of the device at the proxy; absent: its host's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Default for Registration {
    fn default() -> Self {
        Self {
            enabled: true,
            name: None,
        }
    }
}

impl Registration {
    pub(super) fn check(&self, role: Role) -> Result<(), Problem> {
        let at = |what: &str| Err(Problem::at_key(&["registration", "name"], what));
        match &self.name {
            Some(_) if role == Role::Proxy => at("a device has a name: set it there"),
            Some(name) if !is_name(name) => {
                at(&format!("expected 1 to {MAX_NAME} bytes without / ? # % @"))
            }
            _ => Ok(()),
        }
    }
}
