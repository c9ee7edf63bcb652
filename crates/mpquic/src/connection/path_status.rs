//! Whether a path is to be used, as QUIC is told (draft-ietf-quic-multipath,
//! PATH_STATUS_AVAILABLE and PATH_STATUS_BACKUP).
//!
//! What an end says of a path moves its own acknowledgements and data off it, and asks the
//! peer for the same. Peers like this one follow, and say so with a status of their own,
//! which must not be followed in turn: after a change of its own, an end takes no notice
//! of what the peer says for a while.

use std::time::{Duration, Instant};

use noq_proto::PathStatus;

/// Time after a change of its own in which an end does not follow the peer: longer than the
/// peer's answer is under way.
const IGNORE_PEER_FOR: Duration = Duration::from_secs(1);

/// Returns the QUIC status of a path.
pub(super) fn status(backup: bool) -> PathStatus {
    match backup {
        true => PathStatus::Backup,
        false => PathStatus::Available,
    }
}

/// Statuses of one path, by both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathStatusState {
    /// Whether the peer wants it to be a backup.
    peer_wants_backup: bool,
    /// Whether this end has it as a backup because the peer wants that.
    following_peer: bool,
    /// When this end changed what it wants itself.
    changed_at: Option<Instant>,
}

impl PathStatusState {
    /// Notes that this end has changed what it wants.
    pub(super) fn change(&mut self, now: Instant) {
        (self.following_peer, self.changed_at) = (false, Some(now));
    }

    /// Takes the status that the peer has sent.
    pub(super) fn set_peer(&mut self, status: Option<PathStatus>) {
        self.peer_wants_backup = status == Some(PathStatus::Backup);
    }

    /// Follows what the peer wants, unless this end changed what it wants less than
    /// [`IGNORE_PEER_FOR`] ago. Returns whether that changes anything.
    pub(super) fn follow_peer(&mut self, now: Instant) -> bool {
        let before = self.following_peer;
        if self.changed_at.is_none_or(|t| t + IGNORE_PEER_FOR <= now) {
            (self.following_peer, self.changed_at) = (self.peer_wants_backup, None);
        }
        self.following_peer != before
    }

    /// Returns whether this end has the path as a backup because the peer wants that.
    pub(super) fn is_following_peer(&self) -> bool {
        self.following_peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ends that follow each other, `late` apart.
    fn converge(late: Duration, changes: &[(u64, usize, bool)]) -> [bool; 2] {
        let begin = Instant::now();
        let mut own = [false; 2];
        let mut state = [PathStatusState::default(); 2];
        let mut level = [false; 2];
        let mut wire: Vec<(Instant, usize, bool)> = Vec::new();
        for ms in 0..20_000 {
            let now = begin + Duration::from_millis(ms);
            for (_, end, wants) in changes.iter().filter(|c| c.0 == ms) {
                own[*end] = *wants;
                state[*end].change(now);
            }
            wire.retain(|(at, to, left)| {
                if *at == now {
                    state[*to].peer_wants_backup = *left;
                }
                *at > now
            });
            for end in [0, 1] {
                state[end].follow_peer(now);
                let left = own[end] || state[end].following_peer;
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
