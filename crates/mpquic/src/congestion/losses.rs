//! Losses of one path of QUIC, as its congestion controller is told of them.
//!
//! The library's loss detection has the same two thresholds from the first packet of a
//! connection to its last. They are set long ([`crate::transport`]), and the controller is told
//! of losses from here instead: from the same numbers and times, as soon as RFC 9002 6.1
//! has it, and later where packets were seen to overtake each other ([`Reordering`]).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::by_number::ByNumber;
use crate::reordering::{GRANULARITY, Late, Reordering, Times};

/// Probe timeouts that persistent congestion lasts (RFC 9002 7.6.1).
const PERSISTENT: u32 = 3;
/// Time that a peer of the library may hold an acknowledgement back (RFC 9000 18.2).
const ACK_DELAY: Duration = Duration::from_millis(25);
/// Round trips after which a packet that was taken for lost is.
const CERTAIN: u32 = 2;

/// How often it is looked which losses are certain.
const SETTLE: Duration = Duration::from_millis(1);
/// How long the least round-trip times are remembered.
const REMEMBER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: Instant,
    bytes: u16,
    /// Its place among those that are acknowledged.
    place: u64,
    /// The library took it for lost.
    given_up: bool,
    /// The controller was told that it is lost, and may yet hear that it is not.
    open: bool,
    /// The controller hears of it once the loss is certain.
    held: bool,
}

impl Packet {
    fn lost(&self, number: u64) -> Lost {
        Lost {
            number,
            bytes: self.bytes,
            given_up: self.given_up,
        }
    }
}

/// Knowledge of a packet when the library told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The packet was under way.
    UnderWay,
    /// The controller was told that it is lost.
    Lost,
    /// Nothing.
    Nothing,
}

/// A packet that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) number: u64,
    pub(super) bytes: u16,
    /// The library took it for lost before.
    pub(super) given_up: bool,
}

/// Packets that are lost by now.
#[derive(Debug)]
pub(super) struct Found {
    /// Ascending.
    pub(super) packets: Vec<Lost>,
    /// When the last of them was sent.
    pub(super) sent: Instant,
    /// RFC 9002 7.6.
    pub(super) persistent: bool,
    /// The controller is told of them once they are certain.
    pub(super) held: bool,
}

/// Round-trip times as the library has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    pub(super) smoothed: Duration,
    pub(super) min_rtt: Duration,
    pub(super) deviation: Duration,
}

impl Rtt {
    /// RFC 9002 6.2.1, without backoff.
    fn probe_timeout(&self) -> Duration {
        self.smoothed + (4 * self.deviation).max(GRANULARITY) + ACK_DELAY
    }
}

/// A packet that was overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overtaken {
    pub(crate) sent: Instant,
    /// When it is taken for lost, after it was sent.
    pub(crate) limit: Duration,
    /// The latest round-trip time of its path.
    pub(crate) latest: Duration,
}

/// The least of single round-trip times, and of smoothed ones, of the last seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    since: Option<Instant>,
    now: Option<(Duration, Duration)>,
    before: Option<(Duration, Duration)>,
}

impl Usual {
    fn arrived(&mut self, age: Duration, smoothed: Duration, now: Instant) {
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) > REMEMBER {
            (self.before, self.now) = (self.now, None);
            self.since = Some(now);
        }
        let (least, usual) = self.now.unwrap_or((age, smoothed));
        self.now = Some((least.min(age), usual.min(smoothed)));
    }

    fn spread(&self) -> Duration {
        let both = || self.now.into_iter().chain(self.before);
        let least = both().map(|(l, _)| l).min().unwrap_or_default();
        let usual = both().map(|(_, u)| u).min().unwrap_or_default();
        usual.saturating_sub(least)
    }
}

/// Packets under way on a path, and those taken for lost a short time ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    packets: ByNumber<Packet>,
    lost: BTreeMap<u64, Packet>,
    /// Bytes of lost packets that the library has under way.
    written_off: u64,
    places: u64,
    largest: Option<u64>,
    /// The largest of the acknowledgement that is read, and when it was sent.
    newest: Option<(u64, Instant)>,
    latest: Duration,
    /// When the first round-trip time was known.
    sampled: Option<Instant>,
    reordering: Reordering,
    usual: Usual,
    settled: Option<Instant>,
    /// Lost packets that are open: if all of them arrive, no loss was one.
    open: usize,
    /// Whether all of them have arrived.
    spurious: bool,
}

impl Losses {
    /// Bytes of lost packets that the library has under way.
    pub(super) fn written_off(&self) -> u64 {
        self.written_off
    }

    /// Whether the losses that the controller was told of may still be none.
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Whether they were none, once.
    pub(super) fn were_spurious(&mut self) -> bool {
        std::mem::take(&mut self.spurious)
    }

    pub(super) fn sent(&mut self, number: u64, bytes: u16, now: Instant) {
        let last = self.packets.last_number();
        if last.max(self.largest).is_some_and(|l| l >= number) {
            // Those of the handshake have numbers of their own.
            *self = Self {
                places: self.places,
                ..Self::default()
            };
        }
        self.places += 1;
        let packet = Packet {
            sent: now,
            bytes,
            place: self.places,
            given_up: false,
            open: false,
            held: false,
        };
        self.packets.push(number, packet);
    }

    /// Notes one packet of an acknowledgement.
    pub(super) fn acked(&mut self, number: u64, sent: Instant, rtt: Rtt, now: Instant) -> Known {
        let is_it = |p: &Packet| p.sent == sent;
        let known = if self.packets.get(number).is_some_and(is_it) {
            Known::UnderWay
        } else if self.lost.get(&number).is_some_and(is_it) {
            Known::Lost
        } else {
            return Known::Nothing;
        };
        let times = self.times(rtt);
        let age = now.saturating_duration_since(sent);
        self.reordering.arrived(age);
        self.usual.arrived(age, self.reordering.all(), now);
        self.came(number, times, now);
        self.newest = self.newest.max(Some((number, sent)));
        known
    }

    /// A packet has arrived.
    fn came(&mut self, number: u64, times: Times, now: Instant) {
        let lost = self.lost.remove(&number);
        if let Some(p) = lost {
            self.written_off -= if p.given_up { 0 } else { p.bytes.into() };
            self.open -= usize::from(p.open);
            self.spurious |= p.open && self.open == 0;
        }
        let Some(p) = lost.or_else(|| self.packets.remove(number)) else {
            return;
        };
        if let Some(behind) = self.largest.and_then(|l| l.checked_sub(number)) {
            let late = Late {
                sent: p.sent,
                behind,
                spurious: lost.is_some() || p.given_up,
            };
            self.reordering.late(late, times, now);
        }
    }

    fn times(&self, rtt: Rtt) -> Times {
        Times {
            smoothed: rtt.smoothed,
            latest: self.latest,
            min_rtt: rtt.min_rtt,
        }
    }

    /// The acknowledgement has been read.
    pub(super) fn read(&mut self, now: Instant) {
        let Some((number, sent)) = self.newest.take() else {
            return;
        };
        if self.largest.is_none_or(|l| l < number) {
            self.largest = Some(number);
            self.latest = now.saturating_duration_since(sent);
            self.sampled.get_or_insert(now);
        }
    }

    /// When the first packet was sent that was overtaken and that the library still waits for,
    /// of those that were sent after `since`; how long ago that may be, and the latest
    /// round-trip time.
    pub(super) fn overtaken(&self, since: Option<Instant>, rtt: Rtt) -> Option<Overtaken> {
        let waits = |p: &&Packet| !p.given_up && since.is_none_or(|t| p.sent > t);
        // Both in the order in which they were sent.
        let mut before = self.packets.range(..self.largest?).map(|(_, p)| p);
        let first = before.find(waits);
        let lost = self.lost.values().find(waits);
        Some(Overtaken {
            sent: first.into_iter().chain(lost).map(|p| p.sent).min()?,
            limit: self.reordering.limits(self.times(rtt)).delay,
            latest: self.latest,
        })
    }

    /// Returns by how much the usual round-trip time without a queue exceeds the minimum, where
    /// packets overtake each other.
    pub(super) fn spread(&self) -> Duration {
        match self.reordering.is_seen() {
            true => self.usual.spread(),
            false => Duration::ZERO,
        }
    }

    /// Returns whether packets overtake each other.
    pub(super) fn is_reordered(&self) -> bool {
        self.reordering.is_seen()
    }

    /// Takes for lost what is by now (RFC 9002 6.1). With `hold` the controller is not told of it
    /// yet, unless congestion is persistent: [`Self::settle`] returns it once it is certain.
    pub(super) fn find(&mut self, rtt: Rtt, now: Instant, hold: bool) -> Option<Found> {
        let largest = self.largest?;
        let limits = self.reordering.limits(self.times(rtt));
        let age = |p: &Packet| now.saturating_duration_since(p.sent);
        let before = self.packets.range(..largest);
        let lost = before.filter(|(n, p)| limits.exceeded(largest - n, age(p)));
        let lost: Vec<(u64, Packet)> = lost.map(|(n, p)| (n, *p)).collect();
        let sent = lost.last()?.1.sent;
        let persistent = self.is_persistent(&lost, rtt);
        let held = hold && !persistent;
        for (n, p) in &lost {
            self.packets.remove(*n);
            self.written_off += if p.given_up { 0 } else { u64::from(p.bytes) };
            let packet = Packet {
                open: !held,
                held,
                ..*p
            };
            self.lost.insert(*n, packet);
        }
        self.open += if held { 0 } else { lost.len() };
        self.reordering.lost(sent, now);
        Some(Found {
            packets: lost.iter().map(|(n, p)| p.lost(*n)).collect(),
            sent,
            persistent,
            held,
        })
    }

    /// Whether all was lost of a time that is long enough (RFC 9002 7.6).
    fn is_persistent(&self, lost: &[(u64, Packet)], rtt: Rtt) -> bool {
        let timeout = rtt.probe_timeout();
        let of = |run: &[(u64, Packet)]| match run {
            [(_, first), .., (_, last)] => last.sent - first.sent > timeout * PERSISTENT,
            _ => false,
        };
        let known = |p: &Packet| self.sampled.is_some_and(|t| p.sent > t);
        let first = lost.partition_point(|(_, p)| !known(p));
        let mut runs = lost[first..].chunk_by(|(_, a), (_, b)| a.place + 1 == b.place);
        runs.any(of)
    }

    /// Closes losses that are so old that their packets will not arrive, and returns those of
    /// them that were held, ascending.
    pub(super) fn settle(&mut self, rtt: Rtt, now: Instant) -> Vec<Lost> {
        // As often as that is enough, and there may be thousands.
        if self.settled.is_some_and(|t| now < t + SETTLE) {
            return Vec::new();
        }
        self.settled = Some(now);
        let certain = self.reordering.longest(self.times(rtt)) * CERTAIN;
        let old = |p: &Packet| now.saturating_duration_since(p.sent) > certain;
        if self.lost.values().any(|p| p.open && old(p)) {
            self.lost.values_mut().for_each(|p| p.open = false);
            self.open = 0;
        }
        let mut certain = Vec::new();
        let late = |p: &Packet| now.saturating_duration_since(p.sent) > rtt.probe_timeout();
        for (n, p) in &mut self.lost {
            if p.held && old(p) && late(p) {
                p.held = false;
                certain.push(p.lost(*n));
            }
        }
        self.lost.retain(|_, p| p.held || !p.given_up || !old(p));
        certain
    }

    /// Leaves out of what the controller is told what was held so far.
    pub(super) fn drop_held(&mut self) {
        self.lost.values_mut().for_each(|p| p.held = false);
    }

    /// The library takes a packet for lost.
    pub(super) fn given_up(&mut self, number: u64) -> Known {
        if let Some(p) = self.lost.get_mut(&number) {
            self.written_off -= if p.given_up { 0 } else { p.bytes.into() };
            p.given_up = true;
            return Known::Lost;
        }
        match self.packets.get_mut(number) {
            Some(p) => {
                p.given_up = true;
                Known::UnderWay
            }
            None => Known::Nothing,
        }
    }

    /// All that the library took for lost has arrived.
    pub(super) fn arrived(&mut self, rtt: Rtt, now: Instant) {
        let times = self.times(rtt);
        let lost = self.lost.iter().map(|(n, p)| (*n, p));
        let all = self.packets.iter().chain(lost);
        let given_up: Vec<u64> = all.filter(|(_, p)| p.given_up).map(|(n, _)| n).collect();
        for number in given_up {
            self.came(number, times, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const RTT: Rtt = Rtt {
        smoothed: Duration::from_millis(40),
        min_rtt: Duration::from_millis(40),
        deviation: Duration::from_millis(1),
    };

    /// One packet of 1000 bytes every millisecond, each acknowledged `delay` after it was sent;
    /// what was found to be lost, and when.
    fn run(delay: impl Fn(u64) -> Option<u64>) -> (Losses, Vec<(u64, u64)>) {
        let (mut losses, begin) = (Losses::default(), Instant::now());
        let mut found = Vec::new();
        for t in 0..1000 {
            let now = begin + ms(t);
            losses.sent(t, 1000, now);
            for n in (0..=t).filter(|n| delay(*n).is_some_and(|d| n + d == t)) {
                losses.acked(n, begin + ms(n), RTT, now);
            }
            losses.read(now);
            losses.settle(RTT, now);
            let lost = losses.find(RTT, now, false).map(|f| f.packets);
            found.extend(lost.into_iter().flatten().map(|l| (l.number, t)));
        }
        (losses, found)
    }

    #[test]
    fn a_loss_is_found_within_a_round_trip_and_a_quarter_where_nothing_reorders() {
        let (losses, found) = run(|n| (n % 100 != 50).then_some(40));
        assert_eq!(found[0], (50, 93));
        assert!(found.len() == 10 && found.iter().all(|(n, t)| t - n <= 50));
        // The library was not told of any.
        assert_eq!(losses.written_off(), 10_000);
    }

    #[test]
    fn what_comes_late_is_not_lost_twice() {
        // Every tenth takes 60 ms.
        let (mut losses, found) = run(|n| Some(if n % 10 == 5 { 60 } else { 40 }));
        assert!(found.len() <= 4 && found[0].0 == 5, "{found:?}");
        assert!(losses.were_spurious() && !losses.is_open());
        assert_eq!((losses.written_off(), losses.lost.len()), (0, 0));
    }

    #[test]
    fn what_is_held_is_told_once_it_is_certain() {
        let (mut losses, begin) = (Losses::default(), Instant::now());
        (0..9).for_each(|n| losses.sent(n, 1000, begin));
        let at = |t: u64| begin + ms(t);
        losses.acked(8, begin, RTT, at(40));
        losses.read(at(40));
        let found = losses.find(RTT, at(40), true).unwrap();
        assert!(found.held && found.packets.len() == 6);
        // What the controller has not heard of is not taken back.
        losses.acked(0, begin, RTT, at(60));
        assert!(!losses.were_spurious() && !losses.is_open());
        assert!(losses.settle(RTT, at(80)).is_empty());
        losses.given_up(2);
        let told = losses.settle(RTT, at(90));
        let numbers: Vec<u64> = told.iter().map(|l| l.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert!(losses.settle(RTT, at(200)).is_empty(), "once");
    }

    #[test]
    fn what_the_library_gave_up_may_have_arrived() {
        let (mut losses, now) = (Losses::default(), Instant::now());
        (0..9).for_each(|n| losses.sent(n, 1000, now));
        let later = now + ms(40);
        losses.acked(8, now, RTT, later);
        losses.read(later);
        assert_eq!(
            losses.find(RTT, later, false).map(|f| f.packets.len()),
            Some(6)
        );
        assert_eq!(losses.given_up(5), Known::Lost);
        assert_eq!(losses.written_off(), 5000);
        assert_eq!(losses.given_up(5000), Known::Nothing);
        losses.arrived(RTT, later);
        assert_eq!(losses.given_up(5), Known::Nothing);
    }

    #[test]
    fn an_outage_is_persistent_congestion() {
        let (mut losses, begin) = (Losses::default(), Instant::now());
        let at = |t: u64| begin + ms(t);
        for t in 0..400 {
            losses.sent(t, 1000, at(t));
        }
        losses.acked(0, at(0), RTT, at(1));
        losses.read(at(1));
        losses.acked(399, at(399), RTT, at(440));
        losses.read(at(440));
        let found = losses.find(RTT, at(440), false).unwrap();
        assert!(found.persistent && found.packets.len() == 396);
        assert_eq!(found.sent, at(396));
    }
}
