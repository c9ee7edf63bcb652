//! Control updates to the peer, pending until they are acknowledged: credit, expected rates,
//! resets and stops.

use std::collections::{BTreeMap, BTreeSet};

use noq_proto::PathId;

use super::wire::Frame;

/// Control update; a later one with the same key replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Update {
    /// Bytes that the peer may send on all channels together, from the first on.
    CreditOfAll(u64),
    /// Number of a channel, and bytes that the peer may send on it, from the first on.
    Credit(u64, u64),
    /// Path of QUIC, the rate that it is expected to carry to this end, bytes per second, and the
    /// number of the expectation.
    Expected(PathId, u64, u64),
    /// Reset of a channel: its number, error code and final size.
    Reset(u64, u64, u64),
    /// Request to the sender of a channel to stop: its number and the error code.
    Stop(u64, u64),
}

/// Subject of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UpdateKey {
    All,
    Channel(u64),
    Path(PathId),
    Reset(u64),
    Stop(u64),
}

impl Update {
    fn frame(self) -> Frame {
        match self {
            Self::CreditOfAll(max) => Frame::CreditOfAll { max },
            Self::Credit(channel, max) => Frame::Credit { channel, max },
            Self::Expected(path, rate, number) => Frame::Expected { path, rate, number },
            Self::Reset(channel, code, size) => Frame::Reset {
                channel,
                code,
                size,
            },
            Self::Stop(channel, code) => Frame::Stop { channel, code },
        }
    }

    fn key(self) -> UpdateKey {
        match self {
            Self::CreditOfAll(_) => UpdateKey::All,
            Self::Credit(channel, _) => UpdateKey::Channel(channel),
            Self::Expected(path, ..) => UpdateKey::Path(path),
            Self::Reset(channel, ..) => UpdateKey::Reset(channel),
            Self::Stop(channel, _) => UpdateKey::Stop(channel),
        }
    }
}

/// Maximum bytes of a frame.
const FRAME: usize = 1 + 8 + 8 + 8;

/// Pending updates: the latest of each key.
#[derive(Debug, Default)]
pub(super) struct ControlUpdates {
    latest: BTreeMap<UpdateKey, Update>,
    /// Keys whose latest update has not left since it changed or was lost.
    unsent: BTreeSet<UpdateKey>,
}

impl ControlUpdates {
    /// Queues an update, which replaces the one before it.
    pub(super) fn set(&mut self, update: Update) {
        self.latest.insert(update.key(), update);
        self.unsent.insert(update.key());
    }

    /// Takes back the credit of a channel, which needs none any more.
    pub(super) fn forget_credit(&mut self, channel: u64) {
        self.forget(UpdateKey::Channel(channel));
    }

    /// Takes back the stop of a channel, whose sender has stopped.
    pub(super) fn forget_stop(&mut self, channel: u64) {
        self.forget(UpdateKey::Stop(channel));
    }

    /// Takes back the expected rate of a path of QUIC that has ended.
    pub(super) fn forget_path(&mut self, path: PathId) {
        self.forget(UpdateKey::Path(path));
    }

    fn forget(&mut self, key: UpdateKey) {
        self.latest.remove(&key);
        self.unsent.remove(&key);
    }

    /// Returns the number of updates that the peer has not acknowledged.
    pub(super) fn len(&self) -> usize {
        self.latest.len()
    }

    /// Returns the number of updates that wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.unsent.len()
    }

    /// Returns the next update to be sent, if it fits into `room` bytes, and its bytes at most.
    pub(super) fn next(&mut self, room: usize) -> Option<(Frame, Update, usize)> {
        if room < FRAME {
            return None;
        }
        let key = self.unsent.pop_first()?;
        let update = *self.latest.get(&key)?;
        Some((update.frame(), update, FRAME))
    }

    /// Notes that the peer has acknowledged an update.
    pub(super) fn acked(&mut self, update: Update) {
        if self.latest.get(&update.key()) == Some(&update) {
            self.forget(update.key());
        }
    }

    /// Queues an update again that may be lost, if it is the latest of its key.
    pub(super) fn lost(&mut self, update: Update) {
        if self.latest.get(&update.key()) == Some(&update) {
            self.unsent.insert(update.key());
        }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        64 * (self.latest.len() + self.unsent.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_sent_until_it_is_acknowledged() {
        let mut t = ControlUpdates::default();
        let next = |t: &mut ControlUpdates| t.next(100).map(|(_, update, _)| update);
        let (old, new) = (Update::Credit(7, 10), Update::Credit(7, 20));
        t.set(old);
        assert_eq!(next(&mut t), Some(old));
        assert_eq!(next(&mut t), None);
        t.set(new);
        t.acked(old);
        assert_eq!(next(&mut t), Some(new));
        t.lost(old);
        assert_eq!(next(&mut t), None);
        t.lost(new);
        t.set(Update::CreditOfAll(5));
        assert!(t.waiting() == 2 && t.next(FRAME - 1).is_none());
        assert_eq!(next(&mut t), Some(Update::CreditOfAll(5)));
        assert_eq!(next(&mut t), Some(new));
        t.acked(new);
        t.acked(Update::CreditOfAll(5));
        assert_eq!(t.cost(), 0);
        t.set(old);
        let (path, other) = (
            PathId::from(7_u32),
            Update::Expected(PathId::from(7_u32), 1, 1),
        );
        t.set(other);
        t.forget_credit(7);
        assert_eq!(next(&mut t), Some(other));
        t.forget_path(path);
        assert_eq!((next(&mut t), t.cost()), (None, 0));
    }
}
