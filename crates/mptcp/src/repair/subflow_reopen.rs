//! Finds subflows that ended, or [stalled](super::stalls), while their connection and their
//! access live: the kernel opens a subflow once per connection and endpoint.
//!
//! Deleting and adding the endpoint opens it again, but ends the subflows that
//! others have on it. So it is done where nobody has one that makes progress, and ever more
//! seldom where it does not help. For the sake of one that stalled it is done also where others
//! have one, if each of these moves less than the connection that stalled and has another
//! subflow: two round trips later they have joined again. That is seldom done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_core::Time;

/// How long a subflow is missed before anything is done: a join takes a while.
const PATIENCE: Duration = Duration::from_secs(1);
/// Patience with a subflow that was there: it only may be that its connection ends.
const LOST: Duration = Duration::from_millis(100);
/// So many attempts without success are told of: some seven seconds.
const IN_VAIN: u32 = 3;
/// One that lasts for less than this was no success.
const STEADY: Duration = Duration::from_secs(5);
/// The longest wait between two attempts.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The wait between two attempts that end subflows which make progress.
const WAIT_SHARED: Duration = Duration::from_secs(30);
/// A connection that moves less, bytes per second, is idle.
const IDLE: u64 = 20_000;

/// The local addresses of the subflows of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Family of the connection: IPv4, else IPv6; subflows of the other family cannot join.
    pub v4: bool,
    /// Where it has subflows that make progress.
    pub on: BTreeSet<IpAddr>,
    /// Where it has such as stalled.
    pub stalled: BTreeSet<IpAddr>,
    /// Bytes that were acknowledged or received on its subflows so far.
    pub moved: u64,
}

/// Rate at which a connection moves data.
#[derive(Clone, Copy, Debug)]
struct Rate {
    moved: u64,
    at: Time,
    /// Bytes per second.
    rate: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    since: Time,
    wait: Duration,
    /// Attempts so far.
    tries: u32,
    /// Time since which the subflow is there again.
    back: Option<Time>,
}

/// Addresses on which subflows are missing, and for how long.
#[derive(Clone, Debug, Default)]
pub struct SubflowReopen {
    entries: BTreeMap<IpAddr, Entry>,
    /// The connections as they were last.
    before: BTreeMap<u32, Paths>,
    rates: BTreeMap<u32, Rate>,
    /// When subflows that make progress were ended last, by address.
    shared: BTreeMap<IpAddr, Time>,
}

impl SubflowReopen {
    /// The addresses whose endpoints are to be deleted and added again, of those
    /// with `endpoints`, as the connections are `now`. Nothing is done about those that are
    /// `held`.
    pub fn check(
        &mut self,
        endpoints: &BTreeSet<IpAddr>,
        held: &BTreeSet<IpAddr>,
        connections: &BTreeMap<u32, Paths>,
        now: Time,
    ) -> Vec<IpAddr> {
        self.entries.retain(|a, _| endpoints.contains(a));
        self.shared.retain(|_, t| now.since(*t) < WAIT_SHARED);
        self.measure(connections, now);
        let mut again = Vec::new();
        for a in endpoints {
            let mut concerned = connections.iter().filter(|(_, p)| p.v4 == a.is_ipv4());
            let has = concerned.clone().any(|(_, p)| p.on.contains(a));
            let has = has && !self.may_share(*a, concerned.clone());
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
            if now.since(entry.since) >= entry.wait && !held.contains(a) {
                if connections.values().any(|p| p.on.contains(a)) {
                    self.shared.insert(*a, now);
                }
                entry.since = now;
                entry.tries = entry.tries.saturating_add(1);
                entry.wait = (entry.wait * 2).clamp(PATIENCE, WAIT_MAX);
                again.push(*a);
            }
        }
        self.before.clone_from(connections);
        again
    }

    /// Takes what the connections have moved.
    fn measure(&mut self, connections: &BTreeMap<u32, Paths>, now: Time) {
        self.rates
            .retain(|token, _| connections.contains_key(token));
        for (token, p) in connections {
            let new = Rate {
                moved: p.moved,
                at: now,
                rate: 0,
            };
            let r = self.rates.entry(*token).or_insert(new);
            let ms = u64::try_from(now.since(r.at).as_millis()).unwrap_or(u64::MAX);
            if ms >= 200 {
                // What a subflow that ended had moved is not in the sum any more.
                let moved = p.moved.saturating_sub(r.moved);
                let now_rate = moved.saturating_mul(1000) / ms;
                *r = Rate {
                    moved: p.moved,
                    at: now,
                    rate: r.rate / 2 + now_rate / 2,
                };
            }
        }
    }

    /// Whether subflows on an address that make progress may be ended for one that stalled.
    fn may_share<'a>(
        &self,
        address: IpAddr,
        concerned: impl Iterator<Item = (&'a u32, &'a Paths)> + Clone,
    ) -> bool {
        let rate = |token: &u32| self.rates.get(token).map_or(0, |r| r.rate);
        // One that has no other subflow may have a peer that is gone.
        let needs = |p: &Paths| p.stalled.contains(&address) && !p.on.is_empty();
        let stalled = concerned.clone().filter(|(_, p)| needs(p));
        let Some(need) = stalled.map(|(token, _)| rate(token)).max() else {
            return false;
        };
        let mut others = concerned.filter(|(_, p)| p.on.contains(&address));
        !self.shared.contains_key(&address)
            && others.all(|(t, p)| p.on.len() > 1 && (rate(t) < IDLE || rate(t) <= need))
    }

    /// Forgets attempts in vain on an address: the reason was found, and is done away with.
    pub fn explained(&mut self, address: IpAddr) {
        if let Some(e) = self.entries.get_mut(&address) {
            (e.wait, e.tries) = (LOST, 0);
        }
    }

    /// Nothing is missed, nor was lately.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How often a subflow on an address was opened again in vain, if it was often enough
    /// to be no coincidence.
    pub fn gave_up(&self, address: IpAddr) -> Option<u32> {
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
            ..Paths::default()
        }
    }

    fn check(
        m: &mut SubflowReopen,
        endpoints: &BTreeSet<IpAddr>,
        connections: &BTreeMap<u32, Paths>,
        now: Time,
    ) -> Vec<IpAddr> {
        m.check(endpoints, &BTreeSet::new(), connections, now)
    }

    fn seconds(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000_000)
    }

    #[test]
    fn what_one_has_is_not_taken_from_it() {
        let mut m = SubflowReopen::default();
        let endpoints = BTreeSet::from([a(1), a(2)]);
        let one = BTreeMap::from([(1, paths(&[1])), (2, paths(&[1, 2]))]);
        for t in 0..20 {
            assert!(check(&mut m, &endpoints, &one, seconds(t)).is_empty());
        }
    }

    #[test]
    fn a_missing_one_is_opened_again_ever_more_seldom() {
        let mut m = SubflowReopen::default();
        let endpoints = BTreeSet::from([a(1), a(2), "fd77::2".parse().unwrap()]);
        let lacks = BTreeMap::from([(1, paths(&[1]))]);
        let tries: Vec<u64> = (0..400)
            .filter(|t| check(&mut m, &endpoints, &lacks, seconds(*t)) == [a(2)])
            .collect();
        assert_eq!(tries, [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]);
        assert_eq!((m.gave_up(a(2)), m.gave_up(a(1))), (Some(11), None));
        // It helped for long enough: patience is as at first.
        let has = BTreeMap::from([(1, paths(&[1, 2]))]);
        for t in [401, 406] {
            assert!(check(&mut m, &endpoints, &has, seconds(t)).is_empty());
        }
        let other = BTreeMap::from([(2, paths(&[1]))]);
        assert!(check(&mut m, &endpoints, &other, seconds(407)).is_empty());
        assert_eq!(check(&mut m, &endpoints, &other, seconds(408)), [a(2)]);
    }

    #[test]
    fn attempts_before_the_reason_was_found_count_for_nothing() {
        let mut m = SubflowReopen::default();
        let endpoints = BTreeSet::from([a(1), a(2)]);
        let lacks = BTreeMap::from([(1, paths(&[1]))]);
        let tries: Vec<u64> = (0..60)
            .filter(|t| {
                if *t == 20 {
                    m.explained(a(2));
                }
                check(&mut m, &endpoints, &lacks, seconds(*t)) == [a(2)]
            })
            .collect();
        assert_eq!(tries, [1, 3, 7, 15, 20, 21, 23, 27, 35, 51]);
    }

    #[test]
    fn one_that_was_there_is_opened_again_at_once_but_not_over_and_over() {
        let mut m = SubflowReopen::default();
        let endpoints = BTreeSet::from([a(1), a(2)]);
        let has = BTreeMap::from([(1, paths(&[1, 2]))]);
        let lacks = BTreeMap::from([(1, paths(&[1]))]);
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert!(check(&mut m, &endpoints, &has, at(0)).is_empty());
        assert!(check(&mut m, &endpoints, &lacks, at(250)).is_empty());
        assert_eq!(check(&mut m, &endpoints, &lacks, at(500)), [a(2)]);
        // It joins each time, and is reset soon after.
        let tries = (3..240).filter(|n| {
            let now = if n % 2 == 0 { &lacks } else { &has };
            !check(&mut m, &endpoints, now, at(250 * n)).is_empty()
        });
        assert_eq!(tries.count(), 0, "less than the wait each time");
        let mut joined = false;
        let tries: Vec<u64> = (240..480)
            .filter(|n| {
                let now = if joined { &has } else { &lacks };
                joined = !check(&mut m, &endpoints, now, at(250 * n)).is_empty();
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
            let mut m = SubflowReopen::default();
            let endpoints: BTreeSet<_> = (0..4).map(a).collect();
            let mut t = 0;
            let mut last = BTreeMap::new();
            for (on, dt) in steps {
                t += dt;
                let c = BTreeMap::from([(1, paths(&on))]);
                for again in check(&mut m, &endpoints, &c, seconds(t)) {
                    prop_assert!(!c[&1].on.contains(&again));
                    if let Some(before) = last.insert(again, t) {
                        prop_assert!(t > before);
                    }
                }
            }
        }
    }

    /// A connection that stalled on an address, and moves so many bytes per look elsewhere.
    fn stalled(on: &[u8], stalled: u8, moved: u64) -> Paths {
        Paths {
            stalled: BTreeSet::from([a(stalled)]),
            moved,
            ..paths(on)
        }
    }

    /// When the endpoint of access 2 is opened again; `looks` has the connections at each look.
    fn tries(looks: impl Fn(u64) -> BTreeMap<u32, Paths>, until_ms: u64) -> Vec<u64> {
        let mut m = SubflowReopen::default();
        let endpoints = BTreeSet::from([a(1), a(2)]);
        let times = (0..until_ms).step_by(250);
        let tried = times.filter(|t| {
            let now = Time::from_nanos((10_000 + t) * 1_000_000);
            check(&mut m, &endpoints, &looks(*t), now).contains(&a(2))
        });
        tried.collect()
    }

    #[test]
    fn one_that_stalled_is_opened_again_where_it_is_alone() {
        let has = |t| t < 1000;
        let looks = |t| {
            let p = if has(t) {
                paths(&[1, 2])
            } else {
                stalled(&[1], 2, 0)
            };
            BTreeMap::from([(1, p)])
        };
        let all = tries(looks, 60_000);
        assert_eq!(all[..2], [1250, 2250]);
        // Though it has no other.
        let looks = |t| {
            let p = if has(t) {
                paths(&[2])
            } else {
                stalled(&[], 2, 0)
            };
            BTreeMap::from([(1, p)])
        };
        assert_eq!(tries(looks, 2_000), [1250]);
    }

    #[test]
    fn others_join_again_for_one_that_moves_more_and_seldom() {
        let both = |mine: u64, others: u64, has: &[u8]| {
            let has = has.to_vec();
            move |t: u64| {
                let other = Paths {
                    moved: others * t,
                    ..paths(&has)
                };
                BTreeMap::from([(1, stalled(&[1], 2, mine * t)), (2, other)])
            }
        };
        let shared = tries(both(1000, 500, &[1, 2]), 40_000);
        assert!(shared.len() <= 2 && shared[0] <= 2_000, "{shared:?}");
        assert!(
            shared.windows(2).all(|w| w[1] - w[0] >= 30_000),
            "{shared:?}"
        );
        // Idle ones lose nothing.
        assert!(!tries(both(0, 0, &[1, 2]), 4_000).is_empty());
        assert!(tries(both(500, 1000, &[1, 2]), 40_000).is_empty());
        // Its peer may be gone.
        let gone = |_| BTreeMap::from([(1, stalled(&[], 2, 0)), (2, paths(&[1, 2]))]);
        assert!(tries(gone, 40_000).is_empty());
        // It would end the only subflow.
        assert!(tries(both(1000, 0, &[2]), 40_000).is_empty());
    }

    #[test]
    fn nothing_is_done_about_an_address_that_is_held() {
        let mut m = SubflowReopen::default();
        let endpoints = BTreeSet::from([a(1), a(2)]);
        let looks = BTreeMap::from([(1, stalled(&[1], 2, 0))]);
        for t in 0..9 {
            assert!(
                m.check(&endpoints, &endpoints, &looks, seconds(t))
                    .is_empty()
            );
        }
        assert_eq!(check(&mut m, &endpoints, &looks, seconds(9)), [a(2)]);
    }
}
