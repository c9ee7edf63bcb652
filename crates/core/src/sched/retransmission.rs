//! Choice of the path for lost data. Such data holds up what the receiver has already, so it
//! is not sent on just any path that has room: rather than behind a long queue it waits for
//! room on a better path, as with ECF (Lim et al.: ECF: An MPTCP Path Scheduler to Manage
//! Heterogeneous Paths, CoNEXT 2017).

use std::cmp::Ordering;

use super::{Decision, PathView, Paths, Until};

/// Factor that room is worth: a path without any has to be that much faster (ECF's beta). It is
/// not worth more, as what waits for room finds the queue shorter by as much, also where a loss
/// has just cut the window.
const ROOM: f64 = 1.25;

/// The path of `free` that would be done first with all of `lost` bytes, sending a window with
/// every round trip; one that may be dead only where all are.
pub(super) fn decide(paths: &[PathView], free: Paths, lost: u64, late: Paths) -> Decision {
    let time = |i: &usize| {
        let p = &paths[*i];
        let time = p.srtt.as_secs_f64() * (1.0 + lost as f64 / p.window as f64);
        time * if p.has_room() { 1.0 } else { ROOM }
    };
    let order = |i: &usize| (late.contains(*i), time(i));
    let first = free
        .iter()
        .min_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(Ordering::Equal));
    match first {
        Some(path) if paths[path].has_room() => Decision::Send {
            path,
            most: paths[path].burst(),
        },
        Some(path) => Decision::Wait(Until::Room(path)),
        None => Decision::Wait(Until::Path),
    }
}
