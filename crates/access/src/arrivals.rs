//! Finds addresses whose packets arrive on another interface than the one that has them: the
//! router of a LAN in which two interfaces are sends all to one of them, and rates by address
//! look as if both carried.
//!
//! What the subflows on an address received can be no more than what its interface received.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use braid_core::Time;

/// Interval of comparisons.
const EVERY: Duration = Duration::from_secs(1);
/// Payload received in an interval that is enough to judge by, bytes.
const ENOUGH: u64 = 125_000;
/// Intervals in a row that are no coincidence.
const TIMES: u32 = 2;
/// How long it is told after it was last seen.
const TOLD: Duration = Duration::from_secs(60);

/// Bytes that an address received, and its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The interface that has the address.
    pub interface: String,
    /// Payload of its subflows in all, bytes; of those there are now.
    pub payload: u64,
}

/// Where packets arrive instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The interface that received more than is on its own addresses; absent if none did.
    pub on: Option<String>,
    /// When that was first and last seen.
    pub since: Time,
    /// See `since`.
    pub last: Time,
}

/// The addresses that are compared with their interfaces.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    at: Option<Time>,
    payload: BTreeMap<IpAddr, u64>,
    interfaces: BTreeMap<String, u64>,
    /// Intervals in a row in which too little arrived.
    times: BTreeMap<IpAddr, u32>,
    elsewhere: BTreeMap<IpAddr, Elsewhere>,
}

impl Arrivals {
    /// Whether a comparison is due.
    pub fn is_due(&self, now: Time) -> bool {
        self.at.is_none_or(|t| now.since(t) >= EVERY)
    }

    /// Takes what the addresses received, and the counters of the interfaces (bytes received).
    pub fn look(
        &mut self,
        received: &BTreeMap<IpAddr, Received>,
        interfaces: &BTreeMap<String, u64>,
        now: Time,
    ) {
        let grew = |name: &String| {
            let before = self.interfaces.get(name)?;
            interfaces.get(name)?.checked_sub(*before)
        };
        let grown: BTreeMap<&String, u64> = interfaces
            .keys()
            .filter_map(|n| Some((n, grew(n)?)))
            .collect();
        let mut by_interface: BTreeMap<&String, u64> = BTreeMap::new();
        let mut by_address = BTreeMap::new();
        for (a, r) in received {
            let before = self.payload.get(a).copied();
            let more = before.map_or(0, |b| r.payload.saturating_sub(b));
            *by_interface.entry(&r.interface).or_default() += more;
            by_address.insert(*a, more);
        }
        // The one with most bytes that no address of its own has received.
        let spare = |n: &&String| {
            let own = by_interface.get(*n).copied().unwrap_or(0);
            grown[*n].saturating_sub(own)
        };
        for (a, r) in received {
            let all = by_interface[&r.interface];
            let Some(got) = grown.get(&r.interface) else {
                self.times.remove(a);
                continue;
            };
            let times = self.times.entry(*a).or_default();
            match by_address[a] >= ENOUGH && *got < all / 2 {
                true => *times += 1,
                false if by_address[a] >= ENOUGH => *times = 0,
                false => {}
            }
            if *times >= TIMES && by_address[a] >= ENOUGH {
                let others = grown.keys().copied().filter(|n| **n != r.interface);
                let on = others.max_by_key(spare).filter(|n| spare(n) >= all / 2);
                let since = self.elsewhere.get(a).map_or(now, |e| e.since);
                let elsewhere = Elsewhere {
                    on: on.cloned(),
                    since,
                    last: now,
                };
                self.elsewhere.insert(*a, elsewhere);
            } else if *times == 0 && by_address[a] >= ENOUGH {
                self.elsewhere.remove(a);
            }
        }
        self.times.retain(|a, _| received.contains_key(a));
        self.elsewhere.retain(|_, e| now.since(e.last) < TOLD);
        self.payload = received.iter().map(|(a, r)| (*a, r.payload)).collect();
        self.interfaces.clone_from(interfaces);
        self.at = Some(now);
    }

    /// Where the packets to an address arrive, if not on its interface.
    pub fn of(&self, address: IpAddr) -> Option<&Elsewhere> {
        self.elsewhere.get(&address)
    }
}

/// Reads bytes received by interface out of `/proc/net/dev`.
pub fn counters(text: &str) -> BTreeMap<String, u64> {
    let line = |l: &str| {
        let (name, numbers) = l.split_once(':')?;
        let received = numbers.split_whitespace().next()?.parse().ok()?;
        Some((name.trim().to_owned(), received))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn a(k: u8) -> IpAddr {
        IpAddr::from([192, 168, 1, k])
    }

    fn at(s: u64) -> Time {
        Time::from_nanos((100 + s) * 1_000_000_000)
    }

    /// Both addresses received so much of payload, both interfaces so much of bytes.
    fn look(arrivals: &mut Arrivals, payload: [u64; 2], bytes: [u64; 2], s: u64) {
        let of = |interface: &str, payload| Received {
            interface: interface.into(),
            payload,
        };
        let received = BTreeMap::from([(a(1), of("w", payload[0])), (a(2), of("l", payload[1]))]);
        let counters = BTreeMap::from([("w".to_owned(), bytes[0]), ("l".to_owned(), bytes[1])]);
        arrivals.look(&received, &counters, at(s));
    }

    #[test]
    fn what_arrives_on_the_other_interface_is_told() {
        let mut arrivals = Arrivals::default();
        let m = 1_000_000;
        for s in 0..4 {
            assert!(arrivals.is_due(at(s)));
            look(
                &mut arrivals,
                [s * m / 2, s * 2 * m],
                [s * 1000, s * 11 * m / 4],
                s,
            );
        }
        let found = arrivals.of(a(1)).unwrap();
        assert_eq!((found.on.as_deref(), found.since), (Some("l"), at(2)));
        assert_eq!(arrivals.of(a(2)), None);
        // Where nothing is received any more nothing can be judged; the note goes later.
        for s in 4..63 {
            look(&mut arrivals, [3 * m / 2, 6 * m], [3000, 9 * m], s);
            assert!(arrivals.of(a(1)).is_some(), "{s}");
        }
        look(&mut arrivals, [3 * m / 2, 6 * m], [3000, 9 * m], 64);
        assert_eq!(arrivals.of(a(1)), None);
    }

    #[test]
    fn one_that_is_mended_is_told_no_more() {
        let mut arrivals = Arrivals::default();
        let m = 1_000_000;
        for s in 0..4 {
            look(&mut arrivals, [s * m, s * m], [0, s * 3 * m], s);
        }
        assert!(arrivals.of(a(1)).is_some());
        look(&mut arrivals, [4 * m, 4 * m], [m + m / 10, 10 * m], 4);
        assert_eq!(arrivals.of(a(1)), None);
    }

    proptest! {
        /// Headers, other programs' data and counters that begin anew make no difference.
        #[test]
        fn interfaces_that_receive_what_their_addresses_do_are_never_told_of(
            steps in prop::collection::vec((0u64..9_000_000, 0u64..9_000_000, 0u64..9_000_000), 1..40),
            anew in 0u64..40,
        ) {
            let mut arrivals = Arrivals::default();
            let (mut payload, mut bytes) = ([0; 2], [0; 2]);
            for (s, (one, two, more)) in (0..).zip(steps) {
                payload = [payload[0] + one, payload[1] + two];
                bytes = [bytes[0] + one + one / 20, bytes[1] + two + two / 20 + more];
                if s == anew {
                    bytes = [0; 2];
                }
                look(&mut arrivals, payload, bytes, s);
                prop_assert_eq!((arrivals.of(a(1)), arrivals.of(a(2))), (None, None));
            }
        }

        #[test]
        fn garbage_has_no_counters(text in "\\PC{0,200}") {
            counters(&text);
        }
    }

    #[test]
    fn the_kernels_table_is_read() {
        let text = "Inter-|   Receive                      |  Transmit\n \
                    face |bytes    packets errs |bytes\n  lo:     100  1 0 0\n wlan0:7 8\n";
        let all = counters(text);
        assert_eq!((all["lo"], all["wlan0"], all.len()), (100, 7, 2));
    }
}
