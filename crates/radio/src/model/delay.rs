//! Propagation delay and jitter.

use braid_core::Time;
use braid_core::seed::Rng;
use rand::RngExt;
use rand_distr::StandardNormal;

use super::spec::{DelaySpec, JitterSpec};
use super::steps::Steps;

/// When what leaves a link's server arrives at the far end.
///
/// Without reordering nothing overtakes: what would arrive before an earlier
/// packet arrives together with it. This holds across changes of the delay too.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    /// Nanoseconds.
    steps: Steps<u64>,
    jitter: Option<JitterSpec>,
    /// Latest arrival given so far.
    last: Time,
    rng: Rng,
}

impl Delay {
    pub(super) fn new(spec: &DelaySpec, jitter: Option<JitterSpec>, rng: Rng) -> Self {
        Self {
            steps: steps(spec),
            jitter,
            last: Time::ZERO,
            rng,
        }
    }

    pub(super) fn set_delay(&mut self, spec: &DelaySpec) {
        self.steps = steps(spec);
    }

    pub(super) fn set_jitter(&mut self, jitter: Option<JitterSpec>) {
        self.jitter = jitter;
    }

    /// Latest arrival given so far.
    pub(super) fn last(&self) -> Time {
        self.last
    }

    /// Nothing arrives before `t`, unless packets may overtake each other.
    pub(super) fn not_before(&mut self, t: Time) {
        self.last = self.last.max(t);
    }

    /// Whether packets may overtake each other, so that each needs its own draw.
    pub(super) fn reorders(&self) -> bool {
        self.jitter.is_some_and(|j| j.reorder)
    }

    /// Arrival of what leaves at `at`: one draw of the jitter, also where it
    /// is many packets (they travel together).
    pub(super) fn arrival(&mut self, at: Time) -> Time {
        let mut ns = i128::from(self.steps.at(at.as_nanos()));
        if let Some(j) = self.jitter {
            let z: f64 = self.rng.sample(StandardNormal);
            // Saturates; a cast of NaN, which cannot occur, would be 0.
            ns += (z * j.deviation.as_nanos() as f64).round() as i128;
        }
        let ns = u64::try_from(ns.max(0)).unwrap_or(u64::MAX);
        let due = Time::from_nanos(at.as_nanos().saturating_add(ns));
        self.last = self.last.max(due);
        if self.reorders() { due } else { self.last }
    }
}

fn steps(spec: &DelaySpec) -> Steps<u64> {
    match spec {
        DelaySpec::Constant(d) => Steps::constant(Time::from(*d).as_nanos()),
        DelaySpec::Steps { points, period } => {
            let points: Vec<_> = points
                .iter()
                .map(|(t, d)| (*t, Time::from(*d).as_nanos()))
                .collect();
            Steps::new(&points, *period, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use braid_core::seed::stream;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn jitter(reorder: bool) -> Option<JitterSpec> {
        Some(JitterSpec {
            deviation: 2 * MS,
            reorder,
        })
    }

    #[test]
    fn follows_the_steps_but_never_overtakes() {
        let spec = DelaySpec::Steps {
            points: vec![(Duration::ZERO, 10 * MS), (100 * MS, 3 * MS)],
            period: Some(200 * MS),
        };
        let mut d = Delay::new(&spec, None, stream(1, "d"));
        let at = |n: u32| Time::from(n * MS);
        assert_eq!(d.arrival(at(50)), at(60));
        assert_eq!(d.arrival(at(99)), at(109));
        assert_eq!(
            d.arrival(at(101)),
            at(109),
            "held back to 109 instead of 104"
        );
        assert_eq!(d.arrival(at(110)), at(113));
        assert_eq!(d.arrival(at(205)), at(215));
    }

    #[test]
    fn jitter_has_its_mean_and_deviation() {
        let spec = DelaySpec::Constant(20 * MS);
        let mut d = Delay::new(&spec, jitter(true), stream(7, "d"));
        let n = 100_000;
        let draws: Vec<f64> = (0..n)
            .map(|i| {
                let at = Time::from(i * MS);
                d.arrival(at).since(at).as_secs_f64() * 1e3
            })
            .collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let var = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!(
            (mean - 20.0).abs() < 3.0 * 2.0 / f64::from(n).sqrt(),
            "{mean}"
        );
        assert!((var.sqrt() - 2.0).abs() < 0.02, "{}", var.sqrt());
    }

    #[test]
    fn jitter_keeps_the_order_unless_asked_and_is_never_negative() {
        let spec = DelaySpec::Constant(MS);
        for reorder in [false, true] {
            let mut d = Delay::new(&spec, jitter(reorder), stream(3, "d"));
            let due: Vec<Time> = (0..1000)
                .map(|i| {
                    let at = Time::from(i * MS / 10);
                    let due = d.arrival(at);
                    assert!(due >= at);
                    due
                })
                .collect();
            assert_eq!(due.is_sorted(), !reorder);
        }
    }
}
