//! Pieces of stream data that are to be sent again, in the order of their places.

use std::collections::BTreeSet;

use super::piece::Piece;

/// Pieces of streams that were lost.
#[derive(Debug, Default)]
pub(super) struct Retransmissions {
    pieces: BTreeSet<Piece>,
    bytes: u64,
}

/// Bytes of a piece of stream data, its end counted as one; `None` for what is none.
fn bytes(piece: &Piece) -> Option<u64> {
    match piece {
        Piece::Stream { len, .. } => Some(u64::from(*len).max(1)),
        Piece::Update(_) => None,
    }
}

impl Retransmissions {
    /// Adds a piece of stream data.
    pub(super) fn insert(&mut self, piece: Piece) {
        if let Some(n) = bytes(&piece)
            && self.pieces.insert(piece)
        {
            self.bytes += n;
        }
    }

    /// Removes a piece, if it is there.
    pub(super) fn remove(&mut self, piece: &Piece) {
        if let Some(n) = bytes(piece)
            && self.pieces.remove(piece)
        {
            self.bytes -= n;
        }
    }

    /// Removes all pieces of a stream, and returns them.
    pub(super) fn take(&mut self, channel: u64) -> Vec<Piece> {
        let of = |offset, len, fin| Piece::Stream {
            channel,
            offset,
            len,
            fin,
        };
        let all = of(0, 0, false)..=of(u64::MAX, u32::MAX, true);
        let lost: Vec<Piece> = self.pieces.range(all).copied().collect();
        lost.iter().for_each(|piece| self.remove(piece));
        lost
    }

    /// Returns the first piece.
    pub(super) fn first(&self) -> Option<Piece> {
        self.pieces.first().copied()
    }

    /// Returns the bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of memory that they hold, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.pieces.len() * (size_of::<Piece>() + 16)
    }
}
