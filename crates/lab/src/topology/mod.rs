//! and leaving nothing behind.
//!
//! ```text
//!   device namespace                                  proxy namespace
//!   rule: from 10.77.k.2 -> table 1000+k              lo: 10.77.0.1/32
//! ```

mod addressing;
mod build;
mod busy;
mod links;
mod live;
mod names;
mod namespace;
mod netlink;
mod ports;
mod rights;
mod spec;
mod sysctl;

pub use addressing::{AddressPlan, Family, LinkAddresses, parse_prefix};
pub use build::{Access, Device, Interface, Topology};
pub use links::AccessPorts;
pub use namespace::Namespace;
pub use ports::{Port, PortKind, tun_usable};
pub use spec::{AccessSpec, DeviceSpec, PortChoice, TopologySpec};
