//! Destinations that the proxy connects to for devices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use nix::ifaddrs::getifaddrs;

use crate::wire::Refusal;

/// Destinations that the proxy connects to, on any port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// The Internet: whatever is reachable globally (RFC 6890), but for the proxy's own addresses.
    pub internet: bool,
    /// Addresses of these networks, of whatever kind.
    pub networks: Vec<IpNet>,
}

impl Allowed {
    /// Leaves of the addresses of a destination those that are allowed.
    pub(crate) fn only(&self, mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refusal> {
        addresses.retain(|to| self.includes(to.ip().to_canonical()));
        match addresses.is_empty() {
            true => Err(Refusal::Forbidden),
            false => Ok(addresses),
        }
    }

    fn includes(&self, ip: IpAddr) -> bool {
        let listed = self.networks.iter().any(|net| net.contains(&ip));
        listed || (self.internet && is_global(ip) && !is_own(ip))
    }
}

const fn v4(a: u8, b: u8, c: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), length)
}

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// Networks of the IANA IPv4 Special-Purpose Address Registry, and multicast.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),
    v4(10, 0, 0, 8),
    v4(100, 64, 0, 10),
    v4(127, 0, 0, 8),
    v4(169, 254, 0, 16),
    v4(172, 16, 0, 12),
    v4(192, 0, 0, 24),
    v4(192, 0, 2, 24),
    v4(192, 88, 99, 24),
    v4(192, 168, 0, 16),
    v4(198, 18, 0, 15),
    v4(198, 51, 100, 24),
    v4(203, 0, 113, 24),
    v4(224, 0, 0, 4),
    v4(240, 0, 0, 4),
];

/// Global unicast of IPv6, beside which all is special.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);
/// Networks within that are special; those of tunnels may lead to any IPv4 address.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),
    v6(0x2001, 0xdb8, 32),
    v6(0x2002, 0, 16),
    v6(0x3fff, 0, 20),
];

/// Lists the networks that are not the Internet.
pub(crate) fn special() -> impl Iterator<Item = IpNet> {
    let v4 = SPECIAL_V4.into_iter().map(IpNet::from);
    // The eighth of all addresses that is global, turned about.
    let beside = [v6(0, 0, 3), v6(0x4000, 0, 2), v6(0x8000, 0, 1)];
    let v6 = SPECIAL_V6.into_iter().chain(beside).map(IpNet::from);
    v4.chain(v6)
}

fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !SPECIAL_V4.iter().any(|net| net.contains(&ip)),
        IpAddr::V6(ip) => {
            GLOBAL_V6.contains(&ip) && !SPECIAL_V6.iter().any(|net| net.contains(&ip))
        }
    }
}

/// Whether this machine has the address: what its firewall keeps from others comes by the loopback
/// then. True where its addresses cannot be listed.
fn is_own(ip: IpAddr) -> bool {
    let Ok(all) = getifaddrs() else { return true };
    let mut addresses = all.filter_map(|a| a.address);
    addresses.any(|a| {
        let v4 = a.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
        let v6 = a.as_sockaddr_in6().map(|a| IpAddr::from(a.ip()));
        v4.or(v6) == Some(ip)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internet_is_what_is_global() {
        let internet = Allowed {
            internet: true,
            networks: vec![],
        };
        let global = ["8.8.8.8", "100.128.0.1", "172.32.0.1", "2a00::1", "2606::1"];
        for ip in global {
            assert!(internet.includes(ip.parse().unwrap()), "{ip}");
        }
        let special = [
            "0.0.0.1",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.53",
            "169.254.169.254",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.251",
            "255.255.255.255",
            "::",
            "::1",
            "64:ff9b::a00:1",
            "2001:db8::1",
            "2002:a00:1::1",
            "fd00::1",
            "fe80::1",
            "ff02::1",
        ];
        for ip in special {
            assert!(!internet.includes(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn networks_are_allowed_beside_the_internet_or_alone() {
        let allowed = |internet| Allowed {
            internet,
            networks: vec!["192.168.7.0/24".parse().unwrap()],
        };
        let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 80);
        let mapped = at("::ffff:192.168.7.1");
        for internet in [true, false] {
            let own = allowed(internet).only(vec![mapped, at("192.168.8.1")]);
            assert_eq!(own, Ok(vec![mapped]));
            let global = allowed(internet).includes([8, 8, 8, 8].into());
            assert_eq!(global, internet);
        }
        let none = Allowed::default().only(vec![at("8.8.8.8")]);
        assert_eq!(none, Err(Refusal::Forbidden));
    }

    proptest::proptest! {
        #[test]
        fn what_is_special_is_not_global(ip: IpAddr) {
            let listed = special().any(|net| net.contains(&ip));
            proptest::prop_assert_eq!(listed, !is_global(ip));
        }
    }

    #[test]
    fn own_addresses_are_listed_by_themselves_alone() {
        assert!(is_own([127, 0, 0, 1].into()));
        assert!(!is_own([127, 0, 0, 2].into()));
    }
}
