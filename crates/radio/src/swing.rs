//! Random links whose rate swings, for measurements and tests.

use std::fmt;
use std::time::Duration;

use braid_core::Rate;
use braid_core::seed::{Rng, stream};
use rand::RngExt;

use crate::model::{DelaySpec, LinkSpec, LossSpec, QueueSpec, RateSpec};

/// Slowest and fastest rate, Mbit/s.
const RATES: [f64; 2] = [1.0, 500.0];
/// Uplinks have this part of the middle of the downlink's rates, and 2 Mbit/s at least.
const UPLINK: f64 = 0.2;
const MIN_UPLINK: f64 = 2.0;

/// An access whose downlink changes its rate by up to ten times within a second.
#[derive(Clone, Debug, PartialEq)]
pub struct SwingingLink {
    /// Times from which on it has these rates, ms, and Mbit/s between 1 and 500.
    pub rates: Vec<(u64, f64)>,
    /// Middle of its rates, Mbit/s, between 3 and 160.
    pub middle: f64,
    /// Delay one way, ms, between 1 and 150.
    pub delay: f64,
    /// Queue at the momentary rate, ms, between 20 and 300.
    pub queue: f64,
    /// Part of the packets that is lost, up to 1 %: every other link loses none.
    pub loss: f64,
    /// When nothing passes, ms: every fourth link is silent once, for 0.3 to 3 s.
    pub outage: Option<(u64, u64)>,
}

/// Draws between `a` and `b`, equally often in each octave.
fn log(rng: &mut Rng, a: f64, b: f64) -> f64 {
    a * (b / a).powf(rng.random::<f64>())
}

impl SwingingLink {
    /// Draws the link called `name` of a seed; its rates end with `length`.
    pub fn draw(seed: u64, name: &str, length: Duration) -> Self {
        let rng = &mut stream(seed, &format!("swing {name}"));
        let middle = log(rng, 3.0, 160.0);
        let end = length.as_millis() as u64;
        let (mut at, mut rates) = (0, Vec::new());
        while at < end {
            let rate = log(rng, middle / 10f64.sqrt(), middle * 10f64.sqrt());
            rates.push((at, rate.clamp(RATES[0], RATES[1])));
            at += log(rng, 100.0, 1000.0) as u64;
        }
        let delay = log(rng, 1.0, 150.0);
        let queue = log(rng, 20.0, 300.0);
        let lossy = rng.random_range(0..2) == 0;
        let loss = log(rng, 1e-5, 1e-2);
        let silent = rng.random_range(0..4) == 0;
        let (begin, length) = (log(rng, 4000.0, 12_000.0), log(rng, 300.0, 3000.0));
        Self {
            rates,
            middle,
            delay,
            queue,
            loss: if lossy { loss } else { 0.0 },
            outage: silent.then_some((begin as u64, (begin + length) as u64)),
        }
    }

    /// Returns the rate of the uplink, Mbit/s.
    pub fn uplink(&self) -> f64 {
        (self.middle * UPLINK).max(MIN_UPLINK)
    }

    fn link(&self, rate: RateSpec, loss: LossSpec) -> LinkSpec {
        LinkSpec {
            rate,
            delay: DelaySpec::Constant(Duration::from_secs_f64(self.delay / 1e3)),
            queue: QueueSpec::Time(Duration::from_secs_f64(self.queue / 1e3)),
            loss,
            ..LinkSpec::default()
        }
    }

    /// Returns the models of the downlink and the uplink, without the outage.
    pub fn links(&self) -> [LinkSpec; 2] {
        let step = |(at, mbps): &(u64, f64)| (Duration::from_millis(*at), Rate::from_mbps(*mbps));
        let rate = RateSpec::Steps {
            points: self.rates.iter().map(step).collect(),
            period: None,
        };
        let loss = match self.loss > 0.0 {
            true => LossSpec::Bernoulli(self.loss),
            false => LossSpec::None,
        };
        let up = RateSpec::Constant(Rate::from_mbps(self.uplink()));
        [self.link(rate, loss), self.link(up, LossSpec::None)]
    }

    /// Returns the mean rate at which the downlink carries between two times, ms, at the IP layer,
    /// Mbit/s.
    pub fn carries(&self, from: u64, to: u64) -> f64 {
        let ends = self.rates.iter().skip(1).map(|r| r.0).chain([u64::MAX]);
        let sum = self.rates.iter().zip(ends).map(|((begin, rate), end)| {
            let (begin, end) = ((*begin).max(from), end.min(to));
            let silent = self
                .outage
                .map_or(0, |(a, b)| b.min(end).saturating_sub(a.max(begin)));
            end.saturating_sub(begin).saturating_sub(silent) as f64 * rate
        });
        sum.sum::<f64>() / (to - from) as f64
    }
}

impl fmt::Display for SwingingLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} Mbit/s, {:.0} ms", self.middle, self.delay)?;
        write!(f, ", queue {:.0} ms", self.queue)?;
        if self.loss > 0.0 {
            write!(f, ", loss {:.2} %", self.loss * 100.0)?;
        }
        if let Some((begin, end)) = self.outage {
            write!(f, ", silent {:.1} s", (end - begin) as f64 / 1e3)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(17);

    #[test]
    fn draws_stay_within_what_they_say() {
        let draw = |seed| SwingingLink::draw(seed, "a", LENGTH);
        let links: Vec<SwingingLink> = (0..2000).map(draw).collect();
        for l in &links {
            let rates = || l.rates.iter().map(|r| r.1);
            assert!(rates().all(|r| (1.0..=500.0).contains(&r)));
            let most = rates().fold(0.0, f64::max);
            assert!(most <= 10.001 * rates().fold(f64::INFINITY, f64::min));
            assert!(l.rates.windows(2).all(|w| w[1].0 - w[0].0 <= 1000));
            assert!((1.0..=150.0).contains(&l.delay) && (20.0..=300.0).contains(&l.queue));
            assert!((0.0..=0.01).contains(&l.loss));
        }
        let silent = links.iter().filter(|l| l.outage.is_some()).count();
        assert!((400..600).contains(&silent), "{silent} of 2000");
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_ne!(draw(7), SwingingLink::draw(7, "b", LENGTH));
    }

    #[test]
    fn an_outage_carries_nothing() {
        let link = SwingingLink {
            rates: vec![(0, 10.0), (1000, 20.0), (2000, 40.0)],
            outage: Some((1500, 2500)),
            ..SwingingLink::draw(1, "a", LENGTH)
        };
        assert_eq!(link.carries(0, 3000), (10.0 + 10.0 + 20.0) / 3.0);
        assert_eq!(link.carries(500, 1500), 15.0);
        assert_eq!(link.carries(1600, 2400), 0.0);
    }
}
