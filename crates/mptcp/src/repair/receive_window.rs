//! How wide a receive buffer the connections need: what all accesses carry while the
//! slowest delivers one burst of the stock scheduler and a round trip passes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_core::Time;

use crate::buffers::needed;

/// Half as much again is for what is not as regular as that.
const SLACK: f64 = 1.5;
/// Rates over less time than this are not looked at.
const LEAST: Duration = Duration::from_millis(200);
/// The best rate that was seen counts half after this time.
const HALF: Duration = Duration::from_secs(20);
/// An access with less than this share is not waited for.
const SHARE: f64 = 0.002;

/// A subflow, as a look at the sockets finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// This end and the other.
    pub ends: (SocketAddr, SocketAddr),
    /// Bytes received since it began.
    pub received: u64,
    /// Smoothed round-trip time, queues included.
    pub rtt: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Path {
    /// Best rate, bytes a second, fading.
    rate: f64,
    rtt: Duration,
}

/// Recent receive counts and rates, by the local address.
#[derive(Clone, Debug, Default)]
pub struct ReceiveWindow {
    last: Option<Time>,
    counts: BTreeMap<(SocketAddr, SocketAddr), u64>,
    paths: BTreeMap<IpAddr, Path>,
}

impl ReceiveWindow {
    /// Takes a look at all subflows.
    pub fn look(&mut self, subflows: &[Look], now: Time) {
        let since = match self.last {
            Some(last) if now.since(last) < LEAST => return,
            Some(last) => now.since(last),
            None => Duration::ZERO,
        };
        self.last = Some(now);
        let seconds = since.as_secs_f64();
        let mut sums: BTreeMap<IpAddr, (u64, Duration)> = BTreeMap::new();
        for s in subflows {
            let before = self.counts.get(&s.ends);
            // One that is new began at an unknown time in between.
            let grown = before.map_or(0, |b| s.received.saturating_sub(*b));
            let (sum, rtt) = sums.entry(s.ends.0.ip()).or_default();
            *sum += grown;
            *rtt = s.rtt.max(*rtt);
        }
        self.counts = subflows.iter().map(|s| (s.ends, s.received)).collect();
        let fades = 0.5f64.powf(seconds / HALF.as_secs_f64());
        for path in self.paths.values_mut() {
            path.rate *= fades;
        }
        if seconds > 0.0 {
            for (address, (sum, rtt)) in sums {
                let path = self.paths.entry(address).or_default();
                path.rate = path.rate.max(sum as f64 / seconds);
                path.rtt = rtt;
            }
        }
        // 64 bytes a second say nothing any more.
        self.paths.retain(|_, p| p.rate > 64.0);
    }

    /// The receive buffer, in bytes as the kernel counts; 0 where nothing is known.
    pub fn needs(&self) -> u32 {
        let sum: f64 = self.paths.values().map(|p| p.rate).sum();
        let counts = |p: &&Path| p.rate > SHARE * sum;
        let rtt = self.paths.values().filter(counts).map(|p| p.rtt).max();
        let rates = self.paths.values().filter(counts).map(|p| p.rate);
        let least = rates.fold(f64::INFINITY, f64::min);
        // `as` keeps to what fits.
        (SLACK * needed(sum, least, rtt.unwrap_or_default())) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(k: u8, received: u64, ms: u64) -> Look {
        Look {
            ends: (
                SocketAddr::from(([10, 77, k, 2], 9)),
                SocketAddr::from(([10, 77, 0, 1], 80)),
            ),
            received,
            rtt: Duration::from_millis(ms),
        }
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// So many bytes a second on each path, for two seconds.
    fn carried(rates: &[u64], ms: &[u64]) -> ReceiveWindow {
        let mut d = ReceiveWindow::default();
        for n in 0..=8 {
            let of = |(k, (r, ms)): (usize, (&u64, &u64))| look(k as u8, r * n / 4, *ms);
            let looks: Vec<_> = rates.iter().zip(ms).enumerate().map(of).collect();
            d.look(&looks, at(250 * n));
        }
        d
    }

    #[test]
    fn the_slowest_decides() {
        // 1600 Mbit/s in all, 64 kB over 12 Mbit/s are 43.7 ms, and 20 ms.
        let d = carried(&[44_000_000, 154_500_000, 1_500_000], &[20, 3, 9]);
        let needs = f64::from(d.needs());
        assert!(
            (needs / (3.0 * 200e6 * 0.063_69) - 1.0).abs() < 0.01,
            "{needs}"
        );
        // 110 Mbit/s in all: little more than sockets begin with.
        let d = carried(&[5_000_000, 7_500_000, 1_250_000], &[70, 62, 60]);
        assert!(d.needs() < 6 << 20, "{}", d.needs());
        // One that carries next to nothing is not waited for.
        let d = carried(&[10_000_000, 1000], &[20, 500]);
        assert!(d.needs() < 1 << 20, "{}", d.needs());
    }

    #[test]
    fn what_was_carried_before_an_outage_is_remembered_for_a_while() {
        let mut d = carried(&[10_000_000, 10_000_000], &[20, 20]);
        let before = d.needs();
        assert!(before > 0);
        let mut t = 2000;
        while t < 7000 {
            t += 250;
            d.look(&[], at(t));
        }
        assert!(d.needs() > before / 2, "{} of {before}", d.needs());
        while t < 900_000 {
            t += 250;
            d.look(&[], at(t));
        }
        assert_eq!(d.needs(), 0);
    }

    proptest! {
        #[test]
        fn any_looks_give_a_number(
            looks in prop::collection::vec((0u8..4, any::<u64>(), 0u64..100_000, 0u64..1000), 0..50),
        ) {
            let mut d = ReceiveWindow::default();
            let mut t = 0;
            for (k, received, ms, dt) in looks {
                t += dt;
                d.look(&[look(k, received, ms)], at(t));
                d.needs();
            }
        }
    }
}
