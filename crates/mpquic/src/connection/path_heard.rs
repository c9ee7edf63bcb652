//! Time when something arrived last on a path of the stream lane.

use std::time::{Duration, Instant};

/// Clock of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathHeard {
    /// UDP datagrams that had arrived at the last inspection.
    datagrams: u64,
    /// Time of the first inspection that found these.
    at: Instant,
}

impl PathHeard {
    /// Begins with a path that is new.
    pub(super) fn new(now: Instant) -> Self {
        let datagrams = 0;
        Self { datagrams, at: now }
    }

    /// Notes how many UDP datagrams have arrived, and returns for how long none has: to within
    /// the time between two inspections.
    pub(super) fn inspect(&mut self, datagrams: u64, now: Instant) -> Duration {
        if datagrams > self.datagrams {
            let at = now;
            *self = Self { datagrams, at };
        }
        now.saturating_duration_since(self.at)
    }
}
