//! Random loss of packets.
//!
//! Nothing is drawn per packet: the number of packets until the next loss, and
//! until the next change of state, is geometrically distributed.

use braid_core::Time;
use braid_core::seed::Rng;
use rand::RngExt;
use rand_distr::Geometric;

use super::spec::LossSpec;
use super::steps::Steps;

/// Loss process: decides which of a sequence of packets are lost.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    model: Model,
    rng: Rng,
}

#[derive(Clone, Debug)]
enum Model {
    None,
    Bernoulli(Gap),
    GilbertElliott(Chain),
    Steps(Changing),
}

/// Bernoulli loss whose probability changes. Packets that leave together have the
/// probability of their time; a new one begins with a draw of its own, which is right, since
/// the process has no memory.
#[derive(Clone, Debug)]
struct Changing {
    steps: Steps<f64>,
    /// Probability of the gap, which has been drawn for it.
    now: f64,
    gap: Gap,
}

impl Changing {
    fn next(&mut self, n: u64, at: Time, rng: &mut Rng) -> Option<u64> {
        let p = self.steps.at(at.as_nanos());
        if p != self.now {
            self.now = p;
            self.gap = Gap::new(p, rng);
        }
        self.gap.next(n, rng)
    }
}

/// Gilbert-Elliott chain (Gilbert 1960, Elliott 1963). Each packet first steps
/// the chain, then is lost with the probability of the state. It starts good.
#[derive(Clone, Debug)]
struct Chain {
    /// Good, bad.
    states: [State; 2],
    bad: usize,
    /// Packets before the next change of state.
    stay: u64,
}

#[derive(Clone, Debug)]
struct State {
    leave: Gap,
    loss: Gap,
}

/// Packets passed until an event that meets each with the same probability.
#[derive(Clone, Debug)]
struct Gap {
    /// `None`: the event never happens.
    law: Option<Geometric>,
    left: u64,
}

impl Gap {
    /// Probabilities outside 0 to 1 count as the nearer of the two, NaN as 0.
    fn new(p: f64, rng: &mut Rng) -> Self {
        let law = (p > 0.0).then(|| Geometric::new(p.min(1.0)).ok()).flatten();
        let mut gap = Self {
            law,
            left: u64::MAX,
        };
        gap.draw(rng);
        gap
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.left = self.law.map_or(u64::MAX, |g| rng.sample(g));
    }

    /// The first of `n` packets that the event meets, if any; those up to it,
    /// or all, have passed.
    fn next(&mut self, n: u64, rng: &mut Rng) -> Option<u64> {
        self.law?;
        if self.left >= n {
            self.left -= n;
            return None;
        }
        let at = self.left;
        self.draw(rng);
        Some(at)
    }
}

impl Chain {
    fn next(&mut self, n: u64, rng: &mut Rng) -> Option<u64> {
        let mut passed = 0;
        while passed < n {
            if self.stay == 0 {
                self.bad = 1 - self.bad;
                let state = &mut self.states[self.bad];
                // At least the packet that brought the change.
                state.leave.draw(rng);
                self.stay = state.leave.left.saturating_add(1);
                state.loss.draw(rng);
            }
            let now = self.stay.min(n - passed);
            if let Some(at) = self.states[self.bad].loss.next(now, rng) {
                self.stay -= at + 1;
                return Some(passed + at);
            }
            self.stay -= now;
            passed += now;
        }
        None
    }
}

impl Loss {
    pub(super) fn new(spec: &LossSpec, rng: Rng) -> Self {
        let mut loss = Self {
            model: Model::None,
            rng,
        };
        loss.set(spec);
        loss
    }

    pub(super) fn set(&mut self, spec: &LossSpec) {
        let rng = &mut self.rng;
        self.model = match *spec {
            LossSpec::None => Model::None,
            LossSpec::Bernoulli(p) => Model::Bernoulli(Gap::new(p, rng)),
            LossSpec::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => {
                let mut state = |leave, loss| State {
                    leave: Gap::new(leave, rng),
                    loss: Gap::new(loss, rng),
                };
                let states = [state(good_to_bad, loss_good), state(bad_to_good, loss_bad)];
                Model::GilbertElliott(Chain {
                    bad: 0,
                    stay: states[0].leave.left,
                    states,
                })
            }
            LossSpec::Steps { ref points, period } => {
                let steps = Steps::new(points, period, 0.0);
                let now = steps.at(0);
                Model::Steps(Changing {
                    gap: Gap::new(now, rng),
                    steps,
                    now,
                })
            }
        };
    }

    /// The first lost packet of the next `n`, which leave at `at`, counted from 0; `None`: all
    /// arrive. The packets up to it, or all, count as passed.
    pub(super) fn next(&mut self, n: u32, at: Time) -> Option<u32> {
        let n = u64::from(n);
        let at = match &mut self.model {
            Model::None => None,
            Model::Bernoulli(gap) => gap.next(n, &mut self.rng),
            Model::GilbertElliott(chain) => chain.next(n, &mut self.rng),
            Model::Steps(changing) => changing.next(n, at, &mut self.rng),
        };
        // Below `n`, which was 32 bits wide.
        at.map(|at| at as u32)
    }
}

#[cfg(test)]
mod tests {
    use braid_core::seed::stream;
    use proptest::prelude::*;

    use super::*;

    /// Returns which of `total` packets are lost, asked for in trains of `train`.
    fn lost(loss: &mut Loss, total: u32, train: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < total {
            let end = total.min(at + train);
            while at < end {
                match loss.next(end - at, Time::ZERO) {
                    Some(k) => {
                        out.push(at + k);
                        at += k + 1;
                    }
                    None => at = end,
                }
            }
        }
        out
    }

    #[test]
    fn bernoulli_within_three_sigma() {
        for p in [1e-4, 1e-3, 1e-2, 0.3] {
            for seed in 1..=3 {
                let n = 1_000_000;
                let mut loss = Loss::new(&LossSpec::Bernoulli(p), stream(seed, "loss"));
                let got = lost(&mut loss, n, 44).len() as f64;
                let n = f64::from(n);
                let sigma = (n * p * (1.0 - p)).sqrt();
                assert!(
                    (got - n * p).abs() < 3.0 * sigma,
                    "p {p} seed {seed}: {got}"
                );
            }
        }
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_rate_and_burst_length() {
        let (p, r, good, bad) = (0.002, 0.1, 1e-4, 0.7);
        let spec = LossSpec::GilbertElliott {
            good_to_bad: p,
            bad_to_good: r,
            loss_good: good,
            loss_bad: bad,
        };
        let n = 4_000_000;
        let got = lost(&mut Loss::new(&spec, stream(2, "loss")), n, 44);
        let in_bad = p / (p + r);
        let want = in_bad * bad + (1.0 - in_bad) * good;
        // Variance of a mean of the chain: bursts make it larger than
        // Bernoulli's by about (2 - p - r) / (p + r) times the share of bad.
        let f = f64::from(n);
        let burst = bad * bad * in_bad * (1.0 - in_bad) * (2.0 - p - r) / (p + r);
        let sigma = ((want * (1.0 - want) + burst) / f).sqrt();
        let share = got.len() as f64 / f;
        assert!(
            (share - want).abs() < 3.0 * sigma,
            "{share} for {want} +- {sigma}"
        );
        // P(next lost | lost): stays bad and lost again, or turns good.
        let again = got.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64;
        let was_bad = in_bad * bad / want;
        let want =
            was_bad * ((1.0 - r) * bad + r * good) + (1.0 - was_bad) * (p * bad + (1.0 - p) * good);
        let share = again / got.len() as f64;
        assert!((share - want).abs() < 0.02, "{share} for {want}");
    }

    #[test]
    fn certain_and_impossible() {
        let all = |p| {
            lost(
                &mut Loss::new(&LossSpec::Bernoulli(p), stream(1, "")),
                100,
                7,
            )
            .len()
        };
        assert_eq!((all(0.0), all(1.0)), (0, 100));
        assert_eq!((all(f64::NAN), all(-3.0), all(7.0)), (0, 0, 100));
        let flip = LossSpec::GilbertElliott {
            good_to_bad: 1.0,
            bad_to_good: 1.0,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let every_other: Vec<u32> = (0..100).step_by(2).collect();
        assert_eq!(
            lost(&mut Loss::new(&flip, stream(1, "")), 100, 9),
            every_other
        );
    }

    #[test]
    fn steps_change_the_probability_with_time() {
        let ms = std::time::Duration::from_millis;
        let spec = LossSpec::Steps {
            points: vec![(ms(0), 0.0), (ms(10), 1.0), (ms(20), 0.2)],
            period: Some(ms(40)),
        };
        let mut loss = Loss::new(&spec, stream(1, "loss"));
        let mut share = |at: u64| {
            let at = Time::from_nanos(at * 1_000_000);
            let lost = (0..5000).filter(|_| loss.next(1, at).is_some()).count();
            lost as f64 / 5000.0
        };
        assert_eq!(
            (share(0), share(9), share(10), share(19)),
            (0.0, 0.0, 1.0, 1.0)
        );
        // Three standard deviations of 5000 draws.
        assert!((share(25) - 0.2).abs() < 0.017);
        assert_eq!((share(40), share(51)), (0.0, 1.0), "it repeats");
    }

    proptest! {
        #[test]
        fn the_same_packets_are_lost_however_they_are_asked_for(
            seed: u64, a in 1u32..50, b in 1u32..50, p in 0.0f64..1.0, q in 0.0f64..1.0,
        ) {
            for spec in [
                LossSpec::Bernoulli(p),
                LossSpec::GilbertElliott {
                    good_to_bad: p, bad_to_good: q, loss_good: q / 10.0, loss_bad: p,
                },
            ] {
                let run = |train| lost(&mut Loss::new(&spec, stream(seed, "x")), 300, train);
                prop_assert_eq!(run(a), run(b));
            }
        }
    }
}
