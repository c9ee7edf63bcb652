//! The kernel's walk over rules and tables for one packet (`fib_rules_lookup`), as far as a
//! [`View`](crate::view::View) has them.

use std::net::IpAddr;

use crate::view::{Action, Rest, Route, RouteKind, Rule};

/// A packet that a program of this machine sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its source; unspecified where the kernel has still to choose it.
    pub source: IpAddr,
    /// Its destination.
    pub to: IpAddr,
    /// The index of the interface that its socket is bound to (`SO_BINDTODEVICE`).
    pub bound: Option<u32>,
}

/// Where a packet goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way<'a> {
    /// By one of these routes, which a rule led to.
    Out(Vec<&'a Route>, &'a Rule),
    /// Nowhere: a rule, or a route that it led to, refuses it.
    Refused(&'a Rule),
    /// Nowhere: there is no route.
    Nowhere,
}

impl<'a> Way<'a> {
    /// Whether it leaves by this interface, and by no other.
    pub fn is_by(&self, ifindex: u32) -> bool {
        matches!(self, Self::Out(by, _) if by.iter().all(|r| r.ifindex == ifindex))
    }

    /// The rule that decided.
    pub fn rule(&self) -> Option<&'a Rule> {
        match self {
            Self::Out(_, rule) | Self::Refused(rule) => Some(rule),
            Self::Nowhere => None,
        }
    }
}

/// Finds the way of `packet` by `rules`, which are in the order of their priorities. A rule of
/// which it is not known whether the packet meets its conditions counts as none.
pub fn walk<'a>(rules: &[&'a Rule], routes: &[&'a Route], packet: Packet) -> Way<'a> {
    let mut from = 0;
    for rule in rules {
        if rule.priority < from || !meets(rule, packet) {
            continue;
        }
        let table = match rule.action {
            Action::Lookup(table) => table,
            Action::Refuse => return Way::Refused(rule),
            Action::Goto(priority) => {
                from = priority;
                continue;
            }
            Action::Nothing => continue,
        };
        let found = look_up(routes, table, packet);
        let Some(first) = found.first() else { continue };
        match first.kind {
            RouteKind::Throw => {}
            RouteKind::Refuse => return Way::Refused(rule),
            RouteKind::Unicast => {
                let length = first.to.prefix_len();
                if rule.suppress.is_none_or(|n| length > n) {
                    return Way::Out(found, rule);
                }
            }
        }
    }
    Way::Nowhere
}

fn meets(rule: &Rule, packet: Packet) -> bool {
    let same = rule.source.addr().is_ipv4() == packet.source.is_ipv4();
    // IPv6 holds no rule with a source against a packet that has none yet.
    let none = !packet.source.is_ipv4() && packet.source.is_unspecified();
    let from = match none {
        true => rule.source.prefix_len() == 0,
        false => rule.source.contains(&packet.source),
    };
    let ends = from && rule.to.is_none_or(|t| t.contains(&packet.to));
    match rule.rest {
        Rest::Perhaps => false,
        rest => same && (ends && rest == Rest::Met) != rule.inverted,
    }
}

/// The best routes of a table: those of the longest prefix, and of the least metric of these.
fn look_up<'a>(routes: &[&'a Route], table: u32, packet: Packet) -> Vec<&'a Route> {
    let out = |r: &Route| packet.bound.is_none_or(|i| i == r.ifindex);
    let takes = |r: &&&Route| {
        let here = r.table == table && r.takes(packet.source, packet.to);
        // One that refuses does so before it is asked for its interface.
        here && (r.kind != RouteKind::Unicast || out(r))
    };
    let order = |r: &Route| (std::cmp::Reverse(r.to.prefix_len()), r.metric);
    let best = routes.iter().filter(takes).map(|r| order(r)).min();
    let mut all: Vec<_> = routes.iter().filter(takes).copied().collect();
    all.retain(|r| Some(order(r)) == best);
    all
}
