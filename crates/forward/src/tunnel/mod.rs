//! IP packets of hosts over a session: UDP, ICMP and whatever else is not diverted as a connection.
//!
//! ```text
//! host -> interface braid0 of the device -> messages of the session -> braid0 of the proxy -> Internet
//! ```
//!
//! Each class of packets has an interface of its own at the device, so that the class is known of what
//! comes out of it. A message of another class than the default begins with that, and what comes back
//! of the same flow is of the same class (`flow_classes`).
//!
//! The proxy gives each device an address of each family, which its packets have as their source
//! ([`device`]); whatever has another is dropped. At the proxy the kernel forwards and translates
//! them ([`gateway`]). Packets are messages on the datagram lane, each sent once.

pub mod device;
mod flow_classes;
pub mod gateway;
mod interface;
mod packet;
mod pool;
mod routes;
pub(crate) mod rules;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_core::class::{DEFAULT_NUMBER, MAX_CLASSES};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::divert::RouteError;
use crate::nft::NftError;
pub(crate) use interface::Interface;
#[doc(hidden)]
pub use packet::read_packet;
pub(crate) use routes::remove as remove_routes;

/// Interface of the tunnel, at either end. At the device it is that of the default class, and the one
/// by which packets come back.
pub const INTERFACE: &str = "braid0";
/// Maximum length of a packet: that of Ethernet, so that no host has to find a lesser one. Messages
/// are cut to what paths carry.
pub const MTU: u16 = 1500;
/// Mark of packets that go into the tunnel.
pub const MARK: u32 = 0xb1e;
/// Mark of packets of class 0, beside which those of the others follow.
pub(crate) const CLASS_MARK: u32 = 0xb40;
/// Bits by which marks of classes are told from others.
pub(crate) const CLASS_MASK: u32 = !(MAX_CLASSES as u32 - 1);

/// Returns the device's interface for packets of a class: what goes into it is of that class.
pub fn interface(class: u8) -> String {
    match class {
        DEFAULT_NUMBER => INTERFACE.to_owned(),
        _ => format!("braid{class}"),
    }
}

/// Returns the mark of packets of a class that go into the tunnel.
pub(crate) fn mark(class: u8) -> u32 {
    match class {
        DEFAULT_NUMBER => MARK,
        _ => CLASS_MARK + u32::from(class),
    }
}

/// Lists the numbers that classes may have.
pub(crate) fn classes() -> impl Iterator<Item = u8> {
    0..MAX_CLASSES as u8
}

/// Addresses of a device in the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// IPv6, where the proxy gives one.
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// Returns them.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> {
        let v6 = self.v6.map(IpAddr::from);
        std::iter::once(self.v4.into()).chain(v6)
    }

    /// Returns these without the address of IPv6, unless `takes` says that there may be one.
    fn filtered(self, takes: impl Fn(&IpAddr) -> bool) -> Self {
        let v6 = self.v6.filter(|ip| takes(&(*ip).into()));
        Self { v6, ..self }
    }
}

/// Why there is no tunnel.
#[derive(Debug, Error)]
pub enum TunnelError {
    /// The interface or its configuration.
    #[error("{what}: {source}")]
    Interface {
        /// Attempt, in words.
        what: String,
        /// The kernel's refusal.
        source: io::Error,
    },
    /// The rules about its packets.
    #[error(transparent)]
    Rules(#[from] NftError),
    /// The route into it.
    #[error(transparent)]
    Route(#[from] RouteError),
}

impl TunnelError {
    fn new(what: impl Into<String>, source: io::Error) -> Self {
        Self::Interface {
            what: what.into(),
            source,
        }
    }

    fn of(what: &str, e: rtnetlink::Error) -> Self {
        let source = match e {
            rtnetlink::Error::NetlinkError(m) => io::Error::from_raw_os_error(m.raw_code().abs()),
            e => io::Error::other(e.to_string()),
        };
        Self::new(what, source)
    }
}

/// Writes the addresses that a device is given.
///
/// # Errors
/// The stream's.
async fn write(stream: &mut (impl AsyncWrite + Unpin), given: Addresses) -> io::Result<()> {
    let v6 = given.v6.unwrap_or(Ipv6Addr::UNSPECIFIED);
    let bytes = [&given.v4.octets()[..], &v6.octets()].concat();
    stream.write_all(&bytes).await
}

/// Reads them.
///
/// # Errors
/// The stream's.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Addresses> {
    let v4 = Ipv4Addr::from_bits(stream.read_u32().await?);
    let v6 = Ipv6Addr::from_bits(stream.read_u128().await?);
    Ok(Addresses {
        v4,
        v6: (!v6.is_unspecified()).then_some(v6),
    })
}
