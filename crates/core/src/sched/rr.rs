//! Round robin: as [`wrr`](super::WeightedRoundRobin) with weights that are alike.

use super::WrrMode;
use super::round::Round;
use super::{Decision, Flow, PathView, Paths, Scheduler};
use crate::Time;

/// Round robin.
#[derive(Clone, Debug)]
pub struct RoundRobin(Round);

impl RoundRobin {
    /// Strict or work-conserving.
    pub fn new(mode: WrrMode) -> Self {
        Self(Round::new(mode))
    }
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "rr"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        self.0.decide(paths, |_| 1.0)
    }

    fn free_for_lost(&self, paths: &[PathView]) -> Option<Paths> {
        self.0.free_for_lost(paths, |_| 1.0)
    }

    fn sent(&mut self, paths: &[PathView], path: usize, bytes: u64) {
        self.0.sent(paths[path].id, bytes);
    }
}
