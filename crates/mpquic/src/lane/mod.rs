//! The datagram lane: byte streams and messages of our own inside QUIC DATAGRAMs
//! (RFC 9221), so that every packet is ours to place: on any path, on several, or again.
//!
//! QUIC below encrypts, validates paths and controls congestion. Numbers,
//! acknowledgements, round-trip times, loss and order are those of this lane, per path
//! where QUIC mixes paths. Acknowledgements leave on the fastest path.

mod acknowledge;
mod assembly;
mod class_queue;
mod closed_channels;
mod codel;
mod control_updates;
mod error;
mod expectations;
mod flow_control;
#[cfg(test)]
mod hostile;
mod incoming_messages;
mod message_numbering;
mod message_order;
mod mtu_discovery;
mod outgoing_messages;
mod pending_acks;
mod pending_copies;
mod piece;
mod receiver;
mod recovery;
mod recovery_set;
mod retransmissions;
mod sender;
mod stream;
mod stream_set;
#[cfg(test)]
mod tests;
mod turns;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use braid_core::class::{DEFAULT_NUMBER, MAX_CLASSES};
use bytes::{Bytes, BytesMut};
use noq_proto::{PathId, VarInt};

use acknowledge::{Acknowledger, MAX_PATHS};
use control_updates::Update;
pub use error::LaneError;
use error::Violation;
pub(crate) use expectations::Expectation;
use expectations::Expectations;
use incoming_messages::MAX_MESSAGE;
pub use outgoing_messages::Packet;
use pending_copies::PendingCopies;
pub(crate) use piece::Piece;
pub(crate) use receiver::Arrived;
pub use receiver::End;
use receiver::LaneReceiver;
pub(crate) use recovery_set::RecoverySet;
use sender::LaneSender;
pub(crate) use sender::Selection;
#[doc(hidden)]
pub use wire::read_datagram;
use wire::{Ack, Frame, Frames, Number};

use crate::transport::PAYLOAD;

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

/// Bytes of memory that datagrams share.
const MEMORY: usize = 32 << 10;

/// One end of the lane of one connection.
#[derive(Debug)]
pub struct Lane {
    sender: LaneSender,
    receiver: LaneReceiver,
    recovery: RecoverySet,
    acks: Acknowledger,
    copies: PendingCopies,
    expectations: Expectations,
    /// Paths of QUIC that the peer has lost, since it was asked for.
    closed_paths: BTreeSet<PathId>,
    /// Bytes of the next packet that are left to QUIC.
    spare: usize,
    /// Memory of the next datagrams.
    memory: BytesMut,
    clock: Instant,
}

impl Lane {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            sender: LaneSender::default(),
            receiver: LaneReceiver::default(),
            recovery: RecoverySet::default(),
            acks: Acknowledger::default(),
            copies: PendingCopies::default(),
            expectations: Expectations::default(),
            closed_paths: BTreeSet::new(),
            spare: 0,
            memory: BytesMut::new(),
            clock: now,
        }
    }

    /// Limits the bytes under way of each channel that begins afterwards.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.sender.span = bytes;
    }

    /// Sends data on a channel. Each end numbers its own, upwards: a number that was passed
    /// over by thousands is not used any more. Returns how many bytes were taken: fewer
    /// where its buffer is full, none where the channel has ended.
    pub fn write(&mut self, channel: u64, data: Bytes) -> usize {
        self.sender.write(channel, data)
    }

    /// Bytes that wait to be sent, for want of room on a path: an application that keeps
    /// this low can still decide what is sent next.
    pub fn backlog(&self) -> u64 {
        self.sender.waiting()
    }

    /// Returns how many channels have something to send.
    pub fn sending(&self) -> usize {
        self.sender.sending()
    }

    /// Ends a channel.
    pub fn finish(&mut self, channel: u64) {
        self.sender.finish(channel);
    }

    /// Whether the peer has all of a channel that was ended.
    pub fn is_done(&self, channel: u64) -> bool {
        self.sender.is_done(channel)
    }

    /// Channels on which the peer has sent, as long as they have not been read to their
    /// end.
    pub fn channels(&self) -> impl Iterator<Item = u64> {
        self.receiver.channels()
    }

    /// Takes the channels on which something has come, or that have ended, since the last call.
    pub(crate) fn take_arrived(&mut self) -> Arrived {
        self.receiver.take_arrived()
    }

    /// Whether the peer has opened a channel that nobody has accepted; `odd` where it numbers so.
    pub(crate) fn has_opened(&self, odd: bool) -> bool {
        self.receiver.opened(odd).next().is_some()
    }

    /// Accepts the next channel that the peer has opened.
    pub(crate) fn accept(&mut self, odd: bool) -> Option<u64> {
        self.receiver.take_opened(odd)
    }

    /// The next data of a channel, in order; none if none is there now.
    pub fn read(&mut self, channel: u64) -> Option<Bytes> {
        let data = self.receiver.read(channel)?;
        self.send_session_credit();
        Some(data)
    }

    /// Whether there is something to read on a channel, its end included.
    pub fn is_readable(&self, channel: u64) -> bool {
        self.receiver.is_readable(channel)
    }

    /// Whether a message has arrived.
    pub fn has_message(&self) -> bool {
        self.receiver.has_message()
    }

    /// Sends a message of 1 byte to 64 kB, once: what is lost of it is not sent again.
    /// Where `ordered`, it is given after those before it, unless they do not come; else
    /// at once. False if it is too long or there is no room for it now.
    pub fn send_message(&mut self, data: Bytes, ordered: bool) -> bool {
        // It is never dropped for having waited.
        let since = self.clock;
        data.len() <= MAX_MESSAGE as usize && self.sender.message(data, ordered, since)
    }

    /// Sends a packet as a message, in the queue of its flow: it may be marked or dropped there.
    /// False if it is empty or too long.
    pub fn send_packet(&mut self, packet: Packet, now: Instant) -> bool {
        packet.data.len() <= MAX_MESSAGE as usize && self.sender.packet(packet, now)
    }

    /// The next message that has arrived.
    pub fn next_message(&mut self) -> Option<Bytes> {
        self.receiver.messages.next()
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
                    self.receiver.stream(channel, offset, &data, fin, now)?;
                    self.send_session_credit();
                }
                Frame::Reset {
                    channel,
                    code,
                    size,
                } => self.take_reset(channel, code, size)?,
                Frame::Stop { channel, code } => self.sender.stop(channel, code)?,
                Frame::Message {
                    number,
                    place,
                    total,
                    offset,
                    data,
                } => {
                    let part = (number, total, offset);
                    self.receiver.messages.take(part, place, &data, now)?;
                }
                Frame::Ack(ack) => self.on_ack(&ack, now)?,
                Frame::Credit { channel, max } => self.sender.credited(channel, max),
                Frame::CreditOfAll { max } => self.sender.credited_all(max),
                Frame::Expected { path, rate, number } => {
                    self.expectations
                        .receive(path, Expectation { number, rate });
                }
                Frame::Closed { path } => {
                    if self.closed_paths.len() < MAX_PATHS {
                        self.closed_paths.insert(path);
                    }
                }
            }
        }
        Ok(())
    }

    fn on_ack(&mut self, ack: &Ack, now: Instant) -> Result<(), LaneError> {
        let clock = wire::micros(self.clock, now);
        let outcome = self.recovery.ack(ack, clock, now)?;
        self.sender.on_acked(&outcome.acked);
        self.sender.on_lost(outcome.lost);
        Ok(())
    }

    /// Puts what this end sends on a channel into a class; the default is 0, and a number of
    /// [`MAX_CLASSES`] or more is taken for it.
    pub fn set_class(&mut self, channel: u64, class: u8) {
        self.sender.set_class(channel, class);
    }

    /// Bytes of a class that wait, and its send window: what its scheduler is shown.
    pub(crate) fn flow(&self, class: u8) -> (u64, u64) {
        (self.sender.waiting_in(class), self.sender.window(class))
    }

    /// Returns how many classes have been used: others have nothing waiting.
    pub(crate) fn classes(&self) -> u8 {
        self.sender.classes()
    }

    /// Returns the bytes of a class that wait.
    pub(crate) fn waiting_in(&self, class: u8) -> u64 {
        self.sender.waiting_in(class)
    }

    /// Returns how many streams and flows of a class have something to send.
    pub(crate) fn active(&self, class: u8) -> usize {
        self.sender.active(class)
    }

    /// Returns the bytes of a class that are retransmissions.
    pub(crate) fn retransmit_bytes(&self, class: u8) -> u64 {
        self.sender.retransmit_bytes(class)
    }

    /// Returns the class of a piece of stream data.
    pub(crate) fn class_of(&self, piece: &Piece) -> u8 {
        match piece {
            Piece::Stream { channel, .. } => self.sender.class_of(*channel),
            Piece::Update(_) => DEFAULT_NUMBER,
        }
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
        let recovery = self.recovery.sending(path);
        let number = Number {
            path,
            sequence: recovery.next(),
            sent: clock,
        };
        if self.memory.capacity() < usize::from(PAYLOAD) {
            self.memory.reserve(MEMORY);
        }
        let out = &mut self.memory;
        wire::begin(Some(number), out);
        frames.iter().for_each(|f| f.write(out));
        let datagram = out.split().freeze();
        let given_up = recovery.send(now, datagram.len(), pieces);
        self.sender.on_lost(given_up);
        datagram
    }

    /// Tells how much longer the path takes that is to carry what is next than the fastest.
    pub(crate) fn set_behind(&mut self, by: Duration) {
        self.sender.behind = by;
    }

    /// Whether packets of hosts go on, beside which no queue of a path may be long.
    pub(crate) fn wants_short_queues(&self, now: Instant) -> bool {
        self.sender.wants_short_queues(now)
    }

    /// Leaves so many bytes of the next packet to QUIC, which knows nothing of what a path
    /// carries.
    pub(crate) fn leave(&mut self, bytes: usize) {
        self.spare = bytes;
    }

    /// The next datagram of at most `room` bytes, once for each of `paths`; none if nothing
    /// of `selection` in this class waits. It is to leave on the paths `later`, too, as soon as
    /// they have room ([`Lane::write_pending_copy`]).
    pub(crate) fn write_next(
        &mut self,
        (paths, later): (&[u32], &[u32]),
        room: usize,
        (class, selection): (u8, Selection),
        now: Instant,
    ) -> Vec<(u32, Bytes)> {
        let probes = self.sender.waiting() >= PROBE_BACKLOG;
        let probes = probes.then_some(now);
        let fits = |p: &u32| self.recovery.room(*p, room, self.spare, probes);
        let known = |p: &u32| self.recovery.room(*p, room, 0, None);
        let room = paths.iter().map(fits).chain(later.iter().map(known)).min();
        let (frames, pieces) = self.sender.fill(room.unwrap_or(0), class, selection, now);
        if frames.is_empty() {
            return Vec::new();
        }
        let Some((last, others)) = paths.split_last() else {
            return Vec::new();
        };
        if !later.is_empty() {
            let copy = (frames.clone(), pieces.clone());
            self.copies.push(class, copy, later, now);
        }
        let mut datagrams = Vec::with_capacity(paths.len());
        for path in others {
            let copy = self.datagram(*path, &frames, pieces.clone(), now);
            datagrams.push((*path, copy));
        }
        datagrams.push((*last, self.datagram(*last, &frames, pieces, now)));
        datagrams
    }

    /// Brings up to date what waits to be sent: tells the credit of what was read, and gives up
    /// copies that have waited for too long.
    pub(crate) fn prepare(&mut self, now: Instant) {
        while let Some(credit) = self.receiver.stream_credit(now) {
            self.sender.updates.set(credit);
        }
        self.copies.expire(now);
    }

    /// Whether copies wait for room on a path.
    pub(crate) fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Whether a copy of a class waits for room on a path.
    pub(crate) fn has_copy(&self, class: u8, path: u32) -> bool {
        self.copies.has(class, path)
    }

    /// The oldest copy of a class that waits for room on a path, if the peer may lack some of it.
    pub(crate) fn write_pending_copy(
        &mut self,
        class: u8,
        path: u32,
        room: usize,
        now: Instant,
    ) -> Option<Bytes> {
        // What QUIC has to say goes with another.
        let room = self.recovery.room(path, room, 0, None);
        loop {
            let (frames, pieces) = self.copies.take(class, path, room)?;
            // Of messages nobody knows.
            let has_messages = frames.len() > pieces.len();
            if has_messages || pieces.iter().any(|p| self.sender.needs(p)) {
                return Some(self.datagram(path, &frames, pieces, now));
            }
        }
    }

    /// Returns class, path, send time and pieces of a datagram to reinject: of the oldest under way
    /// on each path, where the peer may lack some of it that is of one of these classes, the one
    /// whose first piece is the lowest.
    pub(crate) fn oldest(
        &self,
        classes: [bool; MAX_CLASSES],
    ) -> Option<(u8, u32, Instant, Vec<Piece>)> {
        let wanted = |p: &Piece| self.sender.needs(p) && classes[usize::from(self.class_of(p))];
        let (path, sent, pieces) = self.recovery.oldest(wanted)?;
        let class = self.class_of(pieces.iter().find(|p| wanted(p))?);
        Some((class, path, sent, pieces))
    }

    /// A copy of what is under way elsewhere, if that fits into `room` bytes here.
    pub(crate) fn write_copy(
        &mut self,
        path: u32,
        pieces: &[Piece],
        room: usize,
        now: Instant,
    ) -> Option<Bytes> {
        let room = self.recovery.room(path, room, self.spare, None);
        let written = pieces
            .iter()
            .filter_map(|p| Some((self.sender.copy(p)?, *p)));
        let (frames, pieces): (Frames, Vec<Piece>) = written.unzip();
        let fits = frames.iter().map(Frame::bytes).sum::<usize>() <= room;
        (fits && !frames.is_empty()).then(|| self.datagram(path, &frames, pieces, now))
    }

    /// An acknowledgement cannot be sent now, for want of room: it is tried again soon.
    pub(crate) fn defer(&mut self, now: Instant) {
        self.acks.defer(now);
    }

    /// When [`Lane::tick`] or an acknowledgement is wanted.
    pub(crate) fn due(&self) -> Option<Instant> {
        let paths = self.recovery.due().into_iter();
        paths
            .chain(self.acks.at())
            .chain(self.receiver.messages.due())
            .chain(self.sender.due())
            .min()
    }

    /// Time has passed; `quic_waits` says whether QUIC waits for something on a path.
    pub(crate) fn tick(&mut self, now: Instant, quic_waits: impl Fn(u32) -> bool) {
        self.sender.on_lost(self.recovery.tick(now, quic_waits));
        self.receiver.messages.release(now);
        self.sender.pass(now);
    }

    /// Returns the peer's clock at the arrival of the latest datagram on a path less ours at
    /// its sending, microseconds modulo 2^32: between two paths, the difference of their
    /// one-way delays.
    pub fn one_way(&self, path: u32) -> Option<u32> {
        self.recovery.one_way(path)
    }

    /// Returns the minimum round-trip time of a path; none before the first.
    pub fn min_rtt(&self, path: u32) -> Option<Duration> {
        self.recovery.min_rtt(path)
    }

    /// Returns the loss detection of the paths, which knows their state.
    pub(crate) fn paths(&self) -> &RecoverySet {
        &self.recovery
    }

    /// Returns the loss detection of the paths, to be notified of what QUIC knows.
    pub(crate) fn paths_mut(&mut self) -> &mut RecoverySet {
        &mut self.recovery
    }

    /// Suspects a path, which may be dead though nothing is known to be lost there: what is
    /// under way on it is retransmitted elsewhere.
    pub(crate) fn suspect(&mut self, path: u32, now: Instant) {
        self.sender.on_lost(self.recovery.suspect(path, now));
    }

    /// Forgets a path that has ended: what is under way on it is retransmitted elsewhere.
    pub(crate) fn forget(&mut self, path: u32) {
        self.copies.forget(path);
        self.sender.on_lost(self.recovery.remove(path));
    }

    /// Sends the peer the rate that a path of QUIC may carry to this end, bytes per second; 0 if
    /// that is not known any more.
    pub(crate) fn send_expectation(&mut self, path: PathId, rate: u64) {
        let update = self.expectations.update(path, rate);
        self.sender.updates.set(update);
    }

    /// Forgets the expectation of a path of QUIC that has ended.
    pub(crate) fn forget_expectation(&mut self, path: PathId) {
        self.sender.updates.forget_path(path);
    }

    /// Takes the expectations, by path, that the peer has sent since the last call.
    pub(crate) fn take_expectations(&mut self) -> BTreeMap<PathId, Expectation> {
        self.expectations.take()
    }

    /// A datagram that tells the peer of paths of QUIC that are lost. It is not acknowledged:
    /// QUIC tells the same, and until that is there.
    pub(crate) fn write_closed(paths: &[PathId]) -> Bytes {
        let mut out = BytesMut::new();
        wire::begin(None, &mut out);
        paths
            .iter()
            .for_each(|path| Frame::Closed { path: *path }.write(&mut out));
        out.freeze()
    }

    /// Takes the paths of QUIC that the peer has reported as lost since the last call.
    pub(crate) fn take_closed_paths(&mut self) -> BTreeSet<PathId> {
        std::mem::take(&mut self.closed_paths)
    }

    /// Resets what this end sends on a channel, with an error code below 2^62 for the
    /// application of the peer: what has not arrived is not sent any more. Nothing where the
    /// peer is known to have all of it.
    pub fn reset(&mut self, channel: u64, code: u64) {
        self.sender.reset(channel, code);
    }

    /// Stops what the peer sends on a channel, with an error code below 2^62 for its
    /// application: what has arrived is thrown away, and so is what is under way. Nothing
    /// where it has ended.
    pub fn stop(&mut self, channel: u64, code: u64) {
        if self.receiver.stop(channel) {
            self.sender.updates.set(Update::Stop(channel, code));
        }
        self.sender.updates.forget_credit(channel);
        self.send_session_credit();
    }

    /// How a channel of the peer has ended, once all of it has been read that can be; it is
    /// forgotten then.
    pub fn end(&mut self, channel: u64) -> Option<End> {
        let end = self.receiver.end(channel);
        if end.is_some() {
            self.sender.updates.forget_credit(channel);
        }
        end
    }

    /// Whether a channel of the peer has been read to its end, whatever that is.
    #[cfg(test)]
    pub(crate) fn ended(&mut self, channel: u64) -> bool {
        self.end(channel).is_some()
    }

    /// Channels that the peer has stopped, and its error codes, since this was asked last:
    /// what this end sent there is reset.
    pub fn take_stops(&mut self) -> BTreeMap<u64, u64> {
        self.sender.take_stops()
    }

    /// Whether both directions of a channel have ended, and nothing of it is left.
    pub fn is_closed(&self, channel: u64) -> bool {
        self.sender.is_done(channel) && self.receiver.is_closed(channel)
    }

    /// Bytes that may be written to a channel now; none where this end, or a stop of the
    /// peer, has ended it.
    pub fn writable(&self, channel: u64) -> Option<u64> {
        self.sender.room(channel)
    }

    /// Bytes of a channel that have not been sent once.
    pub fn unsent(&self, channel: u64) -> u64 {
        self.sender.unsent(channel)
    }

    fn take_reset(&mut self, channel: u64, code: u64, size: u64) -> Result<(), Violation> {
        self.check_new(channel)?;
        self.receiver.reset(channel, code, size)?;
        self.sender.updates.forget_credit(channel);
        self.sender.updates.forget_stop(channel);
        self.send_session_credit();
        Ok(())
    }

    /// Whether the peer may send on a channel, which is new or is not.
    fn check_new(&self, channel: u64) -> Result<(), Violation> {
        match self.receiver.knows(channel) {
            true => Ok(()),
            false => self.sender.check_open(),
        }
    }

    fn send_session_credit(&mut self) {
        if let Some(credit) = self.receiver.session_credit() {
            self.sender.updates.set(credit);
        }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(crate) fn cost(&self) -> usize {
        let paths = 64 * (self.expectations.len() + self.closed_paths.len());
        let (sender, receiver) = (self.sender.cost(), self.receiver.cost());
        let copies = self.copies.cost();
        sender + receiver + self.recovery.cost() + self.acks.cost() + copies + paths
    }
}
