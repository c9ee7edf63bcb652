//! Smallest-delay (3GPP TS 23.501 5.32.8): all by the path of the smallest round-trip
//! time, and by another once that is clearly smaller.

use super::view::{fastest, only_backups, takes_part};
use super::{Decision, Flow, PathView, Scheduler, Until};
use crate::Time;

/// Another is chosen when its round-trip time is below this part of the present one:
/// what is sent fills the queue of the path that carries it, and without a margin
/// two like paths would take turns.
const CLEARLY: f64 = 0.8;

/// One path at a time, that of the smallest delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmallestDelay {
    present: Option<u32>,
}

impl Scheduler for SmallestDelay {
    fn name(&self) -> &'static str {
        "smallest-delay"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        let Some(best) = fastest(paths, false) else {
            return Decision::Wait(Until::Path);
        };
        let backups = only_backups(paths);
        let present = |p: &PathView| Some(p.id) == self.present && takes_part(p, backups);
        let path = match paths.iter().position(present) {
            Some(now) if paths[best].srtt >= paths[now].srtt.mul_f64(CLEARLY) => now,
            _ => best,
        };
        self.present = Some(paths[path].id);
        match paths[path].has_room() {
            true => Decision::Send {
                path,
                most: paths[path].room(),
            },
            false => Decision::Wait(Until::Room(path)),
        }
    }
}
