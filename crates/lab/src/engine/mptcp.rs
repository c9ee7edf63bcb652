//! The kernel's Multipath TCP over all accesses of the case.

use braid_core::overhead;
use braid_mptcp::offer;
use braid_traffic::Transport;
use serde::{Deserialize, Serialize};

use super::keys::{self, minrtt, mpquic, nothing_expected, policy_of, round_robin};
use super::{AccessNamed, EngineKeys, LabEngine};
use crate::scenario::raw::RawCase;
use crate::scenario::{Expect, PathManager, Place, Problem, Traffic, unknown};

/// Kernel MPTCP over all accesses of the case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mptcp;

impl EngineKeys for Mptcp {
    const NAME: &'static str = "mptcp";

    fn parse(raw: &RawCase, _access: AccessNamed<'_>) -> Result<Self, Problem> {
        if let Some(a) = &raw.access {
            return Err(Problem::at(
                a.span(),
                "MPTCP uses all accesses: to restrict it, list `accesses = [...]`",
            ));
        }
        mpquic(raw)?;
        if !policy_of(raw)?.decides() {
            let refusal = "only engine = \"mpquic\" has this, or policy = \"capacity\" in the case";
            nothing_expected(raw, refusal)?;
        }
        scheduling(raw)?;
        Ok(Self)
    }
}

impl LabEngine for Mptcp {
    fn refuses(&self, traffic: &Traffic, from: Place) -> Option<&'static str> {
        if from == Place::Lan {
            return Some(
                "connections of hosts go over Multipath QUIC: use engine = \"mpquic\", or \"tcp\" \
                 with the access that they are routed by",
            );
        }
        traffic.is_udp().then_some(
            "MPTCP does not carry UDP: use engine = \"tcp\" with the access that the datagrams take",
        )
    }

    fn path_manager(&self, raw: &RawCase) -> Result<PathManager, Problem> {
        let Some(given) = &raw.path_manager else {
            return Ok(PathManager::Kernel);
        };
        match given.get_ref().as_str() {
            "kernel" => Ok(PathManager::Kernel),
            "notified" => Ok(PathManager::Notified),
            "braid" => Ok(PathManager::Braid),
            _ => Err(unknown(
                given,
                "path manager",
                ["kernel", "notified", "braid"],
            )),
        }
    }

    fn expect(&self, raw: &RawCase, seed: u64) -> Result<Option<Expect>, Problem> {
        keys::expect(raw, seed)
    }

    fn default_scheduler(&self) -> Option<&'static str> {
        Some("default")
    }

    fn sockets(&self) -> Transport {
        Transport::Mptcp
    }

    fn daemons(&self) -> braid_api::Engine {
        braid_api::Engine::Mptcp
    }

    fn transport(&self) -> overhead::Transport {
        overhead::Transport::Mptcp
    }
}

/// The scheduler's keys of an MPTCP case. Which schedulers there are the kernel
/// says that runs it.
fn scheduling(raw: &RawCase) -> Result<(), Problem> {
    let name = raw.scheduler.as_ref().map_or("default", |s| s.get_ref());
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if let Some(s) = &raw.scheduler
        && (name.is_empty() || name.len() > 15 || !name.chars().all(word))
    {
        return Err(Problem::at(
            s.span(),
            "a scheduler's name has 1 to 15 letters, digits, '-' and '_'",
        ));
    }
    if name == "default"
        && let Some(w) = &raw.weights
    {
        return Err(Problem::at(
            w.span(),
            "the kernel's default scheduler has no weights: add scheduler = \"wrr\"",
        ));
    }
    if !offer::SCHEDULERS.contains(&name) {
        round_robin(raw, "only the schedulers \"rr\" and \"wrr\" have this")?;
    }
    if name != "minrtt" {
        minrtt(raw, "only the scheduler \"minrtt\" has this")?;
    }
    if let Some(n) = &raw.num_segments
        && *n.get_ref() == 0
    {
        return Err(Problem::at(n.span(), "expected 1 to 255 segments"));
    }
    Ok(())
}
