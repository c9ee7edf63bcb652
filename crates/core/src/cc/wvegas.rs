//! wVegas, weighted Vegas (Cao, Xu, Fu, ICNP 2012;
//! draft-xu-mptcp-congestion-control-05).

use super::{Facts, Rule};

/// draft-xu-mptcp-congestion-control-05. A loss halves the window as in TCP
/// (section 2).
pub struct Wvegas {
    /// Packets that one connection keeps queued over all its paths.
    pub total_alpha: f64,
}

impl Wvegas {
    /// With the total of the authors' implementation, 10 packets.
    pub const DEFAULT: Self = Self { total_alpha: 10.0 };
    /// Alpha of a path before its first weighing, packets.
    pub const INITIAL_ALPHA: f64 = 2.0;
    /// Packets queued in slow start beyond which the path leaves it.
    const GAMMA: f64 = 1.0;
    /// The draft has no least alpha; below one packet no window of whole
    /// packets can meet it, and the path would starve.
    const MIN_ALPHA: f64 = 1.0;
    const MIN_WINDOW: f64 = 2.0;
}

/// State that a path keeps from round to round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundState {
    /// Congestion window, packets.
    pub window: f64,
    /// Slow-start threshold, packets; infinite before the first loss.
    pub ssthresh: f64,
    /// Packets to keep queued on this path.
    pub alpha: f64,
    /// Least queueing delay since the last draining, seconds; 0 if none yet.
    pub queue_delay: f64,
    /// As [`Facts::rate`], packets per second.
    pub rate: f64,
}

/// A round trip that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The path's state in it.
    pub state: RoundState,
    /// Least round-trip time ever seen, seconds.
    pub base_rtt: f64,
    /// Mean round-trip time in this round, seconds, at least `base_rtt`.
    pub rtt: f64,
}

impl Rule for Wvegas {
    fn name(&self) -> &'static str {
        "wvegas"
    }

    /// Windows move at the end of rounds only; between them acknowledgements
    /// count in slow start alone.
    fn increase(&self, _paths: &[Facts], _me: usize) -> f64 {
        0.0
    }

    /// Section 2. `paths[me].rate` is not read: the round carries the path's
    /// own state.
    fn end_of_round(&self, paths: &[Facts], me: usize, round: &Round) -> Option<RoundState> {
        let Round {
            state: mut s,
            base_rtt,
            rtt,
        } = *round;
        // Not (cwnd / base - cwnd / rtt) * base, which rounds the ties away.
        let diff = s.window * (rtt - base_rtt) / rtt;
        if s.window < s.ssthresh {
            if diff > Self::GAMMA {
                s.ssthresh = s.window - 1.0;
            }
            return Some(s);
        }
        if diff >= s.alpha {
            s.rate = s.window / rtt;
            let siblings = paths.iter().enumerate().filter(|&(i, _)| i != me);
            let total = s.rate + siblings.map(|(_, p)| p.rate).sum::<f64>();
            s.alpha = (s.rate / total * self.total_alpha).max(Self::MIN_ALPHA);
        }
        if diff > s.alpha {
            s.window -= 1.0;
            // Else a window at the threshold would fall back into slow start.
            s.ssthresh = s.ssthresh.min(s.window - 1.0);
        } else if diff < s.alpha {
            s.window += 1.0;
        }
        let delay = rtt - base_rtt;
        if s.queue_delay == 0.0 || delay < s.queue_delay {
            s.queue_delay = delay;
        }
        // Drain the link's queue now and then, so that all flows on it see
        // the true base_rtt.
        if delay > 0.0 && delay >= 2.0 * s.queue_delay {
            s.window *= base_rtt / (2.0 * rtt);
            s.queue_delay = 0.0;
        }
        s.window = s.window.max(Self::MIN_WINDOW);
        Some(s)
    }
}
