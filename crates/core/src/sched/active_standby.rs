//! Active-standby (3GPP TS 23.501 5.32.8): all by the active path, by the next in
//! the order only while it cannot be used.

use super::view::{only_backups, takes_part};
use super::{Decision, Flow, PathView, Scheduler, Until};
use crate::Time;

/// Leaves usable only paths with priority 0 that take part: active-standby without a standby. Nothing
/// leaves on another then, whatever happens to the active access; neither does a copy.
pub fn confine(paths: &mut [PathView]) {
    let backups = only_backups(paths);
    for p in paths {
        p.usable = p.priority == 0 && takes_part(p, backups);
    }
}

/// The first usable path of the order, backups last.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActiveStandby;

impl Scheduler for ActiveStandby {
    fn name(&self) -> &'static str {
        "active-standby"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        let usable = paths.iter().enumerate().filter(|(_, p)| p.usable);
        let active = usable.min_by_key(|(_, p)| (p.backup, p.priority));
        match active {
            None => Decision::Wait(Until::Path),
            // A full window is no reason to leave it.
            Some((path, p)) if !p.has_room() => Decision::Wait(Until::Room(path)),
            Some((path, p)) => Decision::Send {
                path,
                most: p.room(),
            },
        }
    }
}
