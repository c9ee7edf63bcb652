//! Whether a path is to be used, as QUIC is told (draft-ietf-quic-multipath,
//! PATH_STATUS_AVAILABLE and PATH_STATUS_BACKUP).
//!
//! What an end says of a path moves its own acknowledgements and data off it, and asks the
//! peer for the same. Peers like this one follow, and say so with a status of their own,
//! which must not be followed in turn: after a change of its own, an end takes no notice
//! of what the peer says for a while.

use std::time::{Duration, Instant};

use noq_proto::{PathId, PathStatus};

use super::Connection;

/// Longer than what the peer answers with is under way.
const OWN: Duration = Duration::from_secs(1);

/// Returns the QUIC status of a path.
pub(super) fn status(backup: bool) -> PathStatus {
    match backup {
        true => PathStatus::Backup,
        false => PathStatus::Available,
    }
}

/// Statuses that both ends have said of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// The peer wants it to be left.
    theirs: bool,
    /// Whether this end leaves it because the peer wants that.
    followed: bool,
    /// When this end changed what it wants itself.
    changed: Option<Instant>,
}

impl Said {
    /// Follows what the peer wants, unless this end changed what it wants less than [`OWN`] ago.
    fn settle(&mut self, now: Instant) {
        if self.changed.is_none_or(|t| t + OWN <= now) {
            (self.followed, self.changed) = (self.theirs, None);
        }
    }
}

impl Connection {
    /// This end wants path number `i` to be used, or left, from now on.
    pub(super) fn want(&mut self, i: usize, now: Instant) {
        let said = &mut self.paths[i].said;
        (said.followed, said.changed) = (false, Some(now));
        self.say(i);
    }

    /// How access number `access` is used has changed.
    pub(super) fn want_access(&mut self, access: usize, now: Instant) {
        for i in 0..self.paths.len() {
            if self.paths[i].access == Some(access) {
                self.want(i, now);
            }
        }
    }

    /// The peer has said how a path is to be used; perhaps not for the last time: frames
    /// overtake each other on paths, and the library tells of those that count no more, too.
    pub(super) fn wanted(&mut self, id: PathId, now: Instant) {
        let theirs = self.quic.remote_path_status(id);
        if let Some(p) = self.paths.iter_mut().find(|p| p.id == id) {
            p.said.theirs = theirs == Some(PathStatus::Backup);
        }
        self.settle(now);
    }

    /// Follows what the peer wants, where it is not an answer to this end's own.
    pub(super) fn settle(&mut self, now: Instant) {
        for i in 0..self.paths.len() {
            let said = &mut self.paths[i].said;
            let before = said.followed;
            said.settle(now);
            if said.followed != before {
                self.say(i);
            }
        }
    }

    fn say(&mut self, i: usize) {
        let p = &self.paths[i];
        let backup = p.access.is_some_and(|a| self.accesses[a].backup);
        let now = status(p.held || backup || p.said.followed);
        if self.quic.path_status(p.id).is_ok_and(|s| s != now) {
            let _ = self.quic.set_path_status(p.id, now);
        }
        self.outbox.own.stir();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ends that follow each other, `late` apart.
    fn converge(late: Duration, changes: &[(u64, usize, bool)]) -> [bool; 2] {
        let begin = Instant::now();
        let mut own = [false; 2];
        let mut said = [Said::default(); 2];
        let mut level = [false; 2];
        let mut wire: Vec<(Instant, usize, bool)> = Vec::new();
        for ms in 0..20_000 {
            let now = begin + Duration::from_millis(ms);
            for (_, end, wants) in changes.iter().filter(|c| c.0 == ms) {
                own[*end] = *wants;
                (said[*end].followed, said[*end].changed) = (false, Some(now));
            }
            wire.retain(|(at, to, left)| {
                if *at == now {
                    said[*to].theirs = *left;
                }
                *at > now
            });
            for end in [0, 1] {
                said[end].settle(now);
                let left = own[end] || said[end].followed;
                if left != level[end] {
                    level[end] = left;
                    wire.push((now + late, 1 - end, left));
                }
            }
        }
        assert!(wire.is_empty(), "it goes round in circles");
        level
    }

    #[test]
    fn ends_that_follow_each_other_come_to_rest() {
        let at = Duration::from_millis;
        for late in [at(1), at(50), at(400)] {
            // One leaves it and takes it back, sooner or later than an answer takes.
            for back in [10, 60, 500, 900, 3000, 9000] {
                let seen = converge(late, &[(10, 0, true), (10 + back, 0, false)]);
                assert_eq!(seen, [false; 2], "{late:?} {back}");
            }
            assert_eq!(converge(late, &[(10, 0, true)]), [true; 2]);
            // Both do, and one goes on to.
            let both = [(10, 0, true), (20, 1, true), (700, 0, false)];
            assert_eq!(converge(late, &both), [true; 2]);
            let both = [
                (10, 0, true),
                (20, 1, true),
                (700, 0, false),
                (5000, 1, false),
            ];
            assert_eq!(converge(late, &both), [false; 2]);
        }
    }
}
