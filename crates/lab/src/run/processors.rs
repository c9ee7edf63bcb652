//! Whether the machine's processors were the limit of a run.

use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

/// Share of the processors' time from which on they count as full: the rest is what waits
/// between two programs.
const FULL: f64 = 0.9;

/// Note on a case whose processors were full.
pub(super) const NOTE: &str = "the processors were full: what is short of the links here may be \
                               this machine's limit, not the engine's";

/// Returns the number of processors that are online; `None` where that is not told.
pub(super) fn online() -> Option<u32> {
    let count = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten()?;
    u32::try_from(count).ok()
}

/// Whether `processors` were full while they worked `used_s` seconds together in `span`.
pub(super) fn are_full(used_s: f64, span: Duration, processors: u32) -> bool {
    let there = span.as_secs_f64() * f64::from(processors);
    there > 0.0 && used_s >= FULL * there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_of_the_time_is_full() {
        let span = Duration::from_secs(8);
        for (used, processors, full) in [
            (15.3, 2, true),
            (14.4, 2, true),
            (14.3, 2, false),
            (15.3, 4, false),
            (0.0, 1, false),
        ] {
            assert_eq!(
                are_full(used, span, processors),
                full,
                "{used} of {processors}"
            );
        }
        assert!(!are_full(0.0, Duration::ZERO, 2), "nothing was measured");
        assert!(online().is_some_and(|n| n > 0));
    }
}
