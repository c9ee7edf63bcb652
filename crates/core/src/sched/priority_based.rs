//! Priority-based (3GPP TS 23.501 5.32.8): by the path of the highest priority until
//! that is congested, the rest by the next. Congested means that its window is full.

use super::view::taking_part;
use super::{Decision, Flow, PathView, Scheduler, Until};
use crate::Time;

/// The first of the order that has room; among equals, the one of the smaller
/// round-trip time. Backups only where there are no others.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriorityBased;

impl Scheduler for PriorityBased {
    fn name(&self) -> &'static str {
        "priority-based"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        let usable = || taking_part(paths);
        let with_room = usable().filter(|(_, p)| p.has_room());
        match with_room.min_by_key(|(_, p)| (p.priority, p.srtt)) {
            Some((path, p)) => Decision::Send {
                path,
                most: p.room(),
            },
            None if usable().next().is_some() => Decision::Wait(Until::AnyRoom),
            None => Decision::Wait(Until::Path),
        }
    }
}
