//! Streams that arrive on the datagram lane, in order and within their credit.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::assembly::Assembly;
use super::messages::Messages;
use super::over::Over;
use super::told::Word;

/// Bytes of one stream that may wait for those before them.
pub(super) const WINDOW: u64 = 16 << 20;
/// Bytes of all streams that may wait to be read.
pub(super) const ALL_WINDOW: u64 = 64 << 20;
/// Credit is told anew when so much of it has been used.
const STEP: u64 = WINDOW / 8;
/// What the parts of all streams may cost: more than full packets do, whatever is missing
/// between them, and less than single bytes.
const MOST_COST: usize = 2 * ALL_WINDOW as usize;
/// Streams at a time.
pub(super) const MOST_CHANNELS: usize = 256;

/// The peer does what it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer {0}")]
pub struct Violation(pub(super) &'static str);

#[derive(Debug, Default)]
struct Stream {
    /// The next byte for the application.
    next: u64,
    parts: Assembly,
    /// After the last byte that has arrived.
    reach: u64,
    end: Option<u64>,
    /// The credit that the peer was told.
    most: u64,
}

impl Stream {
    fn put(&mut self, offset: u64, data: &Bytes, fin: bool) -> Result<(), Violation> {
        let end = offset + data.len() as u64;
        if end > self.most {
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
        if self.next < end {
            self.parts.put(self.next, offset, data);
        }
        Ok(())
    }

    fn take(&mut self) -> Option<Bytes> {
        let part = self.parts.take(self.next)?;
        self.next += part.len() as u64;
        Some(part)
    }
}

/// What has arrived.
#[derive(Debug)]
pub(super) struct Incoming {
    streams: BTreeMap<u64, Stream>,
    over: Over,
    /// What the parts of all streams cost.
    cost: usize,
    /// Bytes of all streams: up to the last of each that has arrived, read, and granted.
    reached: u64,
    read: u64,
    most: u64,
    /// Channels whose peer has used much of its credit.
    credit: BTreeSet<u64>,
    pub(super) messages: Messages,
}

impl Default for Incoming {
    fn default() -> Self {
        Self {
            streams: BTreeMap::new(),
            over: Over::default(),
            cost: 0,
            reached: 0,
            read: 0,
            most: ALL_WINDOW,
            credit: BTreeSet::new(),
            messages: Messages::default(),
        }
    }
}

impl Incoming {
    pub(super) fn stream(
        &mut self,
        channel: u64,
        offset: u64,
        data: &Bytes,
        fin: bool,
    ) -> Result<(), Violation> {
        if self.over.contains(channel) {
            return Ok(());
        }
        if !self.streams.contains_key(&channel) && self.streams.len() >= MOST_CHANNELS {
            return Err(Violation("opened more channels than it may"));
        }
        let s = self.streams.entry(channel).or_insert_with(|| Stream {
            most: WINDOW,
            ..Stream::default()
        });
        let (reach, cost) = (s.reach, s.parts.cost());
        s.put(offset, data, fin)?;
        self.reached += s.reach - reach;
        self.cost = self.cost - cost + s.parts.cost();
        if self.reached > self.most {
            return Err(Violation("sent more than it was given credit for in all"));
        }
        if self.cost > MOST_COST {
            return Err(Violation("sent its data in pieces that are too small"));
        }
        Ok(())
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
        if s.most - s.next < WINDOW - STEP {
            self.credit.insert(channel);
        }
        Some(part)
    }

    /// Whether there is something to read, the end included.
    pub(super) fn is_readable(&self, channel: u64) -> bool {
        let ready = |s: &Stream| s.parts.has(s.next) || s.end == Some(s.next);
        self.over.contains(channel) || self.streams.get(&channel).is_some_and(ready)
    }

    /// Whether a message is ready.
    pub(super) fn has_message(&self) -> bool {
        self.messages.is_ready()
    }

    /// Whether all of a channel has been read; it is forgotten then.
    pub(super) fn ended(&mut self, channel: u64) -> bool {
        if self.over.contains(channel) {
            return true;
        }
        let whole = |s: &Stream| s.end == Some(s.next);
        if !self.streams.get(&channel).is_some_and(whole) {
            return false;
        }
        self.streams.remove(&channel);
        self.credit.remove(&channel);
        let streams = &self.streams;
        self.over
            .insert(channel, |gap| streams.range(gap).next().is_some());
        true
    }

    /// Credit that is to be told.
    pub(super) fn credit(&mut self) -> Option<Word> {
        if self.most - self.read < ALL_WINDOW - STEP {
            self.most = self.read + ALL_WINDOW;
            return Some(Word::CreditOfAll(self.most));
        }
        let channel = self.credit.pop_first()?;
        let s = self.streams.get_mut(&channel)?;
        s.most = s.next + WINDOW;
        Some(Word::Credit(channel, s.most))
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let state = size_of::<Stream>() + 64;
        let streams: usize = self.streams.values().map(|s| state + s.parts.cost()).sum();
        streams + 64 * self.credit.len() + self.over.cost() + self.messages.cost()
    }
}
