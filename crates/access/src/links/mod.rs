//! Interfaces of this machine and their addresses: those that there are now ([`Links`]), and
//! that something has changed ([`RouteEvents`]).

pub mod events;
pub mod preference;

use std::net::IpAddr;

use futures_util::TryStreamExt;
use ipnet::IpNet;
use rtnetlink::Handle;
use rtnetlink::packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressScope,
};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage};

use crate::{Error, Result};
pub use events::{Heard, Hosts, RouteEvents};

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Administratively up.
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Whether it is a loopback.
    pub loopback: bool,
    /// Whether it leads to one peer and needs no gateway.
    pub point_to_point: bool,
    /// Kind of what made it, as the kernel calls it (`veth`, `bridge`, `wireguard`);
    /// empty for devices.
    pub kind: String,
    /// The index of the interface that it is a part of.
    pub master: Option<u32>,
    /// The largest packet that it takes, bytes.
    pub mtu: u32,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The interface.
    pub ifindex: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix.
    pub prefix_len: u8,
    /// Whether its scope is global (not link-local, not host-local).
    pub global: bool,
    /// Not usable yet, or never: tentative, a duplicate.
    pub unusable: bool,
    /// Its preferred lifetime is over: not for anything that begins, while there is another
    /// (RFC 4862 5.5.4).
    pub deprecated: bool,
    /// Made for privacy and soon replaced (RFC 8981).
    pub temporary: bool,
}

impl Address {
    /// Whether `other` is in this address's prefix.
    pub fn reaches(&self, other: IpAddr) -> bool {
        IpNet::new(self.address, self.prefix_len).is_ok_and(|net| net.contains(&other))
    }

    /// Whether its prefix has more than itself.
    pub fn reaches_more(&self) -> bool {
        IpNet::new(self.address, self.prefix_len)
            .is_ok_and(|net| net.prefix_len() < net.max_prefix_len())
    }
}

/// Everything at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Their addresses.
    pub addresses: Vec<Address>,
}

/// A way to ask the kernel, inside a runtime.
///
/// # Errors
/// No netlink socket can be had.
pub fn handle() -> Result<Handle> {
    let opened = rtnetlink::new_connection();
    let (connection, handle, _) = opened.map_err(|e| Error::new("open a netlink socket", e))?;
    tokio::spawn(connection);
    Ok(handle)
}

impl Links {
    /// Asks the kernel.
    ///
    /// # Errors
    /// Its refusal.
    pub async fn read(handle: &Handle) -> Result<Self> {
        let mut links = Self::default();
        let wrong = |e| Error::new("list the interfaces", e);
        let mut all = handle.link().get().execute();
        while let Some(m) = all.try_next().await.map_err(wrong)? {
            links.interfaces.extend(interface(&m));
        }
        let wrong = |e| Error::new("list the addresses", e);
        let mut all = handle.address().get().execute();
        while let Some(m) = all.try_next().await.map_err(wrong)? {
            links.addresses.extend(address(&m));
        }
        Ok(links)
    }
}

fn interface(m: &LinkMessage) -> Option<Interface> {
    let flags = m.header.flags;
    let mut i = Interface {
        index: m.header.index,
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::LowerUp),
        loopback: flags.contains(LinkFlags::Loopback),
        point_to_point: flags.contains(LinkFlags::Pointopoint),
        ..Interface::default()
    };
    for a in &m.attributes {
        match a {
            LinkAttribute::IfName(name) => i.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => i.mtu = *mtu,
            LinkAttribute::Controller(index) => i.master = Some(*index).filter(|n| *n != 0),
            LinkAttribute::LinkInfo(all) => {
                i.kind = all
                    .iter()
                    .find_map(|a| match a {
                        LinkInfo::Kind(kind) => Some(kind.to_string()),
                        _ => None,
                    })
                    .unwrap_or_default();
            }
            _ => {}
        }
    }
    (!i.name.is_empty()).then_some(i)
}

fn address(m: &AddressMessage) -> Option<Address> {
    let (mut local, mut other) = (None, None);
    let mut flags = AddressFlags::from_bits_retain(m.header.flags.bits().into());
    for a in &m.attributes {
        match a {
            // `Address` is the peer's on point-to-point links.
            AddressAttribute::Local(a) => local = Some(*a),
            AddressAttribute::Address(a) => other = Some(*a),
            AddressAttribute::Flags(all) => flags = *all,
            _ => {}
        }
    }
    let address = local.or(other)?;
    // An optimistic address (RFC 4429) may be used while it is tentative.
    let tentative =
        flags.contains(AddressFlags::Tentative) && !flags.contains(AddressFlags::Optimistic);
    Some(Address {
        ifindex: m.header.index,
        address,
        prefix_len: m.header.prefix_len,
        global: m.header.scope == AddressScope::Universe,
        unusable: tentative || flags.contains(AddressFlags::Dadfailed),
        deprecated: flags.contains(AddressFlags::Deprecated),
        // The flag is called "secondary" in IPv4, where it means another thing.
        temporary: address.is_ipv6() && flags.contains(AddressFlags::Secondary),
    })
}
