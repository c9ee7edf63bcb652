//! Loss detection of all paths of the datagram lane, and their state as it shows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::error::LaneError;
use super::mtu_discovery::{self, MtuDiscovery};
use super::piece::Piece;
use super::recovery::{Outcome, Recovery};
use super::wire::{self, Ack};

/// Loss detection of all paths, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct RecoverySet {
    paths: BTreeMap<u32, Recovery>,
    /// Greatest number of a path that there has been.
    newest: Option<u32>,
}

impl RecoverySet {
    /// Returns the loss detection of a path on which a datagram leaves, which may be new.
    pub(super) fn sending(&mut self, path: u32) -> &mut Recovery {
        self.newest = self.newest.max(Some(path));
        self.paths.entry(path).or_default()
    }

    /// Takes an acknowledgement; `clock` is our time now, microseconds modulo 2^32. One of a
    /// path that has ended brings nothing.
    ///
    /// # Errors
    /// [`LaneError::NeverSent`].
    pub(super) fn ack(
        &mut self,
        ack: &Ack,
        clock: u32,
        now: Instant,
    ) -> Result<Outcome, LaneError> {
        if self.newest.is_none_or(|n| n < ack.path) {
            return Err(LaneError::NeverSent);
        }
        let Some(path) = self.paths.get_mut(&ack.path) else {
            return Ok(Outcome::default());
        };
        path.ack(ack, clock, now).ok_or(LaneError::NeverSent)
    }

    /// Returns the peer's clock at the arrival of the latest datagram on a path less ours at
    /// its sending, microseconds modulo 2^32.
    pub(crate) fn one_way(&self, path: u32) -> Option<u32> {
        self.paths.get(&path)?.one_way
    }

    /// Returns the smoothed round-trip time and deviation of a path, once known.
    pub(crate) fn rtt(&self, path: u32) -> Option<(Duration, Duration)> {
        self.paths.get(&path)?.rtt()
    }

    /// Returns the minimum round-trip time of a path; none before the first.
    pub(crate) fn min_rtt(&self, path: u32) -> Option<Duration> {
        let min = self.paths.get(&path)?.min_rtt;
        (min < Duration::MAX).then_some(min)
    }

    /// Returns since when nothing has come back on a path, if for too long.
    pub(crate) fn suspect_since(&self, path: u32) -> Option<Instant> {
        self.paths.get(&path)?.suspect_since()
    }

    /// Returns whether nothing of the lane is under way on a path.
    pub(crate) fn is_idle(&self, path: u32) -> bool {
        let of = self.paths.get(&path);
        of.is_none_or(|r| r.oldest().is_none())
    }

    /// Returns whether a path is not to be relied on now.
    pub(crate) fn is_late(&self, path: u32, now: Instant) -> bool {
        self.paths.get(&path).is_some_and(|p| p.is_late(now))
    }

    /// Returns the bytes of the longest datagram that a path carries, where that was found to
    /// be less than a full one.
    pub(crate) fn found(&self, path: u32) -> Option<usize> {
        self.paths.get(&path)?.found()
    }

    /// Returns the bytes of the longest datagram that is known to pass on a path.
    pub(crate) fn size(&self, path: u32) -> usize {
        self.paths
            .get(&path)
            .map_or(mtu_discovery::BASE, |p| p.mtu().size())
    }

    /// Returns the bytes of frames in the next datagram of a path, which has at most `room`, of
    /// which `spare` are left to QUIC, and may be a probe of the path's packet size where a
    /// time is given.
    pub(super) fn room(
        &self,
        path: u32,
        room: usize,
        spare: usize,
        probes: Option<Instant>,
    ) -> usize {
        let recovery = self.paths.get(&path);
        let of = |mtu: &MtuDiscovery| match probes {
            Some(now) => mtu.room(room, spare, now),
            None => mtu.known(room, spare),
        };
        let room = recovery.map_or_else(|| of(&MtuDiscovery::default()), |p| of(p.mtu()));
        room.saturating_sub(wire::header(path, recovery.map_or(0, Recovery::next)))
    }

    /// Returns path, send time and pieces of a datagram to reinject: of the oldest under way on
    /// each path, where the peer `needs` some of it, the one whose first piece is the lowest.
    pub(super) fn oldest(
        &self,
        needs: impl Fn(&Piece) -> bool,
    ) -> Option<(u32, Instant, Vec<Piece>)> {
        let all = self.paths.iter().filter_map(|(n, p)| {
            let (at, pieces) = p.oldest()?;
            Some((*n, at, pieces))
        });
        let oldest = all
            .filter(|(.., pieces)| pieces.iter().any(&needs))
            .min_by_key(|(.., pieces)| pieces[0]);
        oldest.map(|(n, at, pieces)| (n, at, pieces.to_vec()))
    }

    /// Notes that QUIC has an acknowledgement of what it sent on a path.
    pub(crate) fn on_quic_ack(&mut self, path: u32, now: Instant) {
        if let Some(path) = self.paths.get_mut(&path) {
            path.on_quic_ack(now);
        }
    }

    /// Suspects a path, which may be dead though nothing is known to be lost there. Returns the
    /// pieces that are given up for that.
    pub(super) fn suspect(&mut self, path: u32, now: Instant) -> Vec<Piece> {
        self.paths.entry(path).or_default().suspect(now)
    }

    /// Ends the suspicion of a path: what has left since it began has arrived.
    pub(crate) fn clear_suspicion(&mut self, path: u32, now: Instant) {
        if let Some(path) = self.paths.get_mut(&path) {
            path.clear_suspicion(now);
        }
    }

    /// Removes a path that has ended. Returns the pieces that were under way on it.
    pub(super) fn remove(&mut self, path: u32) -> Vec<Piece> {
        let removed = self.paths.remove(&path);
        removed.map(|mut p| p.give_up()).unwrap_or_default()
    }

    /// Returns when [`RecoverySet::tick`] is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        self.paths.values().filter_map(Recovery::due).min()
    }

    /// Handles the passing of time; `quic_waits` says whether QUIC waits for something on a
    /// path. Returns the pieces that are lost.
    pub(super) fn tick(&mut self, now: Instant, quic_waits: impl Fn(u32) -> bool) -> Vec<Piece> {
        let mut lost = Vec::new();
        for (path, recovery) in &mut self.paths {
            if recovery.due().is_some_and(|t| t <= now) {
                lost.extend(recovery.tick(now, || quic_waits(*path)));
            }
        }
        lost
    }

    /// Returns the maximum bytes of memory that it holds.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.paths.values().map(Recovery::cost).sum()
    }
}
