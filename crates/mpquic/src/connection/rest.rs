//! Backups at rest. A ping connects a cellular radio for ten seconds and more: while another path
//! answers, the device pings one that both ends leave alone once a minute, and the proxy never does.
//! When the others answer no more, backups are asked at once.
//!
//! Of the datagram lane: paths of the stream lane are dead after two seconds of silence
//! ([`super::dead_paths`]).

use std::time::{Duration, Instant};

use noq_proto::{Connection as Quic, PathStatus};

use super::Connection;
use super::path_set::Path;
use crate::congestion::Slot;

/// Time without an answer after which the device pings a backup at rest: less than a NAT
/// remembers a mapping of UDP (RFC 4787, REQ-5).
const PING_AT_REST: Duration = Duration::from_secs(60);

impl Path {
    /// Returns whether both ends leave it alone, though its peer answers.
    fn rests(&self, quic: &Quic) -> bool {
        !self.held && quic.path_status(self.id) == Ok(PathStatus::Backup)
    }

    /// Returns when something came back on it last, or it began.
    fn heard_at(&self, slot: &Slot) -> Instant {
        let acked = slot.newest_acked_at;
        acked.map_or(self.began, |at| at.max(self.began))
    }

    /// Returns when something came back on it last, or it began, or was left alone last without
    /// owing an answer.
    pub(super) fn proved_at(&self, slot: &Slot) -> Instant {
        let heard = self.heard_at(slot);
        self.rested_at.map_or(heard, |at| at.max(heard))
    }
}

impl Connection {
    /// Returns whether backups are left alone: another path has answered its last ping.
    fn backups_rest(&self) -> bool {
        let answers =
            |p: &Path| p.established && !p.held && p.pinged_at.is_none() && !p.rests(&self.quic);
        self.lane.is_some() && self.paths.iter().any(answers)
    }

    /// Pings the established paths, and of backups at rest those whose time has come.
    pub(super) fn ping_established(&mut self, now: Instant) {
        let (rest, device) = (self.backups_rest(), self.is_client());
        for path in self.paths.iter_mut().filter(|p| p.established) {
            if rest && path.pinged_at.is_none() && path.rests(&self.quic) {
                let heard = path.heard_at(&self.congestion.lock()[path.slot]);
                if !device || now < heard + PING_AT_REST {
                    path.rested_at = Some(now);
                    continue;
                }
            }
            path.pinged_at.get_or_insert(now);
            // While data flows on the stream lane, no other path but that of the data has a window.
            match self.lane.is_none() && path.rests(&self.quic) {
                true => path.ping.ping_now(now),
                false => drop(self.quic.ping_path(path.id)),
            }
        }
    }

    /// Answers to pings are due: pings the backups as well if none has come.
    pub(super) fn wake_backups(&mut self, now: Instant) {
        if self.lane.is_none() || self.backups_rest() {
            return;
        }
        for path in self.paths.iter_mut().filter(|p| p.established) {
            if path.pinged_at.is_none() && path.rests(&self.quic) {
                path.pinged_at = Some(now);
                let _ = self.quic.ping_path(path.id);
            }
        }
    }
}
