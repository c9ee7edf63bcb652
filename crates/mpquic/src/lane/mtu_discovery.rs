//! Packet size of one path, found by what arrives (Datagram Packetization Layer PMTU Discovery,
//! RFC 8899).
//!
//! A path begins with datagrams that every path of QUIC carries (`BASE_PLPMTU`), and one of the
//! first is a probe of full size; where three are lost, the search goes on by halves. Probes
//! carry data, which is sent again if they are lost. Nothing that ICMP says is heeded.
//!
//! The library has such a search of its own, and only one size for the datagrams of all paths,
//! the least; and it takes a queue that overflows for a black hole, as short packets find room
//! in it where long ones do not. So it is off on this lane, which knows what was acknowledged of
//! which length: of a path that is alive, long datagrams that are lost one and all say that it
//! carries only short ones (RFC 8899 4.3).

use std::time::{Duration, Instant};

/// Bytes of a datagram that fits where QUIC does, in a UDP payload of 1200 bytes (`BASE_PLPMTU`).
pub(super) const BASE: usize = 1150;
/// Maximum long ones that are lost in a row, without any that arrives.
const MAX_LOST: u32 = 32;
/// Fewer are enough where they were so long at it: on a slow path.
const MAX_LOST_SLOWLY: u32 = 6;
const SLOW: Duration = Duration::from_millis(500);
/// Probes of full size (`MAX_PROBES`), and of others, as a size that is too small by chance is
/// tried again soon.
const MAX_PROBES: u32 = 3;
const MAX_PROBES_BETWEEN: u32 = 2;
/// The search ends when it is as exact as this.
const STEP: usize = 16;
/// Bytes that QUIC adds to some packets, such as a ping.
const SPARE: usize = 16;
/// Time after which a probe is sent again that was neither acknowledged nor lost (`PROBE_TIMER`).
const PROBE_TIMER: Duration = Duration::from_secs(3);
/// When a longer one is tried again, at first and at most (`PMTU_RAISE_TIMER`).
const RAISE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));

/// A datagram that is longer than any that has arrived.
#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    len: usize,
    at: Instant,
}

/// Search for the packet size of one path.
#[derive(Clone, Debug)]
pub(super) struct MtuDiscovery {
    /// Bytes of the longest datagram that has arrived, or of the base.
    size: usize,
    /// The shortest that has not, and when that was known.
    bound: Option<(usize, Instant)>,
    probe: Option<Probe>,
    /// Probes of this size that were lost.
    tries: u32,
    raise: Duration,
    /// Size that was found before the search began anew.
    last: Option<usize>,
    /// The latest long one that has arrived.
    arrived: Option<u64>,
    /// Long ones lost after it, and the first of these.
    lost: u32,
    since: Option<Instant>,
}

impl Default for MtuDiscovery {
    fn default() -> Self {
        Self {
            size: BASE,
            bound: None,
            probe: None,
            tries: 0,
            raise: RAISE.0,
            last: None,
            arrived: None,
            lost: 0,
            since: None,
        }
    }
}

impl MtuDiscovery {
    /// Bytes of the longest datagram that has arrived, or of the base.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Bytes that the next datagram may have, of `room`; `spare` bytes of its packet are left to
    /// QUIC, but of a probe's, and beside a short one there is room in any case.
    pub(super) fn room(&self, room: usize, spare: usize, now: Instant) -> usize {
        let probe = (self.size < room).then(|| self.wanted(room, now)).flatten();
        probe.unwrap_or_else(|| self.known(room, spare))
    }

    /// Bytes of one that is no probe, as [`MtuDiscovery::room`].
    pub(super) fn known(&self, room: usize, spare: usize) -> usize {
        match self.size {
            size if size >= room => room.saturating_sub(spare),
            size if size > BASE => size.saturating_sub(SPARE + spare).max(BASE),
            size => size,
        }
    }

    /// The size of the next probe, where it is time for one.
    fn wanted(&self, room: usize, now: Instant) -> Option<usize> {
        if self.probe.is_some_and(|p| now < p.at + PROBE_TIMER) {
            return None;
        }
        match self.bound {
            Some((bound, _)) if !self.is_exact(bound) => Some(self.size.midpoint(bound)),
            Some((_, failed)) if now < failed + self.raise => None,
            _ => Some(room),
        }
    }

    fn is_exact(&self, bound: usize) -> bool {
        bound < self.size + STEP
    }

    /// Bytes of the longest datagram that the path carries, where it does not carry full ones;
    /// none while that is not known.
    pub(super) fn found(&self) -> Option<usize> {
        let exact = self.bound.is_some_and(|(bound, _)| self.is_exact(bound));
        if exact { Some(self.size) } else { self.last }
    }

    /// Datagram number `number`, of `len` bytes, leaves.
    pub(super) fn sent(&mut self, number: u64, len: usize, at: Instant) {
        if len <= self.size {
            return;
        }
        if self.bound.is_some_and(|(bound, _)| len >= bound) {
            // It is tried once, and then sought anew.
            (self.bound, self.tries) = (None, MAX_PROBES - 1);
        }
        self.probe = Some(Probe { number, len, at });
    }

    /// Datagram number `n`, of `len` bytes, has arrived.
    pub(super) fn arrived(&mut self, n: u64, len: usize) {
        if self.probe.is_some_and(|p| p.number == n) {
            (self.probe, self.tries) = (None, 0);
        }
        if len <= BASE {
            return;
        }
        self.arrived = self.arrived.max(Some(n));
        (self.lost, self.since) = (0, None);
        if len > self.size {
            self.size = len;
            self.last = self.last.filter(|last| *last >= len);
            // One that was lost by chance, or on another way.
            self.bound = self.bound.filter(|(bound, _)| *bound > len);
            if self.bound.is_none() {
                self.raise = RAISE.0;
            }
        }
    }

    /// Notes that datagram number `n`, of `len` bytes, was lost, on a path that is not silent.
    pub(super) fn lost(&mut self, n: u64, len: usize, now: Instant) {
        if let Some(probe) = self.probe.filter(|p| p.number == n) {
            self.probe = None;
            self.tries += 1;
            let most = match self.bound {
                Some(_) => MAX_PROBES_BETWEEN,
                None => MAX_PROBES,
            };
            if self.tries >= most {
                self.bound = Some((probe.len, now));
                self.tries = 0;
                if self.is_exact(probe.len) {
                    self.raise = (2 * self.raise).min(RAISE.1);
                }
            }
            return;
        }
        if len <= BASE || self.arrived.is_some_and(|a| n < a) {
            return;
        }
        self.lost += 1;
        let slow = now.saturating_duration_since(*self.since.get_or_insert(now)) >= SLOW;
        if self.lost >= if slow { MAX_LOST_SLOWLY } else { MAX_LOST } {
            *self = Self {
                last: self.found(),
                arrived: self.arrived,
                ..Self::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FULL: usize = 1414;

    /// Sends full datagrams on a path that carries `most` bytes, each lost or there before the
    /// next, as long as `steps`; returns the sizes.
    fn sizes(
        mtu: &mut MtuDiscovery,
        first: u64,
        steps: u64,
        most: usize,
        now: Instant,
    ) -> Vec<usize> {
        let mut sizes = Vec::new();
        for n in first..first + steps {
            let len = mtu.room(FULL, 0, now);
            sizes.push(len);
            mtu.sent(n, len, now);
            match len <= most {
                true => mtu.arrived(n, len),
                false => mtu.lost(n, len, now),
            }
        }
        sizes
    }

    #[test]
    fn a_path_that_carries_full_ones_has_them_after_the_first() {
        let (mut mtu, now) = (MtuDiscovery::default(), Instant::now());
        assert_eq!(mtu.room(FULL, 0, now), FULL);
        mtu.sent(0, FULL, now);
        // It is under way.
        assert_eq!((mtu.room(FULL, 0, now), mtu.room(900, 0, now)), (BASE, 900));
        mtu.arrived(0, FULL);
        assert_eq!((mtu.room(FULL, 0, now), mtu.found()), (FULL, None));
    }

    #[test]
    fn what_a_path_carries_is_found_and_tried_again_later() {
        let (mut mtu, now) = (MtuDiscovery::default(), Instant::now());
        let sent = sizes(&mut mtu, 0, 40, 1334, now);
        let failed = sent.iter().filter(|s| **s > 1334).count();
        assert!(failed <= 9, "{sent:?}");
        let found = mtu.found().unwrap();
        assert!((1334 - STEP..=1334).contains(&found), "{found}");
        assert_eq!(mtu.room(FULL, 0, now), found - SPARE);
        // It fails again, and is not tried as soon.
        let later = now + 2 * RAISE.0;
        assert_eq!(mtu.room(FULL, 0, later), FULL);
        sizes(&mut mtu, 40, 40, 1334, later);
        assert_eq!(
            mtu.room(FULL, 0, later + 2 * RAISE.0),
            mtu.found().unwrap() - SPARE
        );
        let later = later + 5 * RAISE.0;
        sizes(&mut mtu, 80, 20, FULL, later);
        assert_eq!((mtu.room(FULL, 0, later), mtu.found()), (FULL, None));
    }

    #[test]
    fn a_path_that_loses_all_long_ones_gets_short_ones() {
        let (mut mtu, now) = (MtuDiscovery::default(), Instant::now());
        sizes(&mut mtu, 0, 10, FULL, now);
        (10..41).for_each(|n| mtu.lost(n, FULL, now));
        assert_eq!(mtu.room(FULL, 0, now), FULL);
        mtu.lost(41, FULL, now);
        let sent = sizes(&mut mtu, 42, 28, 1334, now);
        assert!(sent[4..].iter().all(|s| *s < FULL), "{sent:?}");
        assert!(mtu.found().unwrap() > 1300);
        // On a slow path fewer are enough.
        let before = mtu.found();
        (70..75).for_each(|n| mtu.lost(n, 1300, now));
        assert!(mtu.size > BASE);
        mtu.lost(75, 1300, now + SLOW);
        assert_eq!((mtu.size, mtu.found()), (BASE, before));
    }

    #[test]
    fn an_overflow_is_none() {
        let (mut mtu, now) = (MtuDiscovery::default(), Instant::now());
        for n in 0..10_000 {
            match n % 100 {
                99 => mtu.arrived(n, FULL),
                // Short ones that find room say nothing.
                50 => mtu.arrived(n, BASE),
                _ => {}
            }
        }
        (0..9_999).for_each(|n| mtu.lost(n, FULL, now));
        (10_000..10_031).for_each(|n| mtu.lost(n, FULL, now));
        assert_eq!(mtu.room(FULL, 0, now), FULL);
        mtu.lost(10_031, FULL, now);
        assert_eq!(mtu.size, BASE);
    }

    #[test]
    fn a_probe_that_is_not_acknowledged_is_sent_again() {
        let (mut mtu, now) = (MtuDiscovery::default(), Instant::now());
        mtu.sent(0, FULL, now);
        assert_eq!(mtu.room(FULL, 0, now + PROBE_TIMER / 2), BASE);
        assert_eq!(mtu.room(FULL, 0, now + PROBE_TIMER), FULL);
    }

    proptest! {
        /// Whatever a path carries, and whatever it carries later: it is found to the step, and
        /// datagrams arrive all but for a few.
        #[test]
        fn any_size_is_found(before in BASE..=FULL, after in BASE..=FULL) {
            let (mut mtu, mut now) = (MtuDiscovery::default(), Instant::now());
            let mut first = 0;
            for most in [before, after] {
                // Longer than it takes to try again.
                now += 2 * RAISE.1;
                sizes(&mut mtu, first, 100, most, now);
                now += 2 * RAISE.1;
                let sent = sizes(&mut mtu, first + 100, 100, most, now);
                first += 200;
                let lost = sent.iter().filter(|s| **s > most).count();
                prop_assert!(lost <= 12, "{} {:?}", lost, sent);
                let last = sent[99];
                prop_assert!(last <= most && last + 2 * STEP + SPARE > most, "{} {}", last, most);
            }
        }
    }
}
