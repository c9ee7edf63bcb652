//! Congestion control of all paths of one connection, and what their accesses have carried.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use super::resume::{Jump, Saved};
use super::shared::{Shared, Slots};

/// Controllers of all paths of one connection.
#[derive(Debug)]
pub(crate) struct CongestionSet {
    shared: Shared,
    /// State of the latest path of each access when it ended.
    saved: Vec<Option<Saved>>,
    /// Whether new paths begin with half of that (careful resume).
    careful_resume: bool,
}

impl CongestionSet {
    /// Makes the set of a connection over so many accesses.
    pub(crate) fn new(shared: Shared, accesses: usize, careful_resume: bool) -> Self {
        Self {
            shared,
            saved: vec![None; accesses],
            careful_resume,
        }
    }

    /// Makes room for one more access.
    pub(crate) fn add_access(&mut self) {
        self.saved.push(None);
    }

    /// Locks the slots of the controllers.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Slots> {
        self.shared.lock()
    }

    /// Saves the state of a path of an access that ends, or goes on elsewhere.
    pub(crate) fn save(&mut self, slot: usize, access: Option<usize>, now: Instant) {
        if let Some(i) = access {
            let saved = Saved::of(&self.shared.lock()[slot], now);
            self.saved[i] = saved.or(self.saved[i]);
        }
    }

    /// Returns the jump that a new path of an access may begin with, by what the path before it
    /// carried; `rtt` is the round-trip time of the new one.
    pub(crate) fn carried_jump(
        &self,
        access: Option<usize>,
        rtt: Option<Duration>,
        now: Instant,
    ) -> Option<Jump> {
        let saved = access
            .filter(|_| self.careful_resume)
            .and_then(|i| self.saved[i])?;
        saved.jump(rtt?, now)
    }
}
