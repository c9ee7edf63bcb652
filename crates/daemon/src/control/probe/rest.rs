//! Rest of a device: whether traffic has stopped, so that probes stop as well.

use std::time::Duration;

use braid_core::Time;

/// Bytes between two looks that are traffic, and not what keeps connections alive.
const TRAFFIC: u64 = 65_536;
/// Time after a probe in which its own bytes may still reach the meter.
const SETTLES: Duration = Duration::from_millis(2_500);

/// Traffic of a device from look to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Bytes at the last look.
    carried: u64,
    /// Moment of the last traffic.
    traffic: Time,
    /// Moment from which on what is carried is no probe's any more.
    settled: Time,
}

impl Rest {
    /// Begins at `now`, which counts as traffic.
    pub(super) fn new(now: Time) -> Self {
        Self {
            carried: u64::MAX,
            traffic: now,
            settled: now,
        }
    }

    /// Takes in the bytes that all accesses have carried so far.
    pub(super) fn look(&mut self, now: Time, carried: u64) {
        let more = carried.saturating_sub(self.carried);
        if more >= TRAFFIC && now >= self.settled {
            self.traffic = now;
        }
        self.carried = carried;
    }

    /// Takes in that a probe ended at `now`.
    pub(super) fn probed(&mut self, now: Time) {
        self.settled = now + SETTLES;
    }

    /// Whether there was no traffic for longer than `rest`.
    pub(super) fn is_over(&self, now: Time, rest: Duration) -> bool {
        now.since(self.traffic) > rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_alone_are_no_traffic() {
        let s = |n: u64| Time::from_nanos(n * 1_000_000_000);
        let rest = Duration::from_secs(600);
        let mut state = Rest::new(s(0));
        let mut carried = 5_000_000_000;
        for t in 1..=600 {
            // A probe of 10 MB each 10 s, which the meter shows a second later.
            match t % 10 {
                0 => state.probed(s(t)),
                1 => carried += 10_000_000,
                _ => carried += 1_000,
            }
            state.look(s(t), carried);
            assert!(!state.is_over(s(t), rest));
        }
        assert!(state.is_over(s(601), rest));
        state.look(s(605), carried + 100_000);
        assert!(!state.is_over(s(606), rest));
        assert!(state.is_over(s(606), Duration::ZERO));
    }
}
