//! Time, as probes and sockets are compared by.

use braid_core::Time;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, nanos)
}

/// Returns the time of `CLOCK_MONOTONIC` when the kernel last counted a tick (jiffy).
pub fn ticked() -> Time {
    let last = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE);
    last.map_or_else(|_| Time::from_nanos(now()), |t| Time::from_nanos(nanos(t)))
}

fn nanos(t: TimeSpec) -> u64 {
    let ns = t.tv_sec() * 1_000_000_000 + t.tv_nsec();
    u64::try_from(ns).unwrap_or(0)
}
