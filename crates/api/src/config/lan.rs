//! `[lan]`: hosts behind the device whose connections go over the bond.

use serde::{Deserialize, Serialize};

use crate::Role;
use crate::diagnostic::Problem;

/// `[lan]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lan {
    /// Interfaces of the device to its hosts: names in full.
    pub interfaces: Vec<String>,
    /// Refuse what hosts would send past the bond, also while no daemon runs.
    #[serde(default = "on")]
    pub kill_switch: bool,
    /// Have what this machine asks of resolvers go the same way: it may be for its hosts.
    #[serde(default = "on")]
    pub dns: bool,
}

fn on() -> bool {
    true
}

/// Maximum length of an interface's name (IFNAMSIZ without the zero at its end).
const MAX_NAME: usize = 15;

impl Lan {
    /// Checks it for an end that `carries` connections, whose accesses are served by `served`
    /// interfaces.
    pub(super) fn check<'a>(
        &self,
        role: Role,
        carries: bool,
        serves: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<(), Problem> {
        let at = |what: &str| Err(Problem::at_key(&["lan", "interfaces"], what));
        if role == Role::Proxy {
            return at("hosts are behind the device: set it there");
        }
        if !carries {
            return at(
                "connections of hosts go over a session of Multipath QUIC, or to a converter: expected \
                 \"mpquic\" among `engines`, or [converter]",
            );
        }
        if self.interfaces.is_empty() {
            return at("expected the interface to the hosts, such as [\"br-lan\"]");
        }
        for (i, name) in self.interfaces.iter().enumerate() {
            let is_name = |c: char| c.is_ascii_graphic() && !"/*?[\"".contains(c);
            if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_name) {
                return at(&format!(
                    "\"{name}\" is no name of an interface: these have 1 to {MAX_NAME} letters"
                ));
            }
            if name == "lo" {
                return at("\"lo\" leads to no hosts");
            }
            if self.interfaces[..i].contains(name) {
                return at(&format!("\"{name}\" is there twice"));
            }
            if let Some(access) = serves(name) {
                return at(&format!(
                    "\"{name}\" serves the access {access}: an interface leads to the proxy, or to \
                     hosts"
                ));
            }
        }
        Ok(())
    }
}
