//! `CLOCK_MONOTONIC`, the common clock of all processes of a lab.

use braid_core::Time;
use nix::time::{ClockId, clock_gettime};

/// Returns `CLOCK_MONOTONIC` now.
pub fn now() -> Time {
    let t = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .expect("every Linux has CLOCK_MONOTONIC and the pointer is ours");
    Time::from_nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}
