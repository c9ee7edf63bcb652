//! Data of one path that has arrived at the peer, and at which rate.

use std::time::{Duration, Instant};

/// A rate is over this time at least: acknowledgements come in batches.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// Time for which a rate is remembered, at least.
const REMEMBERED: Duration = Duration::from_secs(1);

/// Bytes that were acknowledged, without packets that only acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// UDP payload bytes since the path began.
    pub(crate) bytes: u64,
    /// Bytes per second over the last round trip, 50 ms at least; none before the first.
    pub(crate) rate: Option<f64>,
    /// Begin of the round trip that is under way, and the bytes until then.
    from: Option<(Instant, u64)>,
    /// Greatest rates of this second and of the one before, and when this one began.
    greatest: [f64; 2],
    second: Option<Instant>,
}

impl Delivery {
    /// Counts a packet that was acknowledged at `now`.
    pub(super) fn arrived(&mut self, bytes: u64, now: Instant, rtt: Duration) {
        self.bytes += bytes;
        let (begin, before) = *self.from.get_or_insert((now, self.bytes));
        let elapsed = now.saturating_duration_since(begin);
        if elapsed >= rtt.max(MIN_INTERVAL) {
            self.rate = Some((self.bytes - before) as f64 / elapsed.as_secs_f64());
            self.from = Some((now, self.bytes));
            self.remember(now);
        }
    }

    fn remember(&mut self, now: Instant) {
        let begin = *self.second.get_or_insert(now);
        if now.saturating_duration_since(begin) >= REMEMBERED {
            self.greatest = [0.0, self.greatest[0]];
            self.second = Some(now);
        }
        self.greatest[0] = self.greatest[0].max(self.rate.unwrap_or(0.0));
    }

    /// Returns the greatest rate of the last one to two seconds, bytes per second; none before the
    /// first.
    pub(crate) fn greatest(&self) -> Option<f64> {
        self.rate.map(|_| self.greatest[0].max(self.greatest[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_round_trip() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let mut d = Delivery::default();
        for n in 0..=10 {
            d.arrived(1000, begin + ms(10 * n), ms(100));
        }
        assert_eq!((d.bytes, d.rate), (11_000, Some(100_000.0)));
        d.arrived(5000, begin + ms(150), ms(100));
        assert_eq!(d.rate, Some(100_000.0), "the next one is under way");
        d.arrived(5000, begin + ms(200), ms(100));
        assert_eq!((d.bytes, d.rate), (21_000, Some(100_000.0)));
    }
}
