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
