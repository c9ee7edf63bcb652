//! A timer to the microsecond: the runtime's own counts milliseconds, in which a fast
//! path sends a hundred packets. It counts time in which the machine is suspended, so that
//! the task runs as soon as it goes on. The only unsafe code of this crate.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::task::{Context, Poll};
use std::time::Instant;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

struct Fd(TimerFd);

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Ready at one time, which may be changed.
pub(super) struct Timer {
    fd: AsyncFd<Fd>,
    at: Option<Instant>,
}

impl Timer {
    /// Inside a runtime.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let fd = Fd(TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?);
        // SAFETY: an `Fd` owns one open timer from when it is made until it is dropped,
        // and always names that one.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(Self { fd, at: None })
    }

    /// Sets it to `at`, and says whether that has passed; the task is woken then.
    pub(super) fn poll(
        &mut self,
        at: Option<Instant>,
        now: Instant,
        cx: &mut Context<'_>,
    ) -> io::Result<bool> {
        if at.is_some_and(|t| t <= now) {
            return Ok(true);
        }
        if at != self.at {
            let timer = &self.fd.get_ref().0;
            match at {
                Some(t) => {
                    let left = TimeSpec::from_duration(t - now);
                    timer.set(Expiration::OneShot(left), TimerSetTimeFlags::empty())?;
                }
                None => timer.unset()?,
            }
            self.at = at;
        }
        loop {
            match self.fd.poll_read_ready(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(guard) => {
                    let mut guard = guard?;
                    // Setting it anew took back that it can be read; after a suspension it is
                    // early by the clock of `Instant`, and fires once all the same.
                    let fired = self.at.is_some() && self.fd.get_ref().0.wait().is_ok();
                    guard.clear_ready();
                    if fired {
                        self.at = None;
                        return Ok(true);
                    }
                }
            }
        }
    }
}
