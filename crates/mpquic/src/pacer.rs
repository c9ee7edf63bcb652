//! When a path may send its next burst.
//!
//! A window's worth is spread over a round trip, a quarter faster than that so that
//! pacing itself does not limit (RFC 9002 7.7), and twice as fast in slow start, as in
//! Linux; in a [jump](crate::congestion) just so fast; or at the rate that the congestion
//! control asks for.

use std::time::{Duration, Instant};

use braid_core::sched::burst;

use crate::congestion::Slot;

/// A burst takes no longer than this on its path, so that it fits into a short queue.
pub(crate) const LONGEST_BURST: Duration = Duration::from_millis(5);
/// A timer that is late by this does not cost rate: what was missed is caught up.
const LATE: Duration = Duration::from_millis(2);

/// The pacer of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    /// When what has been sent would have left at the pacing rate.
    due: Option<Instant>,
}

impl Pacer {
    /// Bytes per second; none before a round-trip time is known.
    fn rate(slot: &Slot) -> Option<f64> {
        let srtt = slot.srtt.as_secs_f64();
        let over_a_round_trip = (srtt > 0.0).then(|| slot.window as f64 / srtt);
        if slot.jump.is_some() {
            return over_a_round_trip;
        }
        if let Some(rate) = slot.pacing {
            return (rate > 0).then_some(rate as f64);
        }
        let factor = if slot.slow_start { 2.0 } else { 1.25 };
        over_a_round_trip.map(|r| factor * r)
    }

    /// `bytes` have left.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u64, slot: &Slot) {
        let Some(rate) = Self::rate(slot) else {
            return;
        };
        let floor = now.checked_sub(LATE).unwrap_or(now);
        let due = self.due.unwrap_or(floor).max(floor);
        self.due = Some(due + Duration::from_secs_f64(bytes as f64 / rate));
    }

    /// Until when to wait; none if it may send now. So that timers are few, it sends
    /// while less than a burst is ahead of time.
    pub(crate) fn wait(&self, now: Instant, slot: &Slot) -> Option<Instant> {
        let rate = Self::rate(slot)?;
        let bytes = burst(rate, slot.mtu.max(1)) * slot.mtu;
        let mut burst = Duration::from_secs_f64(bytes as f64 / rate);
        if !slot.slow_start {
            burst = burst.min(LONGEST_BURST);
        }
        let at = self.due?.checked_sub(burst)?;
        (at > now).then_some(at)
    }
}
