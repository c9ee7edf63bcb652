//! A LAN behind the device and the Internet behind the proxy, laid with ip(8), IPv4 and IPv6.
//!
//! | where | network | who |
//! |---|---|---|
//! | `lan0` of the device, .1 | 192.168.100.0/24, fd64::/64 | a host .10 |
//! | `net0` of the proxy, .1 | 45.11.0.0/24, 2a0f:45::/64 | a server .10 |
//!
//! All of them forward, and have routes to each other: unless something keeps the host's packets,
//! they reach the server past any bond, and are answered.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::home::{forwards, ip};
use super::{Ns, World, wire};

/// Interface of the device to its LAN.
pub const LAN: &str = "lan0";
/// Host's addresses.
pub const HOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 168, 100, 10)),
    IpAddr::V6(Ipv6Addr::new(0xfd64, 0, 0, 0, 0, 0, 0, 0x10)),
];
/// Server's addresses on the Internet.
pub const SERVER: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(45, 11, 0, 10)),
    IpAddr::V6(Ipv6Addr::new(0x2a0f, 0x45, 0, 0, 0, 0, 0, 0x10)),
];

/// Namespaces beside those of a [`World`].
pub struct Lan {
    /// Host behind the device.
    pub host: Ns,
    /// Server behind the proxy.
    pub server: Ns,
}

impl Lan {
    /// Lays them beside a world with at least one access.
    pub fn beside(w: &World) -> Self {
        let new = || Ns::new().expect("a further namespace");
        let (host, server) = (new(), new());
        wire((&w.device, LAN), (&host, "eth0"));
        wire((&w.proxy, "net0"), (&server, "eth0"));
        forwards(&w.device);
        forwards(&w.proxy);
        ip(
            &w.device,
            &[
                "addr add 192.168.100.1/24 dev lan0",
                "addr add fd64::1/64 dev lan0 nodad",
            ],
        );
        ip(
            &host,
            &[
                "addr add 192.168.100.10/24 dev eth0",
                "addr add fd64::10/64 dev eth0 nodad",
                "route add default via 192.168.100.1",
                "route add default via fd64::1",
            ],
        );
        ip(
            &w.proxy,
            &[
                "addr add 45.11.0.1/24 dev net0",
                "addr add 2a0f:45::1/64 dev net0 nodad",
                "route add default via 45.11.0.10",
                "route add default via 2a0f:45::10",
                "route add 192.168.100.0/24 via 10.77.1.2",
                "route add fd64::/64 via fd77:0:1::2",
            ],
        );
        ip(
            &server,
            &[
                "addr add 45.11.0.10/24 dev eth0",
                "addr add 2a0f:45::10/64 dev eth0 nodad",
                "route add default via 45.11.0.1",
                "route add default via 2a0f:45::1",
            ],
        );
        Self { host, server }
    }
}
