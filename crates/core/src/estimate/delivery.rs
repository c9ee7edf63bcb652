//! Delivery of an access: counts of its paths joined to one rate.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::control::{LimitedBy, PathGone, PathMetrics};
use crate::{Rate, Time};

/// Shortest round. Acknowledgements arrive in batches; over less time a rate is mostly noise.
const MIN_ROUND: Duration = Duration::from_millis(50);

/// Payload that the paths of an access delivered between two rounds of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Begin.
    pub from: Time,
    /// End: the moment of the newest sample.
    pub to: Time,
    /// Delivered payload, bytes.
    pub bytes: u64,
    /// Obstacle that kept the access from delivering more: the first in the order of
    /// [`LimitedBy`] that any of its paths met.
    pub limited_by: LimitedBy,
}

impl Round {
    /// Returns the length of the round.
    pub fn elapsed(&self) -> Duration {
        self.to.since(self.from)
    }

    /// Returns the delivered payload over the length of the round.
    pub fn rate(&self) -> Rate {
        let ns = self.elapsed().as_nanos().max(1);
        let bps = u128::from(self.bytes) * 8_000_000_000 / ns;
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

/// Meter of one access and direction. Paths come and go; each byte is counted once.
#[derive(Debug)]
pub struct DeliveryMeter {
    /// Newest count of each living path.
    paths: BTreeMap<u64, u64>,
    /// Begin of the meter. A path that is older was adopted: its bytes from before are not
    /// counted.
    created: Time,
    /// End of the last round.
    closed: Time,
    /// Begin of the round that is open; absent while no path lives.
    from: Option<Time>,
    /// Moment of the newest sample of the open round.
    newest: Option<Time>,
    bytes: u64,
    limited_by: Option<LimitedBy>,
}

impl DeliveryMeter {
    /// Begins at `now`. Of paths that are older, only later bytes count.
    pub fn new(now: Time) -> Self {
        Self {
            paths: BTreeMap::new(),
            created: now,
            closed: now,
            from: None,
            newest: None,
            bytes: 0,
            limited_by: None,
        }
    }

    /// Takes in a sample of a path.
    pub fn on_sample(&mut self, at: Time, path: &PathMetrics) {
        let before = self.paths.insert(path.path, path.delivered_bytes);
        self.count(at, path.began, path.delivered_bytes, before);
        let limited_by = self.limited_by.unwrap_or(path.limited_by);
        self.limited_by = Some(limited_by.min(path.limited_by));
    }

    /// Takes in the end of a path.
    pub fn on_gone(&mut self, at: Time, path: &PathGone) {
        let before = self.paths.remove(&path.path);
        self.count(at, path.began, path.delivered_bytes, before);
    }

    fn count(&mut self, at: Time, began: Time, delivered: u64, before: Option<u64>) {
        let (bytes, start) = match before {
            Some(before) => (delivered.saturating_sub(before), self.closed),
            // Time without any path is no part of a round: nothing could be delivered then. A
            // path that began earlier and was not sampled at the last round extends this one.
            None if began >= self.created => (delivered, began),
            None => (0, self.closed),
        };
        self.bytes = self.bytes.saturating_add(bytes);
        self.from = Some(self.from.map_or(start, |from| from.min(start)));
        self.newest = self.newest.max(Some(at));
    }

    /// Whether any path lives.
    pub fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Ends the open round, if it has samples and is long enough.
    pub fn take_round(&mut self) -> Option<Round> {
        let (from, to) = (self.from?, self.newest?);
        if to.since(from) < MIN_ROUND {
            return None;
        }
        self.closed = to;
        self.from = self.has_paths().then_some(to);
        self.newest = None;
        Some(Round {
            from,
            to,
            bytes: std::mem::take(&mut self.bytes),
            limited_by: self.limited_by.take().unwrap_or(LimitedBy::Application),
        })
    }
}
