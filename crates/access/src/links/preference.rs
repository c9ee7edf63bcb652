//! Choice of the interface's address to be used towards a host: source address selection
//! by RFC 6724, section 5, with the policy table of its section 2.1.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::Address;

/// Where packets are to go, and by which route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Towards {
    /// The host; somewhere in the Internet if absent.
    pub host: Option<IpAddr>,
    /// The next hop there, if it is known.
    pub gateway: Option<IpAddr>,
    /// The source address that the route asks for (`src` of ip-route(8)).
    pub source: Option<IpAddr>,
}

/// Sorts addresses of one interface and family, the preferred one first; equals stay in their
/// order.
///
/// Rules 1, 4 and 5 have nothing to choose between here. Rule 5.5 (the prefix that the next hop
/// has announced) goes by the gateway's own address. Rule 7 is the other way round: addresses
/// made for privacy (RFC 8981) come last, since they go while connections live. A route that
/// asks for a source comes before all of it, as in the kernel.
pub fn sort(addresses: &mut [&Address], towards: Towards) {
    addresses.sort_by_key(|a| {
        let asked = towards.source == Some(a.address);
        let to = towards.host;
        let shared = to.map_or(0, |to| common(a, to));
        (
            !asked,
            scope_order(scope(a.address), to.map_or(GLOBAL, scope)),
            a.deprecated,
            !towards.gateway.is_some_and(|g| a.reaches(g)),
            label(a.address) != to.map_or(LABEL, label),
            a.temporary,
            std::cmp::Reverse(shared),
        )
    });
}

/// The scopes of RFC 4291 2.7, which RFC 6724 3.1 maps those of unicast addresses to.
const LINK_LOCAL: u8 = 2;
const SITE_LOCAL: u8 = 5;
const GLOBAL: u8 = 14;

fn scope(a: IpAddr) -> u8 {
    match a {
        IpAddr::V4(a) if a.is_loopback() || a.is_link_local() => LINK_LOCAL,
        IpAddr::V6(a) if a.is_loopback() || a.is_unicast_link_local() => LINK_LOCAL,
        IpAddr::V6(a) if a.segments()[0] & 0xffc0 == 0xfec0 => SITE_LOCAL,
        _ => GLOBAL,
    }
}

/// Rule 2: the smallest scope that is enough, else the largest.
fn scope_order(source: u8, to: u8) -> (bool, u8) {
    match source >= to {
        true => (false, source),
        false => (true, u8::MAX - source),
    }
}

/// The label of everything that the policy table does not name.
const LABEL: u8 = 1;

/// Rule 6: the label of the longest prefix of the policy table.
fn label(a: IpAddr) -> u8 {
    const fn v6(a: u16, b: u16) -> Ipv6Addr {
        Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)
    }
    let IpAddr::V6(a) = a else { return 4 };
    let table = [
        (Ipv6Addr::LOCALHOST, 128, 0),
        (Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(), 96, 4),
        (Ipv6Addr::UNSPECIFIED, 96, 3),
        (v6(0x2001, 0), 32, 5),
        (v6(0x2002, 0), 16, 2),
        (v6(0x3ffe, 0), 16, 12),
        (v6(0xfec0, 0), 10, 11),
        (v6(0xfc00, 0), 7, 13),
    ];
    let in_it = |(net, length, _): &&(Ipv6Addr, u8, u8)| {
        IpNet::new(IpAddr::V6(*net), *length).is_ok_and(|n| n.contains(&IpAddr::V6(a)))
    };
    table
        .iter()
        .find(in_it)
        .map_or(LABEL, |(_, _, label)| *label)
}

/// Rule 8: how many leading bits are the same, of those of the address's prefix (2.2).
fn common(a: &Address, to: IpAddr) -> u32 {
    let same = match (a.address, to) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    };
    same.min(a.prefix_len.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> Address {
        let net: IpNet = text.parse().unwrap();
        Address {
            ifindex: 1,
            address: net.addr(),
            prefix_len: net.prefix_len(),
            global: true,
            unusable: false,
            deprecated: false,
            temporary: false,
        }
    }

    fn first(all: &[Address], to: &str) -> String {
        let mut all: Vec<_> = all.iter().collect();
        let host = (!to.is_empty()).then(|| to.parse().unwrap());
        sort(
            &mut all,
            Towards {
                host,
                ..Towards::default()
            },
        );
        all[0].address.to_string()
    }

    /// The examples of RFC 6724, 10.1, as far as they are between addresses of one interface.
    #[test]
    fn as_the_rfc_has_it() {
        for (to, sources, wanted) in [
            (
                "2001:db8:1::1",
                ["2001:db8:3::1/64", "fe80::1/64"],
                "2001:db8:3::1",
            ),
            (
                "2001:db8:1::1",
                ["2001:db8:1::2/64", "2001:db8:3::2/64"],
                "2001:db8:1::2",
            ),
            (
                "2002:c633:6401::1",
                ["2002:c633:6401::d5e3:7953:13eb:22e8/64", "2001:db8:1::2/64"],
                "2002:c633:6401:0:d5e3:7953:13eb:22e8",
            ),
            ("fe80::1", ["fe80::2/64", "2001:db8:1::2/64"], "fe80::2"),
            // The other way round they are the same.
            (
                "2001:db8:77::1",
                ["fd00:0:0:1::2/64", "2001:db8:1::2/64"],
                "2001:db8:1::2",
            ),
            (
                "fd77::1",
                ["2001:db8:1::2/64", "fd00:0:0:1::2/64"],
                "fd00:0:0:1::2",
            ),
            (
                "",
                ["fd00:0:0:1::2/64", "2001:db8:1::2/64"],
                "2001:db8:1::2",
            ),
            ("192.0.2.1", ["169.254.3.4/16", "10.1.2.3/8"], "10.1.2.3"),
            (
                "192.168.9.1",
                ["10.1.2.3/8", "192.168.8.4/24"],
                "192.168.8.4",
            ),
        ] {
            let [a, b] = sources.map(address);
            assert_eq!(first(&[a.clone(), b.clone()], to), wanted, "{to}");
            assert_eq!(first(&[b, a], to), wanted, "{to}");
        }
    }

    #[test]
    fn what_goes_soon_comes_last_and_the_route_knows_best() {
        let to = "2001:db8:1::1";
        let mut near = address("2001:db8:1::2/64");
        let far = address("2001:db8:3::2/64");
        near.temporary = true;
        assert_eq!(first(&[near.clone(), far.clone()], to), "2001:db8:3::2");
        near = Address {
            temporary: false,
            deprecated: true,
            ..near
        };
        assert_eq!(first(&[near.clone(), far.clone()], to), "2001:db8:3::2");
        let by = |near: &Address, source: Option<&str>, gateway: Option<&str>| {
            let mut all = vec![&far, near];
            let parsed = |a: Option<&str>| a.map(|a| a.parse().unwrap());
            let (source, gateway) = (parsed(source), parsed(gateway));
            let host = parsed(Some(to));
            sort(
                &mut all,
                Towards {
                    host,
                    gateway,
                    source,
                },
            );
            all[0].address.to_string()
        };
        assert_eq!(by(&near, Some("2001:db8:1::2"), None), "2001:db8:1::2");
        near.deprecated = false;
        assert_eq!(by(&near, None, Some("2001:db8:3::1")), "2001:db8:3::2");
        assert_eq!(by(&near, None, Some("fe80::1")), "2001:db8:1::2");
    }

    proptest! {
        #[test]
        fn nobody_is_lost_and_equals_stay(hosts in prop::collection::vec(any::<u16>(), 0..8)) {
            let all: Vec<_> = hosts.iter().map(|n| address(&format!("fd00::{n:x}/64"))).collect();
            let mut sorted: Vec<_> = all.iter().collect();
            // All of them share its whole prefix: none is nearer.
            let host = Some("fd00::ffff:1".parse().unwrap());
            sort(&mut sorted, Towards { host, ..Towards::default() });
            prop_assert_eq!(sorted, all.iter().collect::<Vec<_>>());
        }
    }
}
