mod doubles;
mod model;
mod rejected;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use braid_access::plan::Use;
use braid_access::settings::{Condition, Mesh, Settings};
use braid_access::view::{DEFAULT_PRIORITY, PROTOCOL, RULE_PRIORITY};
use braid_api::AccessState;
use braid_core::Time;
use ipnet::IpNet;
use proptest::prelude::*;

use super::super::memory::Memory;
use super::super::plan::plan;
use super::super::testing::{access, settings};
use super::*;
use model::*;

fn converge(s: &Settings, view: &mut View, memory: &mut Memory, c: &Conditions) -> Plan {
    memory.known.learn(view, &s.proxy);
    let p = plan(s, view, memory, c);
    for op in diff(view, &p) {
        apply(view, &op);
        if let Op::AddEndpoint(e) = &op {
            memory.added.insert(e.address);
        }
    }
    let again = plan(s, view, memory, c);
    assert_eq!(diff(view, &again), [], "it does not settle");
    assert_eq!(again.accesses, p.accesses);
    p
}

type Conditions = BTreeMap<IpAddr, Condition>;

#[derive(Clone, Debug)]
struct World {
    interfaces: u8,
    down: Vec<bool>,
    lost_route: Vec<bool>,
    adopted: Vec<bool>,
    conditions: Vec<u8>,
    foreign: Vec<(u8, u32)>,
    ours: Vec<(u8, bool, u8)>,
    full: bool,
    backup: Vec<bool>,
    priority: Vec<Option<u16>>,
    max: usize,
    steers: bool,
}

fn world() -> impl Strategy<Value = World> {
    let bits = || prop::collection::vec(any::<bool>(), 6);
    (
        (1u8..=6, bits(), bits(), bits()),
        prop::collection::vec(0u8..6, 6),
        prop::collection::vec((1u8..9, 1u32..64), 0..5),
        prop::collection::vec((1u8..7, any::<bool>(), 0u8..4), 0..5),
        (
            (any::<bool>(), bits(), 1usize..4, any::<bool>()),
            prop::collection::vec(prop::option::of(0u16..3), 6),
        ),
    )
        .prop_map(|(a, conditions, foreign, ours, (b, priority))| World {
            interfaces: a.0,
            down: a.1,
            lost_route: a.2,
            adopted: a.3,
            conditions,
            foreign,
            ours,
            full: b.0,
            backup: b.1,
            priority,
            max: b.2,
            steers: b.3,
        })
}

fn build(w: &World) -> (Settings, View, Conditions) {
    let mut view = device(w.interfaces);
    let mut s = settings(vec![]);
    s.max_addresses = w.max;
    s.steers_unbonded = w.steers;
    s.mesh = if w.full { Mesh::Full } else { Mesh::Pairs };
    let mut conditions = Conditions::new();
    for k in 1..=w.interfaces {
        let i = usize::from(k - 1);
        let mut a = access(&format!("a{k}"), &format!("d{k}"));
        a.backup = w.backup[i];
        a.priority = w.priority[i];
        s.accesses.push(a);
        if w.adopted[i] {
            let table = 1000 + u32::from(k);
            view.rules.push(Rule::new(1000, IpNet::from(v4(k)), table));
            view.routes
                .push(default_route(k, true, 1000 + u32::from(k), 1));
        }
        if w.conditions[i] == 1 {
            let since = Time::from_nanos(k.into());
            conditions.insert(v4(k), Condition::Silent { since });
        }
        if w.conditions[i] == 2 {
            conditions.insert(v4(k), Condition::Stripped);
        }
    }
    for (id, (host, bits)) in (1..).zip(&w.foreign) {
        // Of an address or an interface that no access has, or with flags that
        // we never set.
        let address = IpAddr::from([10, 99, *host, 2]);
        view.endpoints.push(Endpoint {
            id,
            address,
            port: None,
            ifindex: (*bits % 2 == 0).then_some(50),
            flags: EndpointFlags::from_bits_retain(*bits),
        });
    }
    for (id, (k, four, kind)) in (20..).zip(&w.ours) {
        let address = if *four { v4(*k) } else { v6(*k) };
        if view.endpoints.len() >= 8 || view.endpoints.iter().any(|e| e.address == address) {
            continue;
        }
        let flags = [
            EndpointFlags::SUBFLOW,
            EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH,
            EndpointFlags::IMPLICIT,
            EndpointFlags::SUBFLOW | EndpointFlags::LAMINAR,
        ][usize::from(*kind)];
        view.endpoints.push(Endpoint {
            id,
            ..Endpoint::new(address, Some((*k).into()), flags)
        });
    }
    (s, view, conditions)
}

/// As the kernel does it.
fn take_down(view: &mut View, k: u8) {
    view.interfaces[usize::from(k - 1)].up = false;
    view.routes.retain(|r| r.ifindex != u32::from(k));
    view.addresses
        .retain(|a| a.ifindex != u32::from(k) || a.address.is_ipv4());
}

proptest! {
    #[test]
    fn it_converges_from_any_state_and_leaves_others_alone(w in world(), used: bool) {
        let (s, mut view, conditions) = build(&w);
        let mut memory = Memory::default();
        let foreign = |v: &View| -> Vec<Endpoint> {
            v.endpoints.iter().filter(|e| e.id < 20).cloned().collect()
        };
        let before = view.clone();
        converge(&s, &mut view, &mut memory, &conditions);
        prop_assert_eq!(foreign(&before), foreign(&view));
        // Then links go, routes get lost, everything comes back.
        for k in 1..=w.interfaces {
            let i = usize::from(k - 1);
            if w.down[i] {
                take_down(&mut view, k);
            } else if w.lost_route[i] {
                view.routes.retain(|r| r.ifindex != u32::from(k));
            }
        }
        let p = converge(&s, &mut view, &mut memory, &conditions);
        for k in 1..=w.interfaces {
            if w.down[usize::from(k - 1)] {
                prop_assert!(p.endpoints.iter().all(|e| e.ifindex != Some(k.into())));
                prop_assert_eq!(p.accesses[usize::from(k - 1)].0, AccessState::Down);
            }
        }
        for k in 1..=w.interfaces {
            view.interfaces[usize::from(k - 1)].up = true;
        }
        let p = converge(&s, &mut view, &mut memory, &conditions);
        for u in p.uses.iter().filter(|u| u.address.is_ipv4()) {
            prop_assert!(u.routed, "{u:?}: the route was not restored");
        }
        // And away with it; what connections need later.
        let p = plan(&s, &view, &memory, &conditions);
        let used: BTreeSet<_> = p.uses.iter().map(|u| u.address).filter(|_| used).collect();
        let all = view.clone();
        for op in take_back(&all, &p, &used) {
            apply(&mut view, &op);
        }
        let on_used = |u: &&Use| used.contains(&u.address);
        for u in p.uses.iter().filter(on_used) {
            let of = |e: &&Endpoint| e.address == u.address;
            prop_assert!(all.endpoints.iter().filter(of).eq(view.endpoints.iter().filter(of)));
            let of = |r: &&Rule| r.source.addr() == u.address;
            prop_assert!(all.rules.iter().filter(of).eq(view.rules.iter().filter(of)));
            let of = |r: &&Route| r.ifindex == u.ifindex && !r.is_for_unbonded();
            prop_assert!(all.routes.iter().filter(of).eq(view.routes.iter().filter(of)));
        }
        prop_assert!(!view.rules.iter().any(Rule::is_for_unbonded));
        prop_assert!(!view.routes.iter().any(Route::is_for_unbonded));
        for op in take_back(&view.clone(), &p, &BTreeSet::new()) {
            apply(&mut view, &op);
        }
        let ours = |e: &&Endpoint| p.owned.contains(&e.id);
        prop_assert_eq!(view.endpoints.iter().find(ours), None);
        prop_assert!(view.routes.iter().all(|r| r.protocol != PROTOCOL));
        prop_assert!(view.rules.iter().all(|r| !r.is_ours()));
        prop_assert_eq!(foreign(&before), foreign(&view));
    }

    /// Somebody may have deleted some of our rules, and set others at our place.
    #[test]
    fn rules_for_what_is_not_bonded_are_asked_in_their_order(
        mut w in world(), there in prop::sample::subsequence(vec![0, 1, 2, 3], 0..=4).prop_shuffle(),
        theirs in prop::option::of(0usize..4),
    ) {
        w.steers = true;
        let (s, mut view, conditions) = build(&w);
        let mut memory = Memory::default();
        memory.known.learn(&view, &s.proxy);
        let wanted = plan(&s, &view, &memory, &conditions);
        let ours = |v4: bool| -> Vec<Rule> {
            let of = |r: &&Rule| r.is_for_unbonded() && r.source.addr().is_ipv4() == v4;
            wanted.rules.iter().filter(of).copied().collect()
        };
        for v4 in [true, false] {
            let mut all: Vec<Rule> = there.iter().filter_map(|i| ours(v4).get(*i).copied()).collect();
            if let Some(first) = theirs.and_then(|i| ours(v4).get(i).copied()) {
                all.retain(|r| !r.is_like(&first));
                all.insert(0, Rule { protocol: 3, ..first });
            }
            let main = view.rules.iter().position(|r| r.priority > DEFAULT_PRIORITY);
            let at = main.unwrap_or(view.rules.len());
            view.rules.splice(at..at, all);
        }
        converge(&s, &mut view, &mut memory, &conditions);
        for v4 in [true, false] {
            let mut all = ours(v4);
            // Theirs came first and stays there; it says the same.
            if let Some(i) = theirs.filter(|i| *i < all.len()) {
                let first = all.remove(i);
                all.insert(0, first);
            }
            let here = |r: &&Rule| r.priority == DEFAULT_PRIORITY && r.source.addr().is_ipv4() == v4;
            let mut set = view.rules.iter().filter(here);
            prop_assert!(all.iter().all(|r| set.next().is_some_and(|x| x.is_like(r))));
            prop_assert_eq!(set.next(), None);
        }
    }

    #[test]
    fn at_any_time_those_of_the_least_priority_carry(w in world()) {
        let (s, mut view, conditions) = build(&w);
        let mut memory = Memory::default();
        let ordered = s.accesses.iter().any(|a| a.priority.is_some());
        let check = |view: &View, p: &Plan| {
            let number = |i: usize| s.accesses[i].priority.map_or(u32::MAX, u32::from);
            let plain = |i: usize| !s.accesses[i].backup;
            let mut carrying = std::collections::BTreeMap::new();
            for e in view.endpoints.iter().filter(|e| p.owned.contains(&e.id) || e.id > 25) {
                let Some(u) = p.uses.iter().find(|u| u.address == e.address) else { continue };
                let active = !e.flags.contains(EndpointFlags::BACKUP);
                assert_eq!(*carrying.entry(u.access).or_insert(active), active);
            }
            let theirs = p.uses.iter().filter(|u| u.endpoint && !carrying.contains_key(&u.access));
            let least = carrying.keys().copied().chain(theirs.map(|u| u.access))
                .filter(|i| plain(*i)).map(number).min();
            for (i, active) in carrying {
                let wanted = plain(i) && (!ordered || Some(number(i)) == least);
                assert_eq!(active, wanted, "access {i} of {:?}", p.accesses);
            }
        };
        let p = converge(&s, &mut view, &mut memory, &conditions);
        check(&view, &p);
        for k in 1..=w.interfaces {
            if w.down[usize::from(k - 1)] {
                take_down(&mut view, k);
                let p = converge(&s, &mut view, &mut memory, &conditions);
                check(&view, &p);
            }
        }
        for k in 1..=w.interfaces {
            view.interfaces[usize::from(k - 1)].up = true;
            let p = converge(&s, &mut view, &mut memory, &conditions);
            check(&view, &p);
        }
    }

    #[test]
    fn something_is_always_left(w in world(), silent in any::<bool>()) {
        let (s, mut view, mut conditions) = build(&w);
        if silent {
            for k in 1..=w.interfaces {
                for a in [v4(k), v6(k)] {
                    conditions.insert(a, Condition::Silent { since: Time::from_nanos(k.into()) });
                }
            }
        }
        let p = converge(&s, &mut view, &mut Memory::default(), &conditions);
        prop_assert!(p.endpoints.len() <= 8);
        let room = view.endpoints.iter().filter(|e| !p.owned.contains(&e.id)).count() < 8;
        if room && !conditions.values().any(|c| *c == Condition::Stripped) {
            prop_assert!(p.uses.iter().any(|u| u.endpoint), "{:?}", p.accesses);
        }
    }
}

#[test]
fn rules_that_lead_out_by_the_interface_are_left() {
    let mut view = device(2);
    view.rules.push(Rule::new(1000, IpNet::from(v4(1)), 101));
    view.routes.push(default_route(1, true, 101, 0));
    let s = settings(vec![access("a", "d*")]);
    let mut memory = Memory::default();
    let p = converge(&s, &mut view, &mut memory, &Conditions::new());
    assert!(p.rules.iter().all(|r| r.source != IpNet::from(v4(1))));
    assert!(p.rules.iter().any(|r| r.source == IpNet::from(v4(2))));
    assert_eq!(p.endpoints.len(), 4);
    // The link flaps: the route is put back into their table, before the endpoint.
    take_down(&mut view, 1);
    converge(&s, &mut view, &mut memory, &Conditions::new());
    view.interfaces[0].up = true;
    memory.known.learn(&view, &s.proxy);
    let ops = diff(&view, &plan(&s, &view, &memory, &Conditions::new()));
    let route = ops
        .iter()
        .position(|o| matches!(o, Op::AddRoute(r) if r.table == 101))
        .expect("a route");
    let endpoint = ops
        .iter()
        .position(|o| matches!(o, Op::AddEndpoint(e) if e.address == v4(1)))
        .expect("an endpoint");
    assert!(route < endpoint, "{ops:?}");
}

#[test]
fn a_gateway_of_another_network_is_not_restored() {
    let mut view = device(1);
    let s = settings(vec![access("a", "d1")]);
    let mut memory = Memory::default();
    converge(&s, &mut view, &mut memory, &Conditions::new());
    take_down(&mut view, 1);
    view.interfaces[0].up = true;
    view.addresses = vec![address(1, "192.0.2.7".parse().unwrap())];
    let p = converge(&s, &mut view, &mut memory, &Conditions::new());
    assert_eq!(p.endpoints, []);
    let (state, why) = &p.accesses[0];
    assert!(
        *state == AccessState::NoAddress && why.contains("DHCP"),
        "{state} {why}"
    );
}

#[test]
fn addresses_take_turns_and_unfit_ones_stay_out() {
    let mut view = device(1);
    let more: IpAddr = "10.77.1.9".parse().unwrap();
    view.addresses.insert(0, address(1, more));
    for (i, bad) in (20..).zip(["unusable", "temporary", "link"]) {
        let mut a = address(1, Ipv4Addr::new(10, 77, 1, i).into());
        match bad {
            "unusable" => a.unusable = true,
            "temporary" => a.temporary = true,
            _ => a.global = false,
        }
        view.addresses.insert(0, a);
    }
    let mut s = settings(vec![access("a", "d1")]);
    let of = |s: &Settings| -> Vec<IpAddr> {
        let p = converge(
            s,
            &mut view.clone(),
            &mut Memory::default(),
            &Conditions::new(),
        );
        p.endpoints.iter().map(|e| e.address).collect()
    };
    assert_eq!(of(&s), [more, v6(1)]);
    s.max_addresses = 3;
    assert_eq!(of(&s), [more, v6(1), v4(1)]);
    s.accesses[0].max_addresses = Some(1);
    assert_eq!(of(&s), [more]);
    s.accesses[0].address = Some(v4(1));
    assert_eq!(of(&s), [v4(1)]);
    s.accesses[0].enabled = false;
    assert_eq!(of(&s), [] as [IpAddr; 0]);
}

#[test]
fn rules_that_lead_elsewhere_are_preceded_or_respected() {
    let s = settings(vec![access("a", "d1")]);
    for (priority, state) in [
        (RULE_PRIORITY + 1, AccessState::Init),
        (RULE_PRIORITY - 1, AccessState::NoAddress),
    ] {
        let mut view = device(2);
        view.addresses.retain(|a| a.address.is_ipv4());
        let net = "10.0.0.0/8".parse().unwrap();
        view.rules.push(Rule::new(priority, net, 100));
        view.routes.push(default_route(2, true, 100, 0));
        let p = converge(&s, &mut view, &mut Memory::default(), &Conditions::new());
        assert_eq!(p.accesses[0].0, state, "{:?}", p.accesses);
    }
}
