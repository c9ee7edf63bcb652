//! The clock and the alarm of the loop.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as Clock, clock_gettime};

/// `CLOCK_MONOTONIC` in nanoseconds: the common clock of all of Braid's processes.
pub fn monotonic_ns() -> u64 {
    // Reading this clock cannot fail on Linux; and a time before boot does not exist.
    clock_gettime(Clock::CLOCK_MONOTONIC)
        .map(|t| (t.tv_sec() as u64) * 1_000_000_000 + t.tv_nsec() as u64)
        .unwrap_or(0)
}

/// A timer for an absolute time, readable from then on.
#[derive(Debug)]
pub(crate) struct Alarm {
    fd: TimerFd,
    armed: Option<u64>,
}

impl Alarm {
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Self {
            fd: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
            armed: None,
        })
    }

    /// Goes off at `at` (`CLOCK_MONOTONIC`, nanoseconds), at once if that is
    /// past; never when `None`.
    pub(crate) fn set(&mut self, at: Option<u64>) -> nix::Result<()> {
        if at == self.armed {
            return Ok(());
        }
        match at {
            // Zero would disarm it.
            Some(ns) => self.fd.set(
                Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(ns.max(1)))),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )?,
            None => self.fd.unset()?,
        }
        self.armed = at;
        Ok(())
    }

    /// Notes that the alarm went off; the next [`Alarm::set`] arms it anew.
    pub(crate) fn fired(&mut self) -> Option<u64> {
        self.armed.take()
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn readable(a: &Alarm, timeout: PollTimeout) -> bool {
        let mut fds = [PollFd::new(a.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, timeout).unwrap() == 1
    }

    #[test]
    fn past_times_fire_and_unset_ones_do_not() {
        let mut a = Alarm::new().unwrap();
        a.set(Some(0)).unwrap();
        assert!(readable(&a, PollTimeout::NONE));
        assert_eq!(a.fired(), Some(0));
        a.set(Some(monotonic_ns() + 3_600_000_000_000)).unwrap();
        assert!(!readable(&a, PollTimeout::ZERO));
        a.set(None).unwrap();
        assert!(!readable(&a, PollTimeout::ZERO));
    }
}
