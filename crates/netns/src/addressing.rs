//! Assignment of addresses in a topology: pure arithmetic on a prefix.
//!
//! The prefix is cut into equal blocks. Block 0 holds the proxy's service
//! address (its first host), block `k` the link of access number `k`, counted
//! from 1 over all devices: the proxy's end is its first host, the device's
//! end its second, and those after it are addresses that the device can get
//! later. With the default prefix: 10.77.0.1, and 10.77.k.1 and 10.77.k.2 in
//! 10.77.k.0/24.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// The IP version of a topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// Bits of an address.
    fn bits(self) -> u8 {
        match self {
            Self::Ipv4 => 32,
            Self::Ipv6 => 128,
        }
    }

    /// The family of an address.
    pub fn of(addr: IpAddr) -> Self {
        if addr.is_ipv4() {
            Self::Ipv4
        } else {
            Self::Ipv6
        }
    }
}

/// The two ends of an access's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAddresses {
    /// The device's end.
    pub device: IpAddr,
    /// The proxy's end.
    pub proxy: IpAddr,
    /// Length of the prefix that both ends share.
    pub prefix_len: u8,
}

/// Addresses that a device's interface can have one after the other, at most.
const MOST_NUMBERED: u128 = 1 << 16;

/// Address number `n`, from 1, of a device's interface whose first one is
/// `first`: after the last of the prefix it begins again.
pub(super) fn numbered(first: IpAddr, prefix_len: u8, n: u32) -> IpAddr {
    let family = Family::of(first);
    let hosts = 1_u128 << (family.bits() - prefix_len).min(64);
    // Without the network's, the proxy's and the broadcast address.
    let room = (hosts - 3).clamp(1, MOST_NUMBERED);
    from_bits(
        family,
        to_bits(first) + u128::from(n.saturating_sub(1)) % room,
    )
}

/// Every address of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    /// Range that the addresses are taken from.
    pub prefix: IpNet,
    /// Where the proxy listens: an address of no access.
    pub service: IpAddr,
    /// By access number minus 1.
    pub links: Vec<LinkAddresses>,
}

/// Ranges that no prefix may overlap, and why.
const RESERVED: [(&str, &str); 10] = [
    ("0.0.0.0/8", "\"this network\" (RFC 1122 3.2.1.3)"),
    ("127.0.0.0/8", "loopback (RFC 1122 3.2.1.3)"),
    ("169.254.0.0/16", "link-local (RFC 3927)"),
    ("224.0.0.0/4", "multicast (RFC 5771)"),
    ("240.0.0.0/4", "reserved (RFC 1112 4)"),
    ("::/128", "the unspecified address (RFC 4291 2.5.2)"),
    ("::1/128", "loopback (RFC 4291 2.5.3)"),
    ("::ffff:0:0/96", "IPv4-mapped (RFC 4291 2.5.5.2)"),
    ("fe80::/10", "link-local (RFC 4291 2.5.6)"),
    ("ff00::/8", "multicast (RFC 4291 2.7)"),
];

/// Reads a prefix as a user writes it.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub fn parse_prefix(text: &str) -> Result<IpNet, String> {
    let net: IpNet = text.trim().parse().map_err(|_| {
        format!("\"{text}\" is not an address range: expected one like \"10.77.0.0/16\" or \"fd77::/48\"")
    })?;
    if net.addr() != net.network() {
        return Err(format!(
            "\"{text}\" has bits set after the prefix: \"{}\" is meant?",
            net.trunc()
        ));
    }
    for (range, why) in RESERVED {
        let range: IpNet = range.parse().expect("a constant of ours");
        if overlap(&net, &range) {
            return Err(format!(
                "{net} overlaps {range}, {why}: choose another range, like {}",
                example(&net)
            ));
        }
    }
    Ok(net)
}

/// Whether two prefixes have an address in common.
pub(super) fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

fn example(net: &IpNet) -> &'static str {
    match net {
        IpNet::V4(_) => "10.77.0.0/16",
        IpNet::V6(_) => "fd77::/48",
    }
}

impl AddressPlan {
    /// Addresses for `accesses` accesses, taken from `prefix`.
    ///
    /// # Errors
    /// [`LabError::BadInput`] when the prefix is reserved or too small.
    pub fn new(prefix: IpNet, accesses: usize) -> Result<Self, LabError> {
        let prefix = parse_prefix(&prefix.to_string()).map_err(LabError::BadInput)?;
        let family = Family::of(prefix.addr());
        let host_bits = u32::from(family.bits() - prefix.prefix_len());
        // Blocks are needed for the service address and each access.
        let blocks = accesses as u128 + 1;
        let block_bits = blocks.next_power_of_two().trailing_zeros();
        // The last octet (IPv4) or the interface identifier (IPv6) stays the
        // same from access to access, where there is room for that.
        let readable = if family == Family::Ipv4 { 8 } else { 64 };
        let stride_bits = host_bits.saturating_sub(block_bits).min(readable);
        if stride_bits < 2 {
            let fits = u32::from(family.bits()).saturating_sub(block_bits + 2);
            return Err(LabError::BadInput(format!(
                "{prefix} is too small for {accesses} accesses: it must be a /{fits} or larger, like {}",
                example(&prefix)
            )));
        }
        let base = to_bits(prefix.network());
        let at = |block: u128, host: u128| from_bits(family, base + (block << stride_bits) + host);
        let prefix_len = family.bits()
            - u8::try_from(stride_bits).expect("a stride is no longer than an address");
        let links = (1..=accesses as u128)
            .map(|k| LinkAddresses {
                device: at(k, 2),
                proxy: at(k, 1),
                prefix_len,
            })
            .collect();
        Ok(Self {
            prefix,
            service: at(0, 1),
            links,
        })
    }
}

/// The ranges used when the user names none, in the order in which they are
/// tried: private ones (RFC 1918, RFC 4193), then the one for benchmarks
/// (RFC 2544), which no network routes.
pub(super) fn default_prefixes(family: Family) -> Vec<IpNet> {
    let v4 = |a, b, len| IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, 0, 0), len));
    let v6 = |a, b| {
        IpNet::V6(Ipv6Net::new_assert(
            Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0),
            48,
        ))
    };
    match family {
        Family::Ipv4 => (77..=127)
            .map(|b| v4(10, b, 16))
            .chain((16..=31).map(|b| v4(172, b, 16)))
            .chain([v4(192, 168, 16), v4(198, 18, 15)])
            .collect(),
        Family::Ipv6 => (0xfd77..=0xfd7f)
            .flat_map(|a| (0..4).map(move |b| v6(a, b)))
            .collect(),
    }
}

fn to_bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(a) => u128::from(a.to_bits()),
        IpAddr::V6(a) => a.to_bits(),
    }
}

fn from_bits(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::Ipv4 => {
            Ipv4Addr::from_bits(u32::try_from(bits).expect("a prefix has room for its blocks"))
                .into()
        }
        Family::Ipv6 => Ipv6Addr::from_bits(bits).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn net(s: &str) -> IpNet {
        s.parse().unwrap()
    }

    #[test]
    fn the_default_ranges_read_well() {
        let plan = AddressPlan::new(net("10.77.0.0/16"), 3).unwrap();
        assert_eq!(plan.service.to_string(), "10.77.0.1");
        let third = plan.links[2];
        assert_eq!(
            (third.device.to_string(), third.proxy.to_string()),
            ("10.77.3.2".into(), "10.77.3.1".into())
        );
        assert_eq!(third.prefix_len, 24);

        let plan = AddressPlan::new(net("fd77::/48"), 3).unwrap();
        assert_eq!(plan.service.to_string(), "fd77::1");
        assert_eq!(plan.links[1].device.to_string(), "fd77:0:0:2::2");
        assert_eq!(plan.links[1].prefix_len, 64);
    }

    #[test]
    fn small_prefixes_are_cut_finer_until_they_are_full() {
        let plan = AddressPlan::new(net("192.168.7.0/28"), 3).unwrap();
        assert_eq!(plan.links[2].device.to_string(), "192.168.7.14");
        let error = AddressPlan::new(net("192.168.7.0/28"), 4).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.to_string().contains("must be a /27 or larger"),
            "{error}"
        );
        assert!(AddressPlan::new(net("192.168.7.0/27"), 4).is_ok());
        assert!(AddressPlan::new(net("192.168.7.0/32"), 0).is_err());
        assert!(AddressPlan::new(net("10.77.0.0/16"), 300).is_ok());
    }

    #[test]
    fn further_addresses_stay_in_the_prefix_and_begin_again() {
        let first: IpAddr = "10.77.3.2".parse().unwrap();
        let at = |len, n| numbered(first, len, n).to_string();
        assert_eq!(at(24, 1), "10.77.3.2");
        assert_eq!(at(24, 253), "10.77.3.254");
        assert_eq!(at(24, 254), "10.77.3.2");
        assert_eq!(at(30, 7), "10.77.3.2");
        let six = numbered("fd77:0:0:2::2".parse().unwrap(), 64, 3);
        assert_eq!(six.to_string(), "fd77:0:0:2::4");
    }

    #[test]
    fn bad_prefixes_say_why() {
        for (text, why) in [
            ("10.77.0.0", "expected one like"),
            ("10.77.0.0/33", "expected one like"),
            ("mars", "expected one like"),
            ("10.77.1.0/16", "\"10.77.0.0/16\" is meant"),
            ("127.1.0.0/16", "loopback"),
            ("0.0.0.0/0", "this network"),
            ("224.0.0.0/8", "multicast"),
            ("169.254.0.0/16", "link-local"),
            ("fe80::/64", "link-local"),
            ("ff02::/16", "multicast"),
            ("::/0", "unspecified"),
        ] {
            let error = parse_prefix(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn every_default_range_is_a_good_one() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let ranges = default_prefixes(family);
            for range in &ranges {
                assert!(AddressPlan::new(*range, 200).is_ok(), "{range}");
            }
            for pair in ranges.windows(2) {
                assert!(!overlap(&pair[0], &pair[1]), "{pair:?}");
            }
        }
        assert_eq!(default_prefixes(Family::Ipv4)[0], net("10.77.0.0/16"));
        assert_eq!(default_prefixes(Family::Ipv6)[0], net("fd77::/48"));
    }

    proptest! {
        #[test]
        fn a_plan_is_either_refused_or_sound(
            v6: bool, bits: u128, len in 0u8..=128, accesses in 0usize..600,
        ) {
            let prefix = if v6 {
                IpNet::V6(Ipv6Net::new(Ipv6Addr::from_bits(bits), len).unwrap().trunc())
            } else {
                IpNet::V4(Ipv4Net::new(Ipv4Addr::from_bits(bits as u32), len % 33).unwrap().trunc())
            };
            let Ok(plan) = AddressPlan::new(prefix, accesses) else { return Ok(()) };
            let mut seen = HashSet::from([plan.service]);
            prop_assert_eq!(plan.links.len(), accesses);
            prop_assert!(prefix.contains(&plan.service));
            let mut nets: Vec<IpNet> = Vec::new();
            for link in &plan.links {
                prop_assert!(prefix.contains(&link.device) && prefix.contains(&link.proxy));
                prop_assert!(seen.insert(link.device) && seen.insert(link.proxy));
                let own = IpNet::new(link.device, link.prefix_len).unwrap().trunc();
                prop_assert!(own.contains(&link.proxy));
                prop_assert!(own.addr() != link.proxy, "the network address is no host");
                prop_assert!(own.broadcast() != link.device || v6);
                for n in [1, 2, 200, u32::MAX] {
                    let other = numbered(link.device, link.prefix_len, n);
                    prop_assert!(own.contains(&other) && other != link.proxy);
                    prop_assert!(own.broadcast() != other || v6);
                }
                prop_assert!(!own.contains(&plan.service));
                prop_assert!(nets.last().is_none_or(|last| !overlap(last, &own)));
                nets.push(own);
            }
        }
    }
}
