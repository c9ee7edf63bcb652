//! Redundant (3GPP TS 23.501 5.32.8): every packet on every path.
//!
//! New data leaves on whichever paths have room, also where the fastest has none: that one may be
//! dead, and nobody knows yet. The engine sends it on the others as soon as they have room, before
//! anything new, so that new data goes at the pace of the fastest; what a slow one has no room for in
//! time it does without.

use super::view::taking_part;
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
        let mut all = taking_part(paths).peekable();
        if all.peek().is_none() {
            return Decision::Wait(Until::Path);
        }
        let free: super::Paths = all.filter(|(_, p)| p.has_room()).map(|(i, _)| i).collect();
        match free.is_empty() {
            true => Decision::Wait(Until::AnyRoom),
            false => Decision::Copies(free),
        }
    }

    fn copies(&self) -> bool {
        true
    }
}
