//! How punctual the loop is.

use hdrhistogram::Histogram;

use super::api::{LatenessStats, Pause};

/// A wake-up later than this is the host's doing, and is said.
const PAUSE_NS: u64 = 1_000_000;
/// Pauses kept for the statistics; all are counted.
const PAUSES_KEPT: usize = 1000;

/// Statistics of how late packets were delivered and wake-ups came.
#[derive(Debug)]
pub(crate) struct Lateness {
    deliveries: Histogram<u64>,
    sum_ns: u64,
    late_wakes: u64,
    max_wake_ns: u64,
    pauses: Vec<Pause>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Self {
            // 1 ns to 10 s, two digits: fixed size, never grows.
            deliveries: Histogram::new_with_bounds(1, 10_000_000_000, 2)
                .expect("the bounds and the digits are constants in the allowed range"),
            sum_ns: 0,
            late_wakes: 0,
            max_wake_ns: 0,
            pauses: Vec::with_capacity(PAUSES_KEPT),
        }
    }

    /// A packet due at `due` is being delivered at `now`.
    pub(crate) fn delivery(&mut self, due: u64, now: u64) {
        let late = now.saturating_sub(due);
        self.sum_ns = self.sum_ns.saturating_add(late);
        self.deliveries.saturating_record(late.max(1));
    }

    /// The loop had nothing to do until `due`, and runs at `now`. Returns the
    /// pause if that is one; `epoch` is where times in the log start.
    pub(crate) fn wake(&mut self, due: u64, now: u64, epoch: u64) -> Option<Pause> {
        let late = now.saturating_sub(due);
        self.max_wake_ns = self.max_wake_ns.max(late);
        if late <= PAUSE_NS {
            return None;
        }
        self.late_wakes += 1;
        let pause = Pause {
            at_s: (due as f64 - epoch as f64) / 1e9,
            late_ms: late as f64 / 1e6,
        };
        if self.pauses.len() < PAUSES_KEPT {
            self.pauses.push(pause);
        }
        Some(pause)
    }

    pub(crate) fn stats(&self) -> LatenessStats {
        let n = self.deliveries.len();
        let us = |ns: u64| ns as f64 / 1e3;
        LatenessStats {
            deliveries: n,
            mean_us: if n == 0 {
                0.0
            } else {
                us(self.sum_ns) / n as f64
            },
            p50_us: us(self.deliveries.value_at_quantile(0.5)),
            p99_us: us(self.deliveries.value_at_quantile(0.99)),
            max_us: us(self.deliveries.max()),
            // Filled in by who makes up for it.
            compensated_us: 0.0,
            late_wakes: self.late_wakes,
            max_wake_us: us(self.max_wake_ns),
            pauses: self.pauses.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_pauses_and_keeps_the_rest_quiet() {
        let mut l = Lateness::new();
        assert!(l.wake(5_000_000, 5_900_000, 0).is_none());
        assert!(
            l.wake(9_000_000, 8_000_000, 0).is_none(),
            "early is not late"
        );
        let p = l.wake(2_000_000_000, 2_003_500_000, 1_000_000_000).unwrap();
        assert_eq!((p.at_s, p.late_ms), (1.0, 3.5));
        for late in 1..=100u64 {
            l.delivery(1_000_000, 1_000_000 + late * 1_000);
        }
        let s = l.stats();
        assert_eq!((s.late_wakes, s.deliveries, s.pauses.len()), (1, 100, 1));
        assert!((s.mean_us - 50.5).abs() < 1e-9);
        assert!((s.p99_us - 99.0).abs() < 1.0 && (s.p50_us - 50.0).abs() < 1.0);
        assert_eq!(s.max_wake_us, 3500.0);
    }
}
