//! Reordering time learned from how late packets really come.
//!
//! Waits a third longer than the latest packet of the last seconds. A packet whose gap was given
//! up already shows that the time was too short: it is doubled at least, and sinks again slowly.

use std::time::Duration;

use braid_core::Time;

use super::{Entry, LONGEST, ReorderingTime};

pub(super) const ENTRY: Entry = Entry {
    name: "adaptive",
    argument: "",
    about: "a third longer than packets were late in the last seconds",
    make: |argument| {
        argument
            .is_empty()
            .then(|| Box::new(Adaptive::default()) as Box<dyn ReorderingTime>)
    },
};

/// Before anything was late.
const START: Duration = Duration::from_millis(100);
const SHORTEST: Duration = Duration::from_millis(10);
/// The greatest lateness is that of this period or the one before.
const PERIOD: Duration = Duration::from_secs(2);
/// Without anything late for so long, the time of the start counts again.
const FORGET: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct Adaptive {
    before: Duration,
    now: Duration,
    since: Time,
    last: Option<Time>,
}

impl ReorderingTime for Adaptive {
    fn late(&mut self, now: Time, late: Duration, in_time: bool) {
        if now.since(self.since) >= PERIOD {
            let stale = now.since(self.since) >= PERIOD * 2;
            self.before = if stale { Duration::ZERO } else { self.now };
            self.now = Duration::ZERO;
            self.since = now;
        }
        let late = if in_time {
            late
        } else {
            late.max(self.time(now) * 3 / 2)
        };
        self.now = self.now.max(late.min(LONGEST));
        self.last = Some(now);
    }

    fn time(&self, now: Time) -> Duration {
        match self.last {
            Some(last) if now.since(last) < FORGET => {
                (self.now.max(self.before) * 4 / 3).clamp(SHORTEST, LONGEST)
            }
            _ => START,
        }
    }
}
