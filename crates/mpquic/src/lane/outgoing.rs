//! Outgoing data of the datagram lane: streams, until acknowledged, and messages, until they
//! have left.

mod ends;
mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use bytes::Bytes;

use super::incoming::ALL_WINDOW;
use super::over::Over;
use super::stream::Stream;
use super::told::{Told, Word};
use super::wire::{Frame, stream_header};
use messages::Messages;

/// Bytes of one stream that may wait for acknowledgement.
const STREAM_BUFFER: u64 = 64 << 20;
/// A piece of stream data is not made shorter than this to fit in behind another.
const LEAST: usize = 64;

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
    /// Word that the peer was sent.
    Word(Word),
}

/// Selection of the data that is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Lost data, then anything else.
    All,
    /// Data that was not sent before.
    New,
}

/// Everything that is to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    streams: BTreeMap<u64, Stream>,
    /// The one of which was sent last.
    turn: u64,
    /// Channels of which the peer has everything.
    over: Over,
    /// Bytes of all streams: sent once, acknowledged without a gap, and taken by the peer.
    sent: u64,
    acked: u64,
    most: u64,
    /// Maximum bytes under way of each stream.
    pub(super) span: u64,
    messages: Messages,
    /// Pieces that were lost, in order.
    again: BTreeSet<Piece>,
    /// Bytes of them.
    again_bytes: u64,
    pub(super) told: Told,
    /// Streams that the peer has stopped, and its error codes, since it was asked for.
    stops: BTreeMap<u64, u64>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self {
            streams: BTreeMap::new(),
            turn: 0,
            over: Over::default(),
            sent: 0,
            acked: 0,
            most: ALL_WINDOW,
            span: u64::MAX,
            messages: Messages::default(),
            again: BTreeSet::new(),
            again_bytes: 0,
            told: Told::default(),
            stops: BTreeMap::new(),
        }
    }
}

impl Outgoing {
    /// Takes data of a stream; returns how much, which is less when its buffer is full.
    pub(super) fn write(&mut self, channel: u64, mut data: Bytes, window: u64) -> usize {
        let Some(s) = self.stream(channel, window) else {
            return 0;
        };
        let room = STREAM_BUFFER.saturating_sub(s.end - s.base);
        data.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        if !s.is_open() || data.is_empty() {
            return 0;
        }
        let n = data.len();
        s.end += n as u64;
        s.data.push_back(data);
        n
    }

    /// Returns the stream of a channel, which begins if it is new; none where it is over.
    fn stream(&mut self, channel: u64, window: u64) -> Option<&mut Stream> {
        if self.over.contains(channel) {
            return None;
        }
        let span = self.span;
        let new = || Stream {
            most: window,
            span,
            ..Stream::default()
        };
        Some(self.streams.entry(channel).or_insert_with(new))
    }

    /// No more data of the stream comes.
    pub(super) fn finish(&mut self, channel: u64, window: u64) {
        if let Some(s) = self.stream(channel, window) {
            s.finished = true;
        }
    }

    /// Whether everything of the stream, its end or reset included, is acknowledged.
    pub(super) fn is_done(&self, channel: u64) -> bool {
        self.over.contains(channel)
    }

    /// Takes a message; false if there is no room for it now.
    pub(super) fn message(&mut self, data: Bytes, ordered: bool) -> bool {
        self.messages.push(data, ordered)
    }

    /// The peer takes this much.
    pub(super) fn credited(&mut self, channel: u64, most: u64) {
        if let Some(s) = self.streams.get_mut(&channel) {
            s.most = s.most.max(most);
        }
    }

    /// Takes the credit of all channels together, in bytes.
    pub(super) fn credited_all(&mut self, most: u64) {
        self.most = self.most.max(most);
    }

    /// Bytes that wait and may be sent.
    pub(super) fn waiting(&self) -> u64 {
        let fresh: u64 = self.streams.values().map(Stream::fresh).sum();
        let fins = self.streams.values().filter(|s| s.wants_fin()).count();
        let small = (fins + self.told.waiting()) as u64;
        fresh.min(self.most - self.sent) + self.again_bytes + small + self.messages.bytes() as u64
    }

    /// Bytes of streams that are to be sent again.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.again_bytes
    }

    /// Bytes from the first that is not acknowledged to the last that the peer takes.
    pub(super) fn window(&self) -> u64 {
        let of = |s: &Stream| s.most.saturating_sub(s.base).min(s.span);
        let live = self.streams.values().filter(|s| !s.reset);
        let one = live.map(of).max().unwrap_or(u64::MAX);
        one.min(self.most - self.acked)
    }

    /// Fills a datagram of at most `room` bytes: frames, and what to send again should
    /// they be lost.
    pub(super) fn fill(&mut self, mut room: usize, what: What) -> (Vec<Frame>, Vec<Piece>) {
        let (mut frames, mut pieces) = (Vec::new(), Vec::new());
        while let Some((frame, piece, used)) = self.told.next(room) {
            frames.push(frame);
            pieces.push(piece);
            room -= used;
        }
        let again = what == What::All;
        while let Some(frame) = again
            .then(|| self.lost(room))
            .flatten()
            .or_else(|| self.messages.part(room))
            .or_else(|| self.fresh(room))
        {
            if let Frame::Stream {
                data,
                channel,
                offset,
                fin,
            } = &frame
            {
                pieces.push(Piece::Stream {
                    channel: *channel,
                    offset: *offset,
                    len: data.len() as u32,
                    fin: *fin,
                });
            }
            room = room.saturating_sub(frame.bytes());
            frames.push(frame);
        }
        (frames, pieces)
    }

    /// The next of what was lost, cut where it does not fit.
    fn lost(&mut self, room: usize) -> Option<Frame> {
        loop {
            let piece = *self.again.first()?;
            let Piece::Stream {
                channel,
                offset,
                len,
                fin,
            } = piece
            else {
                self.again.pop_first();
                continue;
            };
            let s = self.streams.get(&channel);
            let Some(s) = s.filter(|s| s.needs(&piece)) else {
                self.forget(piece);
                continue;
            };
            let begin = offset.max(s.base);
            let fits = room.checked_sub(stream_header(channel, begin, room))?;
            let left = usize::try_from(offset + u64::from(len) - begin).unwrap_or(0);
            if left > fits && fits < LEAST {
                return None;
            }
            let n = left.min(fits);
            let data = s.copy(begin, n);
            self.forget(piece);
            let whole = n == left;
            if !whole {
                self.remember(Piece::Stream {
                    channel,
                    offset: begin + n as u64,
                    len: (left - n) as u32,
                    fin,
                });
            }
            return Some(Frame::Stream {
                channel,
                offset: begin,
                fin: fin && whole,
                data,
            });
        }
    }

    /// Stream data that has not been sent yet.
    fn fresh(&mut self, room: usize) -> Option<Frame> {
        let most = self.most - self.sent;
        let has = |s: &Stream| s.fresh().min(most) > 0 || s.wants_fin();
        // Streams take turns: none waits for another to end.
        let others = self.streams.range((Excluded(self.turn), Unbounded));
        let mut all = others.chain(self.streams.range(..=self.turn));
        let channel = all.find(|(_, s)| has(s)).map(|(channel, _)| *channel)?;
        let s = self.streams.get_mut(&channel)?;
        let fits = room.checked_sub(stream_header(channel, s.next, room))?;
        let left = usize::try_from(s.fresh().min(most)).unwrap_or(usize::MAX);
        if left > fits && fits < LEAST {
            return None;
        }
        let n = left.min(fits);
        let offset = s.next;
        let data = s.copy(offset, n);
        s.next += n as u64;
        self.sent += n as u64;
        self.turn = channel;
        let fin = s.wants_fin();
        s.fin_sent |= fin;
        Some(Frame::Stream {
            channel,
            offset,
            fin,
            data,
        })
    }

    /// Whether the peer may lack some of a piece of stream data.
    pub(super) fn needs(&self, piece: &Piece) -> bool {
        let Piece::Stream { channel, .. } = piece else {
            return false;
        };
        self.streams.get(channel).is_some_and(|s| s.needs(piece))
    }

    /// A copy of a piece that is under way; none if it is no longer needed.
    pub(super) fn copy(&self, piece: &Piece) -> Option<Frame> {
        let Piece::Stream {
            channel,
            offset,
            len,
            fin,
        } = *piece
        else {
            return None;
        };
        let s = self.streams.get(&channel).filter(|s| s.needs(piece))?;
        let begin = offset.max(s.base);
        let left = usize::try_from(offset + u64::from(len) - begin).ok()?;
        Some(Frame::Stream {
            channel,
            offset: begin,
            fin,
            data: s.copy(begin, left),
        })
    }

    /// Notes that pieces have arrived.
    pub(super) fn acked(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match *piece {
                Piece::Stream {
                    channel,
                    offset,
                    len,
                    fin,
                } => self.acked_stream(channel, offset, len, fin),
                Piece::Word(word) => {
                    self.told.acked(word);
                    if let Word::Reset(channel, ..) = word {
                        self.forget_stream(channel);
                    }
                }
            }
        }
    }

    /// The peer has all of a stream, or knows of its reset.
    fn forget_stream(&mut self, channel: u64) {
        if self.streams.remove(&channel).is_some() {
            let streams = &self.streams;
            self.over
                .insert(channel, |gap| streams.range(gap).next().is_some());
        }
    }

    fn acked_stream(&mut self, channel: u64, offset: u64, len: u32, fin: bool) {
        let known = self.streams.get_mut(&channel);
        let Some(s) = known.filter(|s| !s.reset) else {
            return;
        };
        let base = s.base;
        s.ack(offset, len.into());
        s.fin_acked |= fin;
        self.acked += s.base - base;
        if s.fin_acked && s.base == s.end {
            self.forget_stream(channel);
        }
    }

    /// Notes that pieces are lost: those that are still needed are retransmitted.
    pub(super) fn lose(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Word(word) => self.told.lost(word),
                Piece::Stream { .. } => {
                    if self.needs(&piece) {
                        self.remember(piece);
                    }
                }
            }
        }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let state = size_of::<Stream>() + 64;
        let of = |s: &Stream| state + (s.end - s.base) as usize + 64 * s.acked.len();
        let streams: usize = self.streams.values().map(of).sum();
        let again = self.again.len() * (size_of::<Piece>() + 16) + 64 * self.stops.len();
        streams + self.messages.cost() + again + self.told.cost() + self.over.cost()
    }

    fn remember(&mut self, piece: Piece) {
        if let Piece::Stream { len, .. } = piece
            && self.again.insert(piece)
        {
            self.again_bytes += u64::from(len).max(1);
        }
    }

    fn forget(&mut self, piece: Piece) {
        if let Piece::Stream { len, .. } = piece
            && self.again.remove(&piece)
        {
            self.again_bytes -= u64::from(len).max(1);
        }
    }
}
