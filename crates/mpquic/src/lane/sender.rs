//! Outgoing data of the datagram lane: streams, until acknowledged, and messages, until they
//! have left.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::closed_channels::ClosedChannels;
use super::control_updates::{ControlUpdates, Update};
use super::error::Violation;
use super::flow_control::{ALL_WINDOW, WINDOW};
use super::outgoing_messages::{OutgoingMessages, Packet};
use super::piece::{MIN_PIECE, Piece};
use super::stream::Stream;
use super::stream_set::StreamSet;
use super::turns::Turns;
use super::wire::{Frame, Frames, stream_header};

/// Bytes of one stream that may wait for acknowledgement.
const STREAM_BUFFER: u64 = 64 << 20;

/// Streams, and updates about streams, of which the peer acknowledges nothing: who leaves more
/// of them may not open others. As many as channels may be open, three of each.
const MAX_UNACKNOWLEDGED: usize = 40_960;
/// Stops that nobody has asked for are remembered up to this, the latest of them.
const MAX_STOPS: usize = 1024;

/// Selection of the data that is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Lost data, then anything else.
    All,
    /// Data that was not sent before.
    New,
}

/// Sending half of the lane: everything that is to be sent.
#[derive(Debug)]
pub(super) struct LaneSender {
    streams: StreamSet,
    /// The one of which was sent last.
    turn: u64,
    /// Channels of which the peer has everything.
    closed: ClosedChannels,
    /// Bytes of all streams: sent once, acknowledged without a gap, and taken by the peer.
    sent: u64,
    acked: u64,
    max_data: u64,
    /// Maximum bytes under way of each stream.
    pub(super) span: u64,
    messages: OutgoingMessages,
    turns: Turns,
    /// How much longer the path takes that is to carry what is next than the fastest.
    pub(super) behind: Duration,
    /// Pieces to retransmit, in order.
    retransmit: BTreeSet<Piece>,
    /// Bytes of them.
    retransmit_bytes: u64,
    pub(super) updates: ControlUpdates,
    /// Streams that the peer has stopped, and its error codes, since it was asked for.
    stops: BTreeMap<u64, u64>,
}

impl Default for LaneSender {
    fn default() -> Self {
        Self {
            streams: StreamSet::default(),
            turn: 0,
            closed: ClosedChannels::default(),
            sent: 0,
            acked: 0,
            max_data: ALL_WINDOW,
            span: u64::MAX,
            messages: OutgoingMessages::default(),
            turns: Turns::default(),
            behind: Duration::ZERO,
            retransmit: BTreeSet::new(),
            retransmit_bytes: 0,
            updates: ControlUpdates::default(),
            stops: BTreeMap::new(),
        }
    }
}

impl LaneSender {
    /// Takes data of a stream; returns how much, which is less when its buffer is full.
    pub(super) fn write(&mut self, channel: u64, mut data: Bytes, window: u64) -> usize {
        if !self.begin(channel, window) {
            return 0;
        }
        let written = self.streams.change(channel, |s| {
            let room = STREAM_BUFFER.saturating_sub(s.end - s.base);
            data.truncate(usize::try_from(room).unwrap_or(usize::MAX));
            match s.is_open() && !data.is_empty() {
                true => s.push(data),
                false => 0,
            }
        });
        written.unwrap_or(0)
    }

    /// Begins the stream of a channel if it is new; false where it is over.
    fn begin(&mut self, channel: u64, window: u64) -> bool {
        let lasts = !self.closed.contains(channel);
        if lasts {
            let span = self.span;
            self.streams.begin(channel, || Stream::new(window, span));
        }
        lasts
    }

    /// No more data of the stream comes.
    pub(super) fn finish(&mut self, channel: u64, window: u64) {
        if self.begin(channel, window) {
            self.streams.change(channel, |s| s.finished = true);
        }
    }

    /// Whether everything of the stream, its end or reset included, is acknowledged.
    pub(super) fn is_done(&self, channel: u64) -> bool {
        self.closed.contains(channel)
    }

    /// Takes a message; false if there is no room for it now.
    pub(super) fn message(&mut self, data: Bytes, ordered: bool, now: Instant) -> bool {
        self.messages.push(data, ordered, now)
    }

    /// Notes that time has passed.
    pub(super) fn pass(&mut self, now: Instant) {
        self.messages.pass(now);
    }

    /// Time at which a packet may leave that was kept for a faster path.
    pub(super) fn due(&self) -> Option<Instant> {
        self.messages.due()
    }

    /// Takes a packet; false if it is empty.
    pub(super) fn packet(&mut self, packet: Packet, now: Instant) -> bool {
        self.messages.push_packet(packet, now)
    }

    /// The peer takes this much.
    pub(super) fn credited(&mut self, channel: u64, max: u64) {
        self.streams
            .change(channel, |s| s.max_data = s.max_data.max(max));
    }

    /// Takes the credit of all channels together, in bytes.
    pub(super) fn credited_all(&mut self, max: u64) {
        self.max_data = self.max_data.max(max);
    }

    /// Bytes that wait and may be sent.
    pub(super) fn waiting(&self) -> u64 {
        let small = (self.streams.fins() + self.updates.waiting()) as u64;
        self.streams.fresh().min(self.max_data - self.sent)
            + self.retransmit_bytes
            + small
            + self.messages.bytes() as u64
    }

    /// Whether nothing waits but messages.
    pub(super) fn has_messages_alone(&self) -> bool {
        self.messages.bytes() > 0 && self.waiting() == self.messages.bytes() as u64
    }

    /// Returns the bytes of streams that are to be retransmitted.
    pub(super) fn retransmit_bytes(&self) -> u64 {
        self.retransmit_bytes
    }

    /// Bytes from the first that is not acknowledged to the last that the peer takes.
    pub(super) fn window(&self) -> u64 {
        let of = |s: &Stream| s.max_data.saturating_sub(s.base).min(s.span);
        // Those that rest hold nothing up.
        let last = self.streams.get(self.turn).into_iter();
        let ready = self.streams.ready(self.turn).map(|(_, s)| s);
        let live = last.chain(ready).filter(|s| !s.reset);
        let one = live.map(of).max().unwrap_or(u64::MAX);
        one.min(self.max_data - self.acked)
    }

    /// Fills a datagram of at most `room` bytes: frames, and what to send again should
    /// they be lost.
    pub(super) fn fill(
        &mut self,
        mut room: usize,
        selection: Selection,
        now: Instant,
    ) -> (Frames, Vec<Piece>) {
        let (mut frames, mut pieces) = (Frames::new(), Vec::new());
        while let Some((frame, update, used)) = self.updates.next(room) {
            frames.push(frame);
            pieces.push(Piece::Update(update));
            room -= used;
        }
        let retransmits = selection == Selection::All;
        while let Some(frame) = retransmits
            .then(|| self.next_retransmission(room))
            .flatten()
            .or_else(|| self.next_new(room, now))
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

    /// Returns what has not been sent yet: of a message, or of a stream.
    fn next_new(&mut self, room: usize, now: Instant) -> Option<Frame> {
        if self.messages.bytes() == 0 {
            self.turns.forget();
            return self.fresh(room);
        }
        let streams = match self.max_data > self.sent {
            true => self.streams.with_fresh(),
            false => 0,
        };
        if streams == 0 {
            self.turns.forget();
        }
        let flows = self.messages.flows();
        // A flow that sends less than its share is not held up by streams, either.
        let messages =
            streams == 0 || self.messages.has_new(now, self.behind) || self.turns.is_messages();
        let (frame, was_message) = match messages {
            true => match self.messages.part(room, now, self.behind) {
                Some(frame) => (Some(frame), true),
                None => (self.fresh(room), false),
            },
            false => match self.fresh(room) {
                Some(frame) => (Some(frame), false),
                None => (self.messages.part(room, now, self.behind), true),
            },
        };
        if let Some(frame) = &frame
            && streams > 0
        {
            self.turns.sent(was_message, frame.bytes(), flows, streams);
        }
        frame
    }

    /// Returns the next retransmission, cut where it does not fit.
    fn next_retransmission(&mut self, room: usize) -> Option<Frame> {
        loop {
            let piece = *self.retransmit.first()?;
            let Piece::Stream {
                channel,
                offset,
                len,
                fin,
            } = piece
            else {
                self.retransmit.pop_first();
                continue;
            };
            let s = self.streams.get(channel);
            let Some(s) = s.filter(|s| s.needs(&piece)) else {
                self.drop_retransmission(piece);
                continue;
            };
            let begin = offset.max(s.base);
            let fits = room.checked_sub(stream_header(channel, begin, room))?;
            let left = usize::try_from(offset + u64::from(len) - begin).unwrap_or(0);
            if left > fits && fits < MIN_PIECE {
                return None;
            }
            let n = left.min(fits);
            let data = s.copy(begin, n);
            self.drop_retransmission(piece);
            let whole = n == left;
            if !whole {
                self.queue_retransmission(Piece::Stream {
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
        let credit = self.max_data - self.sent;
        let has = |s: &Stream| s.fresh().min(credit) > 0 || s.wants_fin();
        // Streams take turns: none waits for another to end.
        let mut ready = self.streams.ready(self.turn);
        let (channel, s) = ready.find(|(_, s)| has(s))?;
        let fits = room.checked_sub(stream_header(channel, s.next, room))?;
        let left = usize::try_from(s.fresh().min(credit)).unwrap_or(usize::MAX);
        if left > fits && fits < MIN_PIECE {
            return None;
        }
        let n = left.min(fits);
        let offset = s.next;
        let data = s.copy(offset, n);
        drop(ready);
        self.sent += n as u64;
        self.turn = channel;
        let fin = self.streams.change(channel, |s| {
            s.next += n as u64;
            let fin = s.wants_fin();
            s.fin_sent |= fin;
            fin
        })?;
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
        self.streams.get(*channel).is_some_and(|s| s.needs(piece))
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
        let s = self.streams.get(channel).filter(|s| s.needs(piece))?;
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
    pub(super) fn on_acked(&mut self, pieces: &[Piece]) {
        let mut pieces = pieces.iter().copied().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Stream {
                    channel,
                    offset,
                    len,
                    mut fin,
                } => {
                    // What left in a row, as most does, is one range.
                    let mut end = offset + u64::from(len);
                    while let Some(next) = pieces.next_if(|p| p.begins_at(channel, end)) {
                        end += next.len();
                        fin |= next.is_last();
                    }
                    self.on_stream_acked(channel, offset..end, fin);
                }
                Piece::Update(update) => {
                    self.updates.acked(update);
                    if let Update::Reset(channel, ..) = update {
                        self.forget_stream(channel);
                    }
                }
            }
        }
    }

    /// The peer has all of a stream, or knows of its reset.
    fn forget_stream(&mut self, channel: u64) {
        if self.streams.remove(channel) {
            let streams = &self.streams;
            self.closed.insert(channel, |gap| streams.has_any(gap));
        }
    }

    fn on_stream_acked(&mut self, channel: u64, bytes: Range<u64>, fin: bool) {
        if self.streams.get(channel).is_none_or(|s| s.reset) {
            return;
        }
        let acknowledged = self.streams.change(channel, |s| {
            let base = s.base;
            s.ack(bytes);
            s.fin_acked |= fin;
            (s.base - base, s.fin_acked && s.base == s.end)
        });
        let Some((more, is_done)) = acknowledged else {
            return;
        };
        self.acked += more;
        if is_done {
            self.forget_stream(channel);
        }
    }

    /// Notes that pieces are lost: those that are still needed are retransmitted.
    pub(super) fn on_lost(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Update(update) => self.updates.lost(update),
                Piece::Stream { .. } => {
                    if self.needs(&piece) {
                        self.queue_retransmission(piece);
                    }
                }
            }
        }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.streams.check();
        let state = size_of::<Stream>() + 64;
        let of = |s: &Stream| state + (s.end - s.base) as usize + 64 * s.acked.len();
        let streams: usize = self.streams.values().map(of).sum();
        let retransmit = self.retransmit.len() * (size_of::<Piece>() + 16) + 64 * self.stops.len();
        streams + self.messages.cost() + retransmit + self.updates.cost() + self.closed.cost()
    }

    fn queue_retransmission(&mut self, piece: Piece) {
        if let Piece::Stream { len, .. } = piece
            && self.retransmit.insert(piece)
        {
            self.retransmit_bytes += u64::from(len).max(1);
        }
    }

    fn drop_retransmission(&mut self, piece: Piece) {
        if let Piece::Stream { len, .. } = piece
            && self.retransmit.remove(&piece)
        {
            self.retransmit_bytes -= u64::from(len).max(1);
        }
    }

    /// Resets a stream: what has not been sent, or was lost, is not sent any more.
    pub(super) fn reset(&mut self, channel: u64, code: u64) {
        if !self.begin(channel, WINDOW) || self.streams.get(channel).is_none_or(|s| s.reset) {
            return;
        }
        let reset = self.streams.change(channel, |s| (s.base, s.reset()));
        let Some((base, size)) = reset else { return };
        // Nobody waits for the acknowledgement of what was under way.
        self.acked += size - base;
        self.updates.set(Update::Reset(channel, code, size));
        self.drop_retransmissions(channel);
    }

    fn drop_retransmissions(&mut self, channel: u64) {
        let of = |offset, len, fin| Piece::Stream {
            channel,
            offset,
            len,
            fin,
        };
        let all = of(0, 0, false)..=of(u64::MAX, u32::MAX, true);
        let lost: Vec<Piece> = self.retransmit.range(all).copied().collect();
        lost.into_iter()
            .for_each(|piece| self.drop_retransmission(piece));
    }

    /// Takes the peer's stop: a stream that has not ended is reset with the same code.
    pub(super) fn stop(&mut self, channel: u64, code: u64) -> Result<(), Violation> {
        let reset = self.streams.get(channel).is_some_and(|s| s.reset);
        if reset || self.closed.contains(channel) {
            return Ok(());
        }
        if self.streams.get(channel).is_none() {
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
    pub(super) fn take_stops(&mut self) -> BTreeMap<u64, u64> {
        std::mem::take(&mut self.stops)
    }

    /// Whether the peer may open another channel.
    pub(super) fn check_open(&self) -> Result<(), Violation> {
        match self.streams.len() + self.updates.len() < MAX_UNACKNOWLEDGED {
            true => Ok(()),
            false => Err(Violation(
                "leaves the ends of too many channels unacknowledged",
            )),
        }
    }

    /// Streams and updates that the peer has not acknowledged.
    #[cfg(test)]
    pub(super) fn unacknowledged(&self) -> (usize, usize) {
        (self.streams.len(), self.updates.len())
    }

    /// Bytes of all streams: sent once, and acknowledged or given up.
    #[cfg(test)]
    pub(super) fn credit_used(&self) -> (u64, u64) {
        (self.sent, self.acked)
    }

    /// Bytes that may be written to a stream now; none where it has ended.
    pub(super) fn room(&self, channel: u64) -> Option<u64> {
        if self.closed.contains(channel) {
            return None;
        }
        match self.streams.get(channel) {
            Some(s) if !s.is_open() => None,
            Some(s) => Some(STREAM_BUFFER.saturating_sub(s.end - s.base)),
            None => Some(STREAM_BUFFER),
        }
    }

    /// Bytes of a stream that have not been sent once.
    pub(super) fn unsent(&self, channel: u64) -> u64 {
        self.streams.get(channel).map_or(0, |s| s.end - s.next)
    }
}
