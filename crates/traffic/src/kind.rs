//! Kinds of traffic. To add one, write its file and one line of the list below.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bulk::Bulk;
use super::cbr::Cbr;
use super::error::Result;
use super::rr::RequestResponse;
use super::session::Session;
use super::spec::{Direction, Role, TrafficSpec};
use super::video::Video;
use super::voip::Voip;
use super::web::Web;

/// One kind of traffic, with its parameters.
pub(crate) trait TrafficKind: fmt::Debug {
    /// Name, as `summary.json` has it.
    fn name(&self) -> &'static str;

    /// Checks what the types of its parameters do not.
    ///
    /// # Errors
    /// [`super::TrafficError::Spec`] that names the field and what it may be.
    fn check(&self, spec: &TrafficSpec) -> Result<()>;

    /// Runs one end to its end.
    fn run(&self, session: &mut Session<'_, '_>) -> Result<()>;

    /// Whether UDP can carry it.
    fn over_udp(&self) -> bool {
        false
    }

    /// Whether the end of that role sends payload.
    fn sends(&self, role: Role, direction: Direction) -> bool {
        match direction {
            Direction::Both => true,
            Direction::Down => role == Role::Server,
            Direction::Up => role == Role::Client,
        }
    }

    /// Whether data is due at that end at times that it knows.
    fn is_due(&self, _role: Role) -> bool {
        true
    }

    /// Size of the transfer, bytes, if it is fixed.
    fn fixed_bytes(&self) -> Option<u64> {
        None
    }
}

/// Makes [`Kind`] of the structs that hold the parameters.
macro_rules! kinds {
    ($($kind:ident,)*) => {
        /// Kind of traffic.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        #[allow(missing_docs, reason = "each is documented at its struct")]
        pub enum Kind {
            $($kind($kind),)*
        }

        impl Kind {
            pub(crate) fn get(&self) -> &dyn TrafficKind {
                match self {
                    $(Self::$kind(kind) => kind,)*
                }
            }
        }
    };
}

kinds! {
    Bulk,
    RequestResponse,
    Cbr,
    Video,
    Voip,
    Web,
}

impl Kind {
    /// As `summary.json` calls it.
    pub fn name(&self) -> &'static str {
        self.get().name()
    }
}
