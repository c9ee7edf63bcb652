//! A device in the network of a house, beside a second access: neighbours, a static route, a
//! tunnel, and a network behind the device that it forwards for. Laid with ip(8), IPv4 and IPv6.
//!
//! | at the device | network | what is there |
//! |---|---|---|
//! | `wlan0` .5 | 192.168.1.0/24, fd01::/64 | the house's router .1, which forwards nothing from a neighbour to another; a computer .20 |
//! | `d2` .2 | 10.77.2.0/24, fd77:0:2::/64 | the proxy .1 |
//! | `lan1` .1 | 192.168.100.0/24, fd64::/64 | a host .10 behind the device |
//! | `tun0` .2 | 10.8.0.0/24, fd08::/64 | a host .1 behind a tunnel |
//!
//! The device has a static route to 10.99.0.9 and fd99::9 by the computer, and default routes by
//! `wlan0` (the better one) and `d2`.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, bind, connect, setsockopt, socket};
use nix::sys::socket::{SockaddrStorage, sockopt};
use nix::sys::time::TimeVal;

use super::{Ns, Turn, wire};

/// The namespaces.
pub struct Home {
    /// Device with its four interfaces.
    pub device: Ns,
    /// Proxy at the second access.
    pub proxy: Ns,
    /// Router of the house.
    pub router: Ns,
    /// Neighbour of the device.
    pub computer: Ns,
    /// Host that the device forwards for.
    pub behind: Ns,
    /// Host behind the tunnel.
    pub tunnel: Ns,
    _turn: Turn,
}

/// Runs lines of ip(8) in a namespace.
pub fn ip(ns: &Ns, lines: &[&str]) {
    ns.run(|| {
        for line in lines {
            let done = Command::new("ip").args(line.split_whitespace()).output();
            let done = done.expect("run ip of iproute2");
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "ip {line}: {said}");
        }
    });
}

/// Returns what a line of ip(8) prints.
pub fn asked(ns: &Ns, line: &str) -> String {
    let run = || Command::new("ip").args(line.split_whitespace()).output();
    let out = ns.run(run).expect("run ip of iproute2");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

pub(super) fn forwards(ns: &Ns) {
    ns.run(|| {
        for file in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/net/{file}"), "1").expect("forward");
        }
    });
}

impl Home {
    /// Lays the house, or prints why it cannot be laid.
    pub fn new() -> Option<Self> {
        let turn = Turn::take();
        let lacks = |what: &str| println!("skipped: {what}");
        if Command::new("ip").arg("-V").output().is_err() {
            lacks("ip of iproute2 is not here");
            return None;
        }
        let new = || {
            Ns::new()
                .map_err(|e| lacks(&format!("no network namespace: {e}")))
                .ok()
        };
        let h = Home {
            device: new()?,
            proxy: new()?,
            router: new()?,
            computer: new()?,
            behind: new()?,
            tunnel: new()?,
            _turn: turn,
        };
        if let Err(e) = h
            .device
            .run(braid_mptcp::support::Support::detect)
            .require()
        {
            lacks(&e.to_string());
            return None;
        }
        h.lay();
        Some(h)
    }

    fn lay(&self) {
        wire((&self.device, "wlan0"), (&self.router, "s1"));
        wire((&self.computer, "eth0"), (&self.router, "s2"));
        wire((&self.router, "wan0"), (&self.proxy, "p1"));
        wire((&self.device, "d2"), (&self.proxy, "p2"));
        wire((&self.device, "lan1"), (&self.behind, "eth0"));
        wire((&self.device, "tun0"), (&self.tunnel, "eth0"));
        for ns in [&self.device, &self.router, &self.proxy, &self.computer] {
            forwards(ns);
        }
        ip(
            &self.router,
            &[
                "link add br0 type bridge",
                "link set br0 up",
                "link set s1 master br0",
                "link set s2 master br0",
                "addr add 192.168.1.1/24 dev br0",
                "addr add fd01::1/64 dev br0 nodad",
                "addr add 10.77.1.2/24 dev wan0",
                "addr add fd77:0:1::2/64 dev wan0 nodad",
                "route add default via 10.77.1.1",
                "route add default via fd77:0:1::1",
                // As pfSense and many others do, which know no such connection.
                "rule add iif br0 to 192.168.1.0/24 prohibit",
                "-6 rule add iif br0 to fd01::/64 prohibit",
            ],
        );
        ip(
            &self.computer,
            &[
                "addr add 192.168.1.20/24 dev eth0",
                "addr add fd01::20/64 dev eth0 nodad",
                "addr add 10.99.0.9/32 dev lo",
                "addr add fd99::9/128 dev lo nodad",
                "route add default via 192.168.1.5",
                "route add default via fd01::5",
            ],
        );
        ip(
            &self.behind,
            &[
                "addr add 192.168.100.10/24 dev eth0",
                "addr add fd64::10/64 dev eth0 nodad",
                "route add default via 192.168.100.1",
                "route add default via fd64::1",
            ],
        );
        ip(
            &self.tunnel,
            &[
                "addr add 10.8.0.1/24 dev eth0",
                "addr add fd08::1/64 dev eth0 nodad",
                "route add default via 10.8.0.2",
                "route add default via fd08::2",
            ],
        );
        ip(
            &self.proxy,
            &[
                "addr add 10.77.0.1/32 dev lo",
                "addr add fd77::1/128 dev lo nodad",
                "addr add 203.0.113.9/32 dev lo",
                "addr add 2001:db8::9/128 dev lo nodad",
                "addr add 10.77.1.1/24 dev p1",
                "addr add fd77:0:1::1/64 dev p1 nodad",
                "addr add 10.77.2.1/24 dev p2",
                "addr add fd77:0:2::1/64 dev p2 nodad",
                "route add 192.168.1.0/24 via 10.77.1.2",
                "route add fd01::/64 via fd77:0:1::2",
            ],
        );
        ip(
            &self.device,
            &[
                "addr add 192.168.1.5/24 dev wlan0",
                "addr add fd01::5/64 dev wlan0 nodad",
                "addr add 10.77.2.2/24 dev d2",
                "addr add fd77:0:2::2/64 dev d2 nodad",
                "addr add 192.168.100.1/24 dev lan1",
                "addr add fd64::1/64 dev lan1 nodad",
                "addr add 10.8.0.2/24 dev tun0",
                "addr add fd08::2/64 dev tun0 nodad",
                "route add default via 192.168.1.1 dev wlan0 metric 600",
                "route add default via fd01::1 dev wlan0 metric 600",
                "route add default via 10.77.2.1 dev d2 metric 700",
                "route add default via fd77:0:2::1 dev d2 metric 700",
                "route add 10.99.0.0/16 via 192.168.1.20",
                "route add fd99::/48 via fd01::20",
            ],
        );
    }
}

/// A server at an address; says from where it is reached.
pub fn serve(ns: &Ns, at: IpAddr) -> SocketAddr {
    let listener = ns.run(|| TcpListener::bind((at, 0)).expect("listen"));
    let address = listener.local_addr().expect("an address");
    ns.spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            drop(stream);
        }
    });
    address
}

/// Whether TCP gets there and back within two seconds, from an address if one is given.
pub fn reaches(ns: &Ns, from: Option<IpAddr>, to: SocketAddr) -> bool {
    ns.run(|| {
        let family = match to {
            SocketAddr::V4(_) => AddressFamily::Inet,
            SocketAddr::V6(_) => AddressFamily::Inet6,
        };
        let s = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        let limit = Duration::from_secs(2).as_secs() as i64;
        setsockopt(&s, sockopt::SendTimeout, &TimeVal::new(limit, 0)).expect("a limit");
        if let Some(from) = from {
            let from = SockaddrStorage::from(SocketAddr::new(from, 0));
            use std::os::fd::AsRawFd;
            bind(s.as_raw_fd(), &from).expect("bind");
        }
        use std::os::fd::AsRawFd;
        let connected = connect(s.as_raw_fd(), &SockaddrStorage::from(to)).is_ok();
        drop(TcpStream::from(s));
        connected
    })
}
