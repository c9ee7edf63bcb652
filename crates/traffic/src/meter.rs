//! Bytes over time: totals, the measured window, and gaps.

use std::time::Duration;

use braid_core::Time;

use super::report::Gap;

/// Gaps longer than this are listed.
const LISTED: Duration = Duration::from_millis(50);
/// No more gaps than this are listed: a report is one line, which readers may
/// cut at 64 kB.
pub const MOST_LISTED: usize = 800;

/// When the payload flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Start of the payload.
    pub(crate) start: Time,
    /// Start of the measured window.
    pub(crate) window: Time,
    /// End of both, or the time limit of a transfer of fixed size.
    pub(crate) end: Time,
}

/// Counts bytes in total and in the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    plan: Plan,
    /// All bytes.
    pub(crate) total: u64,
    /// Bytes at times from `plan.window` up to, not including, `plan.end`.
    pub(crate) window: u64,
}

impl Counter {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            total: 0,
            window: 0,
        }
    }

    pub(crate) fn add(&mut self, now: Time, bytes: u64) {
        self.total += bytes;
        if now >= self.plan.window && now < self.plan.end {
            self.window += bytes;
        }
    }
}

/// Watches for times without data while data is due.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    plan: Plan,
    /// Since when data has been due without any coming; `None`: none is due.
    since: Option<Time>,
    longest: Duration,
    list: Vec<Gap>,
}

impl Gaps {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            since: None,
            longest: Duration::ZERO,
            list: Vec::new(),
        }
    }

    /// From `now` on data is due.
    pub(crate) fn due(&mut self, now: Time) {
        if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Data came. It stays due.
    pub(crate) fn received(&mut self, now: Time) {
        if let Some(since) = self.since.replace(now) {
            self.close(since, now);
        }
    }

    /// From `now` on no data is due.
    pub(crate) fn idle(&mut self, now: Time) {
        if let Some(since) = self.since.take() {
            self.close(since, now);
        }
    }

    fn close(&mut self, since: Time, now: Time) {
        let from = since.max(self.plan.window);
        let length = now.min(self.plan.end).since(from);
        self.longest = self.longest.max(length);
        if length > LISTED && self.list.len() < MOST_LISTED {
            self.list.push(Gap {
                start_ns: from,
                length_ms: length.as_secs_f64() * 1e3,
            });
        }
    }

    /// The longest gap and the list; call [`Gaps::idle`] first.
    pub(crate) fn finish(self) -> (Duration, Vec<Gap>) {
        (self.longest, self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(v: u64) -> Time {
        Time::from(Duration::from_millis(v))
    }

    const PLAN: Plan = Plan {
        start: Time::from_nanos(0),
        window: Time::from_nanos(1_000_000_000),
        end: Time::from_nanos(2_000_000_000),
    };

    #[test]
    fn window_is_half_open() {
        let mut c = Counter::new(PLAN);
        for t in [0, 999, 1000, 1999, 2000, 2001] {
            c.add(ms(t), 1);
        }
        assert_eq!((c.total, c.window), (6, 2));
    }

    #[test]
    fn gap_at_either_edge_is_clipped_to_the_window() {
        let mut g = Gaps::new(PLAN);
        g.due(ms(0));
        g.received(ms(100));
        g.received(ms(1070));
        g.received(ms(1100));
        g.idle(ms(2500));
        let (longest, list) = g.finish();
        assert_eq!(longest, Duration::from_millis(900));
        let starts: Vec<_> = list.iter().map(|g| (g.start_ns, g.length_ms)).collect();
        assert_eq!(starts, [(ms(1000), 70.0), (ms(1100), 900.0)]);
    }

    #[test]
    fn idle_time_is_no_gap() {
        let mut g = Gaps::new(PLAN);
        g.due(ms(1000));
        g.received(ms(1010));
        g.idle(ms(1010));
        g.due(ms(1500));
        g.received(ms(1530));
        g.idle(ms(1530));
        assert_eq!(g.finish().0, Duration::from_millis(30));
    }

    proptest! {
        #[test]
        fn longest_is_the_largest_difference(mut at in prop::collection::vec(1000u64..2000, 1..50)) {
            at.sort_unstable();
            let mut g = Gaps::new(PLAN);
            g.due(ms(1000));
            for t in &at {
                g.received(ms(*t));
            }
            g.idle(ms(2000));
            let edges: Vec<u64> = [1000].into_iter().chain(at).chain([2000]).collect();
            let most = edges.windows(2).map(|w| w[1] - w[0]).max().unwrap();
            let (longest, list) = g.finish();
            prop_assert_eq!(longest, Duration::from_millis(most));
            prop_assert_eq!(list.is_empty(), most <= 50);
        }
    }
}
