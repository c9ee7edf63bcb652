//! A command of the user's in the device's namespace.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Given, TrafficKind};
use crate::scenario::diagnostic::Problem;

/// A command of the user's in the device's namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The command line; `{proxy}` and `{device}` stand for addresses.
    pub run: String,
    /// Command line in the proxy's namespace, started before.
    pub server: Option<String>,
    /// When it is stopped; the case's duration by default.
    pub time_limit: Option<Duration>,
}

impl TrafficKind for Command {
    const NAME: &'static str = "command";
    const KEYS: &'static [&'static str] = &["run", "server", "time_limit"];

    fn parse(given: &Given<'_>) -> Result<Self, Problem> {
        let run = given.table.run.as_ref();
        let Some(run) = run.filter(|r| !r.get_ref().trim().is_empty()) else {
            return Err(Problem::at(
                given.span.clone(),
                "traffic \"command\" needs `run`, such as \"iperf3 -c {proxy} -R\"",
            ));
        };
        let (server, limit) = (&given.table.server, &given.table.time_limit);
        Ok(Self {
            run: run.get_ref().clone(),
            server: server.as_ref().map(|s| s.get_ref().clone()),
            time_limit: limit.as_ref().map(|t| t.get_ref().0),
        })
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn as_much_as_passes(&self) -> bool {
        true
    }

    /// Commands are started as they are, not by a specification.
    fn ours(&self) -> Option<braid_traffic::Kind> {
        None
    }
}
