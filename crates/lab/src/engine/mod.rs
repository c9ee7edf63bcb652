//! Engines that the lab runs: the keys of each in a scenario, what its daemons are told, and what
//! of a result is its own. To add one, write its file and one line of the list below.

pub(crate) mod config;
pub(crate) mod expected;
pub(crate) mod keys;
mod mpquic;
mod mptcp;
mod tcp;

use std::net::SocketAddr;
use std::path::Path;

use braid_api::Lane;
use braid_core::overhead;
use braid_netns::Topology;
use braid_traffic::Transport;
use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use crate::scenario::AccessSetup;
use crate::scenario::raw::RawCase;
use crate::scenario::{Case, Expect, PathManager, Place, Problem, Traffic, unknown};
use config::Configs;

pub use mpquic::Mpquic;
pub use mptcp::Mptcp;
pub use tcp::Tcp;

/// Port of the measured traffic at the proxy; bystanders use the next ones.
pub(crate) const PORT: u16 = 5001;
/// Port of the traffic beside it.
pub(crate) const BESIDE_PORT: u16 = PORT - 1;

/// Reads the name of an access that there is.
type AccessNamed<'a> = &'a dyn Fn(&Spanned<String>) -> Result<String, Problem>;

/// Keys of an engine in a case.
trait EngineKeys: Sized {
    /// Name in a scenario and in `summary.json`.
    const NAME: &'static str;
    /// Whether it has weights, which a policy may decide.
    const WEIGHTS: bool = true;

    /// Reads and checks the keys that are the engine's, and refuses those of others.
    ///
    /// # Errors
    /// Where, and what was expected.
    fn parse(raw: &RawCase, access: AccessNamed<'_>) -> Result<Self, Problem>;
}

/// An engine of a case, as the lab runs it.
pub(crate) trait LabEngine {
    /// The one access that it runs on; `None`: those of the case.
    fn access(&self) -> Option<&str> {
        None
    }

    /// Why it cannot carry `traffic` that begins at that place, if it cannot.
    fn refuses(&self, _traffic: &Traffic, _from: Place) -> Option<&'static str> {
        None
    }

    /// Reads the path manager of the case.
    ///
    /// # Errors
    /// It has none, or not that one.
    fn path_manager(&self, raw: &RawCase) -> Result<PathManager, Problem> {
        match &raw.path_manager {
            Some(given) => Err(Problem::at(given.span(), "only MPTCP has a path manager")),
            None => Ok(PathManager::Kernel),
        }
    }

    /// Reads the expectation that the device has of its accesses.
    ///
    /// # Errors
    /// Where, and what was expected.
    fn expect(&self, _raw: &RawCase, _seed: u64) -> Result<Option<Expect>, Problem> {
        Ok(None)
    }

    /// Scheduler where the case names none; `None`: it has no schedulers.
    fn default_scheduler(&self) -> Option<&'static str>;

    /// Congestion control where the case names none; `None`: the kernel's.
    fn default_cc(&self) -> Option<&'static str> {
        None
    }

    /// Lane that carries the data, where there are several.
    fn lane(&self) -> Option<Lane> {
        None
    }

    /// Whether the kernel carries the data. Otherwise the daemons do: connections of programs
    /// end at the daemon beside them, and nothing is left to the kernel.
    fn in_kernel(&self) -> bool {
        true
    }

    /// Protocol of the sockets of programs.
    fn sockets(&self) -> Transport {
        Transport::Tcp
    }

    /// Whether it opens subflows of the kernel's Multipath TCP.
    fn has_subflows(&self) -> bool {
        self.sockets() == Transport::Mptcp
    }

    /// Where programs at the device connect instead of to that port of the service at the proxy;
    /// `None`: there.
    fn forwarded(&self, _port: u16) -> Option<SocketAddr> {
        None
    }

    /// Whether the order of the accesses is set at the proxy, too: the device does not tell it.
    fn orders_at_both_ends(&self) -> bool {
        false
    }

    /// Engine of its daemons.
    fn daemons(&self) -> braid_api::Engine;

    /// Whether its daemons have a control loop, with a journal.
    fn has_journal(&self) -> bool {
        self.default_scheduler().is_some()
    }

    /// Adds what is its own to the configuration of the daemons; files of theirs go to `dir`.
    ///
    /// # Errors
    /// The files cannot be made.
    fn configure(
        &self,
        _case: &Case,
        _topology: &Topology,
        _dir: &Path,
        _configs: &mut Configs<'_>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    /// Headers that its packets carry, from which the ceiling is computed.
    fn transport(&self) -> overhead::Transport;

    /// The one access of a case over `accesses`, if it has one: its result is then that of a
    /// single path.
    fn single<'a>(&'a self, _accesses: &'a [AccessSetup]) -> Option<&'a str> {
        self.access()
    }

    /// Whether results of other engines, too, are compared with its single paths.
    fn is_reference(&self) -> bool {
        false
    }
}

/// An engine as a scenario names it.
struct Entry {
    name: &'static str,
    weights: bool,
    parse: fn(&RawCase, AccessNamed<'_>) -> Result<Engine, Problem>,
}

/// Makes [`Engine`] and the list of engines.
macro_rules! engines {
    ($($engine:ident,)*) => {
        /// The engine of a case.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each is documented at its struct")]
        pub enum Engine {
            $($engine($engine),)*
        }

        const ENGINES: &[Entry] = &[$(Entry {
            name: $engine::NAME,
            weights: $engine::WEIGHTS,
            parse: |raw, access| $engine::parse(raw, access).map(Engine::$engine),
        },)*];

        impl Engine {
            /// The word that a scenario and `summary.json` use.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $(Self::$engine(_) => $engine::NAME,)*
                }
            }

            pub(crate) fn get(&self) -> &dyn LabEngine {
                match self {
                    $(Self::$engine(engine) => engine,)*
                }
            }
        }
    };
}

engines! {
    Tcp,
    Mptcp,
    Mpquic,
}

/// Reads the engine of a case and its keys.
///
/// # Errors
/// No such engine, or what [`EngineKeys::parse`] finds.
pub(crate) fn parse(raw: &RawCase, access: AccessNamed<'_>) -> Result<Engine, Problem> {
    match ENGINES.iter().find(|e| e.name == raw.engine.get_ref()) {
        Some(entry) => (entry.parse)(raw, access),
        None => Err(unknown(
            &raw.engine,
            "engine",
            ENGINES.iter().map(|e| e.name),
        )),
    }
}

/// Whether there is an engine `name` with weights.
pub(crate) fn has_weights(name: &str) -> bool {
    ENGINES.iter().any(|e| e.name == name && e.weights)
}
