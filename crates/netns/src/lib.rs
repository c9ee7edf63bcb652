//! Topologies: namespaces joined by emulated links, the processes in them,
//! and leaving nothing behind.
//!
//! ```text
//!   device namespace                                  proxy namespace
//!   nr    10.77.1.2/24 [port]  emulator process [port] 10.77.1.1/24 cpe-nr
//!   wifi  10.77.2.2/24 [port]  emulator process [port] 10.77.2.1/24 cpe-wifi
//!   rule: from 10.77.k.2 -> table 1000+k              lo: 10.77.0.1/32
//! ```
//!
//! Where it is asked for, there is a host behind the device and a server behind the proxy
//! ([`Hosts`]).

mod addressing;
mod build;
mod busy;
mod child_setup;
pub mod error;
mod hosts;
mod links;
mod live;
mod names;
mod namespace;
mod netlink;
mod ports;
mod process;
mod procfs;
mod registry;
mod rights;
mod signals;
mod spec;
mod sweep;
mod sysctl;
#[cfg(feature = "world")]
pub mod world;

pub use addressing::{AddressPlan, Family, LinkAddresses, parse_prefix};
pub use build::{Access, Device, Topology};
pub use hosts::Hosts;
pub use links::{AccessPorts, Interface};
pub use namespace::Namespace;
pub use ports::{Port, tun_usable};
pub use process::{Child, Exit, LineSink, RUN_VARIABLE, Spawn, Stream};
pub use registry::{Registry, Run};
pub use rights::{Rights, acquire, current as current_rights, limits};
pub use signals::Interrupt;
pub use spec::{AccessSpec, DeviceSpec, HostsSpec, PortChoice, TopologySpec};
pub use sweep::Swept;
