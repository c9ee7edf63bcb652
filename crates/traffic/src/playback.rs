//! A video player's buffer: starting, playing, stalling. Pure: time is passed in.

use std::time::Duration;

use braid_core::Time;

/// State of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not played yet.
    Starting,
    Playing,
    /// Ran dry at this time.
    Stalled(Time),
}

/// A player that starts, and starts again after a stall, when `threshold` of
/// playing time is buffered.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    threshold: Duration,
    state: State,
    /// Playing time buffered at `at`.
    buffer: Duration,
    at: Time,
    started: Option<Time>,
    stalls: u32,
    stalled: Duration,
}

impl Player {
    pub(crate) fn new(now: Time, threshold: Duration) -> Self {
        Self {
            threshold,
            state: State::Starting,
            buffer: Duration::ZERO,
            at: now,
            started: None,
            stalls: 0,
            stalled: Duration::ZERO,
        }
    }

    /// Lets time pass until `now`, which never goes back.
    pub(crate) fn advance(&mut self, now: Time) {
        if self.state == State::Playing {
            let played = now.since(self.at);
            if played < self.buffer {
                self.buffer -= played;
            } else {
                self.state = State::Stalled(self.at + self.buffer);
                self.buffer = Duration::ZERO;
                self.stalls += 1;
            }
        }
        self.at = self.at.max(now);
    }

    /// A segment of `length` arrived at `now`.
    pub(crate) fn add(&mut self, now: Time, length: Duration) {
        self.advance(now);
        self.buffer += length;
        if self.buffer < self.threshold {
            return;
        }
        match self.state {
            State::Playing => {}
            State::Starting => self.started = Some(now),
            State::Stalled(since) => self.stalled += now.since(since),
        }
        self.state = State::Playing;
    }

    /// Playing time in the buffer at the last `advance` or `add`.
    pub(crate) fn buffered(&self) -> Duration {
        self.buffer
    }

    /// How long to wait until no more than `level` is buffered; zero when that
    /// is so, or when the player does not play and so needs more.
    pub(crate) fn time_until(&self, level: Duration) -> Duration {
        match self.state {
            State::Playing => self.buffer.saturating_sub(level),
            State::Starting | State::Stalled(_) => Duration::ZERO,
        }
    }

    /// When it first played; stalls; total time stalled until the last `advance`.
    pub(crate) fn result(&self) -> (Option<Time>, u32, Duration) {
        let open = match self.state {
            State::Stalled(since) => self.at.since(since),
            State::Starting | State::Playing => Duration::ZERO,
        };
        (self.started, self.stalls, self.stalled + open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn s(v: u64) -> Time {
        Time::from(Duration::from_secs(v))
    }

    const TWO: Duration = Duration::from_secs(2);
    const FOUR: Duration = Duration::from_secs(4);

    #[test]
    fn starts_stalls_and_starts_again() {
        let mut p = Player::new(s(0), FOUR);
        p.add(s(1), TWO);
        assert_eq!(p.time_until(Duration::ZERO), Duration::ZERO);
        p.add(s(3), TWO);
        assert_eq!(p.result(), (Some(s(3)), 0, Duration::ZERO));
        assert_eq!(p.time_until(TWO), TWO);
        // Dry at 7; four seconds are back at 10.
        p.add(s(9), TWO);
        assert_eq!(p.result(), (Some(s(3)), 1, TWO));
        p.add(s(10), TWO);
        assert_eq!(p.result(), (Some(s(3)), 1, Duration::from_secs(3)));
        p.advance(s(15));
        assert_eq!(p.result(), (Some(s(3)), 2, FOUR));
    }

    #[test]
    fn never_started_is_no_stall() {
        let mut p = Player::new(s(0), FOUR);
        p.add(s(1), TWO);
        p.advance(s(100));
        assert_eq!(p.result(), (None, 0, Duration::ZERO));
        assert_eq!(p.buffered(), TWO);
    }

    proptest! {
        /// Every moment is start-up, play or stall, and play is what arrived
        /// less what is left.
        #[test]
        fn time_is_accounted_for(steps in prop::collection::vec((0u64..8000, prop::bool::ANY), 1..60), threshold in 0u64..10) {
            let ms = Duration::from_millis;
            let threshold = ms(threshold * 1000);
            let mut p = Player::new(Time::ZERO, threshold);
            let (mut now, mut arrived) = (Time::ZERO, Duration::ZERO);
            for (step, segment) in steps {
                now += ms(step);
                if segment {
                    p.add(now, TWO);
                    arrived += TWO;
                } else {
                    p.advance(now);
                }
                let (started, stalls, stalled) = p.result();
                let played = arrived - p.buffered();
                match started {
                    None => prop_assert_eq!((played, stalls), (Duration::ZERO, 0)),
                    Some(t) => prop_assert_eq!(played + stalled, now.since(t)),
                }
            }
        }
    }
}
