//! Content of a datagram, piece by piece, so that it can be retransmitted.

use super::control_updates::Update;

/// Minimum bytes of a piece of stream data or of a message that is cut to fit in behind another.
pub(super) const MIN_PIECE: usize = 64;

/// Piece of a datagram's content, so that it can be retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    /// Stream data; `fin`: its last.
    Stream {
        channel: u64,
        offset: u64,
        len: u32,
        fin: bool,
    },
    /// Control update.
    Update(Update),
}

impl Piece {
    /// Returns whether it is the data of a stream from this offset on.
    pub(super) fn begins_at(&self, stream: u64, at: u64) -> bool {
        matches!(self, Self::Stream { channel, offset, .. } if (*channel, *offset) == (stream, at))
    }

    /// Returns the bytes of stream data in it.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Stream { len, .. } => u64::from(*len),
            Self::Update(_) => 0,
        }
    }

    /// Returns whether it ends a stream.
    pub(super) fn is_last(&self) -> bool {
        matches!(self, Self::Stream { fin: true, .. })
    }
}
