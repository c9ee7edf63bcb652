//! The path of the least round-trip time that has room: the default of MPTCP
//! v0.96 and of most implementations of Multipath QUIC.

use super::view::{fastest_and_next, taking_part};
use super::{Decision, Flow, PathView, Paths, Scheduler};
use crate::Time;

/// Least round-trip time first.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn name(&self) -> &'static str {
        "minrtt"
    }

    fn by_delay(&self) -> bool {
        true
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        match fastest_and_next(paths) {
            Ok((_, path)) => Decision::Send {
                path,
                most: paths[path].room(),
            },
            Err(until) => Decision::Wait(until),
        }
    }

    fn free_for_lost(&self, paths: &[PathView]) -> Option<Paths> {
        Some(taking_part(paths).map(|(i, _)| i).collect())
    }
}
