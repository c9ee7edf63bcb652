//! Clocks, and waiting by them.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

pub(crate) use braid_radio::emulator::monotonic_ns;

/// Nanoseconds of `t`.
pub(crate) fn nanos(t: TimeSpec) -> u64 {
    t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
}

/// Sleeps until `at` (`CLOCK_MONOTONIC`, nanoseconds).
pub(crate) fn sleep_until(at: u64) {
    let t = TimeSpec::new((at / 1_000_000_000) as i64, (at % 1_000_000_000) as i64);
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &t) == Err(nix::errno::Errno::EINTR) {}
}
