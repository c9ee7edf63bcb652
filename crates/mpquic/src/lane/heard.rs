//! Which datagrams of one path of the peer have arrived.

use std::time::Instant;

use rangemap::RangeSet;

use super::wire::{Ack, MOST_RANGES, micros};

/// One path.
#[derive(Debug, Default)]
pub(super) struct Heard {
    have: RangeSet<u64>,
    /// When the largest came.
    largest: Option<(u64, Instant)>,
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
        if self.largest.is_none_or(|(l, _)| l < sequence) {
            self.largest = Some((sequence, now));
        }
        // What is older is acknowledged, or taken for lost, by now.
        while self.have.len() > MOST_RANGES {
            let first = self.have.first().cloned()?;
            self.have.remove(first);
        }
        Some(sequence == next)
    }

    /// The acknowledgement of what has come; none if there is no news.
    pub(super) fn ack(&mut self, path: u32, clock: Instant, now: Instant) -> Option<Ack> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        let (_, at) = self.largest?;
        let delay = now.duration_since(at).as_micros();
        let ranges = self.have.iter().map(|r| (r.start, r.end - 1));
        let mut ranges: Vec<(u64, u64)> = ranges.collect();
        ranges.reverse();
        Some(Ack {
            path,
            received: micros(clock, at),
            delay: u64::try_from(delay).unwrap_or(u64::MAX),
            ranges,
        })
    }

    /// It did not fit and is to be told again.
    pub(super) fn again(&mut self) {
        self.news = true;
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        size_of::<Self>() + 32 + 64 * self.have.len()
    }
}
