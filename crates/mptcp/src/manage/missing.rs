//! Finds subflows that ended while their connection and their access live: the
//! kernel opens a subflow once per connection and endpoint.
//!
//! Deleting and adding the endpoint opens it again, but ends the subflows that
//! others have on it. So it is done only where nobody has one, and ever more
//! seldom where it does not help.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_core::Time;

/// How long a subflow is missed before anything is done: a join takes a while.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest wait between two attempts.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The local addresses of the subflows of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Of IPv4, else of IPv6; subflows of the other family cannot join.
    pub v4: bool,
    /// Where it has subflows.
    pub on: BTreeSet<IpAddr>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    since: Time,
    wait: Duration,
}

/// What is missed, and for how long.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    entries: BTreeMap<IpAddr, Entry>,
}

impl Missing {
    /// The addresses whose endpoints are to be deleted and added again, of those
    /// with `endpoints`, as the connections are `now`.
    pub fn check(
        &mut self,
        endpoints: &BTreeSet<IpAddr>,
        connections: &BTreeMap<u32, Paths>,
        now: Time,
    ) -> Vec<IpAddr> {
        self.entries.retain(|a, _| endpoints.contains(a));
        let mut again = Vec::new();
        for a in endpoints {
            let mut concerned = connections.values().filter(|p| p.v4 == a.is_ipv4());
            let has = concerned.clone().any(|p| p.on.contains(a));
            let lacks = concerned.any(|p| !p.on.contains(a));
            if has || !lacks {
                // The wait is forgotten with the first success.
                self.entries.remove(a);
                continue;
            }
            let entry = self.entries.entry(*a).or_insert(Entry {
                since: now,
                wait: PATIENCE,
            });
            if now.since(entry.since) >= entry.wait {
                entry.since = now;
                entry.wait = (entry.wait * 2).min(WAIT_MAX);
                again.push(*a);
            }
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn a(k: u8) -> IpAddr {
        IpAddr::from([10, 77, k, 2])
    }

    fn paths(on: &[u8]) -> Paths {
        Paths {
            v4: true,
            on: on.iter().map(|k| a(*k)).collect(),
        }
    }

    fn seconds(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000_000)
    }

    #[test]
    fn what_one_has_is_not_taken_from_it() {
        let mut m = Missing::default();
        let endpoints = BTreeSet::from([a(1), a(2)]);
        let one = BTreeMap::from([(1, paths(&[1])), (2, paths(&[1, 2]))]);
        for t in 0..20 {
            assert!(m.check(&endpoints, &one, seconds(t)).is_empty());
        }
    }

    #[test]
    fn a_missing_one_is_opened_again_ever_more_seldom() {
        let mut m = Missing::default();
        let endpoints = BTreeSet::from([a(1), a(2), "fd77::2".parse().unwrap()]);
        let lacks = BTreeMap::from([(1, paths(&[1]))]);
        let tries: Vec<u64> = (0..400)
            .filter(|t| m.check(&endpoints, &lacks, seconds(*t)) == [a(2)])
            .collect();
        assert_eq!(tries, [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]);
        // It helped: patience is as at first.
        let has = BTreeMap::from([(1, paths(&[1, 2]))]);
        assert!(m.check(&endpoints, &has, seconds(401)).is_empty());
        assert!(m.check(&endpoints, &lacks, seconds(402)).is_empty());
        assert_eq!(m.check(&endpoints, &lacks, seconds(403)), [a(2)]);
    }

    proptest! {
        #[test]
        fn attempts_are_bounded(
            steps in prop::collection::vec((prop::collection::vec(0u8..4, 0..3), 0u64..5), 0..200),
        ) {
            let mut m = Missing::default();
            let endpoints: BTreeSet<_> = (0..4).map(a).collect();
            let mut t = 0;
            let mut last = BTreeMap::new();
            for (on, dt) in steps {
                t += dt;
                let c = BTreeMap::from([(1, paths(&on))]);
                for again in m.check(&endpoints, &c, seconds(t)) {
                    prop_assert!(!c[&1].on.contains(&again));
                    if let Some(before) = last.insert(again, t) {
                        prop_assert!(t > before);
                    }
                }
            }
        }
    }
}
