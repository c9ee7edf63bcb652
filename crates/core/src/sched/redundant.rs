//! Redundant (3GPP TS 23.501 5.32.8): packets on several paths, in four forms.
//!
//! | primary access | thresholds | what leaves where |
//! |---|---|---|
//! | no | no | every packet on every path |
//! | no | yes | on the fastest path within the thresholds; on every path while none is within |
//! | yes | no | every packet on the primary; on the others where they have room |
//! | yes | yes | every packet on the primary; on the others, too, while the primary is above |
//!
//! Without a primary, new data leaves on whichever paths have room, also where the fastest has none:
//! that one may be dead, and nobody knows yet. The engine sends it on the others as soon as they have
//! room, before anything new, so that new data goes at the pace of the fastest; what a slow one has no
//! room for in time it does without. With a primary, new data goes at the pace of that one. Where no
//! path of the primary takes part, the others carry as without one.

use super::view::taking_part;
use super::{Decision, Flow, PathView, Paths, Scheduler, Until};
use crate::Time;

/// Copies on several paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant {
    /// Whether there is a primary access: that of the paths with priority 0.
    pub primary: bool,
    /// Whether copies are made only while thresholds are exceeded ([`PathView::exceeds`]).
    pub thresholds: bool,
}

impl Scheduler for Redundant {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        let those = |is: &dyn Fn(&PathView) -> bool| -> Paths {
            let all = taking_part(paths).filter(|(_, p)| is(p));
            all.map(|(i, _)| i).collect()
        };
        if those(&|_| true).is_empty() {
            return Decision::Wait(Until::Path);
        }
        let with_room = those(&|p| p.has_room());
        let primary = those(&|p| self.primary && p.priority == 0);
        if let Some(first) = fastest(paths, primary) {
            let is_good = self.thresholds && primary.iter().any(|i| !paths[i].exceeds);
            let free: Paths = with_room.iter().filter(|i| primary.contains(*i)).collect();
            return match fastest(paths, free) {
                None => Decision::Wait(Until::Room(first)),
                Some(path) if is_good => Decision::Send {
                    path,
                    most: paths[path].room(),
                },
                Some(_) => Decision::Copies(with_room),
            };
        }
        let within = those(&|p| self.thresholds && !p.exceeds);
        if !within.is_empty() {
            let free: Paths = with_room.iter().filter(|i| within.contains(*i)).collect();
            return fastest(paths, free).map_or(Decision::Wait(Until::AnyRoom), |path| {
                let most = paths[path].room();
                Decision::Send { path, most }
            });
        }
        match with_room.is_empty() {
            true => Decision::Wait(Until::AnyRoom),
            false => Decision::Copies(with_room),
        }
    }

    fn copies(&self) -> bool {
        true
    }
}

/// Returns the path of the least round-trip time.
fn fastest(paths: &[PathView], of: Paths) -> Option<usize> {
    of.iter().min_by_key(|i| paths[*i].srtt)
}
