//! The datagram lane: byte streams and messages of our own inside QUIC DATAGRAMs
//! (RFC 9221), so that every packet is ours to place: on any path, on several, or again.
//!
//! QUIC below encrypts, validates paths and controls congestion. Numbers,
//! acknowledgements, round-trip times, loss and order are those of this lane, per path
//! where QUIC mixes paths. Acknowledgements leave on the fastest path.

mod acknowledge;
mod assembly;
mod ends;
mod expected;
mod fit;
mod heard;
#[cfg(test)]
mod hostile;
mod incoming;
mod messages;
mod outgoing;
mod over;
mod path;
mod sent;
mod stream;
#[cfg(test)]
mod tests;
mod told;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use noq_proto::{PathId, VarInt};

use acknowledge::Acknowledger;
pub(crate) use expected::Expectation;
use fit::Fit;
pub use incoming::End;
use incoming::{Incoming, WINDOW};
use messages::MOST_MESSAGE;
use outgoing::Outgoing;
pub(crate) use outgoing::{Piece, What};
use sent::Sent;
use wire::{Ack, Frame, Number};

/// Whether a datagram of the peer, if it can be read, is none that is acknowledged: as a
/// rule, it acknowledges.
pub(crate) fn is_unnumbered(data: &[u8]) -> bool {
    data.first() == Some(&wire::PLAIN)
}

/// The application's error code of a connection that is closed on a peer that does not
/// keep to this protocol.
pub(crate) const PROTOCOL_ERROR: VarInt = VarInt::from_u32(0x10);
/// Bytes that wait behind a datagram that may be a probe of the path's packet size: where less
/// follows, nothing tells soon that it was lost, and its data would wait for timers (RFC 8899
/// 4.1).
const PROBE_BACKLOG: u64 = 16 << 10;
/// More paths of the peer than this are not listened to at a time.
const MOST_PATHS: usize = 256;

/// The peer does not keep to the lane's protocol: the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// Datagram that cannot be read.
    #[error(transparent)]
    Malformed(#[from] wire::Malformed),
    /// Frame that can be read, and is not allowed.
    #[error(transparent)]
    Violation(#[from] incoming::Violation),
    /// Acknowledgement of what never left.
    #[error("the peer acknowledged what was never sent")]
    NeverSent,
    /// Too many paths that the peer uses at a time.
    #[error("the peer uses more paths than it may")]
    ManyPaths,
}

/// One end of the lane of one connection.
#[derive(Debug)]
pub struct Lane {
    outgoing: Outgoing,
    incoming: Incoming,
    sent: BTreeMap<u32, Sent>,
    acks: Acknowledger,
    /// Rates that the peer expects of paths of QUIC, bytes per second, not taken yet.
    expected: BTreeMap<PathId, Expectation>,
    /// Paths of QUIC that the peer has lost, since it was asked for.
    closed: BTreeSet<PathId>,
    /// Words of the other kind that this end has said.
    words: u64,
    /// The greatest number of a path that there has been.
    newest: Option<u32>,
    /// Bytes of the next packet that are left to QUIC.
    spare: usize,
    clock: Instant,
}

impl Lane {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            sent: BTreeMap::new(),
            acks: Acknowledger::default(),
            expected: BTreeMap::new(),
            closed: BTreeSet::new(),
            words: 0,
            newest: None,
            spare: 0,
            clock: now,
        }
    }

    /// Limits the bytes under way of each channel that begins afterwards.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.outgoing.span = bytes;
    }

    /// Sends data on a channel. Each end numbers its own, upwards: a number that was passed
    /// over by thousands is not used any more. Returns how many bytes were taken: fewer
    /// where its buffer is full, none where the channel has ended.
    pub fn write(&mut self, channel: u64, data: Bytes) -> usize {
        self.outgoing.write(channel, data, WINDOW)
    }

    /// Bytes that wait to be sent, for want of room on a path: an application that keeps
    /// this low can still decide what is sent next.
    pub fn backlog(&self) -> u64 {
        self.outgoing.waiting()
    }

    /// Ends a channel.
    pub fn finish(&mut self, channel: u64) {
        self.outgoing.finish(channel, WINDOW);
    }

    /// Whether the peer has all of a channel that was ended.
    pub fn is_done(&self, channel: u64) -> bool {
        self.outgoing.is_done(channel)
    }

    /// Channels on which the peer has sent, as long as they have not been read to their
    /// end.
    pub fn channels(&self) -> impl Iterator<Item = u64> {
        self.incoming.channels()
    }

    /// The next data of a channel, in order; none if none is there now.
    pub fn read(&mut self, channel: u64) -> Option<Bytes> {
        let data = self.incoming.read(channel)?;
        self.tell_credit();
        Some(data)
    }

    /// Whether there is something to read on a channel, its end included.
    pub fn is_readable(&self, channel: u64) -> bool {
        self.incoming.is_readable(channel)
    }

    /// Whether a message has arrived.
    pub fn has_message(&self) -> bool {
        self.incoming.has_message()
    }

    /// Sends a message of 1 byte to 64 kB, once: what is lost of it is not sent again.
    /// Where `ordered`, it is given after those before it, unless they do not come; else
    /// at once. False if it is too long or there is no room for it now.
    pub fn send_message(&mut self, data: Bytes, ordered: bool) -> bool {
        data.len() <= MOST_MESSAGE as usize && self.outgoing.message(data, ordered)
    }

    /// The next message that has arrived.
    pub fn next_message(&mut self) -> Option<Bytes> {
        self.incoming.messages.next()
    }

    /// A datagram has arrived.
    pub(crate) fn receive(&mut self, data: Bytes, now: Instant) -> Result<(), LaneError> {
        let (number, frames) = wire::read(data)?;
        if let Some(n) = number
            && !self.acks.take(n, now)?
        {
            // It came twice.
            return Ok(());
        }
        for frame in frames {
            match frame {
                Frame::Stream {
                    channel,
                    offset,
                    fin,
                    data,
                } => {
                    self.check_new(channel)?;
                    self.incoming.stream(channel, offset, &data, fin)?;
                    self.tell_credit();
                }
                Frame::Reset {
                    channel,
                    code,
                    size,
                } => self.take_reset(channel, code, size)?,
                Frame::Stop { channel, code } => self.outgoing.stop(channel, code)?,
                Frame::Message {
                    number,
                    total,
                    offset,
                    ordered,
                    data,
                } => {
                    let place = (number, total, offset);
                    self.incoming.messages.take(place, &data, ordered, now)?;
                }
                Frame::Ack(ack) => self.acked(&ack, now)?,
                Frame::Credit { channel, most } => self.outgoing.credited(channel, most),
                Frame::CreditOfAll { most } => self.outgoing.credited_all(most),
                Frame::Expected { path, rate, number } => {
                    Expectation { number, rate }.join(&mut self.expected, path);
                    // There are no more paths than that; what is said of others is no use.
                    if self.expected.len() > MOST_PATHS {
                        self.expected.pop_last();
                    }
                }
                Frame::Closed { path } => {
                    if self.closed.len() < MOST_PATHS {
                        self.closed.insert(path);
                    }
                }
            }
        }
        Ok(())
    }

    fn acked(&mut self, ack: &Ack, now: Instant) -> Result<(), LaneError> {
        let clock = wire::micros(self.clock, now);
        if self.newest.is_none_or(|n| n < ack.path) {
            return Err(LaneError::NeverSent);
        }
        let Some(sent) = self.sent.get_mut(&ack.path) else {
            // Of a path that has ended.
            return Ok(());
        };
        let outcome = sent.ack(ack, clock, now).ok_or(LaneError::NeverSent)?;
        self.outgoing.acked(&outcome.acked);
        self.outgoing.lose(outcome.lost);
        Ok(())
    }

    /// Bytes that wait, and the send window: what the scheduler is shown.
    pub(crate) fn flow(&self) -> (u64, u64) {
        (self.outgoing.waiting(), self.outgoing.window())
    }

    /// Bytes of that which were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.outgoing.lost_bytes()
    }

    /// Whether an acknowledgement is due.
    pub(crate) fn ack_due(&self, now: Instant) -> bool {
        self.acks.at().is_some_and(|t| t <= now)
    }

    /// Whether one is not due yet, but soon.
    pub(crate) fn will_acknowledge(&self, now: Instant) -> bool {
        self.acks.at().is_some_and(|t| t > now)
    }

    /// A datagram of at most `room` bytes that acknowledges.
    pub(crate) fn write_ack(&mut self, room: usize, now: Instant) -> Option<Bytes> {
        self.acks.write(room, self.clock, now)
    }

    fn datagram(&mut self, path: u32, frames: &[Frame], pieces: Vec<Piece>, now: Instant) -> Bytes {
        let clock = wire::micros(self.clock, now);
        self.newest = self.newest.max(Some(path));
        let sent = self.sent.entry(path).or_default();
        let number = Number {
            path,
            sequence: sent.next(),
            sent: clock,
        };
        let mut out = BytesMut::with_capacity(1500);
        wire::begin(Some(number), &mut out);
        frames.iter().for_each(|f| f.write(&mut out));
        let given_up = sent.send(now, out.len(), pieces);
        self.outgoing.lose(given_up);
        out.freeze()
    }

    /// Leaves so many bytes of the next packet to QUIC, which knows nothing of what a path
    /// carries.
    pub(crate) fn leave(&mut self, bytes: usize) {
        self.spare = bytes;
    }

    /// The next datagram of at most `room` bytes, once for each of `paths`; none if nothing
    /// of `what` waits.
    pub(crate) fn write_next(
        &mut self,
        paths: &[u32],
        room: usize,
        what: What,
        now: Instant,
    ) -> Vec<(u32, Bytes)> {
        let probes = self.outgoing.waiting() >= PROBE_BACKLOG;
        let probes = probes.then_some(now);
        let room = paths.iter().map(|p| self.room(*p, room, probes)).min();
        let (frames, pieces) = self.outgoing.fill(room.unwrap_or(0), what);
        if frames.is_empty() {
            return Vec::new();
        }
        let one = |p: &u32| (*p, self.datagram(*p, &frames, pieces.clone(), now));
        paths.iter().map(one).collect()
    }

    /// Bytes of frames in the next datagram of a path, which has at most `room`, and may be a
    /// probe of the path's packet size where a time is given.
    fn room(&self, path: u32, room: usize, probes: Option<Instant>) -> usize {
        let sent = self.sent.get(&path);
        let of = |fit: &Fit| match probes {
            Some(now) => fit.room(room, self.spare, now),
            None => fit.known(room, self.spare),
        };
        let room = sent.map_or_else(|| of(&Fit::default()), |s| of(s.fit()));
        room.saturating_sub(wire::header(path, sent.map_or(0, Sent::next)))
    }

    /// Bytes of the longest datagram that is known to pass on a path.
    pub(crate) fn size(&self, path: u32) -> usize {
        self.sent.get(&path).map_or(fit::SHORT, |s| s.fit().size())
    }

    /// Returns path, send time and pieces of a datagram to reinject: of the oldest under way on
    /// each path, where the peer may lack some of it, the one whose first piece is the lowest.
    pub(crate) fn oldest(&self) -> Option<(u32, Instant, Vec<Piece>)> {
        let all = self.sent.iter().filter_map(|(p, s)| {
            let (at, pieces) = s.oldest()?;
            Some((*p, at, pieces))
        });
        let oldest = all
            .filter(|(.., p)| p.iter().any(|p| self.outgoing.needs(p)))
            .min_by_key(|(.., p)| p[0]);
        oldest.map(|(p, at, pieces)| (p, at, pieces.to_vec()))
    }

    /// A copy of what is under way elsewhere, if that fits into `room` bytes here.
    pub(crate) fn write_copy(
        &mut self,
        path: u32,
        pieces: &[Piece],
        room: usize,
        now: Instant,
    ) -> Option<Bytes> {
        let room = self.room(path, room, None);
        let written = pieces
            .iter()
            .filter_map(|p| Some((self.outgoing.copy(p)?, *p)));
        let (frames, pieces): (Vec<Frame>, Vec<Piece>) = written.unzip();
        let fits = frames.iter().map(Frame::bytes).sum::<usize>() <= room;
        (fits && !frames.is_empty()).then(|| self.datagram(path, &frames, pieces, now))
    }

    /// An acknowledgement cannot be sent now, for want of room: it is tried again soon.
    pub(crate) fn defer(&mut self, now: Instant) {
        self.acks.defer(now);
    }

    /// When [`Lane::tick`] or an acknowledgement is wanted.
    pub(crate) fn due(&self) -> Option<Instant> {
        let paths = self.sent.values().filter_map(Sent::due);
        paths
            .chain(self.acks.at())
            .chain(self.incoming.messages.due())
            .min()
    }

    /// Time has passed; `below` says whether QUIC waits for something on a path.
    pub(crate) fn tick(&mut self, now: Instant, below: impl Fn(u32) -> bool) {
        for (path, sent) in &mut self.sent {
            if sent.due().is_some_and(|t| t <= now) {
                self.outgoing.lose(sent.tick(now, || below(*path)));
            }
        }
        self.incoming.messages.release(now);
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(crate) fn cost(&self) -> usize {
        let sent: usize = self.sent.values().map(Sent::cost).sum();
        let paths = 64 * (self.expected.len() + self.closed.len());
        self.outgoing.cost() + self.incoming.cost() + sent + self.acks.cost() + paths
    }
}
