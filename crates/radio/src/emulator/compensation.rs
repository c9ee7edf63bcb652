//! Making up for the time that the loop itself adds to every packet's delay:
//! waking up for it when it comes, and again when it is due, and writing it.
//!
//! How much that is depends on the machine and on how busy it is, so it is
//! measured all the time. A link's model is given a propagation delay that is
//! shorter by a *reserve*; a packet that comes out of the model is held for
//! what is left of the reserve after the loop's own time is taken off it.

use std::time::Duration;

use crate::model::{DelaySpec, LinkChange, LinkSpec};

/// Most that is made up for.
const MOST: Duration = Duration::from_micros(80);
/// Most that packets are held in simulated time. There is nothing to make up
/// for, but the longer everything is held, the more of what the models do is
/// done in one turn of the loop.
const SIMULATED: Duration = Duration::from_millis(1);
/// Weight of a new sample in the running means.
const WEIGHT: f64 = 1.0 / 64.0;
/// A sample beyond this is a pause of the host, which cannot be made up for.
const OUTLIER_NS: u64 = 100_000;
/// From the sending host's time stamp to the loop's alarm, and from the loop's
/// call to the receiving host's time stamp: not to be seen from here.
const KERNEL_NS: f64 = 4_000.0;

/// Estimate of the loop's own latency.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compensation {
    wake_ns: f64,
    write_ns: f64,
    kernel_ns: f64,
    /// Whether it stays as it is.
    fixed: bool,
}

impl Compensation {
    pub(crate) fn new() -> Self {
        Self {
            wake_ns: 10_000.0,
            write_ns: 10_000.0,
            kernel_ns: KERNEL_NS,
            fixed: false,
        }
    }

    /// Compensation of a loop in simulated time, which adds no latency.
    pub(crate) fn simulated() -> Self {
        Self {
            wake_ns: 0.0,
            write_ns: 0.0,
            kernel_ns: 0.0,
            fixed: true,
        }
    }

    /// A wake-up came `late` nanoseconds after it was due.
    pub(crate) fn woke(&mut self, late: u64) {
        if !self.fixed {
            mix(&mut self.wake_ns, late);
        }
    }

    /// A packet was written `late` nanoseconds after the loop meant to.
    pub(crate) fn wrote(&mut self, late: u64) {
        if !self.fixed {
            mix(&mut self.write_ns, late);
        }
    }

    /// From the time the loop means to write a packet to when it does.
    pub(crate) fn write(&self) -> u64 {
        self.write_ns as u64
    }

    /// Everything the loop adds. Taking a packet in is not to be seen from
    /// here; it is a wake-up as well and taken to be as late.
    pub(crate) fn total(&self) -> u64 {
        (self.wake_ns + self.write_ns + self.kernel_ns) as u64
    }

    /// How long a packet that comes out of a model with this reserve is held.
    pub(crate) fn hold(&self, reserve: u64) -> u64 {
        reserve.saturating_sub(self.total())
    }
}

fn mix(mean: &mut f64, sample: u64) {
    if sample <= OUTLIER_NS {
        *mean += (sample as f64 - *mean) * WEIGHT;
    }
}

/// The longest reserve of a loop.
pub(crate) fn most(simulated: bool) -> Duration {
    if simulated { SIMULATED } else { MOST }
}

/// Time by which the model's delay is to be shorter: the same at all times, so no
/// more than the shortest delay, or `most`.
pub(crate) fn reserve(spec: &DelaySpec, most: Duration) -> Duration {
    let shortest = match spec {
        DelaySpec::Constant(d) => *d,
        DelaySpec::Steps { points, .. } => points.iter().map(|&(_, d)| d).min().unwrap_or_default(),
    };
    shortest.min(most)
}

fn shortened(spec: &DelaySpec, most: Duration) -> DelaySpec {
    let by = reserve(spec, most);
    match spec {
        DelaySpec::Constant(d) => DelaySpec::Constant(*d - by),
        DelaySpec::Steps { points, period } => DelaySpec::Steps {
            points: points.iter().map(|&(t, d)| (t, d - by)).collect(),
            period: *period,
        },
    }
}

/// The link to model so that what is seen is `spec`.
pub(crate) fn link(spec: &LinkSpec, most: Duration) -> LinkSpec {
    LinkSpec {
        delay: shortened(&spec.delay, most),
        ..spec.clone()
    }
}

/// The change to model so that what is seen is `change`, and the new reserve
/// if there is one.
pub(crate) fn change(change: LinkChange, most: Duration) -> (LinkChange, Option<Duration>) {
    match change {
        LinkChange::Delay(d) => {
            let reserve = reserve(&d, most);
            (LinkChange::Delay(shortened(&d, most)), Some(reserve))
        }
        other => (other, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn reserve_and_shortened_delay_make_up_the_delay() {
        let steps = DelaySpec::Steps {
            points: vec![(us(0), us(1000)), (us(5), us(30))],
            period: None,
        };
        for (spec, want) in [
            (DelaySpec::Constant(us(10_000)), us(80)),
            (DelaySpec::Constant(us(50)), us(50)),
            (DelaySpec::Constant(us(0)), us(0)),
            (steps.clone(), us(30)),
        ] {
            assert_eq!(reserve(&spec, MOST), want, "{spec:?}");
        }
        let (LinkChange::Delay(DelaySpec::Steps { points, .. }), Some(r)) =
            change(LinkChange::Delay(steps), MOST)
        else {
            panic!("steps stay steps")
        };
        assert_eq!((points[0].1, points[1].1, r), (us(970), us(0), us(30)));
    }

    #[test]
    fn in_simulated_time_everything_is_held_for_the_whole_reserve() {
        let spec = DelaySpec::Constant(us(10_000));
        assert_eq!(reserve(&spec, most(true)), us(1000));
        let mut c = Compensation::simulated();
        c.wrote(50_000);
        assert_eq!(c.hold(1_000_000), 1_000_000);
    }

    #[test]
    fn follows_the_loop_and_ignores_pauses() {
        let mut c = Compensation::new();
        for _ in 0..1000 {
            c.woke(15_000);
            c.wrote(20_000);
            c.woke(5_000_000);
        }
        assert!((38_900..=39_000).contains(&c.total()), "{}", c.total());
        assert!((41_000..=41_100).contains(&c.hold(80_000)));
        assert_eq!(c.hold(30_000), 0);
    }
}
