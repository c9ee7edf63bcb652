//! Pending acknowledgements of one path of the peer: datagrams that have arrived.

use std::ops::Range;
use std::time::{Duration, Instant};

use rangemap::RangeSet;

use super::wire::{Ack, MAX_RANGES, micros};

/// Minimum time for which the arrival of a datagram is reported again and again.
const REPORT_FOR: Duration = Duration::from_millis(100);

/// Datagrams of one path that have arrived, and whether an acknowledgement is pending.
#[derive(Debug, Default)]
pub(super) struct PendingAcks {
    /// Below `newest`, with a gap.
    received: RangeSet<u64>,
    /// The range that grows with what comes in order.
    newest: Range<u64>,
    /// Largest number, and when it came.
    largest: Option<(u64, Instant)>,
    /// Number from which on ranges are reported: the largest a while ago; and the largest at the
    /// latest of these times.
    reported_from: u64,
    mark: Option<(u64, Instant)>,
    /// Whether some have come that were not acknowledged.
    ack_pending: bool,
}

impl PendingAcks {
    /// Returns when its newest came.
    pub(super) fn latest(&self) -> Option<Instant> {
        self.largest.map(|(_, at)| at)
    }

    /// Notes one; says whether it came in order, or none if it came before.
    pub(super) fn take(&mut self, sequence: u64, now: Instant) -> Option<bool> {
        self.ack_pending = true;
        if self.newest.contains(&sequence) || self.received.contains(&sequence) {
            return None;
        }
        self.insert(sequence);
        let next = self.largest.map_or(0, |(l, _)| l + 1);
        let known = self.largest.filter(|(l, _)| *l >= sequence);
        let (largest, at) = known.unwrap_or((sequence, now));
        self.largest = Some((largest, at));
        self.end_reports(largest, sequence, now);
        // What is older is acknowledged, or taken for lost, by now.
        while self.received.len() >= MAX_RANGES {
            let first = self.received.first().cloned()?;
            self.received.remove(first);
        }
        Some(sequence == next)
    }

    fn insert(&mut self, sequence: u64) {
        if sequence == self.newest.end {
            self.newest.end += 1;
            return;
        }
        if sequence > self.newest.end {
            let before = std::mem::replace(&mut self.newest, sequence..sequence + 1);
            if !before.is_empty() {
                self.received.insert(before);
            }
            return;
        }
        self.received.insert(sequence..sequence + 1);
        let last = self.received.last().cloned();
        if let Some(last) = last.filter(|last| last.end == self.newest.start) {
            self.newest.start = last.start;
            self.received.remove(last);
        }
    }

    /// Ends the report of old ranges: lost datagrams leave gaps for good, which need not be
    /// reported for good.
    fn end_reports(&mut self, largest: u64, sequence: u64, now: Instant) {
        let (before, at) = *self.mark.get_or_insert((largest, now));
        if now >= at + REPORT_FOR {
            (self.reported_from, self.mark) = (before, Some((largest, now)));
        }
        self.reported_from = self.reported_from.min(sequence);
    }

    /// Returns the acknowledgement of what has come; none if none is pending.
    pub(super) fn ack(&mut self, path: u32, clock: Instant, now: Instant) -> Option<Ack> {
        if !std::mem::take(&mut self.ack_pending) {
            return None;
        }
        let (_, at) = self.largest?;
        let delay = now.duration_since(at).as_micros();
        let newest_first = [&self.newest].into_iter().chain(self.received.iter().rev());
        let new = newest_first.take_while(|r| r.end > self.reported_from);
        let ranges = new.map(|r| (r.start, r.end - 1)).collect();
        Some(Ack {
            path,
            received: micros(clock, at),
            delay: u64::try_from(delay).unwrap_or(u64::MAX),
            ranges,
        })
    }

    /// Marks the acknowledgement as pending again, as it did not fit.
    pub(super) fn defer(&mut self) {
        self.ack_pending = true;
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        size_of::<Self>() + 32 + 64 * self.received.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In whatever order they come, each is taken once, and reported are the ranges of all.
        #[test]
        fn all_that_came_is_reported_once(numbers in prop::collection::vec(0u64..60, 1..120)) {
            let (mut acks, now) = (PendingAcks::default(), Instant::now());
            let mut came = BTreeSet::new();
            for n in numbers {
                let in_order = came.last().map_or(n == 0, |last| n == last + 1);
                let new = came.insert(n);
                prop_assert_eq!(acks.take(n, now), new.then_some(in_order));
                let mut ranges: Vec<(u64, u64)> = Vec::new();
                for n in came.iter().rev() {
                    match ranges.last_mut() {
                        Some((first, _)) if *first == n + 1 => *first = *n,
                        _ => ranges.push((*n, *n)),
                    }
                }
                ranges.truncate(MAX_RANGES);
                prop_assert_eq!(acks.ack(0, now, now).unwrap().ranges, ranges);
            }
        }
    }

    #[test]
    fn gaps_are_reported_for_a_while() {
        let (mut acks, clock) = (PendingAcks::default(), Instant::now());
        let at = |ms: u64| clock + Duration::from_millis(ms);
        let ranges = |acks: &mut PendingAcks, ms| acks.ack(0, clock, at(ms)).unwrap().ranges;
        // One of ten is lost, and one comes every millisecond.
        for n in (0..1000).filter(|n| n % 10 != 9) {
            assert_eq!(acks.take(n, at(n)), Some(n % 10 != 0 || n == 0));
            let reported = ranges(&mut acks, n);
            assert_eq!(reported[0].1, n);
            let since = n.saturating_sub(reported.last().unwrap().0);
            assert!(since >= n.min(100) && since <= 210, "{since} at {n}");
        }
        // What comes late is reported all the same, and what has come before is known.
        assert_eq!(acks.take(509, at(1000)), Some(false));
        assert!(ranges(&mut acks, 1000).contains(&(500, 518)));
        assert_eq!(acks.take(400, at(1000)), None);
    }
}
