//! CUBIC's congestion avoidance (RFC 9438): a window that grows with the time since the last
//! congestion event, slowly around the size at which that was met.

/// Part of the window that is left after a congestion event (RFC 9438 4.6).
pub(super) const BETA: f64 = 0.7;
/// Growth of the cubic function, packets per second cubed (RFC 9438 5).
const C: f64 = 0.4;
/// Packets that Reno's window grows by in a round trip, where it shrinks to [`BETA`] (RFC 9438
/// 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Multiple of the window that it grows to within a round trip, at most (RFC 9438 4.2).
const MAX_GROWTH: f64 = 1.5;

/// Congestion avoidance since the last congestion event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cubic {
    /// Window around which it grows slowly, packets.
    w_max: f64,
    /// Time until it is there, seconds.
    k: f64,
    /// When it began, seconds.
    began: f64,
    /// Window that Reno would have by now, packets.
    w_est: f64,
}

impl Cubic {
    /// Begins at `now` with `window` packets, on the way to `w_max`.
    pub(super) fn new(window: f64, w_max: f64, now: f64) -> Self {
        Self {
            w_max,
            k: ((w_max - window).max(0.0) / C).cbrt(),
            began: now,
            w_est: window,
        }
    }

    /// Begins after a congestion event at `window` packets, of which `left` are left. One that
    /// was met earlier than the last leaves more to others (fast convergence, RFC 9438 4.7).
    pub(super) fn after(before: Option<Self>, window: f64, left: f64, now: f64) -> Self {
        let earlier = before.is_some_and(|b| window < b.w_max);
        let w_max = match earlier {
            true => window * (1.0 + BETA) / 2.0,
            false => window,
        };
        Self::new(left, w_max, now)
    }

    /// Returns the window after `acked` packets of `window` were acknowledged, at this smoothed
    /// round-trip time, seconds.
    pub(super) fn grown(&mut self, window: f64, acked: f64, srtt: f64, now: f64) -> f64 {
        let t = now - self.began + srtt - self.k;
        let target = (C * t.powi(3) + self.w_max).clamp(window, MAX_GROWTH * window);
        let alpha = if self.w_est < self.w_max { ALPHA } else { 1.0 };
        self.w_est += alpha * acked / window;
        match target < self.w_est {
            true => window.max(self.w_est),
            false => window + (target - window) / window * acked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Window after so many seconds, at 50 ms.
    fn after(mut cubic: Cubic, mut window: f64, seconds: f64) -> f64 {
        let rounds = (seconds / 0.05).round() as u32;
        for round in 0..rounds {
            let all = window;
            for _ in 0..10 {
                window = cubic.grown(window, all / 10.0, 0.05, f64::from(round) * 0.05);
            }
        }
        window
    }

    #[test]
    fn a_window_is_back_where_it_was_after_k_seconds() {
        // RFC 9438 4.2: K = cbrt((1000 - 700) / 0.4) = 9.09 s.
        let cubic = Cubic::after(None, 1000.0, 700.0, 0.0);
        assert!((cubic.k - 9.085).abs() < 0.01, "{}", cubic.k);
        let window = after(cubic, 700.0, cubic.k);
        assert!((window - 1000.0).abs() < 2.0, "{window}");
        // A second before and after it is no more than C away.
        assert!((after(cubic, 700.0, cubic.k - 1.0) - 999.6).abs() < 1.0);
        assert!((after(cubic, 700.0, cubic.k + 1.0) - 1000.4).abs() < 2.0);
    }

    #[test]
    fn it_grows_as_reno_where_that_is_faster() {
        // RFC 9438 4.3: 20 packets at 50 ms, until it is there again; then one in a round trip.
        let cubic = Cubic::after(None, 20.0, 14.0, 0.0);
        let window = after(cubic, 14.0, 0.5);
        assert!((window - (14.0 + 10.0 * ALPHA)).abs() < 0.1, "{window}");
        let later = after(cubic, 14.0, 1.5) - after(cubic, 14.0, 1.0);
        assert!((later - 10.0).abs() < 0.3, "{later}");
    }

    #[test]
    fn one_that_is_met_earlier_leaves_more_to_others() {
        let first = Cubic::after(None, 1000.0, 700.0, 0.0);
        let second = Cubic::after(Some(first), 800.0, 560.0, 1.0);
        assert_eq!(second.w_max, 800.0 * 0.85);
        let third = Cubic::after(Some(second), 900.0, 630.0, 2.0);
        assert_eq!(third.w_max, 900.0);
    }
}
