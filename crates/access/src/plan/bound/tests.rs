use std::net::IpAddr;

use braid_api::AccessState;
use proptest::prelude::*;

use super::*;
use crate::settings::testing::{access, settings};
use crate::view::{
    Action, Address, MAIN_PRIORITY, MAIN_TABLE, RULE_PRIORITY, Route, Rule, everywhere,
};

const PROXY: &str = "192.0.2.1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Interfaces of these names with an address each, and a default route.
fn machine(names: &[&str]) -> View {
    let main = |v4| Rule::new(MAIN_PRIORITY, everywhere(v4), MAIN_TABLE);
    let mut view = View {
        rules: vec![main(true), main(false)],
        ..View::default()
    };
    for (k, name) in (1..).zip(names) {
        view.interfaces.push(Interface {
            index: k,
            name: (*name).to_owned(),
            up: true,
            carrier: true,
            ..Interface::default()
        });
        add(&mut view, k, &format!("10.77.{k}.2"));
        view.routes.push(Route {
            gateway: Some(ip(&format!("10.77.{k}.1"))),
            metric: k,
            ..Route::new(MAIN_TABLE, everywhere(true), k)
        });
    }
    view
}

fn add(view: &mut View, ifindex: u32, address: &str) {
    let address = ip(address);
    view.addresses.push(Address {
        ifindex,
        address,
        prefix_len: if address.is_ipv4() { 24 } else { 64 },
        global: true,
        unusable: false,
        deprecated: false,
        temporary: false,
    });
}

fn device(accesses: &[(&str, &str)]) -> Settings {
    let mut s = settings(accesses.iter().map(|(n, i)| access(n, i)).collect());
    s.proxy = vec![ip(PROXY)];
    s
}

fn used(p: &Plan, access: usize) -> Vec<String> {
    let mine = p.uses.iter().filter(|u| u.access == access);
    mine.map(|u| format!("{} {}", u.interface, u.address))
        .collect()
}

fn why(p: &Plan, access: usize) -> (AccessState, &str) {
    let (state, why) = p.out[access].as_ref().expect("it is out");
    (*state, why)
}

#[test]
fn a_pattern_finds_its_interfaces_and_the_list_leaves_some_out() {
    let mut s = device(&[("lte", "wwan*"), ("wifi", "wlan0")]);
    s.ignore = vec!["wwan1".parse().unwrap()];
    let view = machine(&["wwan1", "wlan0", "wwan0", "wwan2", "eth0"]);
    let p = bound(&s, &view);
    assert_eq!(used(&p, 0), ["wwan0 10.77.3.2", "wwan2 10.77.4.2"]);
    assert_eq!(used(&p, 1), ["wlan0 10.77.2.2"]);
    assert_eq!(p.out, [None, None]);
    let left: Vec<&str> = p.ignored.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(left, ["wwan1", "eth0"]);
    assert!(p.ignored[0].1.contains("`ignore`"), "{:?}", p.ignored);
    // Nothing is set for them.
    assert_eq!((p.rules, p.routes), (vec![], vec![]));
}

#[test]
fn every_cause_is_told() {
    let s = device(&[("lte", "wwan*")]);
    let none = bound(&s, &machine(&["eth0"]));
    assert_eq!(why(&none, 0).0, AccessState::Down);
    assert!(why(&none, 0).1.contains("wwan*"));
    let mut down = machine(&["wwan0"]);
    down.interfaces[0].carrier = false;
    let down = bound(&s, &down);
    assert_eq!(why(&down, 0), (AccessState::Down, "wwan0 has no carrier"));
    assert_eq!(used(&down, 0), [""; 0]);
    let mut bare = machine(&["wwan0"]);
    bare.addresses.clear();
    let bare = bound(&s, &bare);
    assert_eq!(why(&bare, 0).0, AccessState::NoAddress);
    let mut kept = s.clone();
    kept.ignore = vec!["ww*".parse().unwrap()];
    let kept = bound(&kept, &machine(&["wwan0"]));
    assert_eq!(why(&kept, 0).0, AccessState::Ignored);
    // No route: it is tried last, and the cause is there.
    let mut routeless = machine(&["wwan0", "wwan1"]);
    routeless.routes.retain(|r| r.ifindex == 2);
    let one = bound(&s, &routeless);
    assert_eq!(used(&one, 0), ["wwan1 10.77.2.2", "wwan0 10.77.1.2"]);
    assert_eq!(one.out, [None]);
    routeless.routes.clear();
    let none = bound(&s, &routeless);
    let (state, cause) = why(&none, 0);
    assert_eq!(state, AccessState::NoAddress);
    assert!(
        cause.contains("no default route leads out by wwan0, nor one to the proxy"),
        "{cause}"
    );
    assert_eq!(used(&none, 0).len(), 2, "it stays");
    let mut refused = machine(&["wwan0"]);
    refused.rules.push(Rule {
        action: Action::Refuse,
        ..Rule::new(RULE_PRIORITY, "10.77.1.0/24".parse().unwrap(), 0)
    });
    let refused = bound(&s, &refused);
    assert!(why(&refused, 0).1.contains("prohibit"), "{:?}", refused.out);
}

#[test]
fn a_proxy_on_the_link_needs_no_route() {
    let mut s = device(&[("lan", "eth0")]);
    s.proxy = vec![ip("10.77.1.9")];
    let mut view = machine(&["eth0"]);
    view.routes.clear();
    assert_eq!(bound(&s, &view).out, [None]);
}

#[test]
fn the_best_address_towards_the_proxy_comes_first() {
    let mut s = device(&[("nr", "wwan0")]);
    s.proxy = vec![ip("2001:db8:77::1")];
    let mut view = machine(&["wwan0"]);
    for a in ["fd00:0:0:1::2", "2001:db8:1::2", "2001:db8:1::3"] {
        add(&mut view, 1, a);
    }
    view.addresses[2].temporary = true;
    view.routes
        .push(Route::new(MAIN_TABLE, everywhere(false), 1));
    let p = bound(&s, &view);
    assert_eq!(used(&p, 0), ["wwan0 2001:db8:1::3", "wwan0 fd00:0:0:1::2"]);
    s.accesses[0].address = Some(ip("fd00:0:0:1::2"));
    assert_eq!(used(&bound(&s, &view), 0), ["wwan0 fd00:0:0:1::2"]);
}

proptest! {
    /// Whatever is up: an access has an address that leads out, or a cause.
    #[test]
    fn an_access_is_served_or_says_why(
        up in prop::collection::vec(any::<bool>(), 4),
        routed in prop::collection::vec(any::<bool>(), 4),
    ) {
        let s = device(&[("lte", "wwan*"), ("wifi", "wlan0")]);
        let mut view = machine(&["wwan0", "wwan1", "wlan0", "eth0"]);
        for (i, up) in view.interfaces.iter_mut().zip(&up) {
            i.up = *up;
        }
        view.routes.retain(|r| routed[r.ifindex as usize - 1]);
        let p = bound(&s, &view);
        for (access, of) in [(0, 0..2), (1, 2..3)] {
            let led = of.into_iter().any(|k| up[k] && routed[k]);
            prop_assert_eq!(p.out[access].is_none(), led);
            let first = p.uses.iter().find(|u| u.access == access);
            prop_assert_eq!(first.is_some_and(|u| u.routed), led);
        }
    }
}
