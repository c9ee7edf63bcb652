//! Careful resume (draft-ietf-tsvwg-careful-resume): a path that takes the place of
//! another one of its access begins with half of what that carried, and not with ten
//! packets. Handovers between cells are such changes; paper 003 (section 5) found that
//! its windows start from nothing there.
//!
//! The draft's phases: the round trip that validated the path confirms that it answers
//! (reconnaissance); then the window is held up to the jump, paced over a round trip
//! (unvalidated), until as much has been acknowledged and the controller's own slow start
//! has come there. A loss before that ends the jump, and leaves the controller with what
//! was acknowledged (safe retreat).

use std::time::{Duration, Instant};

use super::shared::Slot;

/// For how long what a path carried tells something of the next one.
const LIFETIME: Duration = Duration::from_secs(10);
/// The part of that which the next one begins with (the draft's safe half).
const PART: f64 = 0.5;
/// Round trips after which a jump that was not made use of is over.
const ROUNDS: u32 = 4;

/// What a path carried when it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Saved {
    /// Bytes per second.
    rate: f64,
    /// Congestion window, bytes.
    window: u64,
    at: Instant,
}

impl Saved {
    /// Of a path that ends now; none if it never carried anything.
    pub(crate) fn of(slot: &Slot, now: Instant) -> Option<Self> {
        let srtt = slot.srtt.as_secs_f64();
        // Only what was acknowledged tells of the path.
        (srtt > 0.0 && slot.newest.is_some()).then(|| Self {
            rate: slot.window as f64 / srtt,
            window: slot.window,
            at: now,
        })
    }

    /// What the next path of that access may begin with, bytes, if its round-trip time is
    /// `rtt`.
    pub(crate) fn jump(&self, rtt: Duration, now: Instant) -> Option<Jump> {
        if rtt.is_zero() || now.saturating_duration_since(self.at) > LIFETIME {
            return None;
        }
        let window = (PART * self.rate * rtt.as_secs_f64()) as u64;
        Some(Jump {
            window: window.min(self.window),
            acked: 0,
            until: now + rtt * ROUNDS,
        })
    }
}

/// A window above that of the controller, until it has been validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) window: u64,
    acked: u64,
    until: Instant,
}

impl Jump {
    /// `bytes` were acknowledged.
    pub(super) fn acked(&mut self, bytes: u64) {
        self.acked += bytes;
    }

    /// Whether the controller goes on alone.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.acked >= self.window || now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ended(window: u64, srtt: Duration, now: Instant) -> Slot {
        Slot {
            srtt,
            newest: Some(now),
            ..Slot::new(window, 1200)
        }
    }

    #[test]
    fn half_the_rate_goes_on_over_the_new_round_trip() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        // 10 MB/s with a queue.
        let saved = Saved::of(&ended(2_000_000, ms(200), now), now).unwrap();
        let jump = saved.jump(ms(60), now).unwrap();
        assert_eq!(jump.window, 300_000);
        let late = now + LIFETIME + ms(1);
        assert_eq!(saved.jump(ms(60), late), None);
        assert_eq!(saved.jump(Duration::ZERO, now), None);
    }

    #[test]
    fn a_path_that_carried_nothing_says_nothing() {
        let now = Instant::now();
        let mut slot = ended(2_000_000, Duration::from_millis(200), now);
        slot.newest = None;
        assert_eq!(Saved::of(&slot, now), None);
    }

    proptest! {
        #[test]
        fn a_jump_is_never_above_what_was(window in 0_u64..1 << 40, old in 1_u64..60_000, new in 1_u64..60_000) {
            let now = Instant::now();
            let ms = Duration::from_millis;
            let saved = Saved::of(&ended(window, ms(old), now), now).unwrap();
            let jump = saved.jump(ms(new), now).unwrap();
            prop_assert!(jump.window <= window);
            prop_assert!(jump.window as f64 <= 0.5 * window as f64 * new as f64 / old as f64 + 1.0);
        }
    }
}
