//! How packets from an address of an access get out by its interface.

use std::net::IpAddr;

use ipnet::IpNet;

use super::memory::{Hop, Memory};
use super::view::{
    Address, DefaultRoute, FIRST_TABLE, Interface, PROTOCOL, RULE_PRIORITY, SourceRule, View,
};

/// The priority of the kernel's rule that asks the main table.
const MAIN_PRIORITY: u32 = 32766;

/// What takes packets from an address out by its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// Somebody else's rule and table do.
    Theirs,
    /// Somebody else's rule does, once this route is back in its table.
    Restored(DefaultRoute),
    /// Our rule and our table do.
    Ours(SourceRule, DefaultRoute),
    /// Nothing is known to lead anywhere but to the interface's own network.
    Nothing,
}

/// Finds out how packets from `address` get out by `interface`.
pub fn lead(view: &View, memory: &Memory, interface: &Interface, address: &Address) -> Lead {
    let v4 = address.address.is_ipv4();
    let valid = |hop: &Hop| {
        hop.gateway
            .map_or(interface.point_to_point, |g| on_link(view, interface, g))
    };
    let mut rules: Vec<_> = view
        .rules
        .iter()
        .filter(|r| !r.is_ours() && r.priority < MAIN_PRIORITY)
        .filter(|r| r.source.contains(&address.address))
        .collect();
    rules.sort_by_key(|r| r.priority);
    for rule in rules {
        let theirs: Vec<_> = view
            .routes
            .iter()
            .filter(|r| r.table == rule.table && r.v4 == v4 && r.protocol != PROTOCOL)
            .collect();
        if theirs.iter().any(|r| r.ifindex == interface.index) {
            return Lead::Theirs;
        }
        if !theirs.is_empty() {
            // It leads out elsewhere: ours has to come before it, or cannot help.
            if rule.priority < RULE_PRIORITY {
                return Lead::Nothing;
            }
            break;
        }
        let had = memory.hop_in(&interface.name, v4, rule.table);
        if let Some(hop) = had.filter(valid) {
            return Lead::Restored(route(interface, v4, rule.table, hop));
        }
    }
    let hop = memory
        .hop(&interface.name, v4)
        .filter(valid)
        .or(interface.point_to_point.then_some(Hop {
            gateway: None,
            metric: 0,
        }));
    let Some(hop) = hop else {
        return Lead::Nothing;
    };
    let table = FIRST_TABLE + interface.index;
    let rule = SourceRule {
        priority: RULE_PRIORITY,
        source: IpNet::from(address.address),
        table,
        protocol: PROTOCOL,
    };
    // IPv6 replaces a metric of 0 by one of its own.
    let hop = Hop { metric: 1, ..hop };
    Lead::Ours(rule, route(interface, v4, table, hop))
}

fn route(interface: &Interface, v4: bool, table: u32, hop: Hop) -> DefaultRoute {
    DefaultRoute {
        table,
        v4,
        ifindex: interface.index,
        gateway: hop.gateway,
        metric: hop.metric,
        protocol: PROTOCOL,
    }
}

/// Whether the interface reaches `gateway` without another gateway.
fn on_link(view: &View, interface: &Interface, gateway: IpAddr) -> bool {
    if let IpAddr::V6(g) = gateway
        && g.is_unicast_link_local()
    {
        return true;
    }
    view.addresses
        .iter()
        .any(|a| a.ifindex == interface.index && a.reaches(gateway))
}
