//! An endpoint of the in-kernel path manager, and its form on the wire.

use std::fmt;
use std::net::IpAddr;

use bitflags::bitflags;
use netlink_packet_core::DefaultNla;

use crate::nl::attr::{self, Attrs};

// `MPTCP_PM_ADDR_ATTR_*` of linux/mptcp_pm.h.
const FAMILY: u16 = 1;
const ID: u16 = 2;
const ADDR4: u16 = 3;
const ADDR6: u16 = 4;
const PORT: u16 = 5;
const FLAGS: u16 = 6;
const IF_IDX: u16 = 7;

bitflags! {
    /// Flags of an endpoint: what the kernel does with it (`MPTCP_PM_ADDR_FLAG_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct EndpointFlags: u32 {
        /// Announce it to the peer (ADD_ADDR, RFC 8684 3.4.1).
        const SIGNAL = 1;
        /// Open a subflow from it when a connection is established.
        const SUBFLOW = 1 << 1;
        /// Subflows from it carry data only when no other does.
        const BACKUP = 1 << 2;
        /// With `SUBFLOW`: open one to every address of the peer.
        const FULLMESH = 1 << 3;
        /// Made by the kernel itself for an address of a first subflow.
        const IMPLICIT = 1 << 4;
        /// With `SUBFLOW`: use it only for addresses that the peer announced (6.18).
        const LAMINAR = 1 << 5;
    }
}

/// An address that the path manager may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// 1 to 255; 0 lets the kernel choose when adding.
    pub id: u8,
    /// The local address.
    pub address: IpAddr,
    /// The port, where a fixed one is wanted (with `SIGNAL` only).
    pub port: Option<u16>,
    /// The interface that subflows leave by.
    pub ifindex: Option<u32>,
    /// Purpose of the endpoint.
    pub flags: EndpointFlags,
}

impl Endpoint {
    /// An endpoint for `address` on the interface `ifindex`, its id left to the
    /// kernel.
    pub fn new(address: IpAddr, ifindex: Option<u32>, flags: EndpointFlags) -> Self {
        Self {
            id: 0,
            address,
            port: None,
            ifindex,
            flags,
        }
    }

    /// As the nested attribute `kind` of a request.
    pub(crate) fn emit(&self, kind: u16) -> DefaultNla {
        let mut inner = vec![];
        match self.address {
            IpAddr::V4(a) => {
                inner.push(attr::bytes(FAMILY, &(libc::AF_INET as u16).to_ne_bytes()));
                inner.push(attr::bytes(ADDR4, &a.octets()));
            }
            IpAddr::V6(a) => {
                inner.push(attr::bytes(FAMILY, &(libc::AF_INET6 as u16).to_ne_bytes()));
                inner.push(attr::bytes(ADDR6, &a.octets()));
            }
        }
        if self.id != 0 {
            inner.push(attr::bytes(ID, &[self.id]));
        }
        if let Some(port) = self.port {
            inner.push(attr::bytes(PORT, &port.to_ne_bytes()));
        }
        inner.push(attr::bytes(FLAGS, &self.flags.bits().to_ne_bytes()));
        if let Some(ifindex) = self.ifindex {
            inner.push(attr::bytes(IF_IDX, &ifindex.to_ne_bytes()));
        }
        attr::nest(kind, &inner)
    }

    /// Reads the inside of an address attribute; `None` without an address.
    pub(crate) fn parse(inner: &[u8]) -> Option<Self> {
        let mut id = 0;
        let mut address = None;
        let mut port = None;
        let mut flags = EndpointFlags::empty();
        let mut ifindex = None;
        Attrs(inner).each(|kind, v| match kind {
            ID => id = attr::u8_of(v).unwrap_or(0),
            ADDR4 => address = v.first_chunk::<4>().map(|b| IpAddr::from(*b)),
            ADDR6 => address = v.first_chunk::<16>().map(|b| IpAddr::from(*b)),
            PORT => port = attr::u16_of(v).filter(|&p| p != 0),
            FLAGS => {
                flags = EndpointFlags::from_bits_retain(attr::u32_of(v).unwrap_or(0));
            }
            IF_IDX => ifindex = attr::u32_of(v).filter(|&i| i != 0),
            _ => {}
        });
        Some(Self {
            id,
            address: address?,
            port,
            ifindex,
            flags,
        })
    }
}

/// Selects an endpoint by its id, optionally with new flags.
pub(crate) fn select(kind: u16, id: u8, flags: Option<EndpointFlags>) -> DefaultNla {
    let mut inner = vec![attr::bytes(ID, &[id])];
    if let Some(flags) = flags {
        inner.push(attr::bytes(FLAGS, &flags.bits().to_ne_bytes()));
    }
    attr::nest(kind, &inner)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if let Some(port) = self.port {
            write!(f, " port {port}")?;
        }
        if self.id != 0 {
            write!(f, " id {}", self.id)?;
        }
        for (name, _) in self.flags.iter_names() {
            write!(f, " {}", name.to_ascii_lowercase())?;
        }
        if let Some(ifindex) = self.ifindex {
            write!(f, " on interface {ifindex}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<[u8; 4]>().prop_map(IpAddr::from),
            any::<[u8; 16]>().prop_map(IpAddr::from),
        ]
    }

    proptest! {
        #[test]
        fn round_trips(
            id: u8,
            address in address(),
            port in prop::option::of(1u16..),
            ifindex in prop::option::of(1u32..),
            bits in 0u32..64,
        ) {
            let e = Endpoint { id, address, port, ifindex, flags: EndpointFlags::from_bits_retain(bits) };
            let wire = attr::emit(&[e.emit(1)]);
            prop_assert_eq!(Endpoint::parse(Attrs(&wire).find(1).unwrap()), Some(e));
        }

        #[test]
        fn garbage_does_not_panic(b in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Endpoint::parse(&b);
        }
    }
}
