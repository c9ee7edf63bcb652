//! When nothing comes back to QUIC on any path.
//!
//! The library acknowledges all paths on its first one (the least number that is not a
//! backup). If that one dies, all windows fill up though all but one path are alive, and
//! which of them the peer acknowledges on can only be guessed: it is the first that it was
//! not told to leave. That one is suspected then, and the peer is told so; a path that
//! lives is cleared by the answer to the ping that goes with it.

use std::time::{Duration, Instant};

use super::paths::Path;
use crate::congestion::Shared;
use crate::lane::Lane;

/// What a peer, or the queue before a link, may be late by beside two round trips.
const SLACK: Duration = Duration::from_millis(40);

/// Since when QUIC waits for any acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quiet {
    since: Option<Instant>,
    /// When that is too long.
    due: Option<Instant>,
    /// When the newest packet was sent that was acknowledged.
    newest: Option<Instant>,
}

impl Quiet {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Looks at the paths; `available` are those that the peer was not told to leave.
    pub(super) fn look(
        &mut self,
        paths: &[Path],
        shared: &Shared,
        lane: &mut Lane,
        available: impl Fn(&Path) -> bool,
        now: Instant,
    ) {
        let (mut waits, mut newest, mut longest) = (false, None, Duration::ZERO);
        {
            let slots = shared.lock();
            for p in paths.iter().filter(|p| p.established) {
                let slot = &slots[p.slot];
                waits |= slot.in_flight > 0;
                newest = newest.max(slot.newest);
                longest = longest.max(slot.srtt);
            }
        }
        if !waits || newest > self.newest {
            self.since = None;
        }
        self.newest = self.newest.max(newest);
        if !waits {
            self.due = None;
            return;
        }
        let since = *self.since.get_or_insert(now);
        let due = since + 2 * longest + SLACK;
        self.due = Some(due);
        if now < due {
            return;
        }
        let usable = || {
            let all = paths.iter().filter(|p| p.established && !p.held);
            all.filter(|p| available(p))
        };
        let first = usable().min_by_key(|p| p.id);
        if let Some(first) = first.filter(|_| usable().count() > 1) {
            lane.doubt(first.number, now);
        }
        self.since = Some(now);
        self.due = Some(now + 2 * longest + SLACK);
    }
}
