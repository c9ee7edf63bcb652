//! Redundant (3GPP TS 23.501 5.32.8): every packet on every path.
//!
//! New data goes at the pace of the fastest path; what another has no room for then
//! it does without, so that a slow one holds nobody up.

use super::view::{fastest, taking_part};
use super::{Decision, Flow, PathView, Scheduler, Until};
use crate::Time;

/// Copies on all paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        let Some(fast) = fastest(paths, false) else {
            return Decision::Wait(Until::Path);
        };
        if !paths[fast].has_room() {
            return Decision::Wait(Until::Room(fast));
        }
        let all = taking_part(paths).filter(|(_, p)| p.has_room());
        Decision::Copies(all.map(|(i, _)| i).collect())
    }

    fn copies(&self) -> bool {
        true
    }
}
