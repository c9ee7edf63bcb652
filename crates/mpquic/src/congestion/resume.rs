//! Careful resume (draft-ietf-tsvwg-careful-resume): a path that takes the place of
//! another one of its access begins with half of what that carried, and not with ten
//! packets. Handovers between cells are such changes; paper 003 (section 5) found that
//! its windows start from nothing there.
//!
//! The draft's phases: the round trip that validated the path confirms that it answers
//! (reconnaissance); then the window is held up to the jump, paced over a round trip
//! (unvalidated), until as much has been acknowledged and the controller's own slow start
//! has come there. A loss before that ends the jump; the controller hears of it when the
//! fate of all that was sent until then is known, so that it goes on with what the path
//! took, and not with little more than ten packets (safe retreat).
//!
//! What a device expects of an access before anything was sent on it, such as by the power
//! that it receives, is made use of in the same way, by its first path, too.

use std::time::{Duration, Instant};

use noq_proto::congestion::Controller;

use super::shared::Slot;

/// For how long what a path carried tells something of the next one.
const LIFETIME: Duration = Duration::from_secs(10);
/// The part of that which the next one begins with (the draft's safe half).
const PART: f64 = 0.5;
/// More than that no jump is: the credit of all streams of the datagram lane.
const MAX_JUMP: u64 = 64 << 20;
/// Round trips after which a jump is over, from when it is made use of.
const ROUNDS: u32 = 4;

/// Rate and window of a path when it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Saved {
    /// Bytes per second.
    rate: f64,
    /// Congestion window, bytes.
    window: u64,
    at: Instant,
}

impl Saved {
    /// Saves the state of a path that ends now; none if it never carried anything.
    pub(crate) fn of(slot: &Slot, now: Instant) -> Option<Self> {
        let srtt = slot.srtt.as_secs_f64();
        // Only what was acknowledged tells of the path.
        (srtt > 0.0 && slot.newest_acked_sent_at.is_some()).then(|| Self {
            rate: slot.controller_window as f64 / srtt,
            window: slot.controller_window,
            at: now,
        })
    }

    /// Returns the jump that the next path of that access may begin with, bytes, if its round-trip
    /// time is `rtt`.
    pub(crate) fn jump(&self, rtt: Duration, now: Instant) -> Option<Jump> {
        let jump = Jump::to(self.rate, rtt)?;
        let ends = self.at + LIFETIME;
        (now <= ends).then(|| Jump {
            window: jump.window.min(self.window),
            ends: Some(ends),
            ..jump
        })
    }
}

/// A window above that of the controller, until it has been validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) window: u64,
    pub(super) rtt: Duration,
    acked: u64,
    /// There has been much to send.
    begun: bool,
    /// When the controller goes on alone; none while that is not known.
    ends: Option<Instant>,
}

impl Jump {
    /// To the safe part of a path's rate, bytes per second.
    pub(crate) fn to(rate: f64, rtt: Duration) -> Option<Self> {
        (!rtt.is_zero()).then_some(Self {
            window: ((PART * rate * rtt.as_secs_f64()) as u64).min(MAX_JUMP),
            rtt,
            acked: 0,
            begun: false,
            ends: None,
        })
    }

    /// Or to what has been validated before.
    pub(super) fn at_least(self, window: u64) -> Self {
        Self {
            window: self.window.max(window),
            ..self
        }
    }

    /// There is more to send than the controller alone would let go soon.
    pub(super) fn begin(&mut self, now: Instant) {
        if !self.begun {
            self.begun = true;
            self.ends = Some(now + self.rtt * ROUNDS);
        }
    }

    /// Whether there was.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// `bytes` were acknowledged.
    pub(super) fn acked(&mut self, bytes: u64) {
        if self.begun {
            self.acked += bytes;
        }
    }

    /// Whether the controller goes on alone.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.acked >= self.window || self.ends.is_some_and(|t| t <= now)
    }
}

/// A jump that was too high, until that is known of all that was sent in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retreat {
    /// When its first loss was known: nothing that left later is of it.
    begun: Instant,
    ecn: bool,
    lost: u64,
    largest: u64,
}

impl Retreat {
    pub(super) fn new(begun: Instant) -> Self {
        Self {
            begun,
            ecn: false,
            lost: 0,
            largest: 0,
        }
    }

    /// Takes a congestion event of a packet sent at `sent`; false if it is not of the jump.
    pub(super) fn take(&mut self, sent: Instant, ecn: bool, lost: u64, largest: u64) -> bool {
        let mine = sent <= self.begun;
        if mine {
            self.ecn |= ecn;
            self.lost += lost;
            self.largest = self.largest.max(largest);
        }
        mine
    }

    /// Whether a packet that left after it was acknowledged.
    pub(super) fn is_over(&self, newest: Option<Instant>) -> bool {
        newest.is_some_and(|t| t > self.begun)
    }

    /// Reports the congestion events that it took to the controller, as one.
    pub(super) fn tell(self, controller: &mut dyn Controller, now: Instant) {
        controller.on_congestion_event(now, self.begun, false, self.ecn, self.lost, self.largest);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ended(window: u64, srtt: Duration, now: Instant) -> Slot {
        Slot {
            srtt,
            newest_acked_sent_at: Some(now),
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
    fn a_jump_lasts_from_when_there_is_much_to_send() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let saved = Saved::of(&ended(2_000_000, ms(200), now), now).unwrap();
        let carried = saved.jump(ms(100), now).unwrap();
        assert!(!carried.is_over(now + ms(9999)) && carried.is_over(now + LIFETIME));
        let mut expected = Jump::to(1e6, ms(100)).unwrap();
        expected.acked(1 << 20);
        let later = now + ms(3_600_000);
        assert!(!expected.is_over(later));
        expected.begin(later);
        expected.acked(49_999);
        assert!(!expected.is_over(later + ms(399)) && expected.is_over(later + ms(400)));
        expected.acked(1);
        assert!(expected.is_over(later));
    }

    #[test]
    fn a_path_that_carried_nothing_says_nothing() {
        let now = Instant::now();
        let mut slot = ended(2_000_000, Duration::from_millis(200), now);
        slot.newest_acked_sent_at = None;
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
