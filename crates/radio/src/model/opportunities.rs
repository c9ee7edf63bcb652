//! Mahimahi's packet-delivery traces (Netravali et al., USENIX ATC 2015,
//! section 4): at each listed millisecond a packet's worth of bytes may leave.

const NS_PER_MS: u64 = 1_000_000;

/// The delivery opportunities of a trace, repeated without end and numbered
/// from 0 through all repetitions.
#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    /// Ascending.
    ms: Vec<u64>,
    /// Milliseconds of a repetition: those of the last opportunity.
    period: u64,
    /// Bytes per opportunity.
    bytes: u64,
}

impl Opportunities {
    /// `None` where nothing can ever leave.
    pub(super) fn new(ms: &[u64], packet_bytes: u32) -> Option<Self> {
        let mut ms = ms.to_vec();
        ms.sort_unstable();
        let period = (*ms.last()?).max(1);
        (packet_bytes > 0).then_some(Self {
            ms,
            period,
            bytes: packet_bytes.into(),
        })
    }

    /// Bytes per opportunity.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When opportunity `n` is, in nanoseconds.
    pub(super) fn time(&self, n: u64) -> u64 {
        let per = self.ms.len() as u64;
        // In range: the remainder is below the length of the list.
        let ms = self.ms[(n % per) as usize];
        (n / per)
            .saturating_mul(self.period)
            .saturating_add(ms)
            .saturating_mul(NS_PER_MS)
    }

    /// Number of opportunities before `t` nanoseconds.
    pub(super) fn before(&self, t: u64) -> u64 {
        self.before_ms(t.div_ceil(NS_PER_MS))
    }

    /// Number of opportunities before or at `t` nanoseconds.
    pub(super) fn up_to(&self, t: u64) -> u64 {
        self.before_ms(t / NS_PER_MS + 1)
    }

    fn before_ms(&self, ms: u64) -> u64 {
        let per = self.ms.len() as u64;
        let below = |r: u64| self.ms.partition_point(|&m| m < r) as u64;
        match (ms / self.period, ms % self.period) {
            // The last opportunities of a repetition are in the same
            // millisecond as the start of the next.
            (cycles @ 1.., 0) => (cycles - 1).saturating_mul(per) + below(self.period),
            (cycles, r) => cycles.saturating_mul(per) + below(r),
        }
    }

    /// Mean rate in bits per second over the second around `t` nanoseconds
    /// (over a whole repetition where that is shorter).
    pub(super) fn rate_around(&self, t: u64) -> u64 {
        let second = 1_000 * NS_PER_MS;
        let window = second.min(self.period.saturating_mul(NS_PER_MS));
        let from = t.saturating_sub(window / 2);
        let n = self.before(from.saturating_add(window)) - self.before(from);
        let bits = u128::from(n) * u128::from(self.bytes) * 8;
        u64::try_from(bits * u128::from(second) / u128::from(window)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn repeats_after_the_last_millisecond() {
        let o = Opportunities::new(&[0, 3, 3, 10], 1504).unwrap();
        let times: Vec<u64> = (0..9).map(|n| o.time(n) / NS_PER_MS).collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20]);
        assert_eq!(o.before(10 * NS_PER_MS), 3);
        assert_eq!(o.up_to(10 * NS_PER_MS), 5);
        assert_eq!(o.rate_around(20 * NS_PER_MS), 1504 * 8 * 4 * 100);
    }

    #[test]
    fn nothing_to_offer() {
        assert!(Opportunities::new(&[], 1504).is_none());
        assert!(Opportunities::new(&[1], 0).is_none());
        let burst = Opportunities::new(&[0, 0], 1).unwrap();
        assert_eq!(burst.time(2), NS_PER_MS, "a repetition takes at least 1 ms");
    }

    proptest! {
        #[test]
        fn counts_agree_with_times(
            ms in prop::collection::vec(0u64..40, 1..30),
            t in 0u64..200_000_000,
        ) {
            let o = Opportunities::new(&ms, 1504).unwrap();
            let n = o.before(t);
            prop_assert!(o.time(n) >= t);
            prop_assert!(n == 0 || o.time(n - 1) < t);
            let n = o.up_to(t);
            prop_assert!(o.time(n) > t);
            prop_assert!(n == 0 || o.time(n - 1) <= t);
        }
    }
}
