//! Streams that end before all of them has been sent: by this end's reset, or as the peer
//! stops them (RFC 9000 3.5).

use std::collections::BTreeMap;

use super::{Outgoing, Piece, STREAM_BUFFER};
use crate::lane::incoming::{Violation, WINDOW};
use crate::lane::told::Word;

/// Streams, and words about streams, of which the peer acknowledges nothing: who leaves more
/// of them may not open others.
const MAX_UNACKNOWLEDGED: usize = 8192;
/// Stops that nobody has asked for are remembered up to this, the latest of them.
const MAX_STOPS: usize = 1024;

impl Outgoing {
    /// Resets a stream: what has not been sent, or was lost, is not sent any more.
    pub(in crate::lane) fn reset(&mut self, channel: u64, code: u64) {
        let Some(s) = self.stream(channel, WINDOW).filter(|s| !s.reset) else {
            return;
        };
        let base = s.base;
        let size = s.reset();
        // Nobody waits for the acknowledgement of what was under way.
        self.acked += size - base;
        self.told.set(Word::Reset(channel, code, size));
        self.forget_lost(channel);
    }

    fn forget_lost(&mut self, channel: u64) {
        let of = |offset, len, fin| Piece::Stream {
            channel,
            offset,
            len,
            fin,
        };
        let all = of(0, 0, false)..=of(u64::MAX, u32::MAX, true);
        let lost: Vec<Piece> = self.again.range(all).copied().collect();
        lost.into_iter().for_each(|piece| self.forget(piece));
    }

    /// Takes the peer's stop: a stream that has not ended is reset with the same code.
    pub(in crate::lane) fn stop(&mut self, channel: u64, code: u64) -> Result<(), Violation> {
        let reset = self.streams.get(&channel).is_some_and(|s| s.reset);
        if reset || self.over.contains(channel) {
            return Ok(());
        }
        if !self.streams.contains_key(&channel) {
            self.check_open()?;
        }
        self.reset(channel, code);
        self.stops.insert(channel, code);
        if self.stops.len() > MAX_STOPS {
            self.stops.pop_first();
        }
        Ok(())
    }

    /// Streams that the peer has stopped, and its error codes, since this was asked last.
    pub(in crate::lane) fn take_stops(&mut self) -> BTreeMap<u64, u64> {
        std::mem::take(&mut self.stops)
    }

    /// Whether the peer may open another channel.
    pub(in crate::lane) fn check_open(&self) -> Result<(), Violation> {
        match self.streams.len() + self.told.len() < MAX_UNACKNOWLEDGED {
            true => Ok(()),
            false => Err(Violation(
                "leaves the ends of too many channels unacknowledged",
            )),
        }
    }

    /// Streams and words that the peer has not acknowledged.
    #[cfg(test)]
    pub(in crate::lane) fn unacknowledged(&self) -> (usize, usize) {
        (self.streams.len(), self.told.len())
    }

    /// Bytes of all streams: sent once, and acknowledged or given up.
    #[cfg(test)]
    pub(in crate::lane) fn credit_used(&self) -> (u64, u64) {
        (self.sent, self.acked)
    }

    /// Bytes that may be written to a stream now; none where it has ended.
    pub(in crate::lane) fn room(&self, channel: u64) -> Option<u64> {
        if self.over.contains(channel) {
            return None;
        }
        match self.streams.get(&channel) {
            Some(s) if !s.is_open() => None,
            Some(s) => Some(STREAM_BUFFER.saturating_sub(s.end - s.base)),
            None => Some(STREAM_BUFFER),
        }
    }

    /// Bytes of a stream that have not been sent once.
    pub(in crate::lane) fn unsent(&self, channel: u64) -> u64 {
        self.streams.get(&channel).map_or(0, |s| s.end - s.next)
    }
}
