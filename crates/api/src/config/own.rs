//! `default` and `kill_switch`: what programs of the device itself send.

use serde::{Deserialize, Serialize};

use crate::Role;
use crate::diagnostic::Problem;

/// Way of what programs of the device send, as far as no rule says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefaultWay {
    /// Leaves as the routes of the device say.
    #[default]
    Routes,
    /// Goes over the bond.
    Bond,
}

impl DefaultWay {
    /// Whether it is that of a file that does not name it.
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Checks it, with `kill_switch` as it is set beside, for an end that `carries` connections.
    pub(super) fn check(
        self,
        kill_switch: Option<bool>,
        role: Role,
        carries: bool,
    ) -> Result<(), Problem> {
        let at = |what: &str| Err(Problem::at_key(&["default"], what));
        match self {
            Self::Routes if kill_switch.is_some() => Err(Problem::at_key(
                &["kill_switch"],
                "it is about programs of this device, with default = \"bond\"; [lan] has its own \
                 for hosts",
            )),
            Self::Routes => Ok(()),
            Self::Bond if role == Role::Proxy => {
                at("the device has programs whose traffic goes over the bond: set it there")
            }
            Self::Bond if !carries => at(
                "it takes Multipath QUIC, or a converter: expected \"mpquic\" among `engines`, or [converter]",
            ),
            Self::Bond => Ok(()),
        }
    }
}
