use std::net::SocketAddr;

use braid_access::settings::Mesh;
use braid_access::trial::{Attempt, Tried};
use braid_access::view::{Address, Interface, MAIN_PRIORITY, MAIN_TABLE, everywhere};
use braid_core::Time;
use proptest::prelude::*;

use super::super::testing::{access, settings};
use super::*;

const GLOBAL: &str = "2001:db8:1::2";
const LOCAL: &str = "fd00:0:0:1::2";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Interfaces `d1`.. with these addresses in the kernel's order, and default routes.
fn device(addresses: &[(u32, &str)]) -> (Settings, View) {
    let main = |v4| Rule::new(MAIN_PRIORITY, everywhere(v4), MAIN_TABLE);
    let mut view = View::default();
    view.network.rules = vec![main(true), main(false)];
    let mut s = settings(vec![]);
    s.proxy = vec![ip("192.0.2.1"), ip("2001:db8:77::1")];
    for (k, address) in addresses {
        let address = ip(address);
        if view.interface(*k).is_none() {
            view.interfaces.push(Interface {
                index: *k,
                name: format!("d{k}"),
                up: true,
                carrier: true,
                ..Interface::default()
            });
            s.accesses.push(access(&format!("a{k}"), &format!("d{k}")));
            for v4 in [true, false] {
                view.routes.push(Route {
                    metric: *k,
                    ..Route::new(MAIN_TABLE, everywhere(v4), *k)
                });
            }
        }
        view.addresses.push(Address {
            ifindex: *k,
            address,
            prefix_len: if address.is_ipv4() { 24 } else { 64 },
            global: true,
            unusable: false,
            deprecated: false,
            temporary: false,
        });
    }
    (s, view)
}

type Conditions = BTreeMap<IpAddr, Condition>;

fn silent(all: &[&str]) -> Conditions {
    let since = Time::from_nanos(9);
    let one = |a: &&str| (ip(a), Condition::Silent { since });
    all.iter().map(one).collect()
}

fn planned(s: &Settings, view: &View, memory: &mut Memory, c: &Conditions) -> Plan {
    memory.known.learn(view, &s.proxy);
    plan(s, view, memory, c)
}

/// The addresses with endpoints.
fn on(p: &Plan) -> Vec<String> {
    p.endpoints.iter().map(|e| e.address.to_string()).collect()
}

/// Subflows to one server: those that are open, and those that nobody answers.
fn attempts(open: &[&str], vain: &[&str]) -> Vec<Attempt> {
    let of = |open| {
        move |a: &&str| Attempt {
            local: ip(a),
            remote: SocketAddr::new(ip("2001:db8:77::1"), 80),
            open,
            retransmissions: if open { 0 } else { 2 },
        }
    };
    let vain = vain.iter().map(of(false));
    open.iter().map(of(true)).chain(vain).collect()
}

fn tried(p: &Plan, view: &View, c: &Conditions, memory: &mut Memory, all: &[Attempt], at: u64) {
    let with = |a| view.addresses.iter().filter(|b| b.address == a).count();
    let tried: Vec<_> = p
        .uses
        .iter()
        .map(|u| Tried {
            interface: &u.interface,
            address: u.address,
            silent: c.contains_key(&u.address),
            doubled: with(u.address) > 1,
        })
        .collect();
    memory.known.trials.look(&tried, all, Time::from_nanos(at));
}

#[test]
fn the_global_address_is_used_whatever_came_last() {
    let none = Conditions::new();
    for six in [[LOCAL, GLOBAL], [GLOBAL, LOCAL]] {
        let (mut s, view) = device(&[(1, "10.77.1.2"), (1, six[0]), (1, six[1])]);
        let of = |s: &Settings| on(&planned(s, &view, &mut Memory::default(), &none));
        assert_eq!(of(&s), ["10.77.1.2", GLOBAL]);
        s.max_addresses = 3;
        assert_eq!(of(&s), ["10.77.1.2", GLOBAL, LOCAL]);
        s.max_addresses = 1;
        s.accesses[0].address = Some(ip(LOCAL));
        assert_eq!(of(&s), [LOCAL]);
        s.accesses[0].address = None;
        // A proxy at a local address is reached from one.
        s.proxy = vec![ip("fd77::1")];
        s.accesses[0].max_addresses = Some(2);
        assert_eq!(of(&s), ["10.77.1.2", LOCAL]);
    }
}

#[test]
fn the_source_that_a_route_asks_for_comes_first() {
    let none = Conditions::new();
    let (mut s, mut view) = device(&[(1, "10.9.0.7"), (1, "10.77.1.2")]);
    s.max_addresses = 1;
    view.routes[0].gateway = Some(ip("10.77.1.1"));
    let of = |view: &View| on(&planned(&s, view, &mut Memory::default(), &none));
    assert_eq!(of(&view), ["10.77.1.2"], "the one in the gateway's network");
    view.routes[0].source = Some(ip("10.9.0.7"));
    assert_eq!(of(&view), ["10.9.0.7"]);
}

#[test]
fn what_soon_goes_serves_where_there_is_no_other() {
    let none = Conditions::new();
    let (s, mut view) = device(&[(1, GLOBAL)]);
    view.addresses[0].deprecated = true;
    let of = |view: &View| on(&planned(&s, view, &mut Memory::default(), &none));
    assert_eq!(of(&view), [GLOBAL]);
    let mut other = view.addresses[0].clone();
    (other.address, other.deprecated) = (ip(LOCAL), false);
    view.addresses.push(other);
    assert_eq!(of(&view), [LOCAL]);
}

#[test]
fn one_over_which_nothing_opens_gives_way_to_the_next() {
    let none = Conditions::new();
    let (mut s, view) = device(&[(1, GLOBAL), (1, LOCAL), (2, "2001:db8:2::2")]);
    s.max_addresses = 1;
    let mut memory = Memory::default();
    let p = planned(&s, &view, &mut memory, &none);
    assert_eq!(on(&p), [GLOBAL, "2001:db8:2::2"]);
    let all = attempts(&["2001:db8:2::2"], &[GLOBAL]);
    tried(&p, &view, &none, &mut memory, &all, 1);
    let p = planned(&s, &view, &mut memory, &none);
    assert_eq!(on(&p), [LOCAL, "2001:db8:2::2"]);
    // It stays so, whatever comes of that.
    let all = attempts(&["2001:db8:2::2", LOCAL], &[]);
    tried(&p, &view, &none, &mut memory, &all, 2);
    assert_eq!(
        on(&planned(&s, &view, &mut memory, &none)),
        [LOCAL, "2001:db8:2::2"]
    );
    // Neither works: each in its turn.
    let mut memory = Memory::default();
    for (at, now, next) in [(1, GLOBAL, LOCAL), (2, LOCAL, GLOBAL), (3, GLOBAL, LOCAL)] {
        let p = planned(&s, &view, &mut memory, &none);
        assert_eq!(on(&p)[0], now);
        tried(
            &p,
            &view,
            &none,
            &mut memory,
            &attempts(&["2001:db8:2::2"], &[now]),
            at,
        );
        assert_eq!(on(&planned(&s, &view, &mut memory, &none))[0], next);
    }
}

#[test]
fn one_that_falls_silent_gives_way_and_the_access_counts_as_silent_until_the_next_is_heard() {
    let (mut s, view) = device(&[(1, GLOBAL), (1, LOCAL), (2, "2001:db8:2::2")]);
    s.max_addresses = 1;
    (s.accesses[0].priority, s.accesses[1].priority) = (Some(1), Some(2));
    let mut memory = Memory::default();
    let quiet = silent(&[GLOBAL]);
    let backup = |p: &Plan, a: &str| {
        let e = p.endpoints.iter().find(|e| e.address == ip(a)).unwrap();
        e.flags.contains(EndpointFlags::BACKUP)
    };
    let p = planned(&s, &view, &mut memory, &quiet);
    assert_eq!(on(&p), [LOCAL, "2001:db8:2::2"]);
    assert_eq!(p.accesses[0].0, AccessState::Silent, "{:?}", p.accesses);
    assert!(
        !backup(&p, "2001:db8:2::2"),
        "the next access carries meanwhile"
    );
    // The one that is silent is asked on, and comes back before the other.
    let asked = p.uses.iter().find(|u| u.address == ip(GLOBAL)).unwrap();
    assert!(asked.routed && !asked.endpoint);
    tried(
        &p,
        &view,
        &quiet,
        &mut memory,
        &attempts(&["2001:db8:2::2", LOCAL], &[]),
        1,
    );
    let p = planned(&s, &view, &mut memory, &quiet);
    assert_eq!(p.accesses[0].0, AccessState::Active, "{:?}", p.accesses);
    assert!(backup(&p, "2001:db8:2::2") && !backup(&p, LOCAL));
    let p = planned(&s, &view, &mut memory, &Conditions::new());
    assert_eq!(on(&p), [GLOBAL, "2001:db8:2::2"]);
}

#[test]
fn of_two_interfaces_with_one_address_the_other_has_its_turn() {
    let (mut s, mut view) = device(&[(1, "10.77.1.2"), (2, "10.77.1.2"), (3, "10.77.3.2")]);
    s.max_addresses = 1;
    let by = |p: &Plan| {
        let mut all = p.endpoints.iter();
        all.find(|e| e.address == ip("10.77.1.2")).unwrap().ifindex
    };
    let mut memory = Memory::default();
    let none = Conditions::new();
    let p = planned(&s, &view, &mut memory, &none);
    assert_eq!((by(&p), p.accesses[1].0), (Some(1), AccessState::Ignored));
    let quiet = silent(&["10.77.1.2"]);
    tried(&p, &view, &quiet, &mut memory, &[], 1);
    let p = planned(&s, &view, &mut memory, &none);
    assert_eq!((by(&p), p.accesses[0].0), (Some(2), AccessState::Ignored));
    assert!(
        p.accesses[0]
            .1
            .contains("d1 has the same address as a2 (d2)")
    );
    let rule = p
        .rules
        .iter()
        .find(|r| r.source == IpAddr::from([10, 77, 1, 2]).into());
    assert!(rule.is_some());
    // It stays there, until that one fails or goes.
    assert_eq!(by(&planned(&s, &view, &mut memory, &none)), Some(2));
    tried(&p, &view, &quiet, &mut memory, &[], 2);
    assert_eq!(by(&planned(&s, &view, &mut memory, &none)), Some(1));
    view.interfaces[0].up = false;
    assert_eq!(by(&planned(&s, &view, &mut memory, &none)), Some(2));
    let up = BTreeSet::from([("d2".to_owned(), ip("10.77.1.2"))]);
    memory.known.trials.keep(&up, &BTreeSet::new());
    view.interfaces[0].up = true;
    assert_eq!(
        by(&planned(&s, &view, &mut memory, &none)),
        Some(1),
        "it came anew"
    );
}

#[test]
fn a_network_that_leads_nowhere_serves_for_what_is_announced() {
    let (mut s, mut view) = device(&[(1, "10.77.1.2"), (2, "10.77.2.2")]);
    view.routes.retain(|r| r.ifindex == 1);
    let mut memory = Memory::default();
    let none = Conditions::new();
    let p = planned(&s, &view, &mut memory, &none);
    assert_eq!(on(&p), ["10.77.1.2"]);
    s.mesh = Mesh::Full;
    let p = planned(&s, &view, &mut memory, &none);
    assert_eq!(on(&p), ["10.77.1.2", "10.77.2.2"]);
    let (state, why) = &p.accesses[1];
    assert!(
        *state == AccessState::NoAddress && why.contains("announce"),
        "{state} {why}"
    );
    tried(
        &p,
        &view,
        &none,
        &mut memory,
        &attempts(&["10.77.2.2"], &[]),
        1,
    );
    let p = planned(&s, &view, &mut memory, &none);
    assert_eq!(p.accesses[1].0, AccessState::Active);
    // Alone in its network there is nothing to be reached.
    view.addresses[1].prefix_len = 32;
    let p = planned(&s, &view, &mut Memory::default(), &none);
    assert_eq!(on(&p), ["10.77.1.2"]);
}

proptest! {
    #[test]
    fn no_more_than_asked_for_are_used_and_no_silent_one_takes_a_place(
        four in 0usize..4, six in 0usize..4, max in 1usize..5, quiet in prop::collection::vec(any::<bool>(), 8),
    ) {
        let four = (0..four).map(|i| format!("10.77.1.{}", i + 2));
        let six = (0..six).map(|i| format!("2001:db8:{i}::2"));
        let all: Vec<String> = four.chain(six).collect();
        let with: Vec<_> = all.iter().map(|a| (1, a.as_str())).collect();
        let (mut s, view) = device(&with);
        s.max_addresses = max;
        let down: Vec<&str> = all.iter().zip(&quiet).filter(|(_, q)| **q).map(|(a, _)| a.as_str()).collect();
        if s.accesses.is_empty() {
            return Ok(());
        }
        let c = silent(&down);
        let none = planned(&s, &view, &mut Memory::default(), &Conditions::new());
        let p = planned(&s, &view, &mut Memory::default(), &c);
        for v4 in [true, false] {
            let family = |a: &IpAddr| a.is_ipv4() == v4;
            let quota = none.endpoints.iter().filter(|e| family(&e.address)).count();
            let there = view.addresses.iter().map(|a| a.address).filter(family);
            let live = there.filter(|a| !c.contains_key(a)).count();
            let used = p.endpoints.iter().map(|e| e.address).filter(family);
            let used = used.filter(|a| !c.contains_key(a)).count();
            prop_assert_eq!(used, live.min(quota));
        }
        prop_assert!(none.endpoints.len() == all.len().min(max));
        prop_assert!(!p.endpoints.is_empty(), "the last one stays");
    }
}

#[test]
fn an_access_is_active_once_something_has_come_back() {
    let (s, view) = device(&[(1, "10.77.1.2"), (2, "10.77.2.2")]);
    let (mut memory, none) = (Memory::default(), Conditions::new());
    let states = |memory: &mut Memory, c: &Conditions| {
        let p = planned(&s, &view, memory, c);
        assert_eq!(p.endpoints.len(), 2, "both are used");
        [p.accesses[0].clone(), p.accesses[1].clone()]
    };
    let [(first, why), (second, _)] = states(&mut memory, &none);
    assert_eq!((first, second), (AccessState::Init, AccessState::Init));
    assert_eq!(why, "nothing has come back on d1 yet");
    assert!(memory.known.trials.answered("d1", ip("10.77.1.2")));
    let [(first, why), (second, _)] = states(&mut memory, &none);
    assert_eq!((first, second), (AccessState::Active, AccessState::Init));
    assert_eq!(why, "used");
    // A subflow proves as much as an answer.
    let p = planned(&s, &view, &mut memory, &none);
    let open = attempts(&["10.77.1.2", "10.77.2.2"], &[]);
    tried(&p, &view, &none, &mut memory, &open, 1);
    let [_, (second, _)] = states(&mut memory, &none);
    assert_eq!(second, AccessState::Active);
    // Another proxy has to answer anew.
    memory.known.trials.unheard();
    let [(first, _), _] = states(&mut memory, &none);
    assert_eq!(first, AccessState::Init);
}
