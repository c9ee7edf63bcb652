//! Configuration of a daemon, as its parts go by it. The file's form stands in
//! [`braid_api::config`].

pub(super) mod quic;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use braid_api::config::{self as file, DeviceAccess, Format, ProxyAccess};
use braid_api::diagnostic::Problem;
use braid_api::{Engine, Expected, Role, SchedulerChange};
use braid_core::{AccessKind, Pattern};
use braid_mptcp::buffers::{self, Sizes};
use braid_mptcp::manage::plan::{AccessSpec, Mesh, Settings};
use ipnet::IpNet;

use super::DaemonError;

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
    pub probe: file::Probe,
    /// Where metrics are served beside the control socket.
    pub metrics: Option<SocketAddr>,
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

/// `[buffers]`: what TCP sockets of the namespace may hold at least, if `manage`, and what
/// subflows may have waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// Access of either role.
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

impl From<(String, DeviceAccess)> for Access {
    fn from((name, a): (String, DeviceAccess)) -> Self {
        Self {
            name,
            kind: a.kind,
            interface: Some(a.interface),
            address: a.address.map(IpNet::from),
            max_addresses: a.max_addresses,
            backup: a.backup,
            priority: a.priority,
            weight: a.weight,
            expected: a.expected,
        }
    }
}

impl From<(String, ProxyAccess)> for Access {
    fn from((name, a): (String, ProxyAccess)) -> Self {
        Self {
            name,
            kind: a.kind,
            interface: None,
            address: Some(a.address),
            max_addresses: None,
            backup: false,
            priority: None,
            weight: a.weight,
            expected: Expected::default(),
        }
    }
}

impl From<file::Manager> for Manager {
    fn from(m: file::Manager) -> Self {
        Self {
            recover: m.recover,
            mesh: match m.mesh {
                file::Mesh::Full => Mesh::Full,
                file::Mesh::Pairs => Mesh::Pairs,
            },
            max_addresses_per_interface: m.max_addresses_per_interface,
            ignore: m.ignore,
        }
    }
}

impl From<file::Buffers> for Buffers {
    fn from(b: file::Buffers) -> Self {
        Self {
            manage: b.manage,
            tcp_rmem: b.tcp_rmem.unwrap_or_else(buffers::to_receive),
            tcp_wmem: b.tcp_wmem.unwrap_or(buffers::TCP_WMEM),
            short_queues: b.short_queues,
        }
    }
}

/// Reads the text of a file, and checks it against what the engines have.
fn parse(text: &str, format: Format, role: Role) -> Result<Config, Problem> {
    match role {
        Role::Device => file::Config::<DeviceAccess>::parse(text, format).and_then(take_over),
        Role::Proxy => file::Config::<ProxyAccess>::parse(text, format).and_then(take_over),
    }
}

fn take_over<A: file::Access>(c: file::Config<A>) -> Result<Config, Problem>
where
    Access: From<(String, A)>,
{
    let quic = match c.engine {
        Engine::Mpquic => Some(quic::take_over(c.mpquic.unwrap_or_default(), A::ROLE)?),
        Engine::Tcp | Engine::Mptcp => None,
    };
    if let (Some(quic), Some(scheduler)) = (&quic, &c.scheduler) {
        let before = quic::default_steering(quic.reinject);
        quic::steering(&scheduler.change(), &before, quic.lane)
            .map_err(|what| Problem::at_key(&["scheduler", "name"], what))?;
    }
    let scheduler = c.scheduler.as_ref();
    let schedules = scheduler.filter(|s| s.schedules());
    Ok(Config {
        engine: c.engine,
        proxy: c.proxy,
        announce: c.announce,
        manager: c.manager.into(),
        metrics: c.metrics.listen,
        probe: c.probe,
        buffers: c.buffers.into(),
        pin: scheduler.and_then(|s| s.pin).unwrap_or(true),
        scheduler: schedules.map(file::Scheduler::change),
        cc: scheduler.and_then(|s| s.cc.clone()),
        quic,
        accesses: c.access.into_iter().map(Access::from).collect(),
    })
}

impl Config {
    /// Reads a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// The file cannot be read; or it is wrong, with file, line and column.
    pub fn load(path: &Path, role: Role) -> Result<Self, DaemonError> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| DaemonError::Config(format!("{}: cannot be read: {e}", path.display())))?;
        parse(&text, Format::of(path), role)
            .map_err(|p| DaemonError::Config(p.in_file(path.to_owned(), &text).to_string()))
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
