//! How far packets of one path overtake each other, and what is taken for lost for that.
//!
//! Until a packet that was taken for lost is acknowledged, RFC 9002 6.1 rules: three packets,
//! or 9/8 of a round trip. From then on only time tells, as in RACK (RFC 8985 6.2): a
//! reordering window beyond the round-trip time, in steps of a quarter of the least round
//! trip, up to a whole one (RFC 9002 6.1.1 and 6.1.2 leave both to the sender). RACK learns
//! of a spurious loss from DSACK, and not how late the packet was. Here its number tells
//! both, so that the window grows as far as was needed at once, and packets that come late
//! without having been taken for lost keep it. It ends after 16 recoveries without any.

use std::time::{Duration, Instant};

/// RFC 9002 6.1.1.
const PACKETS: u64 = 3;
/// RFC 9002 6.1.2: an eighth of a round-trip time beside it.
const PART: u32 = 8;
/// Timers are not finer (RFC 9002 6.1.2, kGranularity).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);
/// Steps of the window in the least round-trip time (RFC 8985 6.2.2).
const STEPS: u32 = 4;
/// Recoveries without reordering after which there is none (RFC 8985 6.2.2).
const PERSIST: u32 = 16;
/// Packets that a smoothed time follows.
const SMOOTH: u32 = 16;

/// Round-trip times of a path (RFC 9002 5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) smoothed: Duration,
    pub(crate) latest: Duration,
    pub(crate) min_rtt: Duration,
}

impl Times {
    fn longest(&self) -> Duration {
        self.smoothed.max(self.latest)
    }
}

/// Bounds beyond which a packet is taken for lost once a later one was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The largest number acknowledged less its own; none where only time tells.
    packets: Option<u64>,
    /// Time since it was sent.
    pub(crate) delay: Duration,
}

impl Limits {
    /// Whether a packet is lost that was sent `age` ago, and is `behind` the largest number
    /// acknowledged.
    pub(crate) fn exceeded(&self, behind: u64, age: Duration) -> bool {
        self.packets.is_some_and(|max| behind >= max) || age >= self.delay
    }
}

/// A packet that was acknowledged after a later one had been.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub(crate) sent: Instant,
    /// The largest number that had been acknowledged, less its own.
    pub(crate) behind: u64,
    /// Whether it had been taken for lost.
    pub(crate) spurious: bool,
}

/// Reordering seen on one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reordering {
    /// Steps of the window; 0 where no loss was spurious.
    steps: u32,
    /// Steps that were needed, of the present 16 recoveries.
    needed: u32,
    /// Recoveries since that began, and since anything was late.
    recoveries: u32,
    quiet: u32,
    /// Smoothed round-trip time of all packets: those that set the times of RFC 9002 have
    /// overtaken all others, and tell of themselves.
    all: Duration,
    /// Times when the window grew last, and when the latest recovery began.
    grown: Option<Instant>,
    recovery: Option<Instant>,
}

impl Reordering {
    /// Returns the bounds at the present round-trip times.
    pub(crate) fn limits(&self, times: Times) -> Limits {
        let longest = self.longest(times);
        let least = (longest / PART).max(GRANULARITY.saturating_sub(longest));
        if self.steps == 0 {
            return Limits {
                packets: Some(PACKETS),
                delay: longest + least,
            };
        }
        let window = (step(times) * self.steps).min(self.max_window(times));
        Limits {
            packets: None,
            delay: longest + window.max(least),
        }
    }

    /// Returns the round-trip time that losses are judged by (RFC 9002 6.1.2).
    pub(crate) fn longest(&self, times: Times) -> Duration {
        match self.steps {
            0 => times.longest(),
            _ => times.longest().max(self.all),
        }
    }

    /// Returns the smoothed round-trip time of all packets.
    pub(crate) fn all(&self) -> Duration {
        self.all
    }

    /// Returns whether a loss was spurious, not long ago.
    pub(crate) fn is_seen(&self) -> bool {
        self.steps > 0
    }

    /// The widest window (RFC 8985 6.2.2).
    fn max_window(&self, times: Times) -> Duration {
        times.smoothed.max(self.all)
    }

    /// Notes a packet that was acknowledged, `age` after it was sent.
    pub(crate) fn arrived(&mut self, age: Duration) {
        self.all = match self.all {
            Duration::ZERO => age,
            all => (all * (SMOOTH - 1) + age) / SMOOTH,
        };
    }

    /// Notes a packet that came late; once in a round trip, a spurious loss widens the
    /// window by a step where less was needed.
    pub(crate) fn late(&mut self, late: Late, times: Times, now: Instant) {
        let longest = self.longest(times);
        let over = now.saturating_duration_since(late.sent + longest);
        if !late.spurious && late.behind < PACKETS && over < longest / PART {
            return;
        }
        let max = in_steps(self.max_window(times), times);
        let needed = in_steps(over, times).clamp(1, max.max(1));
        (self.quiet, self.needed) = (0, self.needed.max(needed));
        if !late.spurious {
            return;
        }
        if self.grown.is_none_or(|t| late.sent > t) {
            self.grown = Some(now);
            self.steps = (self.steps + 1).min(max.max(1));
        }
        self.steps = self.steps.max(needed);
    }

    /// Notes that packets were taken for lost, the last of them sent at `sent`.
    pub(crate) fn lost(&mut self, sent: Instant, now: Instant) {
        if self.recovery.is_some_and(|t| sent <= t) {
            return;
        }
        // The recovery before it has ended.
        let ended = self.recovery.replace(now).is_some();
        if self.steps == 0 || !ended {
            return;
        }
        self.quiet += 1;
        self.recoveries += 1;
        if self.quiet >= PERSIST {
            self.steps = 0;
        }
        if self.recoveries >= PERSIST {
            self.steps = self.steps.min(self.needed.max(1));
            (self.needed, self.recoveries) = (0, 0);
        }
        if self.steps == 0 {
            (self.needed, self.recoveries, self.quiet) = (0, 0, 0);
        }
    }
}

fn step(times: Times) -> Duration {
    (times.min_rtt.min(times.smoothed) / STEPS).max(Duration::from_micros(1))
}

/// So many steps cover `time`.
fn in_steps(time: Duration, times: Times) -> u32 {
    let steps = time.as_nanos().div_ceil(step(times).as_nanos());
    u32::try_from(steps).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A round trip of 40 ms, 20 without a queue: steps of 5 ms.
    const TIMES: Times = Times {
        smoothed: Duration::from_millis(40),
        latest: Duration::from_millis(40),
        min_rtt: Duration::from_millis(20),
    };

    /// At `now`, a packet is acknowledged that was sent `age` ms ago.
    fn late(r: &mut Reordering, age: u64, spurious: bool, now: Instant) {
        let late = Late {
            sent: now - ms(age),
            behind: 10,
            spurious,
        };
        r.late(late, TIMES, now);
    }

    #[test]
    fn three_packets_or_an_eighth_of_a_round_trip_where_nothing_reorders() {
        let (mut r, now) = (Reordering::default(), Instant::now());
        for n in 0..100 {
            let limits = r.limits(TIMES);
            assert!(limits.exceeded(3, ms(0)) && !limits.exceeded(2, ms(44)));
            assert!(limits.exceeded(1, ms(45)));
            r.lost(now + ms(40 * n), now + ms(40 * n + 40));
        }
        // One that was overtaken and not taken for lost changes nothing.
        late(&mut r, 41, false, now + ms(5000));
        assert_eq!(r.limits(TIMES), Reordering::default().limits(TIMES));
        let none = Times {
            smoothed: ms(0),
            latest: ms(0),
            min_rtt: ms(0),
        };
        assert_eq!(r.limits(none).delay, GRANULARITY);
    }

    #[test]
    fn the_window_grows_by_steps_up_to_a_round_trip() {
        let (mut r, now) = (Reordering::default(), Instant::now() + ms(1000));
        let delay = |r: &Reordering| r.limits(TIMES).delay;
        // It came within the round trip, but after many others.
        late(&mut r, 38, true, now);
        assert_eq!(delay(&r), ms(45));
        assert!(!r.limits(TIMES).exceeded(1000, ms(44)));
        late(&mut r, 38, true, now + ms(10));
        assert_eq!(delay(&r), ms(45), "once in a round trip");
        late(&mut r, 38, true, now + ms(40));
        assert_eq!(delay(&r), ms(50));
        // As far as was needed at once.
        late(&mut r, 57, true, now + ms(50));
        assert_eq!(delay(&r), ms(60));
        late(&mut r, 400, true, now + ms(1000));
        assert_eq!(delay(&r), ms(80));
        (30..90).for_each(|n| late(&mut r, 38, true, now + ms(40 * n)));
        assert_eq!(delay(&r), ms(80));
    }

    #[test]
    fn sixteen_recoveries_without_reordering_end_it() {
        let begin = Instant::now() + ms(1000);
        let (mut r, mut now) = (Reordering::default(), begin);
        let mut recover = |r: &mut Reordering| {
            // All that is lost of a round trip is one.
            (0..5).for_each(|n| r.lost(now - ms(n), now));
            now += ms(50);
            now
        };
        recover(&mut r);
        late(&mut r, 57, true, begin);
        (0..14).for_each(|_| {
            recover(&mut r);
        });
        assert_eq!(r.limits(TIMES).delay, ms(60));
        // What comes late in time keeps what it needs of it.
        for _ in 0..10 {
            let now = recover(&mut r);
            late(&mut r, 48, false, now);
            (0..14).for_each(|_| {
                recover(&mut r);
            });
        }
        assert_eq!(r.limits(TIMES).delay, ms(50));
        (0..2).for_each(|_| {
            recover(&mut r);
        });
        assert_eq!(r.limits(TIMES), Reordering::default().limits(TIMES));
    }

    #[derive(Clone, Copy, Debug)]
    enum What {
        Late(u64, u64, bool),
        Lost(u64),
    }

    fn what() -> impl Strategy<Value = What> {
        prop_oneof![
            (0..500_u64, 0..2000_u64, any::<bool>()).prop_map(|(a, b, c)| What::Late(a, b, c)),
            (0..500_u64).prop_map(What::Lost),
        ]
    }

    fn times() -> impl Strategy<Value = Times> {
        (0..300_u64, 0..300_u64, 0..300_u64).prop_map(|(smoothed, latest, least)| Times {
            smoothed: ms(smoothed),
            latest: ms(latest),
            min_rtt: ms(least),
        })
    }

    proptest! {
        #[test]
        fn a_loss_is_found_between_an_eighth_of_a_round_trip_and_a_whole_one(
            all in prop::collection::vec((what(), times(), 0..100_u64), 0..200),
        ) {
            let (mut r, mut now) = (Reordering::default(), Instant::now() + ms(1000));
            for (what, times, passed) in all {
                now += ms(passed);
                let before = r.limits(times);
                match what {
                    What::Late(age, behind, spurious) => {
                        let late = Late { sent: now - ms(age), behind, spurious };
                        r.late(late, times, now);
                        prop_assert!(r.limits(times).delay >= before.delay);
                        prop_assert_eq!(spurious || before.packets.is_none(), r.limits(times).packets.is_none());
                    }
                    What::Lost(age) => {
                        r.lost(now - ms(age), now);
                        prop_assert!(r.limits(times).delay <= before.delay);
                    }
                }
                let delay = r.limits(times).delay;
                let longest = times.longest();
                let least = (longest + longest / PART).max(GRANULARITY);
                prop_assert!(delay >= least && delay <= (longest + times.smoothed).max(least));
            }
            for n in 0..=PERSIST {
                now += ms(100);
                r.lost(now - ms(u64::from(n)), now);
            }
            prop_assert_eq!(r.limits(TIMES), Reordering::default().limits(TIMES));
        }

        /// Packets every millisecond, each later by a draw of its own: those that come within
        /// two round trips are not taken for lost any more after a few have been.
        #[test]
        fn reordering_within_a_round_trip_is_learned(
            draws in prop::collection::vec(0..40_u64, 4000), scale in 0.0..1.0,
        ) {
            let begin = Instant::now();
            let mut r = Reordering::default();
            let mut arrivals: Vec<(u64, u64)> = draws
                .iter()
                .zip(0..)
                .map(|(d, n)| (n + 20 + (*d as f64 * scale) as u64, n))
                .collect();
            arrivals.sort_unstable();
            let (mut largest, mut open) = (0, std::collections::BTreeSet::new());
            let mut next = 0;
            let mut lost = std::collections::BTreeSet::new();
            let mut spurious = Vec::new();
            for (at, n) in arrivals {
                let now = begin + ms(at);
                let least = ms(20);
                let times = Times { smoothed: ms(30), latest: ms(20), min_rtt: least };
                while next < at.min(4000) {
                    open.insert(next);
                    next += 1;
                }
                let was = lost.remove(&n);
                if n < largest {
                    let late = Late { sent: begin + ms(n), behind: largest - n, spurious: was };
                    r.late(late, times, now);
                }
                if was {
                    spurious.push(at);
                }
                open.remove(&n);
                largest = largest.max(n);
                let limits = r.limits(times);
                let found: Vec<u64> = open
                    .range(..largest)
                    .copied()
                    .filter(|n| limits.exceeded(largest - n, ms(at - n)))
                    .collect();
                if let Some(last) = found.last() {
                    r.lost(begin + ms(*last), now);
                }
                found.iter().for_each(|n| {
                    open.remove(n);
                });
                lost.extend(found);
            }
            // At most the window of the first ones, then one for each step.
            let late = spurious.iter().filter(|at| **at > 1000).count();
            prop_assert!(late <= 8, "{:?}", spurious);
        }
    }
}
