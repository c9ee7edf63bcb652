//! A stream that is being sent on the datagram lane (RFC 9000 3.1).
//!
//! ```text
//! Ready, Send --- finish ---> Data Sent --- all acknowledged ---> Data Recvd
//!      |                          |
//!      +--------- reset, ---------+---> Reset Sent --- acknowledged ---> Reset Recvd
//!                 or the peer stops it
//! ```
//!
//! In the states on the right nothing is left of it but its number
//! ([`ClosedChannels`](super::closed_channels::ClosedChannels)).

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use rangemap::RangeSet;

use super::piece::Piece;

/// A stream that is being sent.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Data that has not been acknowledged, from `base` on.
    pub(super) data: VecDeque<Bytes>,
    pub(super) base: u64,
    pub(super) end: u64,
    /// End of the data that has been sent once.
    pub(super) next: u64,
    pub(super) acked: RangeSet<u64>,
    /// The peer takes bytes below this.
    pub(super) max_data: u64,
    /// This end sends as many bytes beyond the first that is not acknowledged.
    pub(super) span: u64,
    pub(super) finished: bool,
    pub(super) fin_sent: bool,
    pub(super) fin_acked: bool,
    /// Reset Sent: nothing of it is sent any more.
    pub(super) reset: bool,
}

impl Stream {
    /// Whether more may be written.
    pub(super) fn is_open(&self) -> bool {
        !self.finished && !self.reset
    }

    /// Resets it, and returns its final size: what has been sent once (RFC 9000 4.5).
    pub(super) fn reset(&mut self) -> u64 {
        self.reset = true;
        self.data.clear();
        self.acked.clear();
        (self.base, self.end) = (self.next, self.next);
        self.next
    }

    /// Bytes that may be sent for the first time.
    pub(super) fn fresh(&self) -> u64 {
        let max = self.max_data.min(self.base.saturating_add(self.span));
        self.end.min(max).saturating_sub(self.next)
    }

    pub(super) fn wants_fin(&self) -> bool {
        self.finished && !self.reset && !self.fin_sent && self.next == self.end
    }

    pub(super) fn copy(&self, offset: u64, len: usize) -> Bytes {
        let mut out = BytesMut::with_capacity(len);
        let mut skip = usize::try_from(offset - self.base).unwrap_or(usize::MAX);
        for part in &self.data {
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let n = (part.len() - skip).min(len - out.len());
            out.extend_from_slice(&part[skip..skip + n]);
            skip = 0;
            if out.len() == len {
                break;
            }
        }
        out.freeze()
    }

    pub(super) fn ack(&mut self, offset: u64, len: u64) {
        let begin = offset.max(self.base);
        if begin < offset + len {
            self.acked.insert(begin..offset + len);
        }
        let Some(first) = self.acked.first().filter(|r| r.start <= self.base).cloned() else {
            return;
        };
        let mut gone = usize::try_from(first.end - self.base).unwrap_or(usize::MAX);
        self.base = first.end;
        self.acked.remove(0..first.end);
        while let Some(part) = self.data.front_mut() {
            if part.len() > gone {
                part.advance(gone);
                break;
            }
            gone -= part.len();
            self.data.pop_front();
        }
    }

    /// Whether the peer may still lack some of a piece.
    pub(super) fn needs(&self, piece: &Piece) -> bool {
        let Piece::Stream {
            offset, len, fin, ..
        } = *piece
        else {
            return false;
        };
        if self.reset {
            return false;
        }
        let begin = offset.max(self.base);
        let end = offset + u64::from(len);
        let lacks = begin < end && self.acked.gaps(&(begin..end)).next().is_some();
        lacks || (fin && !self.fin_acked)
    }
}
