//! When nothing comes back to QUIC on any path.
//!
//! The library acknowledges all paths on its first one (the least number that is not a
//! backup). If that one dies, all windows fill up though all but one path are alive, and
//! which of them the peer acknowledges on can only be guessed: it is the first that it was
//! not told to leave. So that one is pinged, and if it does not answer either, it is
//! suspected, and the peer is told to leave it. If it does, those that still wait are
//! suspected. A path that lives is cleared by the answer to the ping that goes with that.

use std::time::{Duration, Instant};

use noq_proto::PathId;

use super::path_set::{Path, PathSet};
use crate::congestion::CongestionSet;
use crate::lane::Lane;

/// Time that a peer, or the queue before a link, may be late by beside two round trips.
const SLACK: Duration = Duration::from_millis(40);

/// Detector of a path on which the peer acknowledges in vain: since when QUIC waits for any
/// acknowledgement.
#[derive(Clone, Debug, Default)]
pub(super) struct AckBlackhole {
    since: Option<Instant>,
    /// When that is too long.
    due: Option<Instant>,
    /// Numbers of the paths that have waited since then.
    waiting: Vec<u32>,
    /// Numbers of the paths that wait now; kept for its room, as this is looked at for every burst.
    busy: Vec<u32>,
    /// When the first path was pinged, and its number.
    pinged: Option<(Instant, u32)>,
    /// When the newest packet was sent that was acknowledged.
    newest: Option<Instant>,
}

impl AckBlackhole {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Handles the passing of time; [`AckBlackhole::detect`] is called before anything is sent.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.due = self.due.filter(|t| *t > now);
    }

    /// Inspects the paths; `available` are those that the peer was not told to leave.
    /// Returns one that is to be pinged.
    pub(super) fn detect(
        &mut self,
        paths: &PathSet,
        congestion: &CongestionSet,
        lane: &mut Lane,
        available: impl Fn(&Path) -> bool,
        now: Instant,
    ) -> Option<PathId> {
        let usable = || paths.iter().filter(|p| p.established && !p.held);
        self.busy.clear();
        let (mut newest, mut longest) = (None, Duration::ZERO);
        let mut heard = None;
        {
            let slots = congestion.lock();
            for p in usable() {
                let slot = &slots[p.slot];
                if slot.in_flight > 0 {
                    self.busy.push(p.number);
                }
                if slot.newest_acked_sent_at > newest {
                    (newest, heard) = (slot.newest_acked_sent_at, Some(p.number));
                }
                longest = longest.max(slot.srtt);
            }
        }
        let busy = &self.busy;
        self.waiting.retain(|n| busy.contains(n));
        if newest > self.newest {
            self.newest = newest;
            if let Some((at, first)) = self.pinged
                && heard == Some(first)
                && newest >= Some(at)
            {
                let others = self.waiting.iter().filter(|n| **n != first);
                others.for_each(|n| lane.suspect(*n, now));
            }
            (self.since, self.pinged) = (None, None);
        }
        if self.busy.is_empty() {
            (self.since, self.due, self.pinged) = (None, None, None);
            return None;
        }
        if self.since.is_none() {
            self.waiting.clone_from(&self.busy);
        }
        let patience = 2 * longest + SLACK;
        let due = *self.since.get_or_insert(now) + patience;
        self.due = Some(due);
        if now < due {
            return None;
        }
        (self.since, self.due) = (Some(now), Some(now + patience));
        let candidates = || usable().filter(|p| available(p));
        let first = candidates().min_by_key(|p| p.id);
        // What a backup was asked waits, too, where the peer acknowledges on the one that is not a backup.
        let another = candidates().count() > 1 || self.busy.len() > 1;
        let first = first.filter(|_| another)?;
        let all_wait = self.waiting.len() > 1 && self.waiting.contains(&first.number);
        if all_wait || self.pinged.is_some_and(|(_, n)| n == first.number) {
            self.pinged = None;
            lane.suspect(first.number, now);
            return None;
        }
        self.pinged = Some((now, first.number));
        Some(first.id)
    }
}
