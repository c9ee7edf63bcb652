//! State of a path, and notifications to the lane about it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use noq_proto::PathId;

use super::Lane;
use super::wire::{self, Frame};

impl Lane {
    /// Peer's clock at the arrival of the latest datagram on a path less ours at its sending,
    /// microseconds modulo 2^32: between two paths, the difference of their one-way delays.
    pub fn one_way(&self, path: u32) -> Option<u32> {
        self.sent.get(&path)?.one_way
    }

    /// Smoothed round-trip time and deviation of a path, once known.
    pub(crate) fn rtt(&self, path: u32) -> Option<(Duration, Duration)> {
        self.sent.get(&path)?.rtt()
    }

    /// The least round-trip time of a path; none before the first.
    pub fn min_rtt(&self, path: u32) -> Option<Duration> {
        let least = self.sent.get(&path)?.min_rtt;
        (least < Duration::MAX).then_some(least)
    }

    /// Since when nothing has come back on a path, if for too long.
    pub(crate) fn suspect(&self, path: u32) -> Option<Instant> {
        self.sent.get(&path)?.suspect()
    }

    /// Whether a path is not to be relied on now.
    pub(crate) fn is_late(&self, path: u32, now: Instant) -> bool {
        self.sent.get(&path).is_some_and(|s| s.is_late(now))
    }

    /// Bytes of the longest datagram that a path carries, where that was found to be less than
    /// a full one.
    pub(crate) fn found(&self, path: u32) -> Option<usize> {
        self.sent.get(&path)?.found()
    }

    /// A path may be dead though nothing is known to be lost there.
    pub(crate) fn doubt(&mut self, path: u32, now: Instant) {
        let lost = self.sent.entry(path).or_default().doubt(now);
        self.outgoing.lose(lost);
    }

    /// QUIC has heard of a path.
    pub(crate) fn heard(&mut self, path: u32, now: Instant) {
        if let Some(sent) = self.sent.get_mut(&path) {
            sent.heard(now);
        }
    }

    /// Ends the suspicion of a path: what has left since it began has arrived.
    pub(crate) fn revive(&mut self, path: u32, now: Instant) {
        if let Some(sent) = self.sent.get_mut(&path) {
            sent.revive(now);
        }
    }

    /// A datagram that tells the peer of paths of QUIC that are lost. It is not acknowledged:
    /// QUIC tells the same, and until that is there.
    pub(crate) fn write_closed(paths: &[PathId]) -> Bytes {
        let mut out = BytesMut::new();
        wire::begin(None, &mut out);
        paths
            .iter()
            .for_each(|path| Frame::Closed { path: *path }.write(&mut out));
        out.freeze()
    }

    /// Takes the paths of QUIC that the peer has reported as lost since the last call.
    pub(crate) fn closed(&mut self) -> BTreeSet<PathId> {
        std::mem::take(&mut self.closed)
    }

    /// A path has ended.
    pub(crate) fn forget(&mut self, path: u32) {
        if let Some(mut sent) = self.sent.remove(&path) {
            self.outgoing.lose(sent.give_up());
        }
    }
}
