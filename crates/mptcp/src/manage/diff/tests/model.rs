//! A kernel in memory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_access::view::{Address, Interface, MAIN_PRIORITY, MAIN_TABLE, Route, Rule, everywhere};

use super::super::{Op, View};
use crate::pm::{Endpoint, EndpointFlags};

/// Applies a step as the kernel does; a rejected step is a failed test.
pub(super) fn apply(view: &mut View, op: &Op) {
    match op {
        Op::DeleteEndpoint(e) => {
            let before = view.endpoints.len();
            view.endpoints.retain(|x| x.id != e.id);
            assert_eq!(view.endpoints.len() + 1, before, "no such endpoint: {e}");
        }
        Op::AddEndpoint(e) => {
            let implicit = |x: &Endpoint| x.flags.contains(EndpointFlags::IMPLICIT);
            view.endpoints
                .retain(|x| !(x.address == e.address && implicit(x)));
            assert!(view.endpoints.iter().all(|x| x.address != e.address), "{e}");
            assert!(view.endpoints.len() < 8, "too many");
            let i = view
                .routes
                .iter()
                .any(|r| Some(r.ifindex) == e.ifindex && r.is_v4() == e.address.is_ipv4());
            assert!(i, "no route for {e}");
            let last = view.endpoints.iter().map(|x| x.id).max();
            view.endpoints.push(Endpoint {
                id: last.unwrap_or(0).max(20) + 1,
                ..e.clone()
            });
        }
        Op::SetBackup(e, backup) => {
            let found = view.endpoints.iter_mut().find(|x| x.id == e.id);
            found.unwrap().flags.set(EndpointFlags::BACKUP, *backup);
        }
        Op::DeleteRule(r) => {
            let at = view.rules.iter().position(|x| x == r).expect("a rule");
            view.rules.remove(at);
        }
        Op::AddRule(r) => {
            assert!(!view.rules.iter().any(|x| x.is_like(r)));
            // After those of the same priority.
            let after = |x: &Rule| x.priority <= r.priority;
            let at = view.rules.iter().rposition(after).map_or(0, |i| i + 1);
            view.rules.insert(at, *r);
        }
        Op::DeleteRoute(r) => {
            let at = view.routes.iter().position(|x| x == r).expect("a route");
            view.routes.remove(at);
        }
        Op::AddRoute(r) => {
            let same = |x: &Route| (x.table, x.to, x.metric) == (r.table, r.to, r.metric);
            assert!(!view.routes.iter().any(same), "a route like {r:?} exists");
            view.routes.push(*r);
        }
    }
}

pub(super) fn v4(k: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, k, 2).into()
}

pub(super) fn v6(k: u8) -> IpAddr {
    Ipv6Addr::new(0xfd77, 0, u16::from(k), 0, 0, 0, 0, 2).into()
}

pub(super) fn address(k: u8, address: IpAddr) -> Address {
    Address {
        ifindex: k.into(),
        address,
        prefix_len: if address.is_ipv4() { 24 } else { 64 },
        global: true,
        unusable: false,
        deprecated: false,
        temporary: false,
    }
}

pub(super) fn default_route(k: u8, v4: bool, table: u32, metric: u32) -> Route {
    let gateway: IpAddr = match v4 {
        true => Ipv4Addr::new(10, 77, k, 1).into(),
        false => Ipv6Addr::new(0xfd77, 0, u16::from(k), 0, 0, 0, 0, 1).into(),
    };
    Route {
        gateway: Some(gateway),
        metric,
        protocol: 16,
        ..Route::new(table, everywhere(v4), k.into())
    }
}

/// A device with `n` interfaces `d1`.. that a DHCP client has set up.
pub(super) fn device(n: u8) -> View {
    let main = |v4| Rule::new(MAIN_PRIORITY, everywhere(v4), MAIN_TABLE);
    let mut view = View::default();
    view.network.rules = vec![main(true), main(false)];
    for k in 1..=n {
        view.interfaces.push(Interface {
            index: k.into(),
            name: format!("d{k}"),
            up: true,
            carrier: true,
            ..Interface::default()
        });
        view.addresses
            .extend([address(k, v4(k)), address(k, v6(k))]);
        for four in [true, false] {
            view.routes
                .push(default_route(k, four, MAIN_TABLE, 100 + u32::from(k)));
        }
    }
    view
}
