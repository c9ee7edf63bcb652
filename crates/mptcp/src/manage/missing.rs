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
/// The same for one that was there: it only may be that its connection ends.
const LOST: Duration = Duration::from_millis(100);
/// So many attempts without success are told of: some seven seconds.
const IN_VAIN: u32 = 3;
/// One that lasts for less than this was no success.
const STEADY: Duration = Duration::from_secs(5);
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
    /// Attempts so far.
    tries: u32,
    /// It is there again, since then.
    back: Option<Time>,
}

/// What is missed, and for how long.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    entries: BTreeMap<IpAddr, Entry>,
    /// The connections as they were last.
    before: BTreeMap<u32, Paths>,
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
            let mut concerned = connections.iter().filter(|(_, p)| p.v4 == a.is_ipv4());
            let has = concerned.clone().any(|(_, p)| p.on.contains(a));
            let lacks = concerned.clone().any(|(_, p)| !p.on.contains(a));
            if has || !lacks {
                if let Some(e) = self.entries.get_mut(a) {
                    let back = *e.back.get_or_insert(now);
                    if !has || now.since(back) >= STEADY {
                        self.entries.remove(a);
                    }
                }
                continue;
            }
            let had = |token| self.before.get(token).is_some_and(|p| p.on.contains(a));
            let wait = match concerned.any(|(token, _)| had(token)) {
                true => LOST,
                false => PATIENCE,
            };
            let new = Entry {
                since: now,
                wait,
                tries: 0,
                back: None,
            };
            let entry = self.entries.entry(*a).or_insert(new);
            if entry.back.take().is_some() {
                entry.since = now;
            }
            if now.since(entry.since) >= entry.wait {
                entry.since = now;
                entry.tries = entry.tries.saturating_add(1);
                entry.wait = (entry.wait * 2).clamp(PATIENCE, WAIT_MAX);
                again.push(*a);
            }
        }
        self.before.clone_from(connections);
        again
    }

    /// Nothing is missed, nor was lately.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How often a subflow on an address was opened again in vain, if it was often enough
    /// to be no coincidence.
    pub fn in_vain(&self, address: IpAddr) -> Option<u32> {
        let missed = self.entries.get(&address).filter(|e| e.back.is_none());
        missed.map(|e| e.tries).filter(|n| *n >= IN_VAIN)
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
        assert_eq!((m.in_vain(a(2)), m.in_vain(a(1))), (Some(11), None));
        // It helped for long enough: patience is as at first.
        let has = BTreeMap::from([(1, paths(&[1, 2]))]);
        for t in [401, 406] {
            assert!(m.check(&endpoints, &has, seconds(t)).is_empty());
        }
        let other = BTreeMap::from([(2, paths(&[1]))]);
        assert!(m.check(&endpoints, &other, seconds(407)).is_empty());
        assert_eq!(m.check(&endpoints, &other, seconds(408)), [a(2)]);
    }

    #[test]
    fn one_that_was_there_is_opened_again_at_once_but_not_over_and_over() {
        let mut m = Missing::default();
        let endpoints = BTreeSet::from([a(1), a(2)]);
        let has = BTreeMap::from([(1, paths(&[1, 2]))]);
        let lacks = BTreeMap::from([(1, paths(&[1]))]);
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert!(m.check(&endpoints, &has, at(0)).is_empty());
        assert!(m.check(&endpoints, &lacks, at(250)).is_empty());
        assert_eq!(m.check(&endpoints, &lacks, at(500)), [a(2)]);
        // It joins each time, and is reset soon after.
        let tries = (3..240).filter(|n| {
            let now = if n % 2 == 0 { &lacks } else { &has };
            !m.check(&endpoints, now, at(250 * n)).is_empty()
        });
        assert_eq!(tries.count(), 0, "less than the wait each time");
        let mut joined = false;
        let tries: Vec<u64> = (240..480)
            .filter(|n| {
                let now = if joined { &has } else { &lacks };
                joined = !m.check(&endpoints, now, at(250 * n)).is_empty();
                joined
            })
            .collect();
        let gaps: Vec<u64> = tries.windows(2).map(|w| (w[1] - w[0]) / 4).collect();
        assert!(gaps.is_sorted() && gaps.len() < 7, "{gaps:?}");
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
