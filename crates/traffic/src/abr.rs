//! Choosing the bit rate of a video segment from the level of the buffer: BBA-0,
//! Huang, Johari, McKeown, Trunnell, Watson, "A Buffer-Based Approach to Rate
//! Adaptation", SIGCOMM 2014, Algorithm 1. Pure.

use std::time::Duration;

use braid_core::Rate;

/// The paper's reservoir and cushion: 216 s of a buffer of 240 s.
const UPPER: f64 = 216.0 / 240.0;
/// The paper's reservoir, 90 s, of reservoir and cushion.
const RESERVOIR: f64 = 90.0 / 216.0;

/// The ladder of bit rates, and the one in use.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    /// Ascending, at least one.
    rates: Vec<Rate>,
    reservoir: Duration,
    upper: Duration,
    current: usize,
}

impl Ladder {
    /// A ladder for a buffer of `buffer` that is filled by segments of
    /// `segment`, at its lowest rate.
    pub(crate) fn new(rates: Vec<Rate>, buffer: Duration, segment: Duration) -> Self {
        // A player asks when a segment has room, so it never asks with more
        // buffered than that leaves: the top of the map must lie below, by half
        // a segment, or a timer a little late would keep it out of reach.
        let asked = buffer.saturating_sub(segment.mul_f64(1.5));
        let upper = buffer.mul_f64(UPPER).min(asked);
        Self {
            rates,
            reservoir: upper.mul_f64(RESERVOIR),
            upper,
            current: 0,
        }
    }

    /// The bit rate of the next segment, when `buffered` is in the buffer.
    pub(crate) fn next(&mut self, buffered: Duration) -> Rate {
        let top = self.rates.len() - 1;
        let current = self.current;
        self.current = if buffered <= self.reservoir {
            0
        } else if buffered >= self.upper {
            top
        } else {
            let map = self.map(buffered);
            let of = |i: usize| self.rates[i].as_bps() as f64;
            if map >= of((current + 1).min(top)) {
                // The highest rate below the map's; the lowest if none is.
                (0..=top).rev().find(|i| of(*i) < map).unwrap_or(0)
            } else if map <= of(current.saturating_sub(1)) {
                // The lowest rate above the map's.
                (0..=top).find(|i| of(*i) > map).unwrap_or(top)
            } else {
                current
            }
        };
        self.rates[self.current]
    }

    /// The rate map: linear from the lowest to the highest rate over the cushion.
    fn map(&self, buffered: Duration) -> f64 {
        let low = self.rates[0].as_bps() as f64;
        let high = self.rates[self.rates.len() - 1].as_bps() as f64;
        let into = buffered.saturating_sub(self.reservoir).as_secs_f64();
        let cushion = (self.upper - self.reservoir).as_secs_f64();
        low + (high - low) * into / cushion
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ladder() -> Ladder {
        let rates = [1.0, 2.5, 5.0, 8.0].map(Rate::from_mbps).into();
        Ladder::new(rates, Duration::from_secs(40), Duration::from_secs(2))
    }

    fn walk(seconds: &[u64]) -> Vec<f64> {
        let mut l = ladder();
        let step = |s: &u64| l.next(Duration::from_secs(*s)).as_mbps();
        seconds.iter().map(step).collect()
    }

    #[test]
    fn follows_the_map_with_hysteresis() {
        // Reservoir up to 15 s, cushion up to 36 s: a third of a Mbit/s per second.
        assert_eq!(
            walk(&[0, 15, 18, 20, 30, 36, 40]),
            [1.0, 1.0, 1.0, 2.5, 5.0, 8.0, 8.0]
        );
        // Down only when the map falls to the next lower rate.
        assert_eq!(
            walk(&[40, 30, 28, 26, 20, 15]),
            [8.0, 8.0, 8.0, 5.0, 5.0, 1.0]
        );
    }

    #[test]
    fn one_rate_is_kept() {
        let mut l = Ladder::new(
            vec![Rate::from_mbps(4.0)],
            Duration::from_secs(40),
            Duration::from_secs(2),
        );
        for s in 0..50 {
            assert_eq!(l.next(Duration::from_secs(s)), Rate::from_mbps(4.0));
        }
    }

    #[test]
    fn large_segments_reach_the_top_too() {
        let s = Duration::from_secs;
        let rates = [1.0, 8.0].map(Rate::from_mbps).into();
        let mut l = Ladder::new(rates, s(10), s(4));
        assert_eq!(l.next(s(6)), Rate::from_mbps(8.0));
    }

    proptest! {
        #[test]
        fn stays_on_the_ladder(levels in prop::collection::vec(0u64..60_000, 1..100)) {
            let mut l = ladder();
            for ms in levels {
                let level = Duration::from_millis(ms);
                let rate = l.next(level);
                prop_assert!(l.rates.contains(&rate));
                if level <= l.reservoir {
                    prop_assert_eq!(rate, l.rates[0]);
                }
                if level >= l.upper {
                    prop_assert_eq!(rate, l.rates[3]);
                }
            }
        }
    }
}
