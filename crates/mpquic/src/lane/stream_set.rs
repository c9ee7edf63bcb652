//! Streams that are being sent, and which of them have something to send: a session may have
//! thousands that rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::RangeBounds;

use super::stream::Stream;

/// Contribution of one stream to the sums.
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

/// Streams by their channels.
#[derive(Debug, Default)]
pub(super) struct StreamSet {
    all: BTreeMap<u64, Stream>,
    /// Channels with data, or an end, that may be sent for the first time.
    ready: BTreeSet<u64>,
    /// Sums over all.
    fresh: u64,
    with_fresh: usize,
    fins: usize,
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
        let before = Share::of(s);
        let done = f(s);
        let after = Share::of(s);
        self.account(channel, before, after);
        Some(done)
    }

    /// Adds a stream, unless it is there.
    pub(super) fn begin(&mut self, channel: u64, make: impl FnOnce() -> Stream) {
        if !self.all.contains_key(&channel) {
            let s = make();
            self.account(channel, Share::default(), Share::of(&s));
            self.all.insert(channel, s);
        }
    }

    /// Removes a stream; says whether it was there.
    pub(super) fn remove(&mut self, channel: u64) -> bool {
        let Some(s) = self.all.remove(&channel) else {
            return false;
        };
        self.account(channel, Share::of(&s), Share::default());
        true
    }

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
            true => self.ready.insert(channel),
            false => self.ready.remove(&channel),
        };
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether one of these channels is there.
    pub(super) fn has_any(&self, channels: impl RangeBounds<u64>) -> bool {
        self.all.range(channels).next().is_some()
    }

    /// Bytes that may be sent for the first time.
    pub(super) fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Returns how many streams have some.
    pub(super) fn with_fresh(&self) -> usize {
        self.with_fresh
    }

    /// Returns how many ends may be sent for the first time.
    pub(super) fn fins(&self) -> usize {
        self.fins
    }

    /// Streams that have something to send, in turns: those after `turn`, then the others.
    pub(super) fn ready(&self, turn: u64) -> impl Iterator<Item = (u64, &Stream)> {
        let others = self.ready.range((Excluded(turn), Unbounded));
        let all = others.chain(self.ready.range(..=turn));
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
        let shares = || self.all.iter().map(|(channel, s)| (*channel, Share::of(s)));
        let ready: BTreeSet<_> = shares()
            .filter(|(_, s)| s.is_ready())
            .map(|(c, _)| c)
            .collect();
        assert_eq!(self.ready, ready);
        assert_eq!(self.fresh, shares().map(|(_, s)| s.fresh).sum::<u64>());
        assert_eq!(
            self.with_fresh,
            shares().filter(|(_, s)| s.fresh > 0).count()
        );
        assert_eq!(self.fins, shares().filter(|(_, s)| s.fin).count());
    }
}
