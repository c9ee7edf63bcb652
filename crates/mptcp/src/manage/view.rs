//! What the kernel has set, as far as accesses are concerned.

use std::net::IpAddr;

pub use braid_link::{Address, Interface};
use ipnet::IpNet;

use crate::pm::Endpoint;

/// The number by which the routing protocol of our routes and rules is told
/// apart (`RTPROT_*`; not assigned to anyone in iproute2's table).
pub const PROTOCOL: u8 = 77;
/// The priority of our rules: before those of others that lead elsewhere, after
/// the kernel's own (0).
pub const RULE_PRIORITY: u32 = 7700;
/// Our routing table of an interface is this plus the interface's index.
pub const FIRST_TABLE: u32 = 77_000_000;
/// The main routing table.
pub const MAIN_TABLE: u32 = 254;

/// A default route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefaultRoute {
    /// The routing table.
    pub table: u32,
    /// Of IPv4, else of IPv6.
    pub v4: bool,
    /// The interface that it leads out by.
    pub ifindex: u32,
    /// The next hop; absent where the interface leads to one peer.
    pub gateway: Option<IpAddr>,
    /// Its metric.
    pub metric: u32,
    /// Who made it (`RTPROT_*`).
    pub protocol: u8,
}

/// A rule "packets from `source` use `table`", without further conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceRule {
    /// Its place: lower ones are asked first.
    pub priority: u32,
    /// Whose packets.
    pub source: IpNet,
    /// Where they are looked up.
    pub table: u32,
    /// Who made it (`RTPROT_*`); 0 where not told.
    pub protocol: u8,
}

impl SourceRule {
    /// Whether it is one of ours.
    pub fn is_ours(&self) -> bool {
        self.protocol == PROTOCOL && self.priority == RULE_PRIORITY
    }
}

/// Everything at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Their addresses.
    pub addresses: Vec<Address>,
    /// Default routes with one next hop, of all tables.
    pub routes: Vec<DefaultRoute>,
    /// Rules by source address.
    pub rules: Vec<SourceRule>,
    /// The path manager's endpoints.
    pub endpoints: Vec<Endpoint>,
}

impl View {
    /// The interface with this index.
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|i| i.index == index)
    }
}
