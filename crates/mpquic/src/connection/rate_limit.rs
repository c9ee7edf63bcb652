//! Limit of the rate at which this end sends on an access, whatever its paths could carry.

use std::time::{Duration, Instant};

use braid_core::Rate;

/// Sends ahead of the rate by no more than this, so that timers are few and queues are short.
const BURST: Duration = Duration::from_millis(10);

/// State of one access.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateLimit {
    /// Time at which all that was sent would have left at the rate.
    due: Option<Instant>,
}

impl RateLimit {
    /// Returns how many bytes are sent ahead of a rate.
    pub(super) fn ahead(rate: Rate) -> u64 {
        (rate.as_bps() as f64 / 8.0 * BURST.as_secs_f64()) as u64
    }

    /// Counts bytes that leave now.
    pub(super) fn sent(&mut self, now: Instant, bytes: u64, rate: Rate) {
        let due = self.due.map_or(now, |due| due.max(now));
        // A rate of nothing lets nothing pass for as long as can be told.
        let takes = bytes as f64 * 8.0 / rate.as_bps().max(1) as f64;
        self.due = Some(due + Duration::from_secs_f64(takes));
    }

    /// Returns until when nothing may be sent; `None` where something may now.
    pub(super) fn wait(&self, now: Instant) -> Option<Instant> {
        let at = self.due?.checked_sub(BURST)?;
        (at > now).then_some(at)
    }

    /// Forgets what was sent, as there is no limit.
    pub(super) fn lift(&mut self) {
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_more_is_sent_than_the_rate_and_a_burst(
            kbps in 10u64..1_000_000,
            sizes in prop::collection::vec(40u64..60_000, 1..200),
            pauses_us in prop::collection::vec(0u64..200_000, 200),
        ) {
            let rate = Rate::from_bps(kbps * 1000);
            let begin = Instant::now();
            let (mut limit, mut now, mut sent, mut last) = (RateLimit::default(), begin, 0, 0);
            for (bytes, pause) in sizes.iter().zip(pauses_us) {
                now += Duration::from_micros(pause);
                now = limit.wait(now).map_or(now, |at| at.max(now));
                let allowed = rate.as_bps() as f64 / 8.0 * (now - begin + BURST).as_secs_f64();
                prop_assert!(sent as f64 <= allowed + last as f64 + 1.0, "{sent} of {allowed}");
                limit.sent(now, *bytes, rate);
                sent += bytes;
                last = *bytes;
            }
        }
    }

    #[test]
    fn it_waits_no_longer_than_the_rate_asks() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let mut limit = RateLimit::default();
        assert_eq!(limit.wait(begin), None);
        // 100 kB at 8 Mbit/s take 100 ms, of which 10 are ahead.
        limit.sent(begin, 100_000, Rate::from_mbps(8.0));
        assert_eq!(limit.wait(begin), Some(begin + ms(90)));
        assert_eq!(limit.wait(begin + ms(90)), None);
        limit.lift();
        assert_eq!(limit.wait(begin), None);
    }
}
