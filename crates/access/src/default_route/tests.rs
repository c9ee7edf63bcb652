use braid_core::Time;
use proptest::prelude::*;

use super::*;
use crate::plan::{Plan, plan};
use crate::routing::{Packet, Way, walk};
use crate::settings::testing::{access, settings};
use crate::view::{Address, Interface, Rest, RouteKind};

/// A tunnel, which is no access, and a network behind a router of the first access.
const TUNNEL: u32 = 90;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn host(v4: bool, k: u32, n: u32) -> IpAddr {
    ip(&match v4 {
        true => format!("10.77.{k}.{n}"),
        false => format!("2001:db8:{k}::{n}"),
    })
}

fn proxy(v4: bool) -> IpAddr {
    ip(if v4 { "192.0.2.1" } else { "2001:db8:ffff::1" })
}

fn internet(v4: bool) -> IpAddr {
    ip(if v4 {
        "203.0.113.9"
    } else {
        "2001:db8:eeee::9"
    })
}

fn nowhere(v4: bool) -> IpAddr {
    everywhere(v4).addr()
}

/// State of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Working,
    /// In IPv4, in IPv6.
    Silent(bool, bool),
    Off,
    Backup,
    WithoutCarrier,
    Stripped,
}

use Is::*;

#[derive(Clone, Debug)]
struct Machine {
    accesses: Vec<Is>,
    priorities: Vec<Option<u16>>,
    /// Metrics of the default routes of IPv4 and IPv6; 0: it has none.
    metrics: Vec<(u32, u32)>,
    /// Metric of a default route by the tunnel.
    tunnel: Option<u32>,
}

fn machine() -> impl Strategy<Value = Machine> {
    let is = prop_oneof![
        3 => Just(Working),
        2 => any::<(bool, bool)>().prop_map(|(four, six)| Silent(four, six)),
        1 => Just(Off),
        1 => Just(Backup),
        1 => Just(WithoutCarrier),
        1 => Just(Stripped),
    ];
    let priorities = prop_oneof![
        Just(vec![None; 4]),
        prop::collection::vec(prop::option::of(0u16..3), 4),
    ];
    (
        prop::collection::vec(is, 1..5),
        priorities,
        prop::collection::vec((0u32..4, 0u32..4), 4),
        prop::option::weighted(0.2, 1u32..4),
    )
        .prop_map(|(accesses, priorities, metrics, tunnel)| Machine {
            accesses,
            priorities,
            metrics,
            tunnel,
        })
}

impl Machine {
    fn metric(&self, k: u32, v4: bool) -> u32 {
        let (four, six) = self.metrics[k as usize - 1];
        if v4 { four } else { six }
    }

    fn is(&self, k: u32) -> Is {
        self.accesses[k as usize - 1]
    }

    fn works(&self, k: u32, v4: bool) -> bool {
        match self.is(k) {
            Working | Backup | Stripped => true,
            Silent(four, six) => !(if v4 { four } else { six }),
            Off | WithoutCarrier => false,
        }
    }

    fn place(&self, k: u32) -> (bool, u32) {
        let priority = self.priorities[k as usize - 1];
        match self.is(k) {
            Backup => (true, 0),
            _ => (false, priority.map_or(u32::MAX, u32::from)),
        }
    }

    /// The accesses that may be used for what is not bonded, as an operator would say.
    fn active(&self, v4: bool) -> Vec<u32> {
        let all = 1..=self.accesses.len() as u32;
        let able = |k: &u32| self.works(*k, v4) && self.metric(*k, v4) > 0;
        let least = all.clone().filter(able).map(|k| self.place(k)).min();
        all.filter(able)
            .filter(|k| Some(self.place(*k)) == least)
            .collect()
    }

    /// The interfaces of the best default routes of the main table.
    fn holders(&self, v4: bool) -> Vec<u32> {
        let all = (1..=self.accesses.len() as u32).map(|k| (self.metric(k, v4), k));
        let all = all.filter(|(m, _)| *m > 0);
        let all: Vec<_> = all.chain(self.tunnel.map(|m| (m, TUNNEL))).collect();
        let best = all.iter().map(|(m, _)| *m).min();
        let best = all.iter().filter(|(m, _)| Some(*m) == best);
        best.map(|(_, k)| *k).collect()
    }

    fn build(&self) -> (Settings, View, BTreeMap<IpAddr, Condition>) {
        let main = |v4| Rule::new(MAIN_PRIORITY, everywhere(v4), MAIN_TABLE);
        let mut view = View {
            rules: vec![main(true), main(false)],
            ..View::default()
        };
        let mut s = settings(vec![]);
        let mut conditions = BTreeMap::new();
        s.proxy = vec![proxy(true), proxy(false)];
        s.steers_unbonded = true;
        for (k, is) in (1..).zip(&self.accesses) {
            let mut a = access(&format!("a{k}"), &format!("d{k}"));
            a.enabled = *is != Off;
            a.backup = *is == Backup;
            a.priority = self.priorities[k as usize - 1];
            s.accesses.push(a);
            view.interfaces.push(Interface {
                index: k,
                name: format!("d{k}"),
                up: true,
                carrier: *is != WithoutCarrier,
                ..Interface::default()
            });
            for v4 in [true, false] {
                let address = host(v4, k, 2);
                let prefix_len = if v4 { 24 } else { 64 };
                view.addresses.push(Address {
                    ifindex: k,
                    address,
                    prefix_len,
                    global: true,
                    unusable: false,
                    deprecated: false,
                    temporary: false,
                });
                let own = IpNet::new_assert(address, prefix_len).trunc();
                view.routes.push(Route::new(MAIN_TABLE, own, k));
                if self.metric(k, v4) > 0 {
                    view.routes.push(Route {
                        gateway: Some(host(v4, k, 1)),
                        metric: self.metric(k, v4),
                        ..Route::new(MAIN_TABLE, everywhere(v4), k)
                    });
                }
                let since = Time::from_nanos(9);
                match is {
                    Silent(..) if !self.works(k, v4) => {
                        conditions.insert(address, Condition::Silent { since });
                    }
                    Stripped => {
                        conditions.insert(address, Condition::Stripped);
                    }
                    _ => {}
                }
            }
        }
        view.interfaces.push(Interface {
            index: TUNNEL,
            name: "tun0".into(),
            up: true,
            carrier: true,
            kind: "tun".into(),
            ..Interface::default()
        });
        for v4 in [true, false] {
            // A network behind a router, and half of all addresses (OpenVPN).
            let more = match v4 {
                true => [("10.99.0.0/16", 1), ("0.0.0.0/1", TUNNEL)],
                false => [("fd99::/48", 1), ("8000::/1", TUNNEL)],
            };
            let more = more.map(|(to, k)| Route::new(MAIN_TABLE, net(to), k));
            view.routes.extend(more);
            view.routes.extend(self.tunnel.map(|metric| Route {
                metric,
                ..Route::new(MAIN_TABLE, everywhere(v4), TUNNEL)
            }));
        }
        (s, view, conditions)
    }
}

fn planned(s: &Settings, view: &View, conditions: &BTreeMap<IpAddr, Condition>) -> Plan {
    let mut memory = Memory::default();
    memory.learn(view, &s.proxy);
    plan(s, view, &memory, conditions)
}

/// As the kernel has it when the plan is done: rules of one priority in the order in which they
/// came.
fn done(view: &View, p: &Plan) -> (Vec<Rule>, Vec<Route>) {
    let mut rules = view.rules.clone();
    rules.extend(&p.rules);
    rules.sort_by_key(|r| r.priority);
    let routes = view.routes.iter().chain(&p.routes).copied();
    (rules, routes.collect())
}

/// Interfaces by which a packet leaves.
fn way((rules, routes): &(Vec<Rule>, Vec<Route>), source: IpAddr, to: IpAddr) -> Vec<u32> {
    let (rules, routes): (Vec<_>, Vec<_>) = (rules.iter().collect(), routes.iter().collect());
    let bound = None;
    match walk(&rules, &routes, Packet { source, to, bound }) {
        Way::Out(by, _) => by.iter().map(|r| r.ifindex).collect(),
        Way::Refused(_) | Way::Nowhere => vec![],
    }
}

/// Our rules and routes for what is not bonded, of one family.
fn ours(p: &Plan, v4: bool) -> (Vec<Rule>, Vec<Route>) {
    let rules = p.rules.iter().filter(|r| r.is_for_unbonded());
    let routes = p.routes.iter().filter(|r| r.is_for_unbonded());
    let rules = rules.filter(|r| r.source.addr().is_ipv4() == v4).copied();
    let routes = routes.filter(|r| r.is_v4() == v4).copied();
    (rules.collect(), routes.collect())
}

proptest! {
    #[test]
    fn what_is_not_bonded_leaves_by_an_access_that_works_and_is_active(m in machine()) {
        let (s, view, conditions) = m.build();
        let p = planned(&s, &view, &conditions);
        let after = done(&view, &p);
        for v4 in [true, false] {
            let (active, holders) = (m.active(v4), m.holders(v4));
            let (rules, routes) = ours(&p, v4);
            let right =
                holders.contains(&TUNNEL) || holders.iter().all(|k| active.contains(k));
            let to_internet = way(&after, nowhere(v4), internet(v4));
            if right || active.is_empty() {
                prop_assert_eq!((rules, routes), (vec![], vec![]));
                let mut to = to_internet;
                to.sort_unstable();
                prop_assert_eq!(to, holders);
                continue;
            }
            prop_assert!(!p.steered.is_empty());
            for to in [internet(v4), proxy(v4)] {
                let by = way(&after, nowhere(v4), to);
                prop_assert!(by.len() == 1 && active.contains(&by[0]), "{:?} of {:?}", by, active);
            }
            prop_assert!(rules.iter().all(|r| r.priority == DEFAULT_PRIORITY));
            for r in routes {
                prop_assert!(m.works(r.ifindex, v4), "{:?}", r);
                // It has rules of its own, or somebody else's.
                let source = r.source.unwrap();
                prop_assert_eq!(way(&after, source, internet(v4)), vec![r.ifindex]);
            }
        }
    }

    /// Neighbours, static routes, tunnels, whatever has a source, and what is forwarded.
    #[test]
    fn nothing_else_changes_its_way(m in machine(), first in any::<bool>()) {
        let (mut s, mut view, conditions) = m.build();
        // Rules of a tunnel for everything (wg-quick), at our own place or before it.
        let theirs = |v4| Rule {
            rest: Rest::Unmet,
            ..Rule::new(DEFAULT_PRIORITY - u32::from(first), everywhere(v4), 51820)
        };
        let aside = Rule {
            to: Some(net("198.51.100.0/24")),
            ..Rule::new(DEFAULT_PRIORITY, everywhere(true), 52)
        };
        view.rules.extend([theirs(true), theirs(false), aside]);
        view.routes.push(Route::new(52, everywhere(true), TUNNEL));
        view.rules.sort_by_key(|r| r.priority);
        let after = done(&view, &planned(&s, &view, &conditions));
        s.steers_unbonded = false;
        let before = done(&view, &planned(&s, &view, &conditions));
        for v4 in [true, false] {
            let more = match v4 {
                true => ["10.99.0.9", "198.51.100.7", "9.9.9.9"],
                false => ["fd99::9", "fd66::9", "8000::9"],
            };
            let far = [internet(v4), proxy(v4)];
            let neighbours = (1..=m.accesses.len() as u32).map(|k| host(v4, k, 20));
            let near: Vec<IpAddr> = neighbours.chain(more.map(ip)).collect();
            for to in &near {
                prop_assert_eq!(way(&before, nowhere(v4), *to), way(&after, nowhere(v4), *to));
            }
            let strange: &[&str] = match v4 {
                true => &["10.66.0.7", "192.168.100.10"],
                false => &["fd66::7", "2001:db8:6666::7"],
            };
            let mine = (1..=m.accesses.len() as u32).map(|k| host(v4, k, 2));
            for source in mine.chain(strange.iter().map(|t| ip(t))) {
                for to in near.iter().chain(&far) {
                    prop_assert_eq!(way(&before, source, *to), way(&after, source, *to));
                }
            }
        }
    }

    #[test]
    fn the_families_are_planned_apart(m in machine(), six in prop::collection::vec(any::<bool>(), 4)) {
        let (s, view, mut conditions) = m.build();
        let before = ours(&planned(&s, &view, &conditions), true);
        let since = Time::from_nanos(9);
        for (k, silent) in (1..=m.accesses.len() as u32).zip(six) {
            match silent {
                true => conditions.insert(host(false, k, 2), Condition::Silent { since }),
                false => conditions.remove(&host(false, k, 2)),
            };
        }
        prop_assert_eq!(ours(&planned(&s, &view, &conditions), true), before);
    }

    /// Whatever a daemon finds of one that was killed: it plans the same.
    #[test]
    fn what_is_set_changes_nothing_of_the_plan(m in machine()) {
        let (s, mut view, conditions) = m.build();
        let p = planned(&s, &view, &conditions);
        (view.rules, view.routes) = done(&view, &p);
        prop_assert_eq!(planned(&s, &view, &conditions), p);
    }
}

/// Three accesses with default routes of the metrics 1, 2 and 3; the first one is this.
fn first_is(is: Is) -> Machine {
    Machine {
        accesses: vec![is, Working, Working],
        priorities: vec![None; 3],
        metrics: vec![(1, 1), (2, 2), (3, 3)],
        tunnel: None,
    }
}

#[test]
fn the_note_names_both_accesses_and_the_cause() {
    let note = |is| {
        let (s, view, conditions) = first_is(is).build();
        planned(&s, &view, &conditions).steered
    };
    assert_eq!(note(Working), [""; 0]);
    for (is, why) in [
        (Silent(true, true), "is silent"),
        (Off, "is switched off"),
        (Backup, "is a backup"),
        (WithoutCarrier, "has no carrier"),
    ] {
        let said = format!(
            "new connections that are not bonded leave by a2: a1, which has the default route, \
             {why}"
        );
        assert_eq!(note(is), [said]);
    }
    let six = note(Silent(false, true));
    assert!(six.len() == 1 && six[0].starts_with("IPv6: "), "{six:?}");
}

#[test]
fn a_static_route_to_the_proxy_by_a_silent_access_is_passed_by() {
    let (s, mut view, conditions) = first_is(Silent(true, true)).build();
    view.routes.push(Route {
        gateway: Some(host(true, 1, 1)),
        ..Route::new(MAIN_TABLE, net("192.0.2.0/28"), 1)
    });
    let p = planned(&s, &view, &conditions);
    let after = done(&view, &p);
    assert_eq!(way(&after, nowhere(true), proxy(true)), [2]);
    assert_eq!(
        way(&after, nowhere(true), ip("192.0.2.2")),
        [1],
        "as it was"
    );
    assert_eq!(p.steered.len(), 2, "{:?}", p.steered);
    // By a tunnel it is meant.
    view.routes.last_mut().unwrap().ifindex = TUNNEL;
    let after = done(&view, &planned(&s, &view, &conditions));
    assert_eq!(way(&after, nowhere(true), proxy(true)), [TUNNEL]);
    assert_eq!(way(&after, nowhere(true), internet(true)), [2]);
}

#[test]
fn a_route_that_refuses_and_a_main_table_that_nobody_asks_are_left_alone() {
    let (s, mut view, conditions) = first_is(Silent(true, true)).build();
    let rules = view.rules.clone();
    view.rules.retain(|r| !r.source.addr().is_ipv4());
    assert_eq!(
        ours(&planned(&s, &view, &conditions), true),
        (vec![], vec![])
    );
    view.rules = rules;
    assert_ne!(
        ours(&planned(&s, &view, &conditions), true),
        (vec![], vec![])
    );
    view.routes.push(Route {
        kind: RouteKind::Refuse,
        ..Route::new(MAIN_TABLE, everywhere(true), 0)
    });
    assert_eq!(
        ours(&planned(&s, &view, &conditions), true),
        (vec![], vec![])
    );
}

#[test]
fn an_address_that_takes_the_place_of_a_silent_one_is_tried_first() {
    let (mut s, mut view, conditions) = first_is(Silent(true, true)).build();
    let mut second = view.addresses[0].clone();
    second.address = host(true, 1, 3);
    view.addresses.push(second);
    let mut memory = Memory::default();
    memory.learn(&view, &s.proxy);
    let by = |s: &Settings, memory: &Memory| {
        let p = plan(s, &view, memory, &conditions);
        way(&done(&view, &p), nowhere(true), internet(true))
    };
    assert_eq!(by(&s, &memory), [2], "nothing came back on it yet");
    s.accesses[1].enabled = false;
    assert_eq!(by(&s, &memory), [3]);
    s.accesses[2].enabled = false;
    assert_eq!(by(&s, &memory), [1], "there is no other");
}
