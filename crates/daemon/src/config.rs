//! Configuration of a daemon, as its parts go by it. The file's form stands in
//! [`braid_api::config`].

pub(super) mod machine;
pub(super) mod quic;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use braid_access::settings::{AccessSpec, Mesh, Settings};
use braid_api::config::{self as file, DeviceAccess, Format, ProxyAccess};
use braid_api::diagnostic::{Problem, nearest};
use braid_api::{Engine, Expected, Limit, Role, SchedulerChange};
use braid_core::class::{self, ClassSteering, DEFAULT_NUMBER};
use braid_core::control::{Direction, PerDirection};
use braid_core::energy::sets::ParameterSet;
use braid_core::rules::Rule;
use braid_core::sched::WrrMode;
use braid_core::{AccessKind, Pattern};
use braid_mpquic::{Lane, Steering as Scheduling};
use braid_mptcp::buffers::{self, Sizes};
use braid_mptcp::offer;
use ipnet::IpNet;

use super::DaemonError;
use super::converter::Converter;
use super::energy;

/// A daemon's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Engines that serve at the same time, the first one by default.
    pub engines: Vec<Engine>,
    /// The proxy's service addresses, at most one of each family: where probes
    /// are sent to and answered at. Those of names are added once they are known.
    pub proxy: Vec<IpAddr>,
    /// The proxy as configured, by address or name.
    pub hosts: Vec<file::Host>,
    /// Proxies that are used where those before them do not answer, by address or name.
    pub fallback: Vec<file::Host>,
    /// Addresses that a proxy tells devices of.
    pub announce: Vec<IpAddr>,
    /// How the path manager goes about.
    pub manager: Manager,
    /// Have what is not bonded follow the accesses that work.
    pub steers_unbonded: bool,
    /// How accesses are probed.
    pub probe: file::Probe,
    /// Whether accesses are registered at the proxy, and the device's name there.
    pub registration: file::Registration,
    /// Where metrics are served beside the control socket.
    pub metrics: Option<SocketAddr>,
    /// Group whose members may read over the control socket.
    pub group: Option<String>,
    /// File that remembers how much of their caps accesses have used.
    pub usage: PathBuf,
    /// Counters of power, at the device.
    pub power: file::Power,
    /// How much sockets may hold.
    pub buffers: Buffers,
    /// How this end shares its sending among the accesses; the kernel's way if
    /// absent.
    pub scheduler: Option<SchedulerChange>,
    /// Policy of the weights, and its journal.
    pub control: file::Control,
    /// Congestion control of connections that begin afterwards, if one is named.
    pub cc: Option<String>,
    /// Have weights by eBPF outlive a daemon that is killed.
    pub pin: bool,
    /// Settings of Multipath QUIC; only with that engine.
    pub quic: Option<quic::Quic>,
    /// Converter at the proxy for connections over Multipath TCP.
    pub converter: Option<Converter>,
    /// Hosts behind the device.
    pub lan: Option<file::Lan>,
    /// Programs of the device whose traffic goes over the bond; absent: it leaves as the routes say.
    pub programs: Option<Programs>,
    /// Classes of what these send beside the default, by name.
    pub classes: BTreeMap<String, Class>,
    /// Numbers that names of classes have, or had last while the daemon ran.
    class_numbers: BTreeMap<String, u8>,
    /// Rules about them, in the order of precedence.
    pub rules: Vec<Rule>,
    /// At the device its accesses, at the proxy those of its peer.
    pub accesses: Vec<Access>,
}

/// Programs of the device, as `default = "bond"` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Refuse what they would send past the bond, also while no daemon runs.
    pub kill_switch: bool,
}

/// Class of traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Number by which traffic under way goes, 1 to 7.
    pub number: u8,
    /// Steering in each direction.
    pub steering: PerDirection<ClassSteering>,
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
    /// Rates that it is expected to carry. Set at the device.
    pub expected: Expected,
    /// Greatest rates that are sent on it. Set at the device.
    pub limit: Limit,
    /// Estimator of what it carries, for policies.
    pub estimator: file::Estimator,
    /// Bytes that it may carry in a month. Set at the device.
    pub cap: Option<file::Cap>,
    /// Power model of its radio: a shipped set or a file. Set at the device.
    pub power: Option<String>,
    /// Parameters of this model, once the file is read.
    pub power_set: Option<ParameterSet>,
    /// Addresses under which its device has registered it, the newest last; none in an access of
    /// the file. At the proxy.
    pub registered: Option<Vec<IpAddr>>,
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
            limit: a.limit,
            estimator: a.estimator,
            cap: a.cap,
            power: a.power,
            power_set: None,
            registered: None,
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
            limit: Limit::default(),
            estimator: a.estimator,
            cap: None,
            power: None,
            power_set: None,
            registered: None,
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
    let (engines, rules) = (c.engines(), c.rules()?);
    let quic = match engines.contains(&Engine::Mpquic) {
        true => Some(quic::take_over(
            c.mpquic.unwrap_or_default(),
            c.gateway.as_ref(),
            A::ROLE,
        )?),
        false => None,
    };
    if let (Some(quic), Some(scheduler)) = (&quic, &c.scheduler) {
        if engines.contains(&Engine::Mptcp) {
            common_scheduler(scheduler.name.as_deref(), quic.lane)?;
        }
        let before = quic::default_steering(quic.reinject);
        quic::steering(&scheduler.change(), &before, quic.lane)
            .map_err(|what| Problem::at_key(&["scheduler", "name"], what))?;
    }
    let mut manager = Manager::from(c.manager);
    // What leads to hosts serves no access, whichever pattern stands for it.
    for name in c.lan.iter().flat_map(|l| &l.interfaces) {
        let name = name.parse::<Pattern>();
        let name = name.map_err(|e| Problem::at_key(&["lan", "interfaces"], e.to_string()))?;
        manager.ignore.push(name);
    }
    let classes = numbered(&c.class.into_iter().collect::<Vec<_>>());
    let scheduler = c.scheduler.as_ref();
    let schedules = scheduler.filter(|s| s.schedules());
    Ok(Config {
        engines,
        proxy: c.proxy.iter().filter_map(file::Host::address).collect(),
        hosts: c.proxy,
        fallback: c.fallback,
        announce: c.announce,
        manager,
        steers_unbonded: c.routes.manage,
        registration: c.registration,
        metrics: c.metrics.listen,
        group: c.control_socket.group,
        probe: c.probe,
        usage: c.usage.ledger,
        power: c.power,
        buffers: c.buffers.into(),
        pin: scheduler.and_then(|s| s.pin).unwrap_or(true),
        scheduler: weighted(schedules.map(file::Scheduler::change), &c.control),
        control: c.control,
        cc: scheduler.and_then(|s| s.cc.clone()),
        converter: c.converter.map(|c| {
            let otherwise = quic.as_ref().map(|q| &q.allow);
            Converter::take_over(c, otherwise)
        }),
        quic,
        lan: c.lan,
        programs: (c.default == file::DefaultWay::Bond).then_some(Programs {
            kill_switch: c.kill_switch.unwrap_or(true),
        }),
        class_numbers: numbers_of(&classes),
        classes,
        rules,
        accesses: c.access.into_iter().map(Access::from).collect(),
    })
}

/// Returns the number of each name.
fn numbers_of(classes: &BTreeMap<String, Class>) -> BTreeMap<String, u8> {
    let all = classes.iter();
    all.map(|(name, c)| (name.clone(), c.number)).collect()
}

/// Numbers classes in their order.
fn numbered(classes: &[(String, file::Class)]) -> BTreeMap<String, Class> {
    let names = classes.iter().map(|(name, _)| name.as_str());
    let numbers = class::numbered(names, &BTreeMap::new());
    let numbered = classes.iter().filter_map(|(name, class)| {
        let (number, steering) = (*numbers.get(name)?, class.steering());
        Some((name.clone(), Class { number, steering }))
    });
    numbered.collect()
}

/// Checks that both engines have the scheduler of this name. Whether this machine has it for
/// Multipath TCP is found out when it is set.
fn common_scheduler(name: Option<&str>, lane: Lane) -> Result<(), Problem> {
    let Some(name) = name else {
        return Ok(());
    };
    let of_mpquic = |name: &str| {
        let scheduling = Scheduling {
            scheduler: name.to_owned(),
            ..quic::default_steering(false)
        };
        scheduling.make(lane).is_ok()
    };
    let lacks = match (offer::schedulers().any(|n| n == name), of_mpquic(name)) {
        (true, true) => return Ok(()),
        (false, true) => "Multipath TCP has no",
        (true, false) => "Multipath QUIC has no",
        (false, false) => "neither engine has a",
    };
    let both: Vec<_> = offer::schedulers().filter(|n| of_mpquic(n)).collect();
    let mut what = format!(
        "{lacks} packet scheduler \"{name}\", and with two engines both must have it: there are {}",
        both.join(", ")
    );
    if let Some(near) = nearest(name, both) {
        what += &format!("; did you mean \"{near}\"?");
    }
    Err(Problem::at_key(&["scheduler", "name"], what))
}

/// Adds what a policy's weights need to a scheduler that was configured, or to none: weighted
/// round robin, which fills every access by itself.
fn weighted(
    configured: Option<SchedulerChange>,
    control: &file::Control,
) -> Option<SchedulerChange> {
    if !control.policy.decides() {
        return configured;
    }
    let mut change = configured.unwrap_or_default();
    change.name.get_or_insert_with(|| file::WEIGHTED.to_owned());
    change.wrr_mode.get_or_insert(WrrMode::WorkConserving);
    Some(change)
}

/// Returns the access of an address: of networks that contain it, the longest prefix counts.
pub(super) fn access_at(networks: &[(IpNet, String)], address: IpAddr) -> Option<&str> {
    let containing = networks.iter().filter(|(net, _)| net.contains(&address));
    let longest = containing.max_by_key(|(net, _)| net.prefix_len());
    longest.map(|(_, name)| name.as_str())
}

impl Config {
    /// Numbers the classes as those of the configuration before, as far as they are called so.
    pub(super) fn keep_numbers(&mut self, before: &Self) {
        let names = self.classes.keys().map(String::as_str);
        let kept = class::numbered(names, &before.class_numbers);
        for (name, class) in &mut self.classes {
            class.number = kept[name];
        }
        // A name that comes back has its number again, unless another has it now.
        self.class_numbers.clone_from(&before.class_numbers);
        self.class_numbers
            .retain(|_, n| !kept.values().any(|kept| kept == n));
        self.class_numbers.extend(kept);
    }

    /// Returns the number of a class: that of the default for others.
    pub(super) fn class_number(&self, name: &str) -> u8 {
        self.classes.get(name).map_or(DEFAULT_NUMBER, |c| c.number)
    }

    /// Returns the names of the classes beside the default, by their numbers.
    pub(super) fn class_names(&self) -> BTreeMap<u8, String> {
        let all = self.classes.iter();
        all.map(|(name, c)| (c.number, name.clone())).collect()
    }

    /// Returns the steering of the classes in one direction, by their numbers.
    pub(super) fn class_steering(&self, direction: Direction) -> BTreeMap<u8, ClassSteering> {
        let all = self.classes.values();
        all.map(|c| (c.number, c.steering.get(direction).clone()))
            .collect()
    }

    /// Reads a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// The file cannot be read; or it is wrong, with file, line and column.
    pub fn load(path: &Path, role: Role) -> Result<Self, DaemonError> {
        Self::load_with_text(path, role).map(|(config, _)| config)
    }

    /// Reads a file as [`Config::load`] does, and returns its text too, for places in it.
    pub(super) fn load_with_text(path: &Path, role: Role) -> Result<(Self, String), DaemonError> {
        let text = braid_api::bounded::read_text(path)
            .map_err(|e| DaemonError::Config(format!("{}: cannot be read: {e}", path.display())))?;
        let config = parse(&text, Format::of(path), role)
            .and_then(|config| energy::modelled(config, path))
            .map_err(|p| DaemonError::Config(p.in_file(path.to_owned(), &text).to_string()))?;
        Ok((config, text))
    }

    /// Returns the engine that sets the rules by which what is not bonded follows the accesses
    /// that work; `None` for a daemon that has no part in it.
    pub(super) fn steerer(&self, role: Role) -> Option<Engine> {
        let has = |engine| self.engines.contains(&engine);
        match role {
            Role::Proxy => None,
            // With `recover = false` it sets up once, and nobody sets anything after that.
            Role::Device if has(Engine::Mptcp) => self.manager.recover.then_some(Engine::Mptcp),
            Role::Device => has(Engine::Mpquic).then_some(Engine::Mpquic),
        }
    }

    /// Returns whether what is not bonded follows the accesses that work; `None` for a daemon that
    /// has no part in it.
    pub(super) fn steers(&self, role: Role) -> Option<bool> {
        self.steerer(role).map(|_| self.steers_unbonded)
    }

    /// Returns the networks that the file names, with their accesses, at the proxy.
    pub(super) fn networks(accesses: &[Access]) -> Vec<(IpNet, String)> {
        let named = accesses.iter().filter(|a| a.registered.is_none());
        named
            .filter_map(|a| Some((a.address?, a.name.clone())))
            .collect()
    }

    /// Returns the addresses of devices with their accesses, at the proxy.
    pub(super) fn peers(accesses: &[Access]) -> Vec<(IpNet, String)> {
        let of = |a: &Access| {
            let configured = a.address.filter(|_| a.registered.is_none());
            let registered = a.registered.iter().flatten().copied().map(IpNet::from);
            let all = configured.into_iter().chain(registered);
            all.map(|net| (net, a.name.clone())).collect::<Vec<_>>()
        };
        accesses.iter().flat_map(of).collect()
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
            steers_unbonded: self.steers_unbonded,
        }
    }
}
