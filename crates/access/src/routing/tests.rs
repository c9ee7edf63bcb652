use std::collections::BTreeMap;

use braid_api::AccessState;
use proptest::prelude::*;

use super::*;
use crate::plan::{Plan, plan};
use crate::settings::Settings;
use crate::settings::testing::{access, settings};
use crate::view::{MAIN_PRIORITY, Rest};

const PROXY4: &str = "192.0.2.1";
const PROXY6: &str = "2001:db8:77::1";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// Returns address `n` of access `k`, in the network of its interface.
fn host(v4: bool, k: u32, n: u32) -> IpAddr {
    ip(&match v4 {
        true => format!("10.77.{k}.{n}"),
        false => format!("fd77:0:{k}::{n}"),
    })
}

fn of(k: u32, v4: bool, length: u8) -> Address {
    Address {
        ifindex: k,
        address: host(v4, k, 2),
        prefix_len: length,
        global: true,
        unusable: false,
        deprecated: false,
        temporary: false,
    }
}

fn by(to: IpNet, k: u32, gateway: Option<IpAddr>) -> Route {
    Route {
        gateway,
        metric: 100 + k,
        protocol: 16,
        ..Route::new(MAIN_TABLE, to, k)
    }
}

/// How the network gives an access its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Plain,
    NoGateway,
    OnLink,
    /// An address of its own alone, and a route to the gateway.
    Host,
    /// The proxy's network alone.
    Private,
    /// All of them by one route.
    Multipath,
    /// For packets from the network of the access alone (IPv6).
    BySource,
}

use Shape::*;

const SHAPES: [Shape; 7] = [Plain, NoGateway, OnLink, Host, Private, Multipath, BySource];

fn proxy(v4: bool) -> IpAddr {
    ip(if v4 { PROXY4 } else { PROXY6 })
}

/// A machine whose accesses have these shapes, in both families, beside a network and a tunnel
/// that are no accesses.
fn machine(shapes: &[Shape]) -> (Settings, View) {
    let main = |v4| Rule::new(MAIN_PRIORITY, everywhere(v4), MAIN_TABLE);
    let mut view = View {
        rules: vec![main(true), main(false)],
        ..View::default()
    };
    let mut s = settings(vec![]);
    s.proxy = vec![proxy(true), proxy(false)];
    for (k, shape) in (1..).zip(shapes) {
        view.interfaces.push(Interface {
            index: k,
            name: format!("d{k}"),
            up: true,
            carrier: true,
            ..Interface::default()
        });
        s.accesses.push(access(&format!("a{k}"), &format!("d{k}")));
        for v4 in [true, false] {
            let gateway = host(v4, k, 1);
            let whole = if v4 { 32 } else { 128 };
            let length = match shape {
                Host | OnLink => whole,
                _ => whole / 2 + whole / 4 - whole / 4 * u8::from(!v4),
            };
            view.addresses.push(of(k, v4, length));
            let own = IpNet::new(host(v4, k, 2), length).unwrap().trunc();
            if length < whole {
                view.routes.push(by(own, k, None));
            }
            let any = everywhere(v4);
            match shape {
                Plain => view.routes.push(by(any, k, Some(gateway))),
                NoGateway => view.routes.push(by(any, k, None)),
                OnLink => view.routes.push(Route {
                    onlink: true,
                    ..by(any, k, Some(gateway))
                }),
                Host => {
                    view.routes.push(by(gateway.into(), k, None));
                    view.routes.push(by(any, k, Some(gateway)));
                }
                Private => {
                    let to = net(if v4 {
                        "192.0.2.0/28"
                    } else {
                        "2001:db8:77::/64"
                    });
                    view.routes.push(by(to, k, Some(gateway)));
                }
                Multipath => view.routes.push(Route {
                    metric: 1024,
                    ..by(any, k, Some(gateway))
                }),
                BySource => view.routes.push(Route {
                    from: (!v4).then_some(own),
                    ..by(any, k, Some(gateway))
                }),
            }
        }
    }
    for v4 in [true, false] {
        for (to, k) in elsewhere(v4) {
            view.routes.push(by(to, k, None));
        }
    }
    (s, view)
}

/// A network behind interface 1, one behind the tunnel, and one that is said to be nowhere.
fn elsewhere(v4: bool) -> [(IpNet, u32); 2] {
    match v4 {
        true => [(net("10.99.0.0/16"), 1), (net("10.8.0.0/16"), 90)],
        false => [(net("fd99::/48"), 1), (net("fd08::/48"), 90)],
    }
}

fn planned(s: &Settings, view: &View, memory: &mut Memory) -> Plan {
    memory.learn(view, &s.proxy);
    plan(s, view, memory, &BTreeMap::new())
}

/// As the kernel has it when the plan is done.
fn done(view: &View, p: &Plan) -> (Vec<Rule>, Vec<Route>) {
    let mut rules: Vec<Rule> = view
        .rules
        .iter()
        .filter(|r| !r.is_ours())
        .copied()
        .collect();
    rules.extend(&p.rules);
    rules.sort_by_key(|r| r.priority);
    let mut routes: Vec<Route> = view
        .routes
        .iter()
        .filter(|r| !r.is_ours())
        .copied()
        .collect();
    routes.extend(&p.routes);
    (rules, routes)
}

/// Where a packet goes: interface and gateway of each next hop.
fn way(
    (rules, routes): &(Vec<Rule>, Vec<Route>),
    source: IpAddr,
    to: IpAddr,
    bound: Option<u32>,
) -> Vec<(u32, Option<IpAddr>)> {
    let (rules, routes): (Vec<_>, Vec<_>) = (rules.iter().collect(), routes.iter().collect());
    match walk(&rules, &routes, Packet { source, to, bound }) {
        Way::Out(by, _) => by.iter().map(|r| (r.ifindex, r.gateway)).collect(),
        Way::Refused(_) | Way::Nowhere => vec![],
    }
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    prop::collection::vec(prop::sample::select(&SHAPES[..]), 1..5)
}

/// Rules of others, none of which names an access of ours.
fn others() -> impl Strategy<Value = Vec<Rule>> {
    let any = everywhere(true);
    let suppressed = Rule {
        suppress: Some(0),
        ..Rule::new(RULE_PRIORITY - 1, any, MAIN_TABLE)
    };
    let marked = Rule {
        rest: Rest::Unmet,
        ..Rule::new(50, any, 52)
    };
    let of_a_user = Rule {
        rest: Rest::Perhaps,
        ..Rule::new(60, any, 52)
    };
    let stranger = Rule::new(70, net("10.66.0.0/16"), 52);
    prop::sample::subsequence(vec![marked, of_a_user, stranger, suppressed], 0..=4)
}

proptest! {
    #[test]
    fn packets_leave_by_their_access_and_the_main_table_loses_its_default_routes_alone(
        shapes in shapes(), others in others(),
    ) {
        let (s, mut view) = machine(&shapes);
        view.rules.extend(others);
        view.rules.sort_by_key(|r| r.priority);
        view.routes.push(Route { table: 52, ..by(everywhere(true), 90, None) });
        let p = planned(&s, &view, &mut Memory::default());
        let before = (view.rules.clone(), view.routes.clone());
        let after = done(&view, &p);
        prop_assert_eq!(p.uses.len(), 2 * shapes.len());
        prop_assert_eq!(&p.notes, &[]);
        for u in &p.uses {
            prop_assert!(u.routed, "{}: {}", u.interface, u.lacks);
            let v4 = u.address.is_ipv4();
            let shape = shapes[u.access];
            let gateway = (shape != NoGateway).then(|| host(v4, u.ifindex, 1));
            // To the proxy, bound or not.
            for bound in [None, Some(u.ifindex)] {
                let to = way(&after, u.address, proxy(v4), bound);
                prop_assert_eq!(to, vec![(u.ifindex, gateway)], "{:?}", u);
            }
            // To the Internet, where the access leads there.
            let internet = ip(if v4 { "203.0.113.9" } else { "2001:db8:ffff::9" });
            if shape != Private {
                prop_assert_eq!(way(&after, u.address, internet, None), vec![(u.ifindex, gateway)]);
            }
            // To neighbours, by static routes and tunnels: as it was.
            let mut same: Vec<_> = elsewhere(v4).map(|(to, _)| to.hosts().nth(8).unwrap()).into();
            same.extend((1..).zip(&shapes).filter(|(_, s)| ![Host, OnLink].contains(s))
                .map(|(k, _)| host(v4, k, 20)));
            for to in same {
                let was = way(&before, u.address, to, None);
                prop_assert_eq!(was.len(), 1);
                prop_assert_eq!(way(&after, u.address, to, None), was, "{} to {}", u.address, to);
            }
        }
        // What is forwarded, or sent from elsewhere, goes as before.
        for from in ["10.66.0.7", "172.16.0.1"] {
            for to in [PROXY4, "10.99.0.9", "10.8.0.9", "203.0.113.9", "10.77.1.20"] {
                prop_assert_eq!(
                    way(&before, ip(from), ip(to), None),
                    way(&after, ip(from), ip(to), None)
                );
            }
        }
    }

    #[test]
    fn every_shape_comes_back_with_its_interface_and_not_to_another_network(shapes in shapes()) {
        let (s, view) = machine(&shapes);
        let mut memory = Memory::default();
        let before = planned(&s, &view, &mut memory);
        // The kernel drops the routes, and nobody puts those of the main table back. What was
        // seen goes over a file to the next daemon.
        let mut bare = view.clone();
        bare.routes.retain(|r| r.ifindex > 80);
        let mut next = Memory::default();
        next.recall(memory.remembered());
        prop_assert_eq!(next.remembered(), memory.remembered());
        let p = planned(&s, &bare, &mut next);
        for u in &p.uses {
            prop_assert!(u.routed, "{}: {}", u.interface, u.lacks);
        }
        let key = |r: &Route| (r.table, r.to, r.gateway);
        let had: Vec<_> = before.routes.iter().map(key).collect();
        prop_assert!(p.routes.iter().all(|r| had.contains(&key(r))), "{:?}", p.routes);
        // In another network none of the gateways is on the link, nor the peers.
        for (k, a) in (1..).zip(&mut bare.addresses) {
            let other = if a.address.is_ipv4() { "10.66.0." } else { "fd66::" };
            (a.address, a.prefix_len) = (ip(&format!("{other}{k}")), 24);
        }
        let p = planned(&s, &bare, &mut next);
        for u in &p.uses {
            prop_assert!(!u.routed && u.lacks.contains("DHCP"), "{:?}", u);
        }
        prop_assert_eq!((p.routes, p.rules), (vec![], vec![]));
    }
}

#[test]
fn a_route_to_the_proxy_by_another_access_does_not_win() {
    let (s, view) = machine(&[Plain, Private]);
    let p = planned(&s, &view, &mut Memory::default());
    let after = done(&view, &p);
    // 192.0.2.0/28 by d2 is more specific than the default route by d1.
    let from = host(true, 1, 2);
    let to = way(&after, from, ip(PROXY4), None);
    assert_eq!(to, [(1, Some(host(true, 1, 1)))]);
    let beside = way(&after, from, ip("192.0.2.2"), None);
    assert_eq!(
        beside,
        [(2, Some(host(true, 2, 1)))],
        "as in the main table"
    );
}

#[test]
fn each_refusal_has_its_cause() {
    let why = |change: &dyn Fn(&mut View)| {
        let (mut s, mut view) = machine(&[Plain, Plain]);
        view.addresses.retain(|a| a.address.is_ipv4());
        s.proxy = vec![ip(PROXY4)];
        change(&mut view);
        view.rules.sort_by_key(|r| r.priority);
        let p = planned(&s, &view, &mut Memory::default());
        let used = (AccessState::Active, String::new());
        let (state, why) = p.out[0].clone().unwrap_or(used);
        let note = p.notes.first().map(|(_, n)| n.clone()).unwrap_or_default();
        (state, why, note, p.rules.len())
    };
    let mine = IpNet::from(host(true, 1, 2));
    let elsewhere = Route {
        table: 100,
        ..by(everywhere(true), 2, Some(host(true, 2, 1)))
    };
    let (no_address, active) = (AccessState::NoAddress, AccessState::Active);
    let none = why(&|v| v.routes.retain(|r| r.ifindex != 1));
    assert!(
        none.0 == no_address && none.1.contains("nor one to the proxy"),
        "{none:?}"
    );
    // Somebody sends its packets where it does not lead: respected, and said.
    let other = why(&|v| {
        v.rules.push(Rule::new(100, mine, 100));
        v.routes.push(elsewhere);
    });
    assert_eq!(other.0, no_address);
    assert!(
        other.1.contains("leave by d2") && other.1.contains("100: from 10.77.1.2 lookup 100"),
        "{other:?}"
    );
    let refused = why(&|v| {
        let action = Action::Refuse;
        v.rules.push(Rule {
            action,
            ..Rule::new(100, mine, 0)
        });
    });
    assert!(
        refused.0 == no_address && refused.1.contains("prohibit"),
        "{refused:?}"
    );
    // What is bound to the interface gets out all the same: used, and the rest is said.
    let main = why(&|v| {
        v.rules.push(Rule::new(100, mine, MAIN_TABLE));
        v.routes.push(Route {
            metric: 1,
            ..by(everywhere(true), 2, Some(host(true, 2, 1)))
        });
    });
    assert!(
        main.0 == active && main.2.contains("lookup main"),
        "{main:?}"
    );
    let all = why(&|v| {
        v.rules.push(Rule::new(5270, everywhere(true), 52));
        v.routes.push(Route {
            table: 52,
            ..by(everywhere(true), 90, None)
        });
    });
    assert!(
        all.0 == active && all.2.contains("5270: from all lookup 52") && all.2.contains("bound"),
        "{all:?}"
    );
    // Not before ours, or not for its packets: nothing to be said.
    let fine = why(&|v| {
        let rest = Rest::Unmet;
        v.rules.push(Rule {
            rest,
            ..Rule::new(100, everywhere(true), 100)
        });
        v.rules.push(Rule::new(RULE_PRIORITY + 1, mine, 100));
        v.routes.push(elsewhere);
    });
    assert_eq!((fine.0, fine.2.as_str()), (active, ""));
    // `not fwmark`, as wg-quick has it.
    let inverted = why(&|v| {
        let (rest, inverted) = (Rest::Unmet, true);
        let all = Rule::new(100, everywhere(true), 100);
        v.rules.push(Rule {
            rest,
            inverted,
            ..all
        });
        v.routes.push(elsewhere);
    });
    assert!(
        inverted.0 == active && inverted.2.contains("leave by d2"),
        "{inverted:?}"
    );
    for r in [&other, &refused, &main, &all, &fine, &inverted] {
        assert_eq!(r.3, 6, "ours stay: {r:?}");
    }
}

#[test]
fn ours_stay_unless_theirs_do_the_same() {
    let mine = host(true, 1, 2);
    let rules_of = |rule: Rule, metric, memory: &mut Memory| {
        let (mut s, mut view) = machine(&[Plain, Plain]);
        s.proxy = vec![ip(PROXY4)];
        view.addresses.retain(|a| a.address.is_ipv4());
        let default = view
            .routes
            .iter_mut()
            .find(|r| r.is_default() && r.ifindex == 1);
        default.unwrap().metric = metric;
        view.rules.push(rule);
        view.routes.push(Route {
            table: 100,
            ..by(everywhere(true), 1, Some(host(true, 1, 1)))
        });
        let p = planned(&s, &view, memory);
        let mine = |r: &&Rule| r.source == IpNet::from(mine);
        p.rules.iter().filter(mine).count()
    };
    let rules = |rule, metric| rules_of(rule, metric, &mut Memory::default());
    // Theirs do not say that packets have to be small.
    let mut narrow = Memory::default();
    narrow.narrow.insert(mine);
    for (priority, ours) in [(32_765, 3), (100, 0)] {
        let theirs = Rule::new(priority, mine.into(), 100);
        assert_eq!(rules(theirs, 1000), 0);
        assert_eq!(rules_of(theirs, 1000, &mut narrow), ours);
    }
    let mine = IpNet::from(host(true, 1, 2));
    let suppressed = |priority| Rule {
        suppress: Some(0),
        ..Rule::new(priority, mine, MAIN_TABLE)
    };
    assert_eq!(rules(Rule::new(100, mine, 100), 1000), 0);
    for priority in [100, 7699, 7701] {
        assert_eq!(rules(suppressed(priority), 1000), 3);
    }
    // The main table leads all by it, or by the other one.
    assert_eq!(rules(Rule::new(100, mine, MAIN_TABLE), 1), 0);
    assert_eq!(rules(Rule::new(100, mine, MAIN_TABLE), 1000), 3);
    // To one host only, or of some programs.
    let to = Some(net("192.0.2.1/32"));
    assert_eq!(
        rules(
            Rule {
                to,
                ..Rule::new(100, mine, 100)
            },
            1000
        ),
        3
    );
    let rest = Rest::Perhaps;
    assert_eq!(
        rules(
            Rule {
                rest,
                ..Rule::new(100, mine, 100)
            },
            1000
        ),
        3
    );
    let without_source = Rule::new(100, everywhere(true), 100);
    assert_eq!(rules(without_source, 1000), 3);
}
