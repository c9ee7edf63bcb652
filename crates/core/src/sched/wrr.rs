//! Weighted round robin (Navarro-Ortiz et al., Sensors 2024, 24, 6022, section 5;
//! load-balancing of 3GPP TS 23.501 5.32.8), with weights that change live.
//!
//! Strict, the ratio holds to within a quantum over any interval, and the path that
//! is slowest for its weight sets the pace. Work-conserving, a path without room is
//! passed over: every window is filled and the ratio is only aimed at.

use super::WrrMode;
use super::round::Round;
use super::{Decision, Flow, PathView, Paths, Scheduler};
use crate::Time;

/// Weighted round robin.
#[derive(Clone, Debug)]
pub struct WeightedRoundRobin(Round);

impl WeightedRoundRobin {
    /// Strict or work-conserving.
    pub fn new(mode: WrrMode) -> Self {
        Self(Round::new(mode))
    }
}

impl Scheduler for WeightedRoundRobin {
    fn name(&self) -> &'static str {
        "wrr"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        self.0.decide(paths, |p| p.weight)
    }

    fn free_for_lost(&self, paths: &[PathView]) -> Option<Paths> {
        self.0.free_for_lost(paths, |p| p.weight)
    }

    fn sent(&mut self, paths: &[PathView], path: usize, bytes: u64) {
        self.0.sent(paths[path].id, bytes);
    }
}
