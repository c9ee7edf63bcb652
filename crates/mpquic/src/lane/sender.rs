//! Outgoing data of the datagram lane: streams, until acknowledged, and messages, until they
//! have left.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use braid_core::class::{DEFAULT_NUMBER, MAX_CLASSES};
use bytes::Bytes;

use super::class_queue::ClassQueue;
use super::closed_channels::ClosedChannels;
use super::control_updates::{ControlUpdates, Update};
use super::error::Violation;
use super::flow_control::{INITIAL_WINDOW, SESSION_WINDOW, initial_window};
use super::message_numbering::Numbering;
use super::outgoing_messages::{MAX_PACKET_BYTES, Packet};
use super::piece::{MIN_PIECE, Piece};
use super::stream::Stream;
use super::stream_set::StreamSet;
use super::wire::{Frame, Frames, stream_header};

/// Bytes of one stream that may wait for acknowledgement.
const STREAM_BUFFER: u64 = 64 << 20;

/// Streams, and updates about streams, of which the peer acknowledges nothing: who leaves more
/// of them may not open others. As many as channels may be open, three of each.
const MAX_UNACKNOWLEDGED: usize = 40_960;
/// Stops that nobody has asked for are remembered up to this, the latest of them.
const MAX_STOPS: usize = 1024;

/// Packets of hosts go on for this long after the latest. A call sends every few ms; one packet now and
/// then, as of a name server, is no reason to give up longer queues for long.
const PACKETS_GO_ON: Duration = Duration::from_secs(1);

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
    /// Queues by the number of the class; those from `used` on have had nothing.
    classes: [ClassQueue; MAX_CLASSES],
    used: usize,
    numbering: Numbering,
    /// Channels of which the peer has everything.
    closed: ClosedChannels,
    /// Bytes of all streams: sent once, acknowledged without a gap, and taken by the peer.
    sent: u64,
    acked: u64,
    max_data: u64,
    /// Bytes of a stream that may be sent before the first credit.
    initial_window: u64,
    /// Maximum bytes under way of each stream.
    pub(super) span: u64,
    /// How much longer the path takes that is to carry what is next than the fastest.
    pub(super) behind: Duration,
    pub(super) updates: ControlUpdates,
    /// Time at which the latest packet of a host came.
    latest_packet: Option<Instant>,
    /// Streams that the peer has stopped, and its error codes, since it was asked for.
    stops: BTreeMap<u64, u64>,
}

/// Returns the number of a class: the default where there is none of that number.
fn known(class: u8) -> u8 {
    match usize::from(class) < MAX_CLASSES {
        true => class,
        false => DEFAULT_NUMBER,
    }
}

impl Default for LaneSender {
    fn default() -> Self {
        Self {
            streams: StreamSet::default(),
            classes: Default::default(),
            used: 1,
            numbering: Numbering::default(),
            closed: ClosedChannels::default(),
            sent: 0,
            acked: 0,
            max_data: SESSION_WINDOW,
            initial_window: INITIAL_WINDOW,
            span: u64::MAX,
            behind: Duration::ZERO,
            updates: ControlUpdates::default(),
            latest_packet: None,
            stops: BTreeMap::new(),
        }
    }
}

impl LaneSender {
    /// Takes data of a stream; returns how much, which is less when its buffer is full.
    pub(super) fn write(&mut self, channel: u64, mut data: Bytes) -> usize {
        if !self.begin(channel) {
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
    fn begin(&mut self, channel: u64) -> bool {
        let lasts = !self.closed.contains(channel);
        if lasts {
            let (window, span) = (self.initial_window, self.span);
            self.streams.begin(channel, || Stream::new(window, span));
        }
        lasts
    }

    /// No more data of the stream comes.
    pub(super) fn finish(&mut self, channel: u64) {
        if self.begin(channel) {
            self.streams.change(channel, |s| s.finished = true);
        }
    }

    /// Puts the stream of a channel, which begins with this if it is new, into a class; in the
    /// default one where there is none of that number.
    pub(super) fn set_class(&mut self, channel: u64, class: u8) {
        if !self.begin(channel) {
            return;
        }
        let before = self.class_of(channel);
        let class = self.used(class);
        self.streams.set_class(channel, class);
        let lost = self.queue_mut(before).retransmissions.take(channel);
        lost.into_iter().for_each(|p| self.queue_retransmission(p));
    }

    /// Returns the class of the stream of a channel.
    pub(super) fn class_of(&self, channel: u64) -> u8 {
        self.streams
            .get(channel)
            .map_or(DEFAULT_NUMBER, |s| s.class)
    }

    /// Notes that a class is used; returns its number.
    fn used(&mut self, class: u8) -> u8 {
        let class = known(class);
        self.used = self.used.max(usize::from(class) + 1);
        class
    }

    fn queue(&self, class: u8) -> &ClassQueue {
        &self.classes[usize::from(known(class))]
    }

    fn queue_mut(&mut self, class: u8) -> &mut ClassQueue {
        &mut self.classes[usize::from(known(class))]
    }

    /// Whether everything of the stream, its end or reset included, is acknowledged.
    pub(super) fn is_done(&self, channel: u64) -> bool {
        self.closed.contains(channel)
    }

    /// Takes a message; false if there is no room for it now.
    pub(super) fn message(&mut self, data: Bytes, ordered: bool, now: Instant) -> bool {
        let queue = self.queue_mut(DEFAULT_NUMBER);
        queue.messages.push(data, ordered, now)
    }

    /// Notes that time has passed.
    pub(super) fn pass(&mut self, now: Instant) {
        let used = &mut self.classes[..self.used];
        used.iter_mut().for_each(|c| c.messages.pass(now));
    }

    /// Time at which a packet may leave that was kept for a faster path.
    pub(super) fn due(&self) -> Option<Instant> {
        let used = self.classes[..self.used].iter();
        used.filter_map(|c| c.messages.due()).min()
    }

    /// Takes a packet; false if it is empty.
    pub(super) fn packet(&mut self, mut packet: Packet, now: Instant) -> bool {
        self.latest_packet = Some(now);
        packet.class = self.used(packet.class);
        let queue = self.queue_mut(packet.class);
        let taken = queue.messages.push_packet(packet, now);
        // All classes together have as much as one may have.
        while self.message_bytes() > MAX_PACKET_BYTES {
            let used = self.classes[..self.used].iter_mut();
            let longest = used.max_by_key(|c| c.messages.bytes());
            if !longest.is_some_and(|c| c.messages.drop_of_longest()) {
                break;
            }
        }
        taken
    }

    /// Bytes of messages of all classes that wait.
    fn message_bytes(&self) -> usize {
        let used = self.classes[..self.used].iter();
        used.map(|c| c.messages.bytes()).sum()
    }

    /// The peer takes this much.
    pub(super) fn credited(&mut self, channel: u64, max: u64) {
        self.streams.change(channel, |s| s.credit(max));
    }

    /// Takes the credit of all channels together, in bytes.
    pub(super) fn credited_all(&mut self, max: u64) {
        self.max_data = self.max_data.max(max);
        self.adapt_initial_window();
    }

    /// Notes that the credit of all channels has changed.
    fn adapt_initial_window(&mut self) {
        let window = initial_window(self.initial_window, self.max_data - self.sent);
        if window != self.initial_window {
            self.initial_window = window;
            self.streams.change_all(|s| s.set_initial_window(window));
        }
    }

    /// Bytes that wait and may be sent.
    pub(super) fn waiting(&self) -> u64 {
        let mut fresh = 0;
        let mut waiting = self.updates.waiting() as u64;
        for (class, queue) in (0..).zip(&self.classes[..self.used]) {
            let ready = self.streams.ready(class);
            fresh += ready.fresh();
            waiting += queue.bytes() + ready.fins() as u64;
        }
        fresh.min(self.max_data - self.sent) + waiting
    }

    /// Returns the number of the last class that was used, and one more.
    pub(super) fn classes(&self) -> u8 {
        self.used as u8
    }

    /// Bytes of a class that wait and may be sent. Control updates leave with any class, and count as
    /// the default.
    pub(super) fn waiting_in(&self, class: u8) -> u64 {
        let (queue, ready) = (self.queue(class), self.streams.ready(known(class)));
        let updates = match class {
            DEFAULT_NUMBER => self.updates.waiting(),
            _ => 0,
        };
        let fresh = ready.fresh().min(self.max_data - self.sent);
        fresh + queue.bytes() + (ready.fins() + updates) as u64
    }

    /// Whether packets of hosts go on, or nothing waits but messages: queues of paths are to be short
    /// then, for streams as well, as a call waits in the queue that a download beside it has filled.
    pub(super) fn wants_short_queues(&self, now: Instant) -> bool {
        let since = |at| now.saturating_duration_since(at);
        let goes_on = self
            .latest_packet
            .is_some_and(|at| since(at) < PACKETS_GO_ON);
        let messages = self.message_bytes() as u64;
        goes_on || messages > 0 && self.waiting() == messages
    }

    /// Returns the bytes of streams of a class that are to be retransmitted.
    pub(super) fn retransmit_bytes(&self, class: u8) -> u64 {
        self.queue(class).retransmissions.bytes()
    }

    /// Returns how many streams and flows of a class have something to send.
    pub(super) fn active(&self, class: u8) -> usize {
        let streams = self.streams.ready(known(class)).streams();
        streams + self.queue(class).messages.flows()
    }

    /// Returns how many streams of all classes have data that may be sent.
    pub(super) fn sending(&self) -> usize {
        let used = 0..self.classes();
        used.map(|class| self.streams.ready(class).with_fresh())
            .sum()
    }

    /// Bytes of a class from the first that is not acknowledged to the last that the peer takes.
    pub(super) fn window(&self, class: u8) -> u64 {
        let of = |s: &Stream| s.max_data.saturating_sub(s.base).min(s.span);
        let turn = self.queue(class).turn;
        // Those that rest hold nothing up.
        let last = self.streams.get(turn).filter(|s| s.class == class);
        let last = last.into_iter();
        let ready = self.streams.in_turn(known(class), turn).map(|(_, s)| s);
        let live = last.chain(ready).filter(|s| !s.reset);
        let one = live.map(of).max().unwrap_or(u64::MAX);
        one.min(self.max_data - self.acked)
    }

    /// Fills a datagram of at most `room` bytes with data of a class: frames, and what to send again
    /// should they be lost.
    pub(super) fn fill(
        &mut self,
        mut room: usize,
        class: u8,
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
            .then(|| self.next_retransmission(room, class))
            .flatten()
            .or_else(|| self.next_new(room, class, now))
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

    /// Returns what has not been sent yet of a class: of a message, or of a stream.
    fn next_new(&mut self, room: usize, class: u8, now: Instant) -> Option<Frame> {
        if self.queue(class).messages.bytes() == 0 {
            self.queue_mut(class).turns.forget();
            return self.fresh(room, class);
        }
        let streams = match self.max_data > self.sent {
            true => self.streams.ready(known(class)).with_fresh(),
            false => 0,
        };
        let behind = self.behind;
        let queue = self.queue_mut(class);
        if streams == 0 {
            queue.turns.forget();
        }
        let flows = queue.messages.flows();
        // A flow that sends less than its share is not held up by streams, either.
        let messages =
            streams == 0 || queue.messages.has_new(now, behind) || queue.turns.is_messages();
        let (frame, was_message) = match messages {
            true => match self.part(room, class, now) {
                Some(frame) => (Some(frame), true),
                None => (self.fresh(room, class), false),
            },
            false => match self.fresh(room, class) {
                Some(frame) => (Some(frame), false),
                None => (self.part(room, class, now), true),
            },
        };
        if let Some(frame) = &frame
            && streams > 0
        {
            let turns = &mut self.queue_mut(class).turns;
            turns.sent(was_message, frame.bytes(), flows, streams);
        }
        frame
    }

    /// Returns the next part of a message of a class.
    fn part(&mut self, room: usize, class: u8, now: Instant) -> Option<Frame> {
        let queue = &mut self.classes[usize::from(known(class))];
        queue
            .messages
            .part(room, now, self.behind, &mut self.numbering)
    }

    /// Returns the next retransmission of a class, cut where it does not fit.
    fn next_retransmission(&mut self, room: usize, class: u8) -> Option<Frame> {
        loop {
            let piece = self.queue(class).retransmissions.first()?;
            let Piece::Stream {
                channel,
                offset,
                len,
                fin,
            } = piece
            else {
                self.queue_mut(class).retransmissions.remove(&piece);
                continue;
            };
            let s = self.streams.get(channel);
            let Some(s) = s.filter(|s| s.needs(&piece)) else {
                self.queue_mut(class).retransmissions.remove(&piece);
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
            let lost = &mut self.queue_mut(class).retransmissions;
            lost.remove(&piece);
            let whole = n == left;
            if !whole {
                lost.insert(Piece::Stream {
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

    /// Stream data of a class that has not been sent yet.
    fn fresh(&mut self, room: usize, class: u8) -> Option<Frame> {
        let credit = self.max_data - self.sent;
        let has = |s: &Stream| s.fresh().min(credit) > 0 || s.wants_fin();
        // Streams take turns: none waits for another to end.
        let turn = self.queue(class).turn;
        let mut ready = self.streams.in_turn(known(class), turn);
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
        self.queue_mut(class).turn = channel;
        let fin = self.streams.change(channel, |s| {
            s.next += n as u64;
            let fin = s.wants_fin();
            s.fin_sent |= fin;
            fin
        })?;
        self.adapt_initial_window();
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
        let queue = |c: &ClassQueue| c.messages.cost() + c.retransmissions.cost();
        let queues: usize = self.classes.iter().map(queue).sum();
        let rest = self.numbering.cost() + self.updates.cost() + self.closed.cost();
        streams + queues + rest + 64 * self.stops.len()
    }

    fn queue_retransmission(&mut self, piece: Piece) {
        if let Piece::Stream { channel, .. } = piece {
            let class = self.class_of(channel);
            self.queue_mut(class).retransmissions.insert(piece);
        }
    }

    /// Resets a stream: what has not been sent, or was lost, is not sent any more.
    pub(super) fn reset(&mut self, channel: u64, code: u64) {
        if !self.begin(channel) || self.streams.get(channel).is_none_or(|s| s.reset) {
            return;
        }
        let reset = self.streams.change(channel, |s| (s.base, s.reset()));
        let Some((base, size)) = reset else { return };
        // Nobody waits for the acknowledgement of what was under way.
        self.acked += size - base;
        self.updates.set(Update::Reset(channel, code, size));
        let class = self.class_of(channel);
        self.queue_mut(class).retransmissions.take(channel);
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
