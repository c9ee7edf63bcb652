//! Datagrams of one path of the peer that have arrived.

use std::time::{Duration, Instant};

use rangemap::RangeSet;

use super::wire::{Ack, MOST_RANGES, micros};

/// How long what has come is told again and again, at least.
const TOLD_FOR: Duration = Duration::from_millis(100);

/// One path.
#[derive(Debug, Default)]
pub(super) struct Heard {
    have: RangeSet<u64>,
    /// When the largest came.
    largest: Option<(u64, Instant)>,
    /// The largest a while ago, and the present one at the latest of these times.
    told: u64,
    mark: Option<(u64, Instant)>,
    /// Some have come that were not acknowledged.
    news: bool,
}

impl Heard {
    /// When its newest came.
    pub(super) fn latest(&self) -> Option<Instant> {
        self.largest.map(|(_, at)| at)
    }

    /// Notes one; says whether it came in order, or none if it came before.
    pub(super) fn take(&mut self, sequence: u64, now: Instant) -> Option<bool> {
        self.news = true;
        if self.have.contains(&sequence) {
            return None;
        }
        self.have.insert(sequence..sequence + 1);
        let next = self.largest.map_or(0, |(l, _)| l + 1);
        let known = self.largest.filter(|(l, _)| *l >= sequence);
        let (largest, at) = known.unwrap_or((sequence, now));
        self.largest = Some((largest, at));
        self.forget_told(largest, sequence, now);
        // What is older is acknowledged, or taken for lost, by now.
        while self.have.len() > MOST_RANGES {
            let first = self.have.first().cloned()?;
            self.have.remove(first);
        }
        Some(sequence == next)
    }

    /// Ends the report of old ranges: lost datagrams leave gaps for good, which need not be told
    /// for good.
    fn forget_told(&mut self, largest: u64, sequence: u64, now: Instant) {
        let (before, at) = *self.mark.get_or_insert((largest, now));
        if now >= at + TOLD_FOR {
            (self.told, self.mark) = (before, Some((largest, now)));
        }
        self.told = self.told.min(sequence);
    }

    /// The acknowledgement of what has come; none if there is no news.
    pub(super) fn ack(&mut self, path: u32, clock: Instant, now: Instant) -> Option<Ack> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        let (_, at) = self.largest?;
        let delay = now.duration_since(at).as_micros();
        let new = self.have.iter().filter(|r| r.end > self.told);
        let ranges = new.map(|r| (r.start, r.end - 1));
        let mut ranges: Vec<(u64, u64)> = ranges.collect();
        ranges.reverse();
        Some(Ack {
            path,
            received: micros(clock, at),
            delay: u64::try_from(delay).unwrap_or(u64::MAX),
            ranges,
        })
    }

    /// Marks the acknowledgement as pending again, as it did not fit.
    pub(super) fn again(&mut self) {
        self.news = true;
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        size_of::<Self>() + 32 + 64 * self.have.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_for_a_while() {
        let (mut heard, clock) = (Heard::default(), Instant::now());
        let at = |ms: u64| clock + Duration::from_millis(ms);
        let ranges = |heard: &mut Heard, ms| heard.ack(0, clock, at(ms)).unwrap().ranges;
        // One of ten is lost, and one comes every millisecond.
        for n in (0..1000).filter(|n| n % 10 != 9) {
            assert_eq!(heard.take(n, at(n)), Some(n % 10 != 0 || n == 0));
            let told = ranges(&mut heard, n);
            assert_eq!(told[0].1, n);
            let since = n.saturating_sub(told.last().unwrap().0);
            assert!(since >= n.min(100) && since <= 210, "{since} at {n}");
        }
        // What comes late is told all the same, and what has come before is known.
        assert_eq!(heard.take(509, at(1000)), Some(false));
        assert!(ranges(&mut heard, 1000).contains(&(500, 518)));
        assert_eq!(heard.take(400, at(1000)), None);
    }
}
