//! Paths that this end closes: the sooner the peer knows, the sooner it sends elsewhere
//! what was under way there.

use std::time::{Duration, Instant};

use noq_proto::{PathId, VarInt};

use super::Connection;
use super::paths::Path;
use crate::lane::Lane;
use crate::transport::PATH_IDLE;

/// Error code that a path is closed with whose access is lost (draft-ietf-quic-multipath,
/// PATH_UNSTABLE_OR_POOR).
const LOST: VarInt = VarInt::from_u32(0x3e76);
/// A path on which something came back within this lives: pings are 2 s apart.
const LIVES: Duration = Duration::from_secs(5);

impl Connection {
    /// Closes the paths of accesses that are lost, once there is another to tell of it and
    /// of what new paths need: one that is not established yet cannot.
    pub(super) fn close_unusable(&mut self, now: Instant) {
        if !self.paths.iter().any(|p| p.established && !self.is_lost(p)) {
            return;
        }
        let lost = self.paths.iter().filter(|p| self.is_lost(p));
        let mut ids: Vec<PathId> = lost.map(|p| p.id).collect();
        ids.retain(|id| self.quic.close_path(now, *id, LOST).is_ok());
        if !ids.is_empty() && self.lane.is_some() {
            self.tell_closed(&ids);
        }
    }

    /// Closes paths on which nothing has come back for [`PATH_IDLE`], while there is one on which
    /// something does: they are opened anew. Where there is none, all of them stay, as the
    /// first that comes back brings the session with it.
    pub(super) fn close_silent(&mut self, now: Instant) {
        if !self.is_client() || self.lane.is_none() {
            return;
        }
        let since: Vec<Duration> = {
            let slots = self.shared.lock();
            let last = |p: &Path| slots[p.slot].heard.map_or(p.began, |h| h.max(p.began));
            let since = |p: &Path| now.saturating_duration_since(last(p));
            self.paths.iter().map(since).collect()
        };
        let mut all = self.paths.iter().zip(&since);
        let lives =
            |(p, t): (&Path, &Duration)| p.established && !p.held && !self.is_lost(p) && *t < LIVES;
        if !all.any(lives) {
            return;
        }
        for (p, _) in self
            .paths
            .iter_mut()
            .zip(since)
            .filter(|(_, t)| *t >= PATH_IDLE)
        {
            p.given_up = self.quic.close_path(now, p.id, LOST).is_ok();
        }
    }

    fn is_lost(&self, path: &Path) -> bool {
        let usable = path.access.is_none_or(|i| self.accesses[i].usable());
        path.stale || !usable
    }

    /// Tells the peer on all other paths: which of them is the fastest for it, the queues of both
    /// ends say, and this end knows of one.
    fn tell_closed(&mut self, ids: &[PathId]) {
        let may = |p: &&Path| p.established && !p.held && !self.is_lost(p) && self.takes_data(p);
        let others: Vec<u32> = self.paths.iter().filter(may).map(|p| p.number).collect();
        self.outbox.first(&others, &Lane::write_closed(ids));
    }

    /// Takes the paths that the peer has closed: nothing leaves there from now on.
    pub(super) fn hear_closed(&mut self, now: Instant) {
        let Some(lane) = &mut self.lane else {
            return;
        };
        for id in lane.closed() {
            if let Some(p) = self.paths.iter().find(|p| p.id == id) {
                lane.doubt(p.number, now);
            }
        }
    }
}
