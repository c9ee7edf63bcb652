//! Exits: how packets leave by an access that works, whatever the routes of this machine say.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::default_route::{Facts, Family};
use super::plan::Use;
use super::view::Route;

/// Exit by one access, of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Route to everywhere.
    pub route: Route,
    /// Networks on the link of its interface.
    pub networks: Vec<IpNet>,
}

/// Exits by the number of the access: of IPv4, and of IPv6. An access that does not work has none.
pub type Exits = BTreeMap<usize, [Option<Exit>; 2]>;

/// Plans the exits of all accesses.
pub fn exits(facts: Facts<'_>) -> Exits {
    let mut all = Exits::new();
    for (place, v4) in [true, false].into_iter().enumerate() {
        let family = Family::new(facts, v4);
        for u in family.exits.iter().filter(|u| !is_doubtful(facts, u)) {
            let exit = &mut all.entry(u.access).or_default()[place];
            if exit.is_none() {
                *exit = family.route_by(u.ifindex, None).map(|route| Exit {
                    networks: networks(facts, &route),
                    route,
                });
            }
        }
    }
    all
}

/// Whether an address of the same interface is silent while nothing has come back at this one: it is
/// not asked where the proxy has no address of its family.
fn is_doubtful(facts: Facts<'_>, u: &Use) -> bool {
    let mut others = facts.uses.iter().filter(|o| o.ifindex == u.ifindex);
    others.any(|o| facts.is_silent(o)) && !facts.memory.trials.heard(&u.interface, u.address)
}

/// Lists the networks of the interface of a route, of its family.
fn networks(facts: Facts<'_>, route: &Route) -> Vec<IpNet> {
    let addresses = facts.view.addresses.iter();
    let mine = addresses
        .filter(|a| a.ifindex == route.ifindex && a.global && a.address.is_ipv4() == route.is_v4());
    let networks = mine.filter_map(|a| IpNet::new(a.address, a.prefix_len).ok());
    // One of a single host is the host itself.
    let networks = networks.filter(|n| n.prefix_len() < n.max_prefix_len());
    let mut networks: Vec<IpNet> = networks.map(|n| n.trunc()).collect();
    networks.sort_unstable();
    networks.dedup();
    networks
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use braid_core::Time;

    use super::*;
    use crate::memory::Memory;
    use crate::plan::{Plan, plan};
    use crate::settings::Condition;
    use crate::settings::testing::{access, settings};
    use crate::view::{Address, Interface, MAIN_TABLE, View, everywhere};

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn host(v4: bool, k: u32, n: u32) -> IpAddr {
        match v4 {
            true => ip(&format!("10.77.{k}.{n}")),
            false => ip(&format!("2001:db8:{k}::{n}")),
        }
    }

    /// Interfaces d1 and d2 with addresses and default routes of both families.
    fn machine() -> View {
        let mut view = View::default();
        for k in [1, 2] {
            view.interfaces.push(Interface {
                index: k,
                name: format!("d{k}"),
                up: true,
                carrier: true,
                loopback: false,
                point_to_point: false,
                kind: String::new(),
                master: None,
                mtu: 1500,
            });
            for (v4, prefix_len) in [(true, 24), (false, 64)] {
                view.addresses.push(Address {
                    ifindex: k,
                    address: host(v4, k, 2),
                    prefix_len,
                    global: true,
                    unusable: false,
                    deprecated: false,
                    temporary: false,
                });
                view.routes.push(Route {
                    gateway: Some(host(v4, k, 1)),
                    metric: k,
                    ..Route::new(MAIN_TABLE, everywhere(v4), k)
                });
            }
        }
        view
    }

    /// Plans for the machine while these addresses are silent.
    fn planned(view: &View, silent: &[IpAddr], change: impl Fn(&mut Memory)) -> Plan {
        let mut s = settings(vec![access("a", "d1"), access("b", "d2")]);
        s.proxy = vec![ip("192.0.2.1")];
        let mut memory = Memory::default();
        memory.learn(view, &s.proxy);
        change(&mut memory);
        let since = Time::ZERO;
        let conditions = silent.iter().map(|a| (*a, Condition::Silent { since }));
        plan(&s, view, &memory, &conditions.collect())
    }

    fn families(plan: &Plan, access: usize) -> [bool; 2] {
        let exits = plan.exits.get(&access);
        exits.map_or([false; 2], |e| e.each_ref().map(Option::is_some))
    }

    #[test]
    fn an_access_leads_out_by_its_gateway_and_knows_its_networks() {
        let plan = planned(&machine(), &[], |_| {});
        for (access, k) in [(0, 1), (1, 2)] {
            for (place, v4) in [true, false].into_iter().enumerate() {
                let exit = plan.exits[&access][place].as_ref().unwrap();
                assert_eq!(exit.route.gateway, Some(host(v4, k, 1)));
                assert_eq!(exit.route.ifindex, k);
                let net = if v4 {
                    format!("10.77.{k}.0/24")
                } else {
                    format!("2001:db8:{k}::/64")
                };
                assert_eq!(exit.networks, [net.parse().unwrap()]);
            }
        }
    }

    #[test]
    fn what_does_not_work_leads_nowhere() {
        let mut view = machine();
        view.interfaces[0].carrier = false;
        let plan = planned(&view, &[], |_| {});
        assert_eq!([0, 1].map(|a| families(&plan, a)), [[false; 2], [true; 2]]);
        view.interfaces[0].carrier = true;
        view.routes.retain(|r| r.ifindex != 1 || r.is_v4());
        view.addresses
            .retain(|a| a.ifindex != 1 || a.address.is_ipv4());
        let plan = planned(&view, &[], |_| {});
        assert_eq!(
            [0, 1].map(|a| families(&plan, a)),
            [[true, false], [true; 2]]
        );
    }

    #[test]
    fn an_interface_that_is_silent_in_one_family_is_doubted_in_the_other() {
        let view = machine();
        let silent = [host(true, 1, 2)];
        let plan = planned(&view, &silent, |_| {});
        assert_eq!([0, 1].map(|a| families(&plan, a)), [[false; 2], [true; 2]]);
        // Unless something comes back there.
        let heard = |m: &mut Memory| assert!(m.trials.answered("d1", host(false, 1, 2)));
        let plan = planned(&view, &silent, heard);
        assert_eq!(families(&plan, 0), [false, true]);
    }
}
