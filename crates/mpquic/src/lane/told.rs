//! Words to the peer, pending until they are acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use noq_proto::PathId;

use super::outgoing::Piece;
use super::wire::Frame;

/// Something that the peer is told; what is said later of the same counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    /// How many bytes it may send on all channels together, from the first on.
    CreditOfAll(u64),
    /// Number of a channel, and how many bytes the peer may send on it, from the first on.
    Credit(u64, u64),
    /// Path of QUIC, the rate that it is expected to carry to this end, bytes per second, and the
    /// number of the word.
    Expected(PathId, u64, u64),
    /// A channel is reset: its error code and its final size.
    Reset(u64, u64, u64),
    /// A channel is to be stopped by its sender: the error code.
    Stop(u64, u64),
}

/// Subject of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    All,
    Channel(u64),
    Path(PathId),
    Reset(u64),
    Stop(u64),
}

impl Word {
    fn frame(self) -> Frame {
        match self {
            Self::CreditOfAll(most) => Frame::CreditOfAll { most },
            Self::Credit(channel, most) => Frame::Credit { channel, most },
            Self::Expected(path, rate, number) => Frame::Expected { path, rate, number },
            Self::Reset(channel, code, size) => Frame::Reset {
                channel,
                code,
                size,
            },
            Self::Stop(channel, code) => Frame::Stop { channel, code },
        }
    }

    fn of(self) -> Of {
        match self {
            Self::CreditOfAll(_) => Of::All,
            Self::Credit(channel, _) => Of::Channel(channel),
            Self::Expected(path, ..) => Of::Path(path),
            Self::Reset(channel, ..) => Of::Reset(channel),
            Self::Stop(channel, _) => Of::Stop(channel),
        }
    }
}

/// Bytes of a frame, at most.
const FRAME: usize = 1 + 8 + 8 + 8;

/// Pending words: the latest of each subject.
#[derive(Debug, Default)]
pub(super) struct Told {
    latest: BTreeMap<Of, Word>,
    /// Subjects whose latest word has not left since it changed or was lost.
    untold: BTreeSet<Of>,
}

impl Told {
    pub(super) fn set(&mut self, word: Word) {
        self.latest.insert(word.of(), word);
        self.untold.insert(word.of());
    }

    /// Takes back the credit of a channel, which needs none any more.
    pub(super) fn forget_credit(&mut self, channel: u64) {
        self.forget(Of::Channel(channel));
    }

    /// Takes back the stop of a channel, whose sender has stopped.
    pub(super) fn forget_stop(&mut self, channel: u64) {
        self.forget(Of::Stop(channel));
    }

    /// A path of QUIC has ended.
    pub(super) fn forget_path(&mut self, path: PathId) {
        self.forget(Of::Path(path));
    }

    fn forget(&mut self, of: Of) {
        self.latest.remove(&of);
        self.untold.remove(&of);
    }

    /// How many the peer is not known to have.
    pub(super) fn len(&self) -> usize {
        self.latest.len()
    }

    /// How many wait to be told.
    pub(super) fn waiting(&self) -> usize {
        self.untold.len()
    }

    /// The next to be told, if there is room for it.
    pub(super) fn next(&mut self, room: usize) -> Option<(Frame, Piece, usize)> {
        if room < FRAME {
            return None;
        }
        let of = self.untold.pop_first()?;
        let word = *self.latest.get(&of)?;
        Some((word.frame(), Piece::Word(word), FRAME))
    }

    /// The peer knows of it.
    pub(super) fn acked(&mut self, word: Word) {
        if self.latest.get(&word.of()) == Some(&word) {
            self.forget(word.of());
        }
    }

    /// Queues a word again that may be lost, if it is the latest of its subject.
    pub(super) fn lost(&mut self, word: Word) {
        if self.latest.get(&word.of()) == Some(&word) {
            self.untold.insert(word.of());
        }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        64 * (self.latest.len() + self.untold.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_told_until_it_is_known() {
        let mut t = Told::default();
        let told = |t: &mut Told| t.next(100).map(|(_, piece, _)| piece);
        let (old, new) = (Word::Credit(7, 10), Word::Credit(7, 20));
        t.set(old);
        assert_eq!(told(&mut t), Some(Piece::Word(old)));
        assert_eq!(told(&mut t), None);
        t.set(new);
        t.acked(old);
        assert_eq!(told(&mut t), Some(Piece::Word(new)));
        t.lost(old);
        assert_eq!(told(&mut t), None);
        t.lost(new);
        t.set(Word::CreditOfAll(5));
        assert!(t.waiting() == 2 && t.next(FRAME - 1).is_none());
        assert_eq!(told(&mut t), Some(Piece::Word(Word::CreditOfAll(5))));
        assert_eq!(told(&mut t), Some(Piece::Word(new)));
        t.acked(new);
        t.acked(Word::CreditOfAll(5));
        assert_eq!(t.cost(), 0);
        t.set(old);
        let (path, other) = (
            PathId::from(7_u32),
            Word::Expected(PathId::from(7_u32), 1, 1),
        );
        t.set(other);
        t.forget_credit(7);
        assert_eq!(told(&mut t), Some(Piece::Word(other)));
        t.forget_path(path);
        assert_eq!((told(&mut t), t.cost()), (None, 0));
    }
}
