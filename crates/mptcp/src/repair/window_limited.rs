//! Accesses so slow beside the others that the receiver's buffer limits the sum:
//! the scheduler of a stock kernel gives out bursts of 64 kB, and what the others
//! carry waits for one that a slow access has got.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::buffers::needed;

/// So many looks in a row are no beginning of a connection.
const LOOKS: u8 = 3;

/// A subflow that is no backup, of a connection that sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The connection.
    pub token: u32,
    /// The access.
    pub access: String,
    /// Pacing rate of the sender, in bits/s, above 0.
    pub rate: f64,
}

/// An access that is too slow beside the others of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// The access.
    pub access: String,
    /// Its rate, in bits/s.
    pub rate: f64,
    /// Sum of the rates of all subflows of the connection, in bits/s.
    pub sum: f64,
    /// The buffer that the receiver needs, in bytes as the kernel counts.
    pub needs: u64,
    /// Maximum buffer that the receiver may have, in the same bytes.
    pub allows: u64,
}

/// The buffer, in bytes as the kernel counts, for a burst on a path of `rate`
/// beside the others: 64 kB x sum / rate, twice.
pub fn buffer(rate: f64, sum: f64) -> u64 {
    needed(sum, rate, Duration::ZERO) as u64
}

/// Returns the accesses that need more than `allows`, each once, at its worst.
pub fn slow(paths: &[Path], allows: u64) -> Vec<Slow> {
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    for p in paths {
        *sums.entry(p.token).or_default() += p.rate;
    }
    let mut worst: BTreeMap<&str, Slow> = BTreeMap::new();
    for p in paths.iter().filter(|p| p.rate > 0.0) {
        let sum = sums[&p.token];
        let needs = buffer(p.rate, sum);
        let known = worst.get(&*p.access).is_some_and(|s| s.needs >= needs);
        if needs > allows && !known {
            let slow = Slow {
                access: p.access.clone(),
                rate: p.rate,
                sum,
                needs,
                allows,
            };
            worst.insert(&p.access, slow);
        }
    }
    worst.into_values().collect()
}

/// Slow accesses, as seen over time.
#[derive(Clone, Debug, Default)]
pub struct Slowness {
    seen: BTreeMap<String, (u8, Slow)>,
    told: BTreeSet<String>,
}

impl Slowness {
    /// Takes a look; returns those of which nothing has been said yet.
    pub fn look(&mut self, paths: &[Path], allows: u64) -> Vec<Slow> {
        let mut now = BTreeMap::new();
        for s in slow(paths, allows) {
            let looks = self.seen.get(&s.access).map_or(0, |(n, _)| *n);
            now.insert(s.access.clone(), (looks.saturating_add(1), s));
        }
        self.seen = now;
        let lasting = self.seen.values().filter(|(n, _)| *n >= LOOKS);
        let news = lasting.filter(|(_, s)| !self.told.contains(&s.access));
        let news: Vec<Slow> = news.map(|(_, s)| s.clone()).collect();
        self.told.extend(news.iter().map(|s| s.access.clone()));
        news
    }

    /// Whether, and how, an access is too slow now.
    pub fn of(&self, access: &str) -> Option<&Slow> {
        let (looks, slow) = self.seen.get(access)?;
        (*looks >= LOOKS).then_some(slow)
    }
}

impl std::fmt::Display for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mbit, mb) = (|r: f64| r * 1e-6, |b: u64| b as f64 * 1e-6);
        write!(
            f,
            "{:.1} Mbit/s beside a sum of {:.0}: the receiver needs {:.0} MB of buffer, and \
             net.ipv4.tcp_rmem (of this end) allows {:.0} MB, by which the sum is limited: give \
             the access weight 0, have it wait (braid set priority), or raise tcp_rmem at the \
             receiver",
            mbit(self.rate),
            mbit(self.sum),
            mb(self.needs),
            mb(self.allows),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(token: u32, access: &str, mbps: f64) -> Path {
        Path {
            token,
            access: access.into(),
            rate: mbps * 1e6,
        }
    }

    #[test]
    fn the_examples_of_the_documentation() {
        let beside = |slow| [path(1, "a", 1500.0 - slow), path(1, "b", slow)];
        // 8 and 100 MB, counted twice.
        let of = |mbps: f64| slow(&beside(mbps), 1 << 20)[0].clone();
        assert_eq!(of(12.0).needs / 1_000_000, 16);
        assert_eq!(of(1.0).needs / 1_000_000, 196);
        assert_eq!(slow(&beside(12.0), 64 << 20), []);
        let said = slow(&beside(1.0), 64 << 20)[0].to_string();
        assert!(
            said.starts_with("1.0 Mbit/s beside a sum of 1500: the receiver needs 197 MB"),
            "{said}"
        );
        assert!(said.contains("allows 67 MB"), "{said}");
    }

    #[test]
    fn it_is_said_once_and_when_it_lasts() {
        let both = [path(1, "a", 1499.0), path(1, "b", 1.0)];
        let alone = [path(1, "a", 1499.0)];
        let mut s = Slowness::default();
        let mut looks = |paths: &[Path]| {
            let news = s.look(paths, 6 << 20).len();
            (news, s.of("b").is_some())
        };
        assert_eq!(looks(&both), (0, false));
        assert_eq!(looks(&alone), (0, false));
        assert_eq!((looks(&both), looks(&both)), ((0, false), (0, false)));
        assert_eq!((looks(&both), looks(&both)), ((1, true), (0, true)));
        assert_eq!(looks(&alone), (0, false));
        assert_eq!((looks(&both), looks(&both)), ((0, false), (0, false)));
        assert_eq!(looks(&both), (0, true));
    }

    proptest! {
        #[test]
        fn only_the_ratio_counts(
            rates in prop::collection::vec(1e3f64..1e9, 1..6), by in 1u32..1000, allows in 0u64..1 << 30,
        ) {
            let paths = |by: f64| -> Vec<Path> {
                let of = |(i, r): (usize, &f64)| path(9, &format!("a{i}"), r * by);
                rates.iter().enumerate().map(of).collect()
            };
            let names = |all: Vec<Slow>| all.into_iter().map(|s| s.access).collect::<Vec<_>>();
            let (one, other) = (slow(&paths(1.0), allows), slow(&paths(f64::from(by)), allows));
            // Rounding may tell at the very limit.
            let far = |s: &Slow| s.needs.abs_diff(allows) > 2;
            let only = |all: &[Slow]| names(all.iter().filter(|s| far(s)).cloned().collect());
            prop_assert_eq!(only(&one), only(&other));
            // The fastest of n is never slower than a share of one in n.
            let most = buffer(1.0, rates.len() as f64);
            prop_assert!(allows < most || one.len() < rates.len());
        }
    }
}
