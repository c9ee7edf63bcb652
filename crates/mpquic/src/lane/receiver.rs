//! Streams that arrive on the datagram lane, in order and within their credit (RFC 9000 3.2).
//!
//! ```text
//! Recv --- end ---> Size Known --- all data ---> Data Recvd --- read ---> Data Read
//!   |                   |
//!   +------ reset ------+---> Reset Recvd --- read ---> Reset Read
//! ```
//!
//! What is there without a gap when a reset comes may still be read before it. In the
//! states on the right nothing is left of a stream but its number
//! ([`ClosedChannels`](super::closed_channels::ClosedChannels)). Of one that was stopped nothing
//! is kept, and it is over as soon as its final size is known. Bytes that will not be read count
//! as read: the credit of all channels is given back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;

use super::assembly::Assembly;
use super::closed_channels::ClosedChannels;
use super::control_updates::Update;
use super::error::Violation;
use super::flow_control::{
    INITIAL_WINDOW, Progress, SESSION_WINDOW, Window, Windows, is_session_due,
};
use super::incoming_messages::IncomingMessages;

/// Maximum bytes of memory of the parts of all streams: more than full packets cost, whatever is
/// missing between them, and less than single bytes.
const MAX_COST: usize = 2 * SESSION_WINDOW as usize;
/// Streams at a time.
pub(super) const MAX_CHANNELS: usize = 16_384;
/// Streams that were stopped, and whose peer has not ended them.
const MAX_STOPPED: usize = 16_384;

/// How a channel has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it has been read.
    Finished,
    /// The peer has reset it, with this error code: the rest of it does not come.
    Reset(u64),
    /// Earlier end of a kind that is not known any more.
    Forgotten,
}

#[derive(Debug)]
struct Stream {
    /// The next byte for the application.
    next: u64,
    parts: Assembly,
    /// After the last byte that has arrived.
    reach: u64,
    end: Option<u64>,
    /// The peer may have sent up to this.
    max_data: u64,
    window: Window,
    /// The peer has reset it, with this code.
    reset: Option<u64>,
    /// This end has stopped it.
    stopped: bool,
    /// Bytes that are not read any more, and count as read.
    skipped: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            next: 0,
            parts: Assembly::default(),
            reach: 0,
            end: None,
            max_data: INITIAL_WINDOW,
            window: Window::default(),
            reset: None,
            stopped: false,
            skipped: 0,
        }
    }
}

impl Stream {
    /// Where what can be read ends.
    fn readable(&self) -> u64 {
        self.parts.reach(self.next)
    }

    /// Skips what will not be read up to the last byte known of; returns how much that is
    /// more than before.
    fn skip(&mut self, from: u64) -> u64 {
        self.parts.cut(from);
        let skipped = self.reach - from;
        let more = skipped - self.skipped;
        self.skipped = skipped;
        more
    }

    fn put(&mut self, offset: u64, data: &Bytes, fin: bool) -> Result<(), Violation> {
        let end = offset + data.len() as u64;
        if end > self.max_data {
            return Err(Violation("sent more than it was given credit for"));
        }
        if self.end.is_some_and(|e| end > e || (fin && end != e)) {
            return Err(Violation("sent data beyond the end of a stream"));
        }
        if fin {
            if self.reach > end {
                return Err(Violation("ended a stream before what it had sent"));
            }
            self.end = Some(end);
        }
        self.reach = self.reach.max(end);
        let kept = self.reset.is_none() && !self.stopped;
        if kept && self.next < end {
            self.parts.put(self.next, offset, data);
        }
        Ok(())
    }

    /// Takes a reset; false if it changes nothing any more.
    fn reset(&mut self, code: u64, size: u64) -> Result<bool, Violation> {
        if size > self.max_data {
            return Err(Violation("sent more than it was given credit for"));
        }
        if self.reach > size || self.end.is_some_and(|e| e != size) {
            return Err(Violation("changed the final size of a stream"));
        }
        if self.reset.is_some() || (self.end.is_some() && self.readable() == size) {
            return Ok(false);
        }
        self.reach = size;
        (self.end, self.reset) = (Some(size), Some(code));
        Ok(true)
    }

    /// Whether nothing is left to read but how it has ended.
    fn is_read(&self) -> bool {
        match self.reset {
            Some(_) => !self.parts.has(self.next),
            None => self.end == Some(self.next),
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        let part = self.parts.take(self.next)?;
        self.next += part.len() as u64;
        Some(part)
    }
}

/// Receiving half of the lane: streams and messages that have arrived.
#[derive(Debug)]
pub(super) struct LaneReceiver {
    streams: BTreeMap<u64, Stream>,
    closed: ClosedChannels,
    /// How many of them were stopped.
    stopped: usize,
    /// Bytes of memory that the parts of all streams cost.
    cost: usize,
    /// Bytes of all streams: up to the last of each that has arrived, read, and granted.
    reached: u64,
    read: u64,
    max_data: u64,
    /// Channels whose peer has used much of its credit.
    credit: BTreeSet<u64>,
    windows: Windows,
    /// Channels on which something has come, or that have ended, since they were last asked for.
    arrived: Arrived,
    /// Channels that the peer has opened, or answers on, and nobody has asked for.
    opened: BTreeSet<u64>,
    pub(super) messages: IncomingMessages,
}

/// Channels on which something has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Channels, all of them.
    On(BTreeSet<u64>),
    /// Any: there were too many to tell.
    Anywhere,
}

impl Default for Arrived {
    fn default() -> Self {
        Self::On(BTreeSet::new())
    }
}

impl Arrived {
    fn note(&mut self, channel: u64) {
        if let Self::On(all) = self {
            all.insert(channel);
            if all.len() > MAX_CHANNELS {
                *self = Self::Anywhere;
            }
        }
    }
}

impl Default for LaneReceiver {
    fn default() -> Self {
        Self {
            streams: BTreeMap::new(),
            closed: ClosedChannels::default(),
            stopped: 0,
            cost: 0,
            reached: 0,
            read: 0,
            max_data: SESSION_WINDOW,
            credit: BTreeSet::new(),
            windows: Windows::default(),
            arrived: Arrived::default(),
            opened: BTreeSet::new(),
            messages: IncomingMessages::default(),
        }
    }
}

impl LaneReceiver {
    pub(super) fn stream(
        &mut self,
        channel: u64,
        offset: u64,
        data: &Bytes,
        fin: bool,
        now: Instant,
    ) -> Result<(), Violation> {
        let Some(s) = self.open(channel)? else {
            return Ok(());
        };
        s.window.arrived(now);
        let (reach, cost) = (s.reach, s.parts.cost());
        s.put(offset, data, fin)?;
        let (more, now) = (s.reach - reach, s.parts.cost());
        self.reach(more)?;
        self.cost = self.cost - cost + now;
        if self.cost > MAX_COST {
            return Err(Violation("sent its data in pieces that are too small"));
        }
        self.skip_stopped(channel);
        Ok(())
    }

    /// The stream of a channel, which the peer opens if it is new; none where it is over.
    fn open(&mut self, channel: u64) -> Result<Option<&mut Stream>, Violation> {
        if self.closed.contains(channel) {
            return Ok(None);
        }
        if !self.streams.contains_key(&channel) {
            if self.streams.len() - self.stopped >= MAX_CHANNELS {
                return Err(Violation("opened more channels than it may"));
            }
            if self.stopped >= MAX_STOPPED {
                return Err(Violation("does not end the channels that were stopped"));
            }
        }
        self.arrived.note(channel);
        Ok(Some(self.streams.entry(channel).or_insert_with(|| {
            self.opened.insert(channel);
            Stream::default()
        })))
    }

    /// So many more bytes are known of.
    fn reach(&mut self, more: u64) -> Result<(), Violation> {
        self.reached += more;
        match self.reached > self.max_data {
            true => Err(Violation("sent more than it was given credit for in all")),
            false => Ok(()),
        }
    }

    /// Whether nothing of a channel is left.
    pub(super) fn is_closed(&self, channel: u64) -> bool {
        self.closed.contains(channel)
    }

    /// Whether a channel is known, open or over.
    pub(super) fn knows(&self, channel: u64) -> bool {
        self.streams.contains_key(&channel) || self.closed.contains(channel)
    }

    /// The peer has reset a stream, of which it has sent `size` bytes.
    pub(super) fn reset(&mut self, channel: u64, code: u64, size: u64) -> Result<(), Violation> {
        let Some(s) = self.open(channel)? else {
            return Ok(());
        };
        let reach = s.reach;
        let news = s.reset(code, size)?;
        let more = s.reach - reach;
        self.reach(more)?;
        self.credit.remove(&channel);
        self.windows.forget(channel);
        if news {
            self.skip(channel, Stream::readable);
        }
        self.skip_stopped(channel);
        Ok(())
    }

    /// This end does not want what comes on a channel. Returns whether the peer is to be told
    /// of that: not where nothing more comes (RFC 9000 3.5).
    pub(super) fn stop(&mut self, channel: u64) -> bool {
        if self.closed.contains(channel) {
            return false;
        }
        let s = self.streams.entry(channel).or_default();
        if s.stopped {
            return false;
        }
        let complete = s.end == Some(s.readable()) || s.reset.is_some();
        s.stopped = true;
        self.stopped += 1;
        self.arrived.note(channel);
        self.credit.remove(&channel);
        self.windows.forget(channel);
        self.skip_stopped(channel);
        !complete
    }

    fn skip_stopped(&mut self, channel: u64) {
        let Some(s) = self.streams.get(&channel).filter(|s| s.stopped) else {
            return;
        };
        let over = s.end.is_some();
        self.skip(channel, |s| s.next);
        if over {
            self.close(channel);
        }
    }

    /// Counts all of a stream from some place on as read.
    fn skip(&mut self, channel: u64, from: impl Fn(&Stream) -> u64) {
        if let Some(s) = self.streams.get_mut(&channel) {
            let cost = s.parts.cost();
            self.read += s.skip(from(s));
            self.cost = self.cost - cost + s.parts.cost();
        }
    }

    /// A stream is forgotten.
    fn close(&mut self, channel: u64) {
        let Some(s) = self.streams.remove(&channel) else {
            return;
        };
        self.stopped -= usize::from(s.stopped);
        self.credit.remove(&channel);
        self.windows.forget(channel);
        self.opened.remove(&channel);
        self.arrived.note(channel);
        let streams = &self.streams;
        self.closed
            .insert(channel, |gap| streams.range(gap).next().is_some());
    }

    /// Takes the channels on which something has come since this was called last.
    pub(super) fn take_arrived(&mut self) -> Arrived {
        std::mem::take(&mut self.arrived)
    }

    /// Channels that the peer has opened and nobody has taken: those that this end would number
    /// otherwise, odd ones where `odd`.
    pub(super) fn opened(&self, odd: bool) -> impl Iterator<Item = u64> {
        let all = self.opened.iter().copied();
        all.filter(move |c| (c & 1 == 1) == odd)
    }

    /// Takes the first of them.
    pub(super) fn take_opened(&mut self, odd: bool) -> Option<u64> {
        let first = self.opened(odd).next()?;
        // Those before are this end's own, on which the peer answers.
        self.opened = self.opened.split_off(&(first + 1));
        Some(first)
    }

    /// The channels that there are.
    pub(super) fn channels(&self) -> impl Iterator<Item = u64> {
        self.streams.keys().copied()
    }

    /// The next data of a channel, in order.
    pub(super) fn read(&mut self, channel: u64) -> Option<Bytes> {
        let s = self.streams.get_mut(&channel)?;
        let cost = s.parts.cost();
        let part = s.take()?;
        self.cost = self.cost - cost + s.parts.cost();
        self.read += part.len() as u64;
        if s.end.is_none() && s.window.is_due(s.next) {
            self.credit.insert(channel);
        }
        Some(part)
    }

    /// Whether there is something to read, the end included.
    pub(super) fn is_readable(&self, channel: u64) -> bool {
        let ready = |s: &Stream| s.parts.has(s.next) || s.is_read();
        self.closed.contains(channel) || self.streams.get(&channel).is_some_and(ready)
    }

    /// Whether a message is ready.
    pub(super) fn has_message(&self) -> bool {
        self.messages.is_ready()
    }

    /// How a channel has ended, once all of it has been read that can be; it is forgotten
    /// then.
    pub(super) fn end(&mut self, channel: u64) -> Option<End> {
        if self.closed.contains(channel) {
            return Some(End::Forgotten);
        }
        let s = self.streams.get(&channel).filter(|s| s.is_read())?;
        let end = s.reset.map_or(End::Finished, End::Reset);
        self.close(channel);
        Some(end)
    }

    /// Returns the credit of all streams, if it is to be sent.
    pub(super) fn session_credit(&mut self) -> Option<Update> {
        let max_data = self.read + SESSION_WINDOW;
        let (used, left) = (max_data - self.max_data, self.max_data - self.reached);
        is_session_due(used, left).then(|| {
            self.max_data = max_data;
            Update::CreditOfAll(max_data)
        })
    }

    /// Returns the next credit of a stream that is to be sent.
    pub(super) fn stream_credit(&mut self, now: Instant) -> Option<Update> {
        let channel = self.credit.pop_first()?;
        let s = self.streams.get_mut(&channel)?;
        let own = s.reach - s.next;
        let progress = Progress {
            next: s.next,
            reach: s.reach,
            held_by_others: self.reached - self.read - own,
        };
        let granted = self.windows.renew(channel, &mut s.window, progress, now);
        s.max_data = s.max_data.max(granted);
        Some(Update::Credit(channel, granted))
    }

    /// Bytes of all streams: known of, and read or given up.
    #[cfg(test)]
    pub(super) fn credit_used(&self) -> (u64, u64) {
        (self.reached, self.read)
    }

    /// Bytes of memory that the parts of all streams cost.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.cost
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let state = size_of::<Stream>() + 64;
        let streams: usize = self.streams.values().map(|s| state + s.parts.cost()).sum();
        let arrived = match &self.arrived {
            Arrived::On(all) => all.len(),
            Arrived::Anywhere => 0,
        };
        let sets = 64 * (self.credit.len() + self.opened.len() + arrived);
        streams + sets + self.windows.cost() + self.closed.cost() + self.messages.cost()
    }
}
