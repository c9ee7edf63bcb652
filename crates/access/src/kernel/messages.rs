//! Routes and rules as the kernel says them (rtnetlink(7)), and as it is told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::view::{Action, Rest, Route, RouteKind, Rule, everywhere};
use ipnet::IpNet;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHop, RouteNextHopFlags,
    RouteProtocol, RouteScope, RouteType, RouteVia,
};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};

/// The table of the kernel's own addresses.
const LOCAL_TABLE: u32 = 255;

/// The routes of a message: one for each next hop.
pub(super) fn routes(m: &RouteMessage) -> Vec<Route> {
    let v4 = match m.header.address_family {
        AddressFamily::Inet => true,
        AddressFamily::Inet6 => false,
        _ => return vec![],
    };
    let kind = match m.header.kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::Unreachable | RouteType::Prohibit | RouteType::BlackHole => RouteKind::Refuse,
        RouteType::Throw => RouteKind::Throw,
        _ => return vec![],
    };
    let net = |a: &RouteAddress, length| IpNet::new(address(a)?, length).ok();
    let mut r = Route {
        kind,
        protocol: m.header.protocol.into(),
        onlink: m.header.flags.contains(RouteFlags::Onlink),
        ..Route::new(m.header.table.into(), everywhere(v4), 0)
    };
    let mut hops: &[RouteNextHop] = &[];
    let mut known = m.header.destination_prefix_length == 0;
    for a in &m.attributes {
        match a {
            RouteAttribute::Table(t) => r.table = *t,
            RouteAttribute::Priority(p) => r.metric = *p,
            RouteAttribute::Destination(to) => {
                if let Some(to) = net(to, m.header.destination_prefix_length) {
                    (r.to, known) = (to, true);
                }
            }
            RouteAttribute::Source(from) => r.from = net(from, m.header.source_prefix_length),
            RouteAttribute::PrefSource(a) => r.source = address(a),
            RouteAttribute::MultiPath(all) => hops = all,
            _ => {}
        }
    }
    // A type of service is a condition that few packets meet.
    if !known || r.table == LOCAL_TABLE || m.header.tos != 0 {
        return vec![];
    }
    if hops.is_empty() {
        let one = hop(r, &m.attributes);
        let leads = one.ifindex != 0 || kind != RouteKind::Unicast;
        return leads.then_some(one).into_iter().collect();
    }
    let live = hops
        .iter()
        .filter(|h| !h.flags.contains(RouteNextHopFlags::Dead));
    live.map(|h| {
        let of = Route {
            ifindex: h.interface_index,
            onlink: h.flags.contains(RouteNextHopFlags::Onlink),
            ..r
        };
        hop(of, &h.attributes)
    })
    .collect()
}

/// The route with its next hop.
fn hop(mut r: Route, attributes: &[RouteAttribute]) -> Route {
    for a in attributes {
        match a {
            RouteAttribute::Oif(i) => r.ifindex = *i,
            RouteAttribute::Gateway(a) => r.gateway = address(a),
            RouteAttribute::Via(RouteVia::Inet(a)) => r.gateway = Some((*a).into()),
            RouteAttribute::Via(RouteVia::Inet6(a)) => r.gateway = Some((*a).into()),
            _ => {}
        }
    }
    if r.kind != RouteKind::Unicast {
        r.ifindex = 0;
    }
    r
}

fn address(a: &RouteAddress) -> Option<IpAddr> {
    match a {
        RouteAddress::Inet(a) => Some((*a).into()),
        RouteAddress::Inet6(a) => Some((*a).into()),
        _ => None,
    }
}

/// The message of a unicast route by one next hop.
pub(super) fn route_message(r: &Route) -> RouteMessage {
    let mut m = match r.to {
        IpNet::V4(to) => {
            // The kernel holds a gateway against a narrower scope than the route's.
            let scope = match r.gateway {
                Some(_) => RouteScope::Universe,
                None => RouteScope::Link,
            };
            RouteMessageBuilder::<Ipv4Addr>::new()
                .destination_prefix(to.addr(), to.prefix_len())
                .scope(scope)
                .build()
        }
        IpNet::V6(to) => RouteMessageBuilder::<Ipv6Addr>::new()
            .destination_prefix(to.addr(), to.prefix_len())
            .build(),
    };
    if r.is_default() {
        let is_to = |a: &RouteAttribute| matches!(a, RouteAttribute::Destination(_));
        m.attributes.retain(|a| !is_to(a));
    }
    m.header.protocol = RouteProtocol::from(r.protocol);
    m.header.table = u8::try_from(r.table).unwrap_or(0);
    m.attributes.push(RouteAttribute::Table(r.table));
    m.attributes.push(RouteAttribute::Oif(r.ifindex));
    m.attributes.push(RouteAttribute::Priority(r.metric));
    let gateway = r.gateway.map(|g| match (r.is_v4(), g) {
        (true, IpAddr::V6(g)) => RouteAttribute::Via(RouteVia::Inet6(g)),
        (_, IpAddr::V4(g)) => RouteAttribute::Gateway(RouteAddress::Inet(g)),
        (false, IpAddr::V6(g)) => RouteAttribute::Gateway(RouteAddress::Inet6(g)),
    });
    m.attributes.extend(gateway);
    let source = r.source.map(|s| match s {
        IpAddr::V4(s) => RouteAttribute::PrefSource(RouteAddress::Inet(s)),
        IpAddr::V6(s) => RouteAttribute::PrefSource(RouteAddress::Inet6(s)),
    });
    m.attributes.extend(source);
    if r.onlink && r.gateway.is_some() {
        m.header.flags |= RouteFlags::Onlink;
    }
    m
}

/// The rule of a message.
pub(super) fn rule(m: &RuleMessage) -> Option<Rule> {
    let v4 = match m.header.family {
        AddressFamily::Inet => true,
        AddressFamily::Inet6 => false,
        _ => return None,
    };
    let mut r = Rule::new(0, everywhere(v4), m.header.table.into());
    r.inverted = m.header.flags.contains(RuleFlags::Invert);
    let (mut table, mut to) = (u32::from(m.header.table), 0);
    let mut rests = Vec::new();
    // A type of service that hardly any packet has.
    if m.header.tos != 0 {
        rests.push(Rest::Unmet);
    }
    let (mut mark, mut mask) = (None, u32::MAX);
    for a in &m.attributes {
        match a {
            RuleAttribute::Source(a) => r.source = IpNet::new(*a, m.header.src_len).ok()?,
            RuleAttribute::Destination(a) => r.to = Some(IpNet::new(*a, m.header.dst_len).ok()?),
            RuleAttribute::Priority(p) => r.priority = *p,
            RuleAttribute::Protocol(p) => r.protocol = u8::from(*p),
            RuleAttribute::Table(t) => table = *t,
            RuleAttribute::Goto(p) => to = *p,
            RuleAttribute::SuppressPrefixLen(n) => r.suppress = u8::try_from(*n).ok(),
            RuleAttribute::FwMark(n) => mark = Some(*n),
            RuleAttribute::FwMask(n) => mask = *n,
            // What this machine sends comes in by the loopback.
            RuleAttribute::Iifname(name) if name == "lo" => {}
            RuleAttribute::Iifname(_)
            | RuleAttribute::Oifname(_)
            | RuleAttribute::TunId(_)
            | RuleAttribute::L3MDev(true) => rests.push(Rest::Unmet),
            RuleAttribute::UidRange(_)
            | RuleAttribute::IpProtocol(_)
            | RuleAttribute::SourcePortRange(_)
            | RuleAttribute::DestinationPortRange(_)
            | RuleAttribute::Other(_) => rests.push(Rest::Perhaps),
            RuleAttribute::SuppressIfGroup(n) if *n != u32::MAX => rests.push(Rest::Perhaps),
            _ => {}
        }
    }
    if mark.is_some_and(|mark| mark & mask != 0) {
        rests.push(Rest::Unmet);
    }
    r.rest = match () {
        () if rests.contains(&Rest::Unmet) => Rest::Unmet,
        () if rests.contains(&Rest::Perhaps) => Rest::Perhaps,
        () => Rest::Met,
    };
    r.action = match m.header.action {
        RuleAction::ToTable => Action::Lookup(table),
        RuleAction::Goto => Action::Goto(to),
        RuleAction::Blackhole | RuleAction::Unreachable | RuleAction::Prohibit => Action::Refuse,
        _ => Action::Nothing,
    };
    Some(r)
}

/// The message of a rule of ours.
pub(super) fn rule_message(r: &Rule) -> RuleMessage {
    let mut m = RuleMessage::default();
    m.header.family = match r.source {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    };
    m.header.src_len = r.source.prefix_len();
    m.attributes = vec![
        RuleAttribute::Source(r.source.addr()),
        RuleAttribute::Priority(r.priority),
        RuleAttribute::Protocol(RouteProtocol::from(r.protocol)),
    ];
    match r.action {
        Action::Goto(priority) => {
            m.header.action = RuleAction::Goto;
            m.attributes.push(RuleAttribute::Goto(priority));
        }
        Action::Lookup(table) => {
            m.header.action = RuleAction::ToTable;
            m.attributes.push(RuleAttribute::Table(table));
        }
        Action::Refuse | Action::Nothing => {}
    }
    let suppress = r
        .suppress
        .map(|n| RuleAttribute::SuppressPrefixLen(n.into()));
    m.attributes.extend(suppress);
    m
}

/// A route in words.
pub(super) fn say_route(r: &Route) -> String {
    let by = r.gateway.map(|g| format!(" via {g}")).unwrap_or_default();
    let (by_interface, table) = (r.ifindex, r.table);
    match r.is_default() {
        true => format!("the default route{by} by interface {by_interface} in table {table}"),
        false => {
            let to = r.to.addr();
            format!("the route to {to}{by} by interface {by_interface} in table {table}")
        }
    }
}

#[cfg(test)]
mod tests;
