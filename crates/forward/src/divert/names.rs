//! Addresses of the domains that rules name, as answers of resolvers have given them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use braid_core::domain::{Answer, Domain};

use super::steering::Numbered;
use crate::nft::Set;

/// Addresses of a domain at most; those that would end first make room.
const MAX_ADDRESSES: usize = 4096;
/// Time for which an address is known at least: programs keep answers for longer than they may.
const MIN_TIME: Duration = Duration::from_secs(60);
/// Time for which an address is known at most.
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// Addresses by the domains that rules name, and when each ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names(BTreeMap<Domain, BTreeMap<IpAddr, Instant>>);

/// Addresses that come to sets or leave them, by the names of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) added: BTreeMap<String, Vec<IpAddr>>,
    pub(super) deleted: BTreeMap<String, Vec<IpAddr>>,
}

/// Returns the name of the set of a domain, by its place among all.
fn name(place: usize, v4: bool) -> String {
    let family = if v4 { "v4" } else { "v6" };
    format!("domain-{place}-{family}")
}

impl Names {
    /// Makes those of other rules: what is known of a domain that they name, too, stays known.
    pub(super) fn of(&self, rules: &[Numbered]) -> Self {
        let named = rules.iter().flat_map(|r| &r.steered.rule.descriptor.domain);
        let named = named.map(|d| (d.clone(), self.0.get(d).cloned().unwrap_or_default()));
        Self(named.collect())
    }

    /// Lists the names of the sets of a domain, of IPv4 and of IPv6. Where no rule names it, they are of
    /// no set: the kernel refuses a rule that asks these, which would else be for everything.
    pub(super) fn sets_of(&self, domain: &Domain) -> [(String, bool); 2] {
        let place = self.0.keys().position(|d| d == domain);
        let place = place.unwrap_or(self.0.len());
        [true, false].map(|v4| (name(place, v4), v4))
    }

    /// Makes the sets.
    pub(super) fn sets(&self) -> Vec<Set> {
        let all = self.0.values().enumerate();
        let all = all.flat_map(|(place, known)| {
            let addresses: BTreeSet<IpAddr> = known.keys().copied().collect();
            [true, false].map(|v4| Set {
                name: name(place, v4),
                v4,
                addresses: addresses.clone(),
            })
        });
        all.collect()
    }

    /// Whether a rule names the domain of a name.
    pub(super) fn asks_for(&self, name: &str) -> bool {
        self.0.keys().any(|domain| domain.includes(name))
    }

    /// Learns the addresses of an answer.
    pub(super) fn learn(&mut self, answer: &Answer, now: Instant) -> Changes {
        let mut changes = Changes::default();
        let own = self.0.iter_mut().enumerate();
        for (place, (_, known)) in own.filter(|(_, (d, _))| d.includes(&answer.name)) {
            for (ip, valid) in &answer.addresses {
                let end = now + (*valid).clamp(MIN_TIME, MAX_TIME);
                if let Some(before) = known.get_mut(ip) {
                    *before = end.max(*before);
                    continue;
                }
                if known.len() >= MAX_ADDRESSES
                    && let Some((first, _)) = known.iter().min_by_key(|(_, end)| **end)
                {
                    let first = *first;
                    known.remove(&first);
                    changes.delete(place, first);
                }
                known.insert(*ip, end);
                changes.add(place, *ip);
            }
        }
        changes
    }

    /// Forgets those that have ended.
    pub(super) fn forget_ended(&mut self, now: Instant) -> Changes {
        let mut changes = Changes::default();
        for (place, known) in self.0.values_mut().enumerate() {
            known.retain(|ip, end| {
                let stays = *end > now;
                if !stays {
                    changes.delete(place, *ip);
                }
                stays
            });
        }
        changes
    }
}

impl Changes {
    fn add(&mut self, place: usize, ip: IpAddr) {
        let set = name(place, ip.is_ipv4());
        self.added.entry(set).or_default().push(ip);
    }

    /// An address that came with the same answer does not come at all.
    fn delete(&mut self, place: usize, ip: IpAddr) {
        let set = name(place, ip.is_ipv4());
        if let Some(added) = self.added.get_mut(&set)
            && let Some(at) = added.iter().position(|a| *a == ip)
        {
            added.remove(at);
            return;
        }
        self.deleted.entry(set).or_default().push(ip);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::steering::Steered;
    use super::*;

    fn rule(number: u8, domains: &str) -> Numbered {
        let rule = format!("{{\"domain\": {domains}, \"block\": true}}");
        Numbered {
            number,
            steered: Steered {
                rule: serde_json::from_str(&rule).unwrap(),
                class: 0,
                way: None,
            },
        }
    }

    fn answer(name: &str, addresses: &[(&str, u64)]) -> Answer {
        let address = |(ip, ttl): &(&str, u64)| (ip.parse().unwrap(), Duration::from_secs(*ttl));
        Answer {
            name: name.to_owned(),
            addresses: addresses.iter().map(address).collect(),
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn addresses_are_those_of_the_domains_that_rules_name() {
        let now = Instant::now();
        let rules = [rule(1, r#"["*.b.org", "a.org"]"#), rule(2, r#""a.org""#)];
        let mut names = Names::default().of(&rules);
        assert!(names.asks_for("a.org") && names.asks_for("x.b.org"));
        assert!(!names.asks_for("b.org") && !names.asks_for("x.a.org"));
        let of = |names: &Names, domain: &str| {
            let [(v4, _), (v6, _)] = names.sets_of(&domain.parse().unwrap());
            let sets = names.sets();
            let find = |name: &str| sets.iter().find(|s| s.name == name).cloned();
            let (v4, v6) = (find(&v4)?, find(&v6)?);
            assert!(v4.v4 && !v6.v4 && v4.addresses == v6.addresses);
            Some(v4.addresses.len())
        };
        assert_eq!((of(&names, "a.org"), of(&names, "c.org")), (Some(0), None));
        let none = Changes::default();
        let changes = names.learn(
            &answer("a.org", &[("192.0.2.1", 300), ("2001:db8::1", 0)]),
            now,
        );
        let added: Vec<_> = changes.added.values().flatten().collect();
        assert!(added.len() == 2 && changes.added.len() == 2 && changes.deleted.is_empty());
        assert!(names.learn(&answer("a.org", &[("192.0.2.1", 9)]), now) == none);
        assert!(names.learn(&answer("c.org", &[("192.0.2.1", 9)]), now) == none);
        assert_eq!(
            (of(&names, "a.org"), of(&names, "*.b.org")),
            (Some(2), Some(0))
        );
        // Rules change; another domain has the place.
        names = names.of(&[rule(3, r#"["a.org", "c.org"]"#)]);
        assert_eq!(
            (of(&names, "a.org"), of(&names, "*.b.org")),
            (Some(2), None)
        );
        // The one is known for a minute, the other as long as it said first.
        assert!(names.forget_ended(now + 59 * SECOND) == none);
        let ended = names.forget_ended(now + 61 * SECOND);
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(ended.deleted.values().flatten().collect::<Vec<_>>(), [&v6]);
        assert_eq!(of(&names, "a.org"), Some(1));
        names.forget_ended(now + 301 * SECOND);
        assert_eq!(of(&names, "a.org"), Some(0));
    }

    #[test]
    fn there_are_so_many_addresses_of_a_domain_and_no_more() {
        let now = Instant::now();
        let mut names = Names::default().of(&[rule(1, r#""a.org""#)]);
        let mut there = BTreeSet::new();
        for n in 0..MAX_ADDRESSES as u32 + 100 {
            let ip = Ipv4Addr::from_bits((10 << 24) + n).to_string();
            let changes = names.learn(&answer("a.org", &[(&ip, 100 + u64::from(n))]), now);
            there.extend(changes.added.into_values().flatten());
            for ip in changes.deleted.into_values().flatten() {
                assert!(there.remove(&ip), "{ip} was not there");
            }
        }
        assert_eq!(there.len(), MAX_ADDRESSES);
        assert_eq!(names.sets()[0].addresses, there);
        // Those that would have ended first have gone.
        assert!(there.first().unwrap() > &"10.0.0.99".parse::<IpAddr>().unwrap());
    }
}
