//! The path of the least round-trip time that has room: the default of MPTCP
//! v0.96 and of most implementations of Multipath QUIC.

use super::view::fastest_and_next;
use super::{Decision, Flow, PathView, Scheduler};
use crate::Time;

/// Least round-trip time first.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn name(&self) -> &'static str {
        "minrtt"
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
}
