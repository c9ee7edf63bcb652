//! What has arrived on the paths of the peer, and when it is told.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::heard::Heard;
use super::wire::{self, Frame, Number};
use super::{LaneError, MOST_PATHS};

/// A path on which nothing came for so long has ended, and another may take its place: as
/// long as QUIC keeps a connection of which it hears nothing.
const PATH_ENDED: Duration = Duration::from_secs(30);
/// Datagrams after which one is acknowledged with.
const ACK_EVERY: u32 = 20;
/// How long an acknowledgement waits for more to acknowledge.
const ACK_WAIT: Duration = Duration::from_millis(2);
/// When what found no room is tried again.
const DEFER: Duration = Duration::from_millis(1);

/// By the number of the path.
#[derive(Debug, Default)]
pub(super) struct Acknowledger {
    heard: BTreeMap<u32, Heard>,
    /// Numbered datagrams since the last acknowledgement.
    unacked: u32,
    /// When the next is due.
    at: Option<Instant>,
}

impl Acknowledger {
    /// Notes a datagram; false if it came before.
    pub(super) fn take(&mut self, n: Number, now: Instant) -> Result<bool, LaneError> {
        if !self.heard.contains_key(&n.path) && self.heard.len() >= MOST_PATHS {
            self.forget_ended(now)?;
        }
        let news = self.heard.entry(n.path).or_default().take(n.sequence, now);
        let Some(in_order) = news else {
            return Ok(false);
        };
        self.unacked += 1;
        let wait = match in_order && self.unacked < ACK_EVERY {
            true => ACK_WAIT,
            false => Duration::ZERO,
        };
        let at = now + wait;
        self.at = Some(self.at.map_or(at, |t| t.min(at)));
        Ok(true)
    }

    /// Makes room for another path of the peer.
    fn forget_ended(&mut self, now: Instant) -> Result<(), LaneError> {
        let ended = |h: &Heard| h.latest().is_none_or(|at| at + PATH_ENDED <= now);
        self.heard.retain(|_, h| !ended(h));
        match self.heard.len() < MOST_PATHS {
            true => Ok(()),
            false => Err(LaneError::ManyPaths),
        }
    }

    /// When the next acknowledgement is due, if one is.
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// There is no room for it now: it is tried again soon.
    pub(super) fn defer(&mut self, now: Instant) {
        self.at = self.at.map(|t| if t <= now { now + DEFER } else { t });
    }

    /// A datagram of at most `room` bytes that acknowledges; times are since `clock`.
    pub(super) fn write(&mut self, room: usize, clock: Instant, now: Instant) -> Option<Bytes> {
        (self.unacked, self.at) = (0, None);
        let mut out = BytesMut::with_capacity(room);
        wire::begin(None, &mut out);
        let empty = out.len();
        for (path, heard) in &mut self.heard {
            let Some(ack) = heard.ack(*path, clock, now) else {
                continue;
            };
            let before = out.len();
            Frame::Ack(ack).write(&mut out);
            if out.len() > room {
                out.truncate(before);
                heard.again();
                self.at = Some(now);
            }
        }
        (out.len() > empty).then(|| out.freeze())
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.heard.values().map(Heard::cost).sum()
    }
}
