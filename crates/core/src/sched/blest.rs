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

/// The steps and the bounds of lambda in the authors' implementation, thousandths.
const UP: u64 = 40;
const DOWN: u64 = 10;
const ONE: u64 = 1000;
const MOST: u64 = 1300;

/// Blocking estimation.
#[derive(Clone, Debug)]
pub struct Blest {
    /// Thousandths.
    pub(super) lambda: u64,
    /// When it moved last.
    moved: Time,
    /// Losses on each path, by its id, when it moved last by those of that path.
    lost: Vec<(u32, u64)>,
}

impl Default for Blest {
    fn default() -> Self {
        Self {
            lambda: ONE,
            moved: Time::ZERO,
            lost: Vec::new(),
        }
    }
}

impl Blest {
    /// Once in a round trip on S.
    fn move_lambda(&mut self, now: Time, paths: &[PathView], slow: &PathView) {
        let known = self.lost.iter().position(|(id, _)| *id == slow.id);
        let at = known.unwrap_or_else(|| {
            self.lost
                .retain(|(id, _)| paths.iter().any(|p| p.id == *id));
            // What was lost before says nothing of the last round trip.
            self.lost.push((slow.id, slow.lost));
            self.lost.len() - 1
        });
        if now.since(self.moved) < slow.srtt {
            return;
        }
        self.moved = now;
        let before = std::mem::replace(&mut self.lost[at].1, slow.lost);
        self.lambda = match slow.lost > before {
            true => (self.lambda + UP).min(MOST),
            false => (self.lambda - DOWN).max(ONE),
        };
    }
}

/// Twice X of equation (3), bytes. Round trips are counted whole, as in the authors' form:
/// X is a sum over them.
pub(super) fn twice_fast_bytes(fast: &PathView, slow: &PathView) -> u128 {
    let rtts = slow.srtt.as_nanos().div_ceil(fast.srtt.as_nanos().max(1));
    // A window can hold no more anyway.
    let rtts = rtts.clamp(1, 1000);
    (2 * u128::from(fast.window) + u128::from(fast.segment) * (rtts - 1)) * rtts
}

/// Equation (4), `lambda` in thousandths.
pub(super) fn blocks(lambda: u64, send_window: u64, fast: &PathView, slow: &PathView) -> bool {
    let taken = u128::from(slow.in_flight) + u128::from(slow.segment);
    let left = u128::from(send_window).checked_sub(taken);
    let wanted = twice_fast_bytes(fast, slow) * u128::from(lambda);
    left.is_none_or(|left| wanted > left * 2 * u128::from(ONE))
}

impl Scheduler for Blest {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn by_delay(&self) -> bool {
        true
    }

    fn needs_flow(&self) -> bool {
        true
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
        self.move_lambda(now, paths, &paths[path]);
        if blocks(self.lambda, flow.send_window, &paths[fast], &paths[path]) {
            return Decision::Wait(Until::Room(fast));
        }
        // The estimate holds for one more packet.
        let most = paths[path].segment;
        Decision::Send { path, most }
    }
}
