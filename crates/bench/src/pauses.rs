//! The host's pauses, seen by watches of their own: on a virtual machine a
//! processor stands still now and then, and nothing under test can help that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::{Context, Result, anyhow};
use braid_radio::emulator::fifo;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use crate::clock::{monotonic_ns, nanos, sleep_until};

/// Between two looks at the clock.
const EVERY_NS: u64 = 500_000;
/// A look later than this is a pause.
const LATE_NS: u64 = 1_000_000;

/// When some processor stood still: `CLOCK_REALTIME`, nanoseconds, from and to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses(Spans);

type Spans = Vec<(u64, u64)>;

impl Pauses {
    /// Whether any of `from..=to` falls into a pause, or into as long again
    /// after it, in which what had piled up is worked off.
    pub(crate) fn touch(&self, from: u64, to: u64) -> bool {
        self.0
            .iter()
            .any(|&(began, ended)| from <= ended + (ended - began) && to >= began)
    }
}

/// One watch on each processor, before every other thread in line.
pub(crate) struct Watch<'s>(Vec<ScopedJoinHandle<'s, Result<Spans>>>);

impl<'s> Watch<'s> {
    /// Watches until `stop`.
    pub(crate) fn start<'e>(scope: &'s Scope<'s, 'e>, stop: &'e AtomicBool) -> Result<Self> {
        let me = Pid::from_raw(0);
        let allowed = sched_getaffinity(me).context("cannot ask for the processors")?;
        let on = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu) == Ok(true));
        let watch = |cpu| {
            scope.spawn(move || {
                let mut one = CpuSet::new();
                one.set(cpu).context("cannot name a processor")?;
                sched_setaffinity(me, &one).context("cannot stay on a processor")?;
                fifo().context("cannot go before other threads")?;
                Ok(watch(stop))
            })
        };
        Ok(Self(on.map(watch).collect()))
    }

    /// Returns the pauses that were seen; `stop` must have been set.
    pub(crate) fn join(self) -> Result<Pauses> {
        let mut all = Vec::new();
        for handle in self.0 {
            let seen = handle.join().map_err(|_| anyhow!("a watch panicked"))?;
            all.extend(seen.context("cannot watch for pauses of the host")?);
        }
        Ok(Pauses(all))
    }
}

fn watch(stop: &AtomicBool) -> Spans {
    let mut pauses = Vec::new();
    let mut next = monotonic_ns() + EVERY_NS;
    while !stop.load(Ordering::Relaxed) {
        sleep_until(next);
        let late = monotonic_ns().saturating_sub(next);
        if late > LATE_NS
            && let Ok(now) = clock_gettime(ClockId::CLOCK_REALTIME)
        {
            let now = nanos(now);
            pauses.push((now - late, now));
        }
        next += EVERY_NS.max(late / EVERY_NS * EVERY_NS);
    }
    pauses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_counts_and_what_piles_up_in_it() {
        let pauses = Pauses(vec![(1_000, 1_500)]);
        assert!(!pauses.touch(100, 999));
        assert!(pauses.touch(900, 1_000));
        assert!(pauses.touch(1_100, 1_200));
        assert!(pauses.touch(2_000, 2_600));
        assert!(!pauses.touch(2_001, 2_600));
    }
}
