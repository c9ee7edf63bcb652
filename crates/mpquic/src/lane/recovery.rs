//! Loss detection of one path of the datagram lane (RFC 9002, per path): datagrams under way,
//! round-trip time, acknowledgement and loss of our own. The library's round-trip times mix two
//! paths, and of the loss of datagrams it tells nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::mtu_discovery::MtuDiscovery;
use super::piece::Piece;
use super::wire::Ack;
use crate::by_number::ByNumber;
use crate::reordering::{GRANULARITY, Late, Limits, Reordering, Times};

/// How long the peer may hold an acknowledgement back.
pub(super) const ACK_DELAY: Duration = Duration::from_millis(5);
/// Before the first sample.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Maximum delay of a busy end, beside the delay of acknowledgements.
const SLACK: Duration = Duration::from_millis(20);
/// Minimum datagrams under way with which silence makes a path suspect the first time: with
/// fewer, it may be that of one acknowledgement that was lost, and the path is suspected the
/// second time.
const MIN_UNDER_WAY: usize = 4;
/// Packets that are remembered after they were taken for lost.
const MAX_LATE: usize = 4096;
/// Packets under way, more than any path holds: who acknowledges to QUIC and not here is not
/// waited for.
const MAX_UNDER_WAY: usize = 1 << 16;

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

/// Loss detection of one path.
#[derive(Debug)]
pub(super) struct Recovery {
    next: u64,
    packets: ByNumber<Packet>,
    /// Datagrams that were taken for lost, and may yet be acknowledged: without these, a
    /// round-trip time longer than it was thought to be would never be known.
    late: BTreeMap<u64, Packet>,
    largest_acked: Option<u64>,
    srtt: Option<Duration>,
    rttvar: Duration,
    pub(super) min_rtt: Duration,
    latest: Duration,
    /// Time of the latest acknowledgement.
    acked_at: Option<Instant>,
    /// Time of the latest acknowledgement of QUIC itself. That keeps the path from being
    /// suspected, and does not bring back what was lost.
    quic_acked_at: Option<Instant>,
    /// Time when all was given up, though QUIC had acknowledgements of the path.
    gave_up_at: Option<Instant>,
    /// Timeouts since then, and when the first was.
    timeouts: u32,
    suspect_since: Option<Instant>,
    mtu: MtuDiscovery,
    reordering: Reordering,
    /// The receiver's clock at arrival less ours at sending, microseconds modulo 2^32, of
    /// the latest datagram: of two paths, the difference is that of their one-way delays.
    pub(super) one_way: Option<u32>,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            next: 0,
            packets: ByNumber::default(),
            late: BTreeMap::new(),
            largest_acked: None,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: Duration::MAX,
            latest: Duration::ZERO,
            acked_at: None,
            quic_acked_at: None,
            gave_up_at: None,
            timeouts: 0,
            suspect_since: None,
            mtu: MtuDiscovery::default(),
            reordering: Reordering::default(),
            one_way: None,
        }
    }
}

impl Recovery {
    /// The number of the next datagram.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The next datagram, of `len` bytes, leaves with these. Returns what is given up for it.
    pub(super) fn send(&mut self, now: Instant, len: usize, pieces: Vec<Piece>) -> Vec<Piece> {
        let full = self.packets.len() >= MAX_UNDER_WAY;
        let oldest = full.then(|| self.packets.pop_first()).flatten();
        self.mtu.sent(self.next, len, now);
        let at = now;
        self.packets.push(self.next, Packet { at, len, pieces });
        self.next += 1;
        self.remember(oldest.into_iter().collect())
    }

    /// Bytes of the longest datagram that it carries, where that is less than a full one.
    pub(super) fn found(&self) -> Option<usize> {
        self.mtu.found()
    }

    /// The packet size of the path.
    pub(super) fn mtu(&self) -> &MtuDiscovery {
        &self.mtu
    }

    /// Smoothed round-trip time and its deviation, once known.
    pub(super) fn rtt(&self) -> Option<(Duration, Duration)> {
        self.srtt.map(|s| (s, self.rttvar))
    }

    /// Returns since when nothing has come back for longer than it should have.
    pub(super) fn suspect_since(&self) -> Option<Instant> {
        self.suspect_since
    }

    /// Notes an acknowledgement of QUIC itself.
    pub(super) fn on_quic_ack(&mut self, now: Instant) {
        self.quic_acked_at = Some(now);
    }

    /// Suspects the path for a reason outside of it. Returns what is given up for that.
    pub(super) fn suspect(&mut self, now: Instant) -> Vec<Piece> {
        self.suspect_since.get_or_insert(now);
        self.give_up()
    }

    /// Ends the suspicion: something has come back after all.
    pub(super) fn clear_suspicion(&mut self, now: Instant) {
        (self.timeouts, self.suspect_since, self.gave_up_at) = (0, None, None);
        self.acked_at = Some(now);
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
            let late = self.late.range(range.clone()).map(|(n, _)| *n);
            let known = self.packets.range(range).map(|(n, _)| n);
            let known: Vec<u64> = known.chain(late).collect();
            for n in known {
                let spurious = self.late.remove(&n);
                let late = spurious.is_some();
                let Some(p) = spurious.or_else(|| self.packets.remove(n)) else {
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
                self.mtu.arrived(n, p.len);
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
            self.acked_at = Some(now);
            // Not by what had arrived before.
            if self
                .suspect_since
                .is_none_or(|s| newest.is_some_and(|n| n >= s))
            {
                self.clear_suspicion(now);
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
            min_rtt: self.min_rtt,
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
            .filter(|(n, p)| lost(*n, p))
            .map(|(n, _)| n)
            .collect();
        let found = numbers
            .into_iter()
            .filter_map(|n| Some((n, self.packets.remove(n)?)));
        let found: Vec<(u64, Packet)> = found.collect();
        found
            .iter()
            .for_each(|(n, p)| self.mtu.lost(*n, p.len, now));
        if let Some((_, last)) = found.last() {
            self.reordering.lost(last.at, now);
        }
        self.remember(found)
    }

    /// Remembers packets that are taken for lost; returns the pieces to retransmit.
    fn remember(&mut self, lost: Vec<(u64, Packet)>) -> Vec<Piece> {
        let again = lost.iter().flat_map(|(_, p)| p.pieces.clone()).collect();
        self.late.extend(lost);
        while self.late.len() > MAX_LATE {
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
        Some(self.waits_since().or(self.gave_up_at)? + self.probe_timeout())
    }

    /// Since when what is under way has not been acknowledged in part.
    fn waits_since(&self) -> Option<Instant> {
        let (_, oldest) = self.packets.first()?;
        Some(oldest.at.max(self.acked_at.unwrap_or(oldest.at)))
    }

    fn probe_rtt(&self) -> Duration {
        self.srtt.unwrap_or(INITIAL_RTT) + (4 * self.rttvar).max(GRANULARITY)
    }

    fn probe_timeout(&self) -> Duration {
        (self.probe_rtt() + ACK_DELAY + SLACK) * (1 << self.timeouts.min(6))
    }

    /// Whether nothing has come back for a round trip, which need not mean anything yet.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.timeouts > 0
            || self
                .waits_since()
                .is_some_and(|t| t + self.probe_rtt() < now)
    }

    /// Time has passed. What is under way when nothing comes back is given as lost, to be
    /// sent elsewhere; it may yet arrive, which does no harm.
    /// `quic_waits` says whether QUIC waits for something there.
    pub(super) fn tick(&mut self, now: Instant, quic_waits: impl FnOnce() -> bool) -> Vec<Piece> {
        if self.silent_at().is_some_and(|t| t <= now) {
            let quiet = self
                .quic_acked_at
                .is_none_or(|b| b + self.probe_timeout() <= now);
            let waits = !self.packets.is_empty() || quic_waits();
            self.timeouts += 1;
            let silent =
                quiet && waits && (self.packets.len() >= MIN_UNDER_WAY || self.timeouts > 1);
            if silent {
                self.suspect_since.get_or_insert(now);
            }
            // Its window may stay full: then nothing more is under way here that could tell.
            self.gave_up_at = (!silent && waits).then_some(now);
            if !quiet {
                let all = self.packets.iter();
                all.for_each(|(n, p)| self.mtu.lost(n, p.len, now));
            }
            return self.give_up();
        }
        self.find_lost(now)
    }

    /// All that is under way is lost, as far as is known.
    pub(super) fn give_up(&mut self) -> Vec<Piece> {
        let packets = std::mem::take(&mut self.packets);
        self.remember(packets.into_vec())
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let pieces = |p: &Packet| p.pieces.capacity() * size_of::<Piece>();
        let late = self.late.len() * (size_of::<Packet>() + 16);
        let all = self
            .packets
            .iter()
            .map(|(_, p)| p)
            .chain(self.late.values());
        self.packets.memory() + late + all.map(pieces).sum::<usize>()
    }

    /// The oldest under way, and since when.
    pub(super) fn oldest(&self) -> Option<(Instant, &[Piece])> {
        let (_, p) = self.packets.first()?;
        Some((p.at, &p.pieces))
    }
}
