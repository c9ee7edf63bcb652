//! Configuration of a daemon: a strict TOML file, or JSON.

pub(super) mod quic;
mod raw;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::Path;

use braid_api::{Engine, Expected, Role, SchedulerChange};
use braid_core::{AccessKind, Pattern};
use braid_mptcp::buffers::{self, Sizes};
use braid_mptcp::manage::plan::{AccessSpec, Mesh, Settings};
use braid_mptcp::manage::probe;
use ipnet::IpNet;
use serde::Deserialize;

use super::DaemonError;

/// Why only Multipath QUIC makes use of what is expected.
pub(super) const KERNEL_WINDOWS: &str = "the kernel's windows begin as the kernel has it: what is \
                                         expected is of use to engine = \"mpquic\" alone";

/// Why the stream lane makes no use of what is expected of downlinks.
pub(super) const NO_LANE: &str =
    "only on the datagram lane the proxy is told what a downlink is expected to carry";

/// A daemon's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The engine.
    pub engine: Engine,
    /// The proxy's service addresses, at most one of each family: where probes
    /// are sent to and answered at.
    pub proxy: Vec<IpAddr>,
    /// Addresses that a proxy tells devices of.
    pub announce: Vec<IpAddr>,
    /// How the path manager goes about.
    pub manager: Manager,
    /// How accesses are probed.
    pub probe: Probe,
    /// How much sockets may hold.
    pub buffers: Buffers,
    /// How this end shares its sending among the accesses; the kernel's way if
    /// absent.
    pub scheduler: Option<SchedulerChange>,
    /// Congestion control of connections that begin afterwards; the namespace's if absent.
    pub cc: Option<String>,
    /// Have weights by eBPF outlive a daemon that is killed.
    pub pin: bool,
    /// Settings of Multipath QUIC; only with that engine.
    pub quic: Option<quic::Quic>,
    /// At the device its accesses, at the proxy those of its peer.
    pub accesses: Vec<Access>,
}

/// `[manager]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Manager {
    /// Follow interfaces and repair; else set up once and only report.
    pub recover: bool,
    /// Mesh of subflows to open.
    pub mesh: Mesh,
    /// How many addresses of one interface are used, 1 to 8.
    pub max_addresses_per_interface: usize,
    /// Interfaces that are never used.
    pub ignore: Vec<Pattern>,
}

/// `[probe]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Probe {
    /// Send, or answer, probes.
    pub enabled: bool,
    /// The UDP port.
    pub port: u16,
    /// Where nobody answers probes, ask the other ends of subflows by TCP.
    pub knock: bool,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            enabled: true,
            port: probe::PORT,
            knock: true,
        }
    }
}

/// `[buffers]`: what TCP sockets of the namespace may hold at least, if `manage`, and what
/// subflows may have waiting.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Buffers {
    /// Raise the sysctls to these, and open subflows that join again as wide as is needed.
    pub manage: bool,
    /// To receive.
    pub tcp_rmem: Sizes,
    /// To send, each subflow.
    pub tcp_wmem: Sizes,
    /// Bound what waits on a subflow and has not been sent, where the kernel permits it.
    pub short_queues: bool,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            manage: true,
            tcp_rmem: buffers::to_receive(),
            tcp_wmem: buffers::TCP_WMEM,
            short_queues: true,
        }
    }
}

/// `[access.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Its name, unique.
    pub name: String,
    /// Its technology.
    pub kind: AccessKind,
    /// At the device: the interfaces that serve it.
    pub interface: Option<Pattern>,
    /// At the device the only address to use, if not any; at the proxy the
    /// addresses of the peer on this access.
    pub address: Option<IpNet>,
    /// How many addresses of one of its interfaces are used, 1 to 8; as `[manager]` says if
    /// absent. Set at the device.
    pub max_addresses: Option<usize>,
    /// Use it only when no other access is active. Set at the device.
    pub backup: bool,
    /// Its place in the order: those of the least number carry. Set at the device.
    pub priority: Option<u16>,
    /// Its share of the traffic, above 0, where the scheduler knows weights.
    pub weight: Option<f64>,
    /// Rates that it is expected to carry. Set at the device, for Multipath QUIC.
    pub expected: Expected,
}

impl Config {
    /// Reads a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// The file cannot be read; or it is wrong, with file, line and column.
    pub fn load(path: &Path, role: Role) -> Result<Self, DaemonError> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| DaemonError::Config(format!("{}: cannot be read: {e}", path.display())))?;
        let json = path.extension().is_some_and(|e| e == "json");
        raw::parse(&text, json, role)
            .map_err(|e| DaemonError::Config(format!("{}:{e}", path.display())))
    }

    /// Returns the settings that the path manager goes by.
    pub(super) fn settings(&self) -> Settings {
        let access = |a: &Access| {
            Some(AccessSpec {
                name: a.name.clone(),
                interface: a.interface.clone()?,
                address: a.address.map(|n| n.addr()),
                backup: a.backup,
                excluded: false,
                max_addresses: a.max_addresses,
                priority: a.priority,
                enabled: true,
            })
        };
        Settings {
            accesses: self.accesses.iter().filter_map(access).collect(),
            ignore: self.manager.ignore.clone(),
            mesh: self.manager.mesh,
            max_addresses: self.manager.max_addresses_per_interface,
            proxy: self.proxy.clone(),
        }
    }
}
