//! Streams that are being sent, and which of them have something to send: a session may have
//! thousands that rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::RangeBounds;

use braid_core::class::MAX_CLASSES;

use super::stream::Stream;

/// Contribution of one stream to the sums of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    fresh: u64,
    fin: bool,
}

impl Share {
    fn of(s: &Stream) -> Self {
        Self {
            fresh: s.fresh(),
            fin: s.wants_fin(),
        }
    }

    fn is_ready(self) -> bool {
        self.fresh > 0 || self.fin
    }
}

/// Streams of one class that have something to send for the first time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    channels: BTreeSet<u64>,
    fresh: u64,
    with_fresh: usize,
    fins: usize,
}

impl Ready {
    fn account(&mut self, channel: u64, before: Share, after: Share) {
        if before == after {
            return;
        }
        self.fresh = self.fresh - before.fresh + after.fresh;
        self.with_fresh += usize::from(after.fresh > 0);
        self.with_fresh -= usize::from(before.fresh > 0);
        self.fins += usize::from(after.fin);
        self.fins -= usize::from(before.fin);
        match after.is_ready() {
            true => self.channels.insert(channel),
            false => self.channels.remove(&channel),
        };
    }

    /// Changes a stream of the class.
    fn accounting<T>(
        &mut self,
        channel: u64,
        s: &mut Stream,
        f: impl FnOnce(&mut Stream) -> T,
    ) -> T {
        let before = Share::of(s);
        let done = f(s);
        self.account(channel, before, Share::of(s));
        done
    }

    /// Bytes that may be sent.
    pub(super) fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Returns how many streams have some.
    pub(super) fn with_fresh(&self) -> usize {
        self.with_fresh
    }

    /// Returns how many ends may be sent.
    pub(super) fn fins(&self) -> usize {
        self.fins
    }

    /// Returns how many streams have something to send.
    pub(super) fn streams(&self) -> usize {
        self.channels.len()
    }
}

/// Streams by their channels.
#[derive(Debug, Default)]
pub(super) struct StreamSet {
    all: BTreeMap<u64, Stream>,
    ready: [Ready; MAX_CLASSES],
}

impl StreamSet {
    pub(super) fn get(&self, channel: u64) -> Option<&Stream> {
        self.all.get(&channel)
    }

    /// Changes a stream, if it is there.
    pub(super) fn change<T>(
        &mut self,
        channel: u64,
        f: impl FnOnce(&mut Stream) -> T,
    ) -> Option<T> {
        let s = self.all.get_mut(&channel)?;
        Some(self.ready[usize::from(s.class)].accounting(channel, s, f))
    }

    /// Changes all streams.
    pub(super) fn change_all(&mut self, f: impl Fn(&mut Stream)) {
        for (channel, s) in &mut self.all {
            self.ready[usize::from(s.class)].accounting(*channel, s, &f);
        }
    }

    /// Adds a stream, unless it is there.
    pub(super) fn begin(&mut self, channel: u64, make: impl FnOnce() -> Stream) {
        if !self.all.contains_key(&channel) {
            let s = make();
            self.ready[usize::from(s.class)].account(channel, Share::default(), Share::of(&s));
            self.all.insert(channel, s);
        }
    }

    /// Puts a stream, if it is there, into a class below [`MAX_CLASSES`].
    pub(super) fn set_class(&mut self, channel: u64, class: u8) {
        if let Some(s) = self.all.get_mut(&channel) {
            let share = Share::of(s);
            let before = std::mem::replace(&mut s.class, class);
            let none = Share::default();
            self.ready[usize::from(before)].account(channel, share, none);
            self.ready[usize::from(class)].account(channel, none, share);
        }
    }

    /// Removes a stream; says whether it was there.
    pub(super) fn remove(&mut self, channel: u64) -> bool {
        let Some(s) = self.all.remove(&channel) else {
            return false;
        };
        self.ready[usize::from(s.class)].account(channel, Share::of(&s), Share::default());
        true
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether one of these channels is there.
    pub(super) fn has_any(&self, channels: impl RangeBounds<u64>) -> bool {
        self.all.range(channels).next().is_some()
    }

    /// Streams of a class that have something to send.
    pub(super) fn ready(&self, class: u8) -> &Ready {
        &self.ready[usize::from(class)]
    }

    /// Streams of a class that have something to send, in turns: those after `turn`, then the
    /// others.
    pub(super) fn in_turn(&self, class: u8, turn: u64) -> impl Iterator<Item = (u64, &Stream)> {
        let channels = &self.ready(class).channels;
        let others = channels.range((Excluded(turn), Unbounded));
        let all = others.chain(channels.range(..=turn));
        all.filter_map(|channel| Some((*channel, self.all.get(channel)?)))
    }

    /// Streams.
    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &Stream> {
        self.all.values()
    }

    /// Compares the sums with what they are of.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut sums: [Ready; MAX_CLASSES] = Default::default();
        for (channel, s) in &self.all {
            sums[usize::from(s.class)].account(*channel, Share::default(), Share::of(s));
        }
        assert_eq!(self.ready, sums);
    }
}
