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
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use rangemap::RangeSet;

use super::piece::Piece;

/// Data that was written at once.
#[derive(Debug)]
struct Part {
    /// Its offset in the stream.
    at: u64,
    bytes: Bytes,
}

/// A stream that is being sent.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Number of its class.
    pub(super) class: u8,
    /// Data that has not been acknowledged, without a gap; the first may begin before `base`.
    parts: VecDeque<Part>,
    /// End of the data that is acknowledged without a gap.
    pub(super) base: u64,
    pub(super) end: u64,
    /// End of the data that has been sent once.
    pub(super) next: u64,
    pub(super) acked: RangeSet<u64>,
    /// The peer takes bytes below this.
    pub(super) max_data: u64,
    /// The peer has told that, and begun to read.
    credited: bool,
    /// This end sends as many bytes beyond the first that is not acknowledged.
    pub(super) span: u64,
    pub(super) finished: bool,
    pub(super) fin_sent: bool,
    pub(super) fin_acked: bool,
    /// Reset Sent: nothing of it is sent any more.
    pub(super) reset: bool,
}

impl Stream {
    /// Begins a stream of which the peer takes `max_data` bytes, and `span` are under way at most.
    pub(super) fn new(max_data: u64, span: u64) -> Self {
        Self {
            max_data,
            span,
            ..Self::default()
        }
    }

    /// Takes credit of the peer. The first of it ends the initial window, of which no more is sent.
    pub(super) fn credit(&mut self, max: u64) {
        let before = match self.credited {
            true => self.max_data,
            false => self.next,
        };
        self.max_data = before.max(max);
        self.credited = true;
    }

    /// Changes the initial window, until there is credit.
    pub(super) fn set_initial_window(&mut self, bytes: u64) {
        if !self.credited {
            self.max_data = bytes;
        }
    }

    /// Whether more may be written.
    pub(super) fn is_open(&self) -> bool {
        !self.finished && !self.reset
    }

    /// Resets it, and returns its final size: what has been sent once (RFC 9000 4.5).
    pub(super) fn reset(&mut self) -> u64 {
        self.reset = true;
        self.parts.clear();
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

    /// Adds data at the end. Returns its length.
    pub(super) fn push(&mut self, bytes: Bytes) -> usize {
        let n = bytes.len();
        self.parts.push_back(Part {
            at: self.end,
            bytes,
        });
        self.end += n as u64;
        n
    }

    /// Returns `len` bytes from `offset` on, which is not below `base`; not copied where they
    /// were written at once.
    pub(super) fn copy(&self, offset: u64, len: usize) -> Bytes {
        let behind = self.parts.partition_point(|p| p.at <= offset);
        let mut parts = self.parts.range(behind.saturating_sub(1)..);
        let Some(first) = parts.next() else {
            return Bytes::new();
        };
        let skip = usize::try_from(offset - first.at).unwrap_or(usize::MAX);
        let here = first.bytes.slice(skip.min(first.bytes.len())..);
        if here.len() >= len {
            return here.slice(..len);
        }
        let mut out = BytesMut::with_capacity(len);
        out.extend_from_slice(&here);
        for part in parts {
            let n = part.bytes.len().min(len - out.len());
            out.extend_from_slice(&part.bytes[..n]);
            if out.len() == len {
                break;
            }
        }
        out.freeze()
    }

    /// Notes that bytes have arrived.
    pub(super) fn ack(&mut self, bytes: Range<u64>) {
        let bytes = bytes.start.max(self.base)..bytes.end;
        if bytes.is_empty() {
            return;
        }
        if bytes.start > self.base {
            self.acked.insert(bytes);
            return;
        }
        // In order: only what had arrived beyond a gap is looked up.
        self.base = match self.acked.get(&bytes.end) {
            Some(beyond) => beyond.end,
            None => bytes.end,
        };
        if !self.acked.is_empty() {
            self.acked.remove(0..self.base);
        }
        while let Some(part) = self.parts.front() {
            if part.at + part.bytes.len() as u64 > self.base {
                break;
            }
            self.parts.pop_front();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However it is written, cut and acknowledged, what is copied is what was written.
        #[test]
        fn copies_are_what_was_written(
            parts in prop::collection::vec(1usize..40, 1..20),
            steps in prop::collection::vec((0u64..400, 1usize..60, any::<bool>()), 0..80),
        ) {
            let (mut stream, mut all) = (Stream::new(u64::MAX, u64::MAX), Vec::<u8>::new());
            for n in parts {
                let bytes: Vec<u8> = (all.len()..all.len() + n).map(|b| b as u8).collect();
                all.extend(&bytes);
                prop_assert_eq!(stream.push(bytes.into()), n);
            }
            let mut acked = vec![false; all.len()];
            for (at, len, acks) in steps {
                let begin = at.min(all.len() as u64 - 1);
                let end = (begin + len as u64).min(all.len() as u64);
                if acks {
                    stream.ack(begin..end);
                    acked[begin as usize..end as usize].fill(true);
                    let base = acked.iter().take_while(|a| **a).count();
                    prop_assert_eq!(stream.base, base as u64);
                } else if begin >= stream.base {
                    let copied = stream.copy(begin, (end - begin) as usize);
                    prop_assert_eq!(&copied[..], &all[begin as usize..end as usize]);
                }
                let piece = Piece::Stream {
                    channel: 0,
                    offset: begin,
                    len: (end - begin) as u32,
                    fin: false,
                };
                let lacks = acked[begin as usize..end as usize].iter().any(|a| !a);
                prop_assert_eq!(stream.needs(&piece), lacks);
            }
        }
    }
}
