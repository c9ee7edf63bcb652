use crate::view::{MAIN_TABLE, PEER_PRIORITY, PROTOCOL};
use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn of(v4: bool) -> impl Strategy<Value = (IpNet, Option<IpAddr>)> {
    let host = match v4 {
        true => any::<Ipv4Addr>().prop_map(IpAddr::from).boxed(),
        false => any::<Ipv6Addr>().prop_map(IpAddr::from).boxed(),
    };
    let whole = if v4 { 32u8 } else { 128 };
    let to = (host, prop::sample::select(vec![0, whole]));
    let gateway = match v4 {
        // IPv4 leads by gateways of both families (RFC 8950).
        true => any::<IpAddr>().boxed(),
        false => any::<Ipv6Addr>().prop_map(IpAddr::from).boxed(),
    };
    let net = to.prop_map(|(host, length)| IpNet::new(host, length).unwrap().trunc());
    (net, prop::option::of(gateway))
}

proptest! {
    #[test]
    fn a_route_of_ours_is_told_as_it_is_read(
        (to, gateway) in any::<bool>().prop_flat_map(of), ifindex in 1u32..99, onlink: bool,
        source: Option<IpAddr>,
    ) {
        let r = Route {
            gateway,
            source: source.filter(|s| s.is_ipv4() == to.addr().is_ipv4()),
            onlink: onlink && gateway.is_some(),
            metric: 1,
            protocol: PROTOCOL,
            ..Route::new(77_000_000 + ifindex, to, ifindex)
        };
        prop_assert_eq!(routes(&route_message(&r)), [r]);
    }

    #[test]
    fn a_rule_of_ours_is_told_as_it_is_read(
        source: IpAddr, length in 0u8..=32, suppress: bool, to: Result<u32, u32>,
    ) {
        let r = Rule {
            suppress: suppress.then_some(0),
            protocol: PROTOCOL,
            action: to.map_or_else(Action::Goto, Action::Lookup),
            ..Rule::new(PEER_PRIORITY, IpNet::new_assert(source, length).trunc(), 0)
        };
        prop_assert_eq!(rule(&rule_message(&r)), Some(r));
    }
}

#[test]
fn each_next_hop_of_a_route_is_one() {
    let mut m = RouteMessageBuilder::<Ipv6Addr>::new().build();
    let hop = |index, gateway: Option<&str>, flags| {
        let mut h = RouteNextHop::default();
        (h.interface_index, h.flags) = (index, flags);
        let address = gateway.map(|g| RouteAttribute::Gateway(RouteAddress::from(ip(g))));
        h.attributes.extend(address);
        h
    };
    let none = RouteNextHopFlags::empty();
    m.attributes.push(RouteAttribute::Priority(1024));
    m.attributes.push(RouteAttribute::MultiPath(vec![
        hop(4, Some("fe80::1"), none),
        hop(5, Some("2001:db8::1"), RouteNextHopFlags::Onlink),
        hop(6, None, none),
        hop(7, Some("fe80::1"), RouteNextHopFlags::Dead),
    ]));
    let all: Vec<_> = routes(&m)
        .iter()
        .map(|r| (r.ifindex, r.gateway, r.onlink, r.metric))
        .collect();
    let wanted = [
        (4, Some(ip("fe80::1")), false, 1024),
        (5, Some(ip("2001:db8::1")), true, 1024),
        (6, None, false, 1024),
    ];
    assert_eq!(all, wanted);
}

#[test]
fn what_is_no_way_for_packets_is_left_out() {
    let read = |change: &dyn Fn(&mut RouteMessage)| {
        let mut m = RouteMessageBuilder::<Ipv4Addr>::new()
            .output_interface(3)
            .build();
        change(&mut m);
        let all = routes(&m);
        all.first().map(|r| (r.kind, r.ifindex, r.table))
    };
    let main = (RouteKind::Unicast, 3, MAIN_TABLE);
    assert_eq!(read(&|_| {}), Some(main));
    assert_eq!(read(&|m| m.header.table = 255), None);
    assert_eq!(read(&|m| m.header.kind = RouteType::Local), None);
    assert_eq!(read(&|m| m.header.tos = 4), None);
    let refuses = Some((RouteKind::Refuse, 0, MAIN_TABLE));
    assert_eq!(read(&|m| m.header.kind = RouteType::Unreachable), refuses);
    assert_eq!(read(&|m| m.attributes.clear()), None);
}

#[test]
fn the_conditions_of_rules_are_known() {
    let read = |more: Vec<RuleAttribute>| {
        let mut m = RuleMessage::default();
        m.header.family = AddressFamily::Inet;
        m.header.action = RuleAction::ToTable;
        m.attributes = more;
        m.attributes.push(RuleAttribute::Table(52));
        rule(&m).unwrap()
    };
    let rest = |more| read(more).rest;
    let all = read(vec![]);
    assert_eq!(
        (all.source, all.action),
        (everywhere(true), Action::Lookup(52))
    );
    assert_eq!(
        rest(vec![RuleAttribute::FwMark(0), RuleAttribute::FwMask(255)]),
        Rest::Met
    );
    assert_eq!(rest(vec![RuleAttribute::FwMark(1)]), Rest::Unmet);
    assert_eq!(rest(vec![RuleAttribute::Iifname("lo".into())]), Rest::Met);
    assert_eq!(
        rest(vec![RuleAttribute::Iifname("lan1".into())]),
        Rest::Unmet
    );
    assert_eq!(rest(vec![RuleAttribute::Oifname("d1".into())]), Rest::Unmet);
    assert_eq!(rest(vec![RuleAttribute::L3MDev(true)]), Rest::Unmet);
    assert_eq!(
        rest(vec![RuleAttribute::IpProtocol(6u8.into())]),
        Rest::Perhaps
    );
    let suppressed = |n| read(vec![RuleAttribute::SuppressPrefixLen(n)]).suppress;
    assert_eq!((suppressed(0), suppressed(u32::MAX)), (Some(0), None));
}
