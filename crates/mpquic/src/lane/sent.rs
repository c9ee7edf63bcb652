//! Datagrams under way on one path of the datagram lane: round-trip time, acknowledgement
//! and loss of our own (RFC 9002, per path). The library's round-trip times mix two
//! paths, and of the loss of datagrams it tells nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::fit::Fit;
use super::outgoing::Piece;
use super::wire::Ack;
use crate::reordering::{Late, Limits, Reordering, Times};

/// Timers are not finer (RFC 9002 6.1.2, kGranularity).
const GRANULARITY: Duration = Duration::from_millis(1);
/// How long the peer may hold an acknowledgement back.
pub(super) const ACK_DELAY: Duration = Duration::from_millis(5);
/// Before the first sample.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Maximum delay of a busy end, beside the delay of acknowledgements.
const SLACK: Duration = Duration::from_millis(20);
/// Datagrams under way from which silence makes a path suspect the first time: with fewer, it may
/// be that of one acknowledgement that was lost, and the path is suspected the second time.
const MANY: usize = 4;
/// Packets that are remembered after they were taken for lost.
const MOST_LATE: usize = 4096;
/// Packets under way, more than any path holds: who acknowledges to QUIC and not here is not
/// waited for.
const MOST_UNDER_WAY: usize = 1 << 16;

/// A datagram that is under way.
#[derive(Clone, Debug)]
struct Packet {
    at: Instant,
    len: usize,
    pieces: Vec<Piece>,
}

/// Pieces that an acknowledgement has shown to have arrived, and those taken for lost then.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) acked: Vec<Piece>,
    pub(super) lost: Vec<Piece>,
}

/// One path.
#[derive(Debug)]
pub(super) struct Sent {
    next: u64,
    packets: BTreeMap<u64, Packet>,
    /// Datagrams that were taken for lost, and may yet be acknowledged: without these, a
    /// round-trip time longer than it was thought to be would never be known.
    late: BTreeMap<u64, Packet>,
    largest_acked: Option<u64>,
    srtt: Option<Duration>,
    rttvar: Duration,
    pub(super) min_rtt: Duration,
    latest: Duration,
    /// When something was acknowledged last.
    heard: Option<Instant>,
    /// When QUIC heard of the path last. That keeps it from being suspected, and does not
    /// bring back what was lost.
    below: Option<Instant>,
    /// When all was given up, though QUIC had heard of the path.
    gave_up: Option<Instant>,
    /// Timeouts since then, and when the first was.
    timeouts: u32,
    suspect: Option<Instant>,
    fit: Fit,
    reordering: Reordering,
    /// The receiver's clock at arrival less ours at sending, microseconds modulo 2^32, of
    /// the latest datagram: of two paths, the difference is that of their one-way delays.
    pub(super) one_way: Option<u32>,
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            next: 0,
            packets: BTreeMap::new(),
            late: BTreeMap::new(),
            largest_acked: None,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: Duration::MAX,
            latest: Duration::ZERO,
            heard: None,
            below: None,
            gave_up: None,
            timeouts: 0,
            suspect: None,
            fit: Fit::default(),
            reordering: Reordering::default(),
            one_way: None,
        }
    }
}

impl Sent {
    /// The number of the next datagram.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The next datagram, of `len` bytes, leaves with these. Returns what is given up for it.
    pub(super) fn send(&mut self, now: Instant, len: usize, pieces: Vec<Piece>) -> Vec<Piece> {
        let at = now;
        self.fit.sent(self.next, len, now);
        self.packets.insert(self.next, Packet { at, len, pieces });
        self.next += 1;
        if self.packets.len() <= MOST_UNDER_WAY {
            return Vec::new();
        }
        let oldest = self.packets.pop_first();
        self.remember(oldest.into_iter().collect())
    }

    /// Bytes of the longest datagram that it carries, where that is less than a full one.
    pub(super) fn found(&self) -> Option<usize> {
        self.fit.found()
    }

    /// The packet size of the path.
    pub(super) fn fit(&self) -> &Fit {
        &self.fit
    }

    /// Smoothed round-trip time and its deviation, once known.
    pub(super) fn rtt(&self) -> Option<(Duration, Duration)> {
        self.srtt.map(|s| (s, self.rttvar))
    }

    /// Since when nothing has come back for longer than it should have.
    pub(super) fn suspect(&self) -> Option<Instant> {
        self.suspect
    }

    /// Something has come back, below the lane.
    pub(super) fn heard(&mut self, now: Instant) {
        self.below = Some(now);
    }

    /// Suspects the path for a reason outside of it. Returns what is given up for that.
    pub(super) fn doubt(&mut self, now: Instant) -> Vec<Piece> {
        self.suspect.get_or_insert(now);
        self.give_up()
    }

    /// Something has come back after all.
    pub(super) fn revive(&mut self, now: Instant) {
        (self.timeouts, self.suspect, self.gave_up) = (0, None, None);
        self.heard = Some(now);
    }

    /// Takes an acknowledgement; `clock` is our time now, microseconds modulo 2^32. None
    /// if it is of what was never sent.
    pub(super) fn ack(&mut self, ack: &Ack, clock: u32, now: Instant) -> Option<Outcome> {
        let largest = ack.ranges.first()?.1;
        if largest >= self.next {
            return None;
        }
        let mut outcome = Outcome::default();
        let mut newest = None;
        let (times, before) = (self.times(), self.largest_acked);
        for (first, last) in &ack.ranges {
            let range = *first..=*last;
            let known = self.packets.range(range.clone());
            let known: Vec<u64> = known
                .chain(self.late.range(range))
                .map(|(n, _)| *n)
                .collect();
            for n in known {
                let spurious = self.late.remove(&n);
                let late = spurious.is_some();
                let Some(p) = spurious.or_else(|| self.packets.remove(&n)) else {
                    continue;
                };
                self.reordering.arrived(now.saturating_duration_since(p.at));
                if let Some(behind) = before.and_then(|b| b.checked_sub(n)) {
                    let late = Late {
                        sent: p.at,
                        behind,
                        spurious: late,
                    };
                    self.reordering.late(late, times, now);
                }
                newest = newest.max((n == largest).then_some(p.at));
                self.fit.arrived(n, p.len);
                outcome.acked.extend(p.pieces);
            }
        }
        if let Some(at) = newest {
            let delay = Duration::from_micros(ack.delay);
            self.sample(now.duration_since(at), delay);
            let age = u32::try_from(now.duration_since(at).as_micros()).unwrap_or(u32::MAX);
            self.one_way = Some(ack.received.wrapping_sub(clock.wrapping_sub(age)));
        }
        if self.largest_acked.is_none_or(|l| l < largest) {
            self.largest_acked = Some(largest);
            self.heard = Some(now);
            // Not by what had arrived before.
            if self.suspect.is_none_or(|s| newest.is_some_and(|n| n >= s)) {
                self.revive(now);
            }
        }
        outcome.lost = self.find_lost(now);
        Some(outcome)
    }

    /// RFC 9002 5.
    fn sample(&mut self, rtt: Duration, delay: Duration) {
        self.latest = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let Some(srtt) = self.srtt else {
            self.srtt = Some(rtt);
            self.rttvar = rtt / 2;
            return;
        };
        let delay = delay.min(ACK_DELAY);
        let adjusted = match rtt >= self.min_rtt + delay {
            true => rtt - delay,
            false => rtt,
        };
        self.rttvar = (3 * self.rttvar + srtt.abs_diff(adjusted)) / 4;
        self.srtt = Some((7 * srtt + adjusted) / 8);
    }

    fn times(&self) -> Times {
        Times {
            smoothed: self.srtt.unwrap_or(INITIAL_RTT),
            latest: self.latest,
            least: self.min_rtt,
        }
    }

    fn limits(&self) -> Limits {
        self.reordering.limits(self.times())
    }

    /// RFC 9002 6.1.
    fn find_lost(&mut self, now: Instant) -> Vec<Piece> {
        let Some(largest) = self.largest_acked else {
            return Vec::new();
        };
        let limits = self.limits();
        let lost =
            |n: u64, p: &Packet| limits.exceeded(largest - n, now.saturating_duration_since(p.at));
        let before = self.packets.range(..largest);
        let numbers: Vec<u64> = before
            .filter(|(n, p)| lost(**n, p))
            .map(|(n, _)| *n)
            .collect();
        let found = numbers
            .into_iter()
            .filter_map(|n| Some((n, self.packets.remove(&n)?)));
        let found: Vec<(u64, Packet)> = found.collect();
        found
            .iter()
            .for_each(|(n, p)| self.fit.lost(*n, p.len, now));
        if let Some((_, last)) = found.last() {
            self.reordering.lost(last.at, now);
        }
        self.remember(found)
    }

    /// Remembers packets that are taken for lost; returns the pieces to retransmit.
    fn remember(&mut self, lost: Vec<(u64, Packet)>) -> Vec<Piece> {
        let again = lost.iter().flat_map(|(_, p)| p.pieces.clone()).collect();
        self.late.extend(lost);
        while self.late.len() > MOST_LATE {
            self.late.pop_first();
        }
        again
    }

    /// When something is to be taken for lost, or the path for suspect.
    pub(super) fn due(&self) -> Option<Instant> {
        let overtaken = self
            .largest_acked
            .and_then(|l| self.packets.range(..l).next());
        let lost = overtaken.map(|(_, p)| p.at + self.limits().delay);
        lost.into_iter().chain(self.silent_at()).min()
    }

    /// When too long will have passed without an acknowledgement of what is under way:
    /// the probe timeout of RFC 9002 6.2.1, but from the oldest on, since a path that dies
    /// goes on to be sent on.
    fn silent_at(&self) -> Option<Instant> {
        Some(self.waits_since().or(self.gave_up)? + self.patience())
    }

    /// Since when what is under way has not been acknowledged in part.
    fn waits_since(&self) -> Option<Instant> {
        let (_, oldest) = self.packets.first_key_value()?;
        Some(oldest.at.max(self.heard.unwrap_or(oldest.at)))
    }

    fn round(&self) -> Duration {
        self.srtt.unwrap_or(INITIAL_RTT) + (4 * self.rttvar).max(GRANULARITY)
    }

    fn patience(&self) -> Duration {
        (self.round() + ACK_DELAY + SLACK) * (1 << self.timeouts.min(6))
    }

    /// Whether nothing has come back for a round trip, which need not mean anything yet.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.timeouts > 0 || self.waits_since().is_some_and(|t| t + self.round() < now)
    }

    /// Time has passed. What is under way when nothing comes back is given as lost, to be
    /// sent elsewhere; it may yet arrive, which does no harm.
    /// `below` says whether QUIC waits for something there.
    pub(super) fn tick(&mut self, now: Instant, below: impl FnOnce() -> bool) -> Vec<Piece> {
        if self.silent_at().is_some_and(|t| t <= now) {
            let quiet = self.below.is_none_or(|b| b + self.patience() <= now);
            let waits = !self.packets.is_empty() || below();
            self.timeouts += 1;
            let silent = quiet && waits && (self.packets.len() >= MANY || self.timeouts > 1);
            if silent {
                self.suspect.get_or_insert(now);
            }
            // Its window may stay full: then nothing more is under way here that could tell.
            self.gave_up = (!silent && waits).then_some(now);
            if !quiet {
                let all = self.packets.iter();
                all.for_each(|(n, p)| self.fit.lost(*n, p.len, now));
            }
            return self.give_up();
        }
        self.find_lost(now)
    }

    /// All that is under way is lost, as far as is known.
    pub(super) fn give_up(&mut self) -> Vec<Piece> {
        let packets = std::mem::take(&mut self.packets);
        self.remember(packets.into_iter().collect())
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let one = size_of::<Packet>() + 16;
        let pieces = |p: &Packet| one + p.pieces.capacity() * size_of::<Piece>();
        let all = self.packets.values().chain(self.late.values());
        all.map(pieces).sum()
    }

    /// The oldest under way, and since when.
    pub(super) fn oldest(&self) -> Option<(Instant, &[Piece])> {
        let (_, p) = self.packets.first_key_value()?;
        Some((p.at, &p.pieces))
    }
}
