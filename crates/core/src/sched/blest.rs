//! BLEST (Ferlin, Alay, Mehani, Boreli: BLEST: Blocking Estimation-based MPTCP
//! Scheduler for Heterogeneous Networks, IFIP Networking 2016).
//!
//! When the fastest path F has no room, the next one, S, is used only if what it
//! would hold in flight leaves F enough of the send window for the time of a round
//! trip on S:
//!
//! ```text
//! X = MSS_F * (CWND_F + (rtts - 1) / 2) * rtts,  rtts = RTT_S / RTT_F   (3)
//! skip S if X * lambda > window - MSS_S * (inflight_S + 1)              (4)
//! ```
//!
//! lambda grows while packets on S are lost, and else shrinks to one.

use super::view::fastest_and_next;
use super::{Decision, Flow, PathView, Scheduler, Until};
use crate::Time;

/// The steps and the bound of lambda in the authors' implementation.
const UP: f64 = 0.04;
const DOWN: f64 = 0.01;
const MOST: f64 = 1.3;

/// Blocking estimation.
#[derive(Clone, Copy, Debug)]
pub struct Blest {
    lambda: f64,
    /// Losses on S when lambda moved last, and when that was.
    lost: u64,
    moved: Time,
}

impl Default for Blest {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            lost: 0,
            moved: Time::ZERO,
        }
    }
}

impl Blest {
    /// Once in a round trip on S.
    fn move_lambda(&mut self, now: Time, slow: &PathView) {
        if now.since(self.moved) < slow.srtt {
            return;
        }
        self.moved = now;
        self.lambda = match slow.lost == self.lost {
            false => (self.lambda + UP).min(MOST),
            true => (self.lambda - DOWN).max(1.0),
        };
        self.lost = slow.lost;
    }
}

/// X of equation (3), bytes. Round trips are counted whole, as in the kernel's form.
pub(super) fn fast_bytes(fast: &PathView, slow: &PathView) -> f64 {
    let ratio = slow.srtt.as_secs_f64() / fast.srtt.as_secs_f64().max(1e-9);
    // A window can hold no more anyway.
    let rtts = (ratio - 1e-9).ceil().clamp(1.0, 1000.0);
    fast.segment as f64 * (fast.packets() + (rtts - 1.0) / 2.0) * rtts
}

/// Equation (4).
pub(super) fn blocks(lambda: f64, send_window: u64, fast: &PathView, slow: &PathView) -> bool {
    let left = send_window as f64 - (slow.in_flight + slow.segment) as f64;
    fast_bytes(fast, slow) * lambda > left
}

impl Scheduler for Blest {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn decide(&mut self, now: Time, flow: &Flow, paths: &[PathView]) -> Decision {
        let (fast, path) = match fastest_and_next(paths) {
            Ok(found) => found,
            Err(until) => return Decision::Wait(until),
        };
        if path == fast {
            let most = paths[fast].room();
            return Decision::Send { path, most };
        }
        self.move_lambda(now, &paths[path]);
        if blocks(self.lambda, flow.send_window, &paths[fast], &paths[path]) {
            return Decision::Wait(Until::Room(fast));
        }
        // The estimate holds for one more packet.
        let most = paths[path].segment;
        Decision::Send { path, most }
    }
}
