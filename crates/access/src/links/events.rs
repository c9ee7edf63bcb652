//! Subscription to changes of interfaces, addresses, default routes or rules (rtnetlink's
//! multicast groups). Events say that something has changed, not what: who receives one reads
//! the state anew, and so cannot be misled by what was lost.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;
use netlink_sys::protocols::NETLINK_ROUTE;

use crate::Result;
use crate::multicast::{Multicast, Waiting};

// `enum rtnetlink_groups` of linux/rtnetlink.h.
const LINK: u32 = 1;
const IPV4_ADDRESS: u32 = 5;
const IPV4_ROUTE: u32 = 7;
const IPV4_RULE: u32 = 8;
const IPV6_ADDRESS: u32 = 9;
const IPV6_ROUTE: u32 = 11;
const IPV6_RULE: u32 = 19;
const GROUPS: [u32; 7] = [
    LINK,
    IPV4_ADDRESS,
    IPV4_ROUTE,
    IPV4_RULE,
    IPV6_ADDRESS,
    IPV6_ROUTE,
    IPV6_RULE,
];
// `RTM_NEWROUTE`, `RTM_DELROUTE`.
const ROUTES: [u16; 2] = [24, 25];
/// The length of `struct rtmsg`, behind which the attributes are.
const ROUTE_HEADER: usize = 12;
// `RTA_DST`.
const DESTINATION: u16 = 1;
/// Bytes that the kernel keeps for us until we read; more is lost, and that is told.
const BUFFER: usize = 256 * 1024;

/// News that [`RouteEvents::next`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Something has changed.
    Change,
    /// More has changed than the kernel kept for us.
    Lost,
}

/// The hosts to which routes matter beside default routes; whoever has a clone may set them.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Arc<Mutex<Vec<IpAddr>>>);

impl Hosts {
    /// Routes to these matter from now on, and to no others.
    pub fn set(&self, hosts: &[IpAddr]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *all != hosts {
            *all = hosts.to_vec();
        }
    }

    fn any_in(&self, net: IpNet) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|h| net.contains(h))
    }
}

/// A subscription to the changes of one network namespace: that of the thread
/// that opens it.
pub struct RouteEvents {
    socket: Waiting,
    hosts: Hosts,
}

impl std::fmt::Debug for RouteEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RouteEvents").finish_non_exhaustive()
    }
}

impl RouteEvents {
    /// Subscribes; inside a runtime with I/O.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn open() -> Result<Self> {
        Self::with_buffer(BUFFER)
    }

    /// As [`Self::open`], with another size of the kernel's queue, bytes; the
    /// kernel has a least one.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn with_buffer(bytes: usize) -> Result<Self> {
        let what = "changes of interfaces, addresses and routes";
        Ok(Self {
            socket: Multicast::join(NETLINK_ROUTE, &GROUPS, Some(bytes), what)?.waiting()?,
            hosts: Hosts::default(),
        })
    }

    /// The hosts to which routes matter: none at first.
    pub fn hosts(&self) -> Hosts {
        self.hosts.clone()
    }

    /// Waits for a change, and takes what else has arrived until then.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn next(&mut self) -> Result<Heard> {
        loop {
            let (hosts, mut changed) = (&self.hosts, false);
            let mut each = |kind: u16, message: &[u8]| changed |= matters(kind, message, hosts);
            let lost = self.socket.drain(&mut each).await?;
            match (lost, changed) {
                (true, _) => return Ok(Heard::Lost),
                (false, true) => return Ok(Heard::Change),
                (false, false) => {}
            }
        }
    }
}

/// Whether a message tells of more than a route to a single network, of which a
/// router may have many that come and go; those to one of `hosts` matter.
fn matters(kind: u16, message: &[u8], hosts: &Hosts) -> bool {
    let single = || destination(message).is_some_and(|to| !hosts.any_in(to));
    !(ROUTES.contains(&kind) && single())
}

/// The network that a route leads to; none for a default route, or what cannot be read.
fn destination(message: &[u8]) -> Option<IpNet> {
    let length = *message.get(1).filter(|n| **n != 0)?;
    let mut rest = message.get(ROUTE_HEADER..)?;
    while let [a, b, c, d, ..] = *rest {
        let size = usize::from(u16::from_ne_bytes([a, b]));
        if u16::from_ne_bytes([c, d]) == DESTINATION {
            let address = rest.get(4..size)?;
            let v4 = <[u8; 4]>::try_from(address).map(|a| Ipv4Addr::from(a).into());
            let v6 = <[u8; 16]>::try_from(address).map(|a| Ipv6Addr::from(a).into());
            return IpNet::new(v4.or(v6).ok()?, length).ok();
        }
        rest = rest.get(size.max(4).next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multicast::messages;
    use netlink_packet_core::{Emitable, NetlinkHeader};
    use proptest::prelude::*;

    /// Checks whether any message of a datagram matters.
    fn matters(datagram: &[u8], hosts: &Hosts) -> bool {
        let mut any = false;
        messages(datagram, &mut |kind, m| {
            any |= super::matters(kind, m, hosts)
        });
        any
    }

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut header = NetlinkHeader::default();
        header.length = 16 + payload.len() as u32;
        header.message_type = kind;
        let mut b = vec![0; 16];
        header.emit(&mut b);
        b.extend(payload);
        b
    }

    /// A route to 10.77.0.0/16, or a default route, as the kernel tells of it.
    fn route(kind: u16, length: u8) -> Vec<u8> {
        let mut payload = vec![2, length, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        // The table first, as the kernel has it.
        payload.extend([8, 0, 15, 0, 254, 0, 0, 0]);
        if length > 0 {
            payload.extend([8, 0, 1, 0, 10, 77, 0, 0]);
        }
        message(kind, &payload)
    }

    #[test]
    fn of_routes_those_to_everywhere_and_to_the_hosts_matter() {
        let (network, default) = (route(24, 16), route(25, 0));
        let link = message(16, &[0; 16]);
        let hosts = Hosts::default();
        assert!(!matters(&network, &hosts) && matters(&default, &hosts) && matters(&link, &hosts));
        let both = [network.clone(), default].concat();
        assert!(matters(&both, &hosts));
        let twice = [network.clone(), network.clone()].concat();
        assert!(!matters(&twice, &hosts));
        hosts.set(&["10.78.0.1".parse().unwrap(), "fd77::1".parse().unwrap()]);
        assert!(!matters(&twice, &hosts));
        hosts.set(&["10.77.0.1".parse().unwrap()]);
        assert!(matters(&network, &hosts));
        hosts.set(&[]);
        assert!(!matters(&network, &hosts));
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(b in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = matters(&b, &Hosts::default());
            let _ = matters(&message(24, &b), &Hosts::default());
        }
    }
}
