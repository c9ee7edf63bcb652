//! A stream that is being sent on the datagram lane.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use rangemap::RangeSet;

use super::outgoing::Piece;

/// A stream that is being sent.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// What has not been acknowledged, from `base` on.
    pub(super) data: VecDeque<Bytes>,
    pub(super) base: u64,
    pub(super) end: u64,
    /// What has been sent once.
    pub(super) next: u64,
    pub(super) acked: RangeSet<u64>,
    /// The peer takes bytes below this.
    pub(super) most: u64,
    /// This end sends as many bytes beyond the first that is not acknowledged.
    pub(super) span: u64,
    pub(super) finished: bool,
    pub(super) fin_sent: bool,
    pub(super) fin_acked: bool,
}

impl Stream {
    /// Bytes that may be sent for the first time.
    pub(super) fn fresh(&self) -> u64 {
        let most = self.most.min(self.base.saturating_add(self.span));
        self.end.min(most).saturating_sub(self.next)
    }

    pub(super) fn wants_fin(&self) -> bool {
        self.finished && !self.fin_sent && self.next == self.end
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
        let begin = offset.max(self.base);
        let end = offset + u64::from(len);
        let lacks = begin < end && self.acked.gaps(&(begin..end)).next().is_some();
        lacks || (fin && !self.fin_acked)
    }
}
