//! Pings of paths that are held, often. QUIC's own probes wait twice as long each time, so
//! that an access that is back would be found late; and the window is full of what was lost.

use std::time::{Duration, Instant};

/// Interval until the path has ended for having been idle: 60 bytes each.
const INTERVAL: Duration = Duration::from_millis(100);
/// Interval once the whole session has been silent for [`LONG_SILENCE`].
const LONG_INTERVAL: Duration = Duration::from_millis(250);
const LONG_SILENCE: Duration = Duration::from_secs(5);

/// Returns the interval of pings in a session that has been silent for so long.
pub(super) fn interval(silent: Option<Duration>) -> Duration {
    match silent.is_some_and(|s| s >= LONG_SILENCE) {
        true => LONG_INTERVAL,
        false => INTERVAL,
    }
}

/// Pings of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathPing {
    next_at: Option<Instant>,
    /// Whether one is due now.
    due_now: bool,
}

impl PathPing {
    /// Begins or ends pinging.
    pub(super) fn set(&mut self, on: bool, now: Instant) {
        *self = Self {
            next_at: on.then_some(now + INTERVAL),
            due_now: false,
        };
    }

    /// Makes one due now; a path that is pinged goes on to be.
    pub(super) fn ping_now(&mut self, now: Instant) {
        self.next_at = self.next_at.map(|_| now + INTERVAL);
        self.due_now = true;
    }

    /// Returns the time of the next.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Makes the next due now if its time has come, and another after `interval`.
    pub(super) fn on_timeout(&mut self, interval: Duration, now: Instant) {
        if self.next_at.is_some_and(|t| t <= now) {
            *self = Self {
                next_at: Some(now + interval),
                due_now: true,
            };
        }
    }

    /// Returns whether one is to be sent now.
    pub(super) fn is_due(&self) -> bool {
        self.due_now
    }

    /// Notes that it was sent.
    pub(super) fn sent(&mut self) {
        self.due_now = false;
    }
}
