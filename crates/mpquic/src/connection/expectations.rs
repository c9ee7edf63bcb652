//! Rates that paths are expected to carry before anything was sent on them: the device knows of
//! its accesses, and tells the proxy, which sends most.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_core::Rate;
use noq_proto::PathId;

use super::access_set::AccessSet;
use super::path_set::Path;
use crate::congestion::{CongestionSet, Jump};
use crate::lane::Expectation;

/// Maximum expectations of paths that are not here yet: as many as there are paths.
const MAX_PENDING: usize = 64;

/// A path that has losses behind it begins anew when so many times as much is expected of it
/// as since it began: less is what congestion control finds by itself, and errors of what a
/// device measures.
const RISE: f64 = 1.25;

/// Returns a rate in bytes per second.
pub(super) fn bytes(rate: Rate) -> u64 {
    rate.as_bps() / 8
}

/// Expectations of the peer.
#[derive(Debug)]
pub(super) struct PeerExpectations {
    /// Whether they are applied.
    trusted: bool,
    /// Expectations of paths that are not here yet.
    pending: BTreeMap<PathId, Expectation>,
}

impl PeerExpectations {
    pub(super) fn new(trusted: bool) -> Self {
        Self {
            trusted,
            pending: BTreeMap::new(),
        }
    }

    /// Returns whether they are applied.
    pub(super) fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Keeps the expectation of a path that is not here yet.
    pub(super) fn keep(&mut self, path: PathId, expectation: Expectation) {
        expectation.join(&mut self.pending, path);
        // Numbers of paths only grow.
        if self.pending.len() > MAX_PENDING {
            self.pending.pop_first();
        }
    }

    /// Takes the expectation of a path that is here now, or has ended.
    pub(super) fn take(&mut self, path: PathId) -> Option<Expectation> {
        self.pending.remove(&path)
    }
}

/// Returns the rate expected of a path that this end sends on, bytes per second.
pub(super) fn expected_rate(path: &Path, accesses: &AccessSet, client: bool) -> Option<u64> {
    let own = path.access.and_then(|i| accesses[i].expected.up);
    let known = |e: Expectation| (e.rate > 0).then_some(e.rate);
    match client {
        true => own.map(bytes),
        false => path.expected.and_then(known),
    }
}

/// Returns the jump that a path begins with by the rate that is expected of it.
pub(super) fn expected_jump(rate: Option<u64>, rtt: Option<Duration>) -> Option<Jump> {
    Jump::to(rate? as f64, rtt?)
}

/// Applies a change of the rate that is expected of a path: it counts while the path is fresh,
/// and later where it rises.
pub(super) fn apply(
    path: &mut Path,
    rate: Option<u64>,
    rtt: Option<Duration>,
    congestion: &CongestionSet,
) {
    if !path.established {
        return;
    }
    let rises = rate.zip(path.min_expected);
    let rises = rises.is_some_and(|(now, min)| now as f64 >= RISE * min as f64);
    let min = path.min_expected.filter(|_| !rises);
    path.min_expected = rate.map(|now| min.map_or(now, |m| m.min(now)));
    let mut slots = congestion.lock();
    let slot = &mut slots[path.slot];
    match (expected_jump(rate, rtt), rate) {
        (Some(jump), _) if slot.slow_start && slot.lost == 0 => slot.resume(jump),
        (_, Some(rate)) if rises => slot.renew(rate as f64),
        _ => slot.stay(),
    }
}
