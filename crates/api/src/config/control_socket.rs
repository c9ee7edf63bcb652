//! `[control_socket]`: who may use it beside root.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;

/// `[control_socket]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControlSocket {
    /// Group whose members may read status, connections, events and metrics; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl ControlSocket {
    /// Checks that a group could be called so (useradd(8)).
    pub(super) fn check(&self) -> Result<(), Problem> {
        let letter = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let sound = |g: &str| (1..=32).contains(&g.len()) && g.chars().all(letter);
        match &self.group {
            Some(group) if !sound(group) => {
                let what = format!("\"{group}\" is no name of a group: expected 1 to 32 letters");
                Err(Problem::at_key(&["control_socket", "group"], what))
            }
            _ => Ok(()),
        }
    }
}
