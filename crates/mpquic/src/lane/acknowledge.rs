//! Acknowledgement of what has arrived on the paths of the peer, and when it is due.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::error::LaneError;
use super::pending_acks::PendingAcks;
use super::wire::{self, Frame, Number};

/// Maximum paths of the peer that are listened to at a time.
pub(super) const MAX_PATHS: usize = 256;
/// A path on which nothing came for so long has ended, and another may take its place: as
/// long as QUIC keeps a connection of which it hears nothing.
const PATH_ENDED: Duration = Duration::from_secs(30);
/// How long an acknowledgement waits for more to acknowledge.
const ACK_WAIT: Duration = Duration::from_millis(2);
/// As many as come in that time are acknowledged at once, but no fewer than RFC 9000 13.2.2
/// has it: where fewer come, a second one that waits makes the peer's queue long for nothing.
const MIN_EVERY: u32 = 2;
/// Nor more.
const MAX_EVERY: u32 = 20;
/// When what found no room is tried again.
const DEFER: Duration = Duration::from_millis(1);

/// Pending acknowledgements of all paths, and when they are due.
#[derive(Debug)]
pub(super) struct Acknowledger {
    /// By the number of the path.
    pending: BTreeMap<u32, PendingAcks>,
    /// Numbered datagrams since the last acknowledgement.
    unacked: u32,
    /// After how many the next is due.
    every: u32,
    /// How many have come since when, to know how many come in [`ACK_WAIT`].
    counted: Option<(u32, Instant)>,
    /// When the next is due.
    at: Option<Instant>,
}

impl Default for Acknowledger {
    fn default() -> Self {
        Self {
            pending: BTreeMap::new(),
            unacked: 0,
            every: MIN_EVERY,
            counted: None,
            at: None,
        }
    }
}

impl Acknowledger {
    /// Notes a datagram; false if it came before.
    pub(super) fn take(&mut self, n: Number, now: Instant) -> Result<bool, LaneError> {
        if !self.pending.contains_key(&n.path) && self.pending.len() >= MAX_PATHS {
            self.forget_ended(now)?;
        }
        let order = self
            .pending
            .entry(n.path)
            .or_default()
            .take(n.sequence, now);
        let Some(in_order) = order else {
            return Ok(false);
        };
        self.count(now);
        self.unacked += 1;
        let wait = match in_order && self.unacked < self.every {
            true => ACK_WAIT,
            false => Duration::ZERO,
        };
        let at = now + wait;
        self.at = Some(self.at.map_or(at, |t| t.min(at)));
        Ok(true)
    }

    fn count(&mut self, now: Instant) {
        let (n, since) = self.counted.unwrap_or((0, now));
        let passed = now.saturating_duration_since(since);
        self.counted = Some((n + 1, since));
        if passed >= ACK_WAIT {
            let arrived = f64::from(n) * ACK_WAIT.div_duration_f64(passed);
            self.every = (arrived as u32).clamp(MIN_EVERY, MAX_EVERY);
            self.counted = Some((1, now));
        }
    }

    /// Makes room for another path of the peer.
    fn forget_ended(&mut self, now: Instant) -> Result<(), LaneError> {
        let ended = |h: &PendingAcks| h.latest().is_none_or(|at| at + PATH_ENDED <= now);
        self.pending.retain(|_, h| !ended(h));
        match self.pending.len() < MAX_PATHS {
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
        for (path, acks) in &mut self.pending {
            let Some(ack) = acks.ack(*path, clock, now) else {
                continue;
            };
            let before = out.len();
            Frame::Ack(ack).write(&mut out);
            if out.len() > room {
                out.truncate(before);
                acks.defer();
                self.at = Some(now);
            }
        }
        (out.len() > empty).then(|| out.freeze())
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.pending.values().map(PendingAcks::cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many datagrams each acknowledgement comes, where one arrives every `apart`.
    fn after(apart: Duration) -> Vec<u32> {
        let (mut acks, clock) = (Acknowledger::default(), Instant::now());
        let (mut now, mut unacked, mut seen) = (clock, 0, Vec::new());
        for sequence in 0..2000 {
            while let Some(at) = acks.at().filter(|at| *at < now + apart) {
                assert!(acks.write(1200, clock, at.max(now)).is_some());
                seen.push(std::mem::take(&mut unacked));
            }
            now += apart;
            let (path, sent) = (0, 0);
            let number = Number {
                path,
                sequence,
                sent,
            };
            assert!(acks.take(number, now).unwrap());
            unacked += 1;
        }
        seen
    }

    #[test]
    fn what_comes_in_two_milliseconds_is_acknowledged_at_once() {
        let all = |n: u32, micros| {
            let seen = after(Duration::from_micros(micros));
            // Once it is known how many come.
            let settled = &seen[seen.len() - 30..];
            assert!(
                settled.iter().all(|x| *x == n),
                "every {micros} us: {settled:?}"
            );
        };
        all(1, 3000);
        all(2, 1200);
        all(10, 200);
        all(20, 25);
    }
}
