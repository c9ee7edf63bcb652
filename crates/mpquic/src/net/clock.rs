//! Noticing that the task, or the whole machine, did not run for a while.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// A task that runs so much later than it was due was stopped: no load of a machine that still
/// carries anything has that effect.
const LATE: Duration = Duration::from_secs(2);
/// Two readings of the clocks are apart by far less.
const MIN_SLEEP: Duration = Duration::from_millis(100);

/// Last readings of the two clocks.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Time that the machine was suspended since it was started.
    suspended: Option<Duration>,
    /// When the task was to run again.
    due: Option<Instant>,
}

impl Clock {
    /// The task waits until `due`, unless something happens before.
    pub(super) fn waits(&mut self, due: Option<Instant>) {
        self.due = due;
    }

    /// The task runs: whether it had not for a while, and for how long of that the machine was
    /// suspended, which `Instant` does not count.
    pub(super) fn runs(&mut self, now: Instant) -> Option<Duration> {
        self.went_on(now, suspended())
    }

    fn went_on(&mut self, now: Instant, suspended: Option<Duration>) -> Option<Duration> {
        let late = self.due.take().is_some_and(|t| t + LATE <= now);
        let before = std::mem::replace(&mut self.suspended, suspended);
        let slept = suspended
            .zip(before)
            .map(|(now, then)| now.saturating_sub(then));
        let slept = slept.filter(|s| *s >= MIN_SLEEP);
        (late || slept.is_some()).then(|| slept.unwrap_or_default())
    }
}

/// How long the machine has been suspended since it was started: `CLOCK_BOOTTIME` counts that,
/// `CLOCK_MONOTONIC`, which is that of `Instant`, does not (`clock_gettime(2)`).
fn suspended() -> Option<Duration> {
    let read = |clock| clock_gettime(clock).ok().map(Duration::from);
    let (all, awake) = (
        read(ClockId::CLOCK_BOOTTIME)?,
        read(ClockId::CLOCK_MONOTONIC)?,
    );
    Some(all.saturating_sub(awake))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_and_a_suspension_are_noticed_and_a_busy_machine_is_not() {
        let (now, s) = (Instant::now(), Duration::from_secs);
        let mut clock = Clock::default();
        assert_eq!(clock.went_on(now, Some(s(100))), None);
        clock.waits(Some(now + s(1)));
        assert_eq!(clock.went_on(now + s(2), Some(s(100))), None, "late");
        clock.waits(Some(now + s(3)));
        let stopped = clock.went_on(now + s(48), Some(s(100)));
        assert_eq!(stopped, Some(Duration::ZERO), "stopped");
        clock.waits(Some(now + s(49)));
        let slept = clock.went_on(now + s(49), Some(s(145)));
        assert_eq!(slept, Some(s(45)), "suspended");
        assert_eq!(clock.went_on(now + s(50), Some(s(145))), None, "once");
        // Without such a clock it is noticed by the other.
        assert_eq!(clock.went_on(now + s(50), None), None);
    }

    #[test]
    fn the_clocks_of_this_machine_are_read() {
        let (a, b) = (suspended().unwrap(), suspended().unwrap());
        assert!(a.abs_diff(b) < MIN_SLEEP, "{a:?} {b:?}");
    }
}
