//! Paths that are held are asked often. QUIC's own probes wait twice as long each time, so
//! that an access that is back would be found late; and the window is full of what was lost.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use noq_proto::Transmit;

use super::Connection;
use super::transmit::Open;

/// How often, until the path has ended for having been idle: 60 bytes each.
const EVERY: Duration = Duration::from_millis(100);
/// Interval once the whole session has been silent for [`LONG`].
const EVERY_LATER: Duration = Duration::from_millis(250);
const LONG: Duration = Duration::from_secs(5);

/// Liveness probes of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ask {
    at: Option<Instant>,
    /// Whether a probe is due now.
    now: bool,
}

impl Ask {
    /// Begins, or ends.
    pub(super) fn set(&mut self, on: bool, now: Instant) {
        *self = Self {
            at: on.then_some(now + EVERY),
            now: false,
        };
    }

    /// Asks now; those that are asked go on to be.
    pub(super) fn at_once(&mut self, now: Instant) {
        self.at = self.at.map(|_| now + EVERY);
        self.now = true;
    }
}

impl Connection {
    /// When time for it passes next.
    pub(super) fn ask_due(&self) -> Option<Instant> {
        self.paths.iter().filter_map(|p| p.ask.at).min()
    }

    /// Time has passed.
    pub(super) fn ask_later(&mut self, now: Instant) {
        let silent = self.silent_for(now);
        let every = match silent.is_some_and(|s| s >= LONG) {
            true => EVERY_LATER,
            false => EVERY,
        };
        for ask in self.paths.iter_mut().map(|p| &mut p.ask) {
            if ask.at.is_some_and(|t| t <= now) {
                *ask = Ask {
                    at: Some(now + every),
                    now: true,
                };
            }
        }
    }

    /// Asks a path for which it is time.
    pub(super) fn ask(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let i = self.paths.iter().position(|p| p.ask.now)?;
        self.paths[i].ask.now = false;
        self.quic.ping_path(self.paths[i].id).ok()?;
        self.set_gates(Open::Only(i));
        self.exempt(Some(i));
        let transmit = self.quic.poll_transmit(now, NonZeroUsize::MIN, buf);
        self.exempt(None);
        transmit
    }
}
