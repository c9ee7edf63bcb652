//! What arrives on the datagram lane: streams in order, messages, each once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rangemap::RangeSet;

/// Bytes of one stream that may wait for those before them.
pub(super) const WINDOW: u64 = 16 << 20;
/// Credit is told anew when so much of it has been used.
const STEP: u64 = WINDOW / 8;
/// Streams at a time.
const MOST_CHANNELS: usize = 256;
/// Messages of which parts are missing, or that wait for others.
const MOST_MESSAGES: usize = 4096;
/// The largest message.
pub(super) const MOST_MESSAGE: u32 = 64 << 10;
/// Bytes of all those, and of messages that nobody takes: the oldest are given up.
const MESSAGE_BYTES: usize = 16 << 20;
/// How long a message waits for one before it that is missing.
const PATIENCE: Duration = Duration::from_millis(100);

/// The peer does what it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer {0}")]
pub struct Violation(&'static str);

#[derive(Debug, Default)]
struct Stream {
    /// The next byte for the application.
    next: u64,
    /// What waits, by offset, without overlaps.
    parts: BTreeMap<u64, Bytes>,
    /// What has arrived from `next` on.
    have: RangeSet<u64>,
    end: Option<u64>,
    /// The credit that the peer was told.
    most: u64,
}

impl Stream {
    fn put(&mut self, offset: u64, data: Bytes, fin: bool) -> Result<(), Violation> {
        let end = offset + data.len() as u64;
        if end > self.most {
            return Err(Violation("sent more than it was given credit for"));
        }
        if self.end.is_some_and(|e| end > e || (fin && end != e)) {
            return Err(Violation("sent data beyond the end of a stream"));
        }
        if fin {
            let latest = self.have.last().map_or(self.next, |r| r.end);
            if latest > end {
                return Err(Violation("ended a stream before what it had sent"));
            }
            self.end = Some(end);
        }
        let begin = offset.max(self.next);
        if begin >= end {
            return Ok(());
        }
        let gaps: Vec<_> = self.have.gaps(&(begin..end)).collect();
        for gap in gaps {
            let at = |x: u64| usize::try_from(x - offset).unwrap_or(usize::MAX);
            let part = data.slice(at(gap.start)..at(gap.end));
            self.parts.insert(gap.start, part);
        }
        self.have.insert(begin..end);
        Ok(())
    }

    fn take(&mut self) -> Option<Bytes> {
        let part = self.parts.remove(&self.next)?;
        self.next += part.len() as u64;
        self.have.remove(0..self.next);
        Some(part)
    }
}

/// A message of which parts are missing.
#[derive(Debug)]
struct Parts {
    data: BytesMut,
    have: RangeSet<u32>,
    ordered: bool,
}

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    streams: BTreeMap<u64, Stream>,
    /// Channels that have ended, not to be opened again.
    over: RangeSet<u64>,
    partial: BTreeMap<u64, Parts>,
    /// Messages that have been given, or given up.
    done: RangeSet<u64>,
    waiting: BTreeMap<u64, (Instant, Bytes)>,
    next_ordered: u64,
    ready: VecDeque<Bytes>,
    /// Bytes of all of these.
    held: usize,
    /// Channels whose peer has used much of its credit.
    credit: BTreeSet<u64>,
}

impl Incoming {
    pub(super) fn stream(
        &mut self,
        channel: u64,
        offset: u64,
        data: Bytes,
        fin: bool,
    ) -> Result<(), Violation> {
        if self.over.contains(&channel) {
            return Ok(());
        }
        if !self.streams.contains_key(&channel) && self.streams.len() >= MOST_CHANNELS {
            return Err(Violation("opened more channels than it may"));
        }
        let s = self.streams.entry(channel).or_insert_with(|| Stream {
            most: WINDOW,
            ..Stream::default()
        });
        s.put(offset, data, fin)
    }

    /// The channels that there are.
    pub(super) fn channels(&self) -> impl Iterator<Item = u64> {
        self.streams.keys().copied()
    }

    /// The next data of a channel, in order.
    pub(super) fn read(&mut self, channel: u64) -> Option<Bytes> {
        let s = self.streams.get_mut(&channel)?;
        let part = s.take()?;
        if s.most - s.next < WINDOW - STEP {
            self.credit.insert(channel);
        }
        Some(part)
    }

    /// Whether there is something to read, the end included.
    pub(super) fn is_readable(&self, channel: u64) -> bool {
        let ready = |s: &Stream| s.parts.contains_key(&s.next) || s.end == Some(s.next);
        self.over.contains(&channel) || self.streams.get(&channel).is_some_and(ready)
    }

    /// Whether a message is ready.
    pub(super) fn has_message(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether all of a channel has been read; it is forgotten then.
    pub(super) fn ended(&mut self, channel: u64) -> bool {
        if self.over.contains(&channel) {
            return true;
        }
        let whole = |s: &Stream| s.end == Some(s.next);
        if !self.streams.get(&channel).is_some_and(whole) {
            return false;
        }
        self.streams.remove(&channel);
        self.credit.remove(&channel);
        self.over.insert(channel..channel + 1);
        true
    }

    /// Credit that is to be told: channel and how much.
    pub(super) fn credit(&mut self) -> Option<(u64, u64)> {
        let channel = self.credit.pop_first()?;
        let s = self.streams.get_mut(&channel)?;
        s.most = s.next + WINDOW;
        Some((channel, s.most))
    }

    pub(super) fn message(
        &mut self,
        (number, total, offset): (u64, u32, u32),
        data: &Bytes,
        ordered: bool,
        now: Instant,
    ) -> Result<(), Violation> {
        if total > MOST_MESSAGE {
            return Err(Violation("sent a message larger than it may"));
        }
        if self.done.contains(&number) {
            return Ok(());
        }
        if !self.partial.contains_key(&number) {
            self.held += total as usize;
            self.make_room();
        }
        let parts = self.partial.entry(number).or_insert_with(|| Parts {
            data: BytesMut::zeroed(total as usize),
            have: RangeSet::new(),
            ordered,
        });
        if parts.data.len() != total as usize {
            return Err(Violation("said two lengths of one message"));
        }
        let begin = offset as usize;
        parts.data[begin..begin + data.len()].copy_from_slice(data);
        if !data.is_empty() {
            parts.have.insert(offset..offset + data.len() as u32);
        }
        if parts.have.gaps(&(0..total)).next().is_some() {
            return Ok(());
        }
        let Some(parts) = self.partial.remove(&number) else {
            return Ok(());
        };
        self.done.insert(number..number + 1);
        // What is long past is not told apart from what was given.
        if let Some(last) = self.done.last().map(|r| r.end) {
            let floor = last.saturating_sub(4 * MOST_MESSAGES as u64);
            if floor > 0 {
                self.done.insert(0..floor);
            }
        }
        match parts.ordered {
            false => self.ready.push_back(parts.data.freeze()),
            true => {
                self.waiting.insert(number, (now, parts.data.freeze()));
            }
        }
        self.release(now);
        Ok(())
    }

    /// Gives up the oldest messages where there are too many.
    fn make_room(&mut self) {
        while self.held > MESSAGE_BYTES || self.partial.len() >= MOST_MESSAGES {
            let freed = if let Some((old, parts)) = self.partial.pop_first() {
                self.done.insert(old..old + 1);
                parts.data.len()
            } else if let Some(old) = self.ready.pop_front() {
                old.len()
            } else if let Some((_, (_, old))) = self.waiting.pop_first() {
                old.len()
            } else {
                return;
            };
            self.held = self.held.saturating_sub(freed);
        }
    }

    /// Gives the ordered messages that need not wait (any longer).
    pub(super) fn release(&mut self, now: Instant) {
        while let Some(entry) = self.waiting.first_entry() {
            let number = *entry.key();
            let all_before = self
                .done
                .gaps(&(self.next_ordered..number))
                .next()
                .is_none();
            let (since, _) = entry.get();
            if !all_before && now < *since + PATIENCE {
                return;
            }
            let (_, data) = entry.remove();
            // What comes later of those before is too late.
            self.done.insert(0..number + 1);
            self.next_ordered = number + 1;
            self.ready.push_back(data);
        }
    }

    /// When [`Incoming::release`] is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting
            .values()
            .next()
            .map(|(since, _)| *since + PATIENCE)
    }

    /// The next message.
    pub(super) fn next_message(&mut self) -> Option<Bytes> {
        let next = self.ready.pop_front()?;
        self.held = self.held.saturating_sub(next.len());
        Some(next)
    }
}
