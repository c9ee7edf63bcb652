//! Credit that the peer is told, until it is known to have heard of it.

use std::collections::{BTreeMap, BTreeSet};

use super::outgoing::Piece;
use super::wire::Frame;

/// How many bytes the peer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Credit {
    /// On all channels together, from the first on.
    All(u64),
    /// On a channel, and how many.
    Channel(u64, u64),
}

impl Credit {
    fn frame(self) -> Frame {
        match self {
            Self::All(most) => Frame::CreditOfAll { most },
            Self::Channel(channel, most) => Frame::Credit { channel, most },
        }
    }

    fn of(self) -> Option<u64> {
        match self {
            Self::All(_) => None,
            Self::Channel(channel, _) => Some(channel),
        }
    }
}

/// Bytes of a frame, at most.
const FRAME: usize = 1 + 8 + 8;

/// What is to be told, the latest of each channel, and of all (none).
#[derive(Debug, Default)]
pub(super) struct Credits {
    latest: BTreeMap<Option<u64>, Credit>,
    /// Whose has not left since it changed or was lost.
    untold: BTreeSet<Option<u64>>,
}

impl Credits {
    pub(super) fn set(&mut self, credit: Credit) {
        self.latest.insert(credit.of(), credit);
        self.untold.insert(credit.of());
    }

    /// A channel has ended.
    pub(super) fn forget(&mut self, channel: u64) {
        self.latest.remove(&Some(channel));
        self.untold.remove(&Some(channel));
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
        let credit = *self.latest.get(&of)?;
        Some((credit.frame(), Piece::Credit(credit), FRAME))
    }

    /// The peer knows of it.
    pub(super) fn acked(&mut self, credit: Credit) {
        if self.latest.get(&credit.of()) == Some(&credit) {
            self.latest.remove(&credit.of());
            self.untold.remove(&credit.of());
        }
    }

    /// It may not.
    pub(super) fn lost(&mut self, credit: Credit) {
        if self.latest.get(&credit.of()) == Some(&credit) {
            self.untold.insert(credit.of());
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
        let mut c = Credits::default();
        let told = |c: &mut Credits| c.next(100).map(|(_, piece, _)| piece);
        let (old, new) = (Credit::Channel(7, 10), Credit::Channel(7, 20));
        c.set(old);
        assert_eq!(told(&mut c), Some(Piece::Credit(old)));
        assert_eq!(told(&mut c), None);
        c.set(new);
        c.acked(old);
        assert_eq!(told(&mut c), Some(Piece::Credit(new)));
        c.lost(old);
        assert_eq!(told(&mut c), None);
        c.lost(new);
        c.set(Credit::All(5));
        assert!(c.waiting() == 2 && c.next(FRAME - 1).is_none());
        assert_eq!(told(&mut c), Some(Piece::Credit(Credit::All(5))));
        assert_eq!(told(&mut c), Some(Piece::Credit(new)));
        c.acked(new);
        c.acked(Credit::All(5));
        assert_eq!(c.cost(), 0);
        c.set(old);
        c.forget(7);
        assert_eq!((told(&mut c), c.cost()), (None, 0));
    }
}
