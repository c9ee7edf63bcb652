//! ECF (Lim, Nahum, Towsley, Gibbens: ECF: An MPTCP Path Scheduler to Manage
//! Heterogeneous Paths, CoNEXT 2017), Algorithm 1.
//!
//! With k packets waiting and no room on the fastest path f, the next one, s, is left
//! alone if f would be done earlier:
//!
//! ```text
//! n = 1 + k / CWND_f
//! if n * RTT_f < (1 + waiting * beta) * (RTT_s + delta)
//!     if k / CWND_s * RTT_s >= 2 * RTT_f + delta
//!         waiting = 1, wait for f
//!     else use s
//! else waiting = 0, use s
//! ```
//!
//! delta = max(sigma_f, sigma_s), beta = 0.25.

use super::view::fastest_and_next;
use super::{Decision, Flow, PathView, Scheduler, Until};
use crate::Time;

const BETA: f64 = 0.25;

/// Earliest completion first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecf {
    pub(super) waiting: bool,
}

impl Ecf {
    /// Whether to wait for `f` rather than to use `s`.
    pub(super) fn wait(&mut self, bytes: u64, f: &PathView, s: &PathView) -> bool {
        let k = (bytes as f64 / f.segment as f64).ceil();
        let (rtt_f, rtt_s) = (f.srtt.as_secs_f64(), s.srtt.as_secs_f64());
        let delta = f.rttvar.max(s.rttvar).as_secs_f64();
        let n = 1.0 + k / f.packets();
        let hysteresis = if self.waiting { 1.0 + BETA } else { 1.0 };
        if n * rtt_f >= hysteresis * (rtt_s + delta) {
            self.waiting = false;
            return false;
        }
        if k / s.packets() * rtt_s < 2.0 * rtt_f + delta {
            return false;
        }
        self.waiting = true;
        true
    }
}

impl Scheduler for Ecf {
    fn name(&self) -> &'static str {
        "ecf"
    }

    fn by_delay(&self) -> bool {
        true
    }

    fn needs_flow(&self) -> bool {
        true
    }

    fn decide(&mut self, _now: Time, flow: &Flow, paths: &[PathView]) -> Decision {
        let (fast, path) = match fastest_and_next(paths) {
            Ok(found) => found,
            Err(until) => return Decision::Wait(until),
        };
        if path == fast {
            let most = paths[fast].room();
            return Decision::Send { path, most };
        }
        if self.wait(flow.waiting, &paths[fast], &paths[path]) {
            return Decision::Wait(Until::Room(fast));
        }
        // k is another after each packet.
        let most = paths[path].segment;
        Decision::Send { path, most }
    }
}
