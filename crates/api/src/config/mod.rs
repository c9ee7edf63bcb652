//! Configuration of a daemon: a strict TOML file, or JSON.
//!
//! [`Config`] is the file as it is written, both ways: a daemon reads it, the lab writes it. It
//! is generic over its accesses, which a device knows by interface and a proxy by address. Each
//! section stands in a file of its own, with its defaults and its `check`. Whether an engine
//! has a congestion control or a scheduler of some name, and whether text is a key, the engine
//! tells: the daemon checks these when it takes a configuration over.

mod access;
mod allow;
mod announce;
mod buffers;
mod cap;
mod class;
mod control;
mod control_socket;
mod converter;
mod gateway;
mod host;
mod lan;
mod manager;
mod metrics;
mod mpquic;
mod overlap;
mod own;
mod power;
mod probe;
mod registration;
mod routes;
mod rule;
mod scheduler;
#[cfg(test)]
mod tests;
mod text;
mod usage;

use std::net::IpAddr;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use access::{Access, DeviceAccess, KERNEL_WINDOWS, NO_LANE, NO_LIMIT, ProxyAccess};
pub use allow::Allow;
pub use buffers::{Buffers, Sizes};
pub use cap::{AtCap, Cap, CapLevel};
pub use class::Class;
pub use control::{Control, Energy, Estimator, MAX_FLOWS, Policy, Transfers, WEIGHTED};
pub use control_socket::ControlSocket;
pub use converter::Converter;
pub use gateway::Gateway;
pub use host::Host;
pub use lan::Lan;
pub use manager::{Manager, Mesh};
pub use metrics::Metrics;
pub use mpquic::{Forward, MPQUIC_CC, Mpquic};
pub use own::DefaultWay;
pub use power::Power;
pub use probe::Probe;
pub use registration::Registration;
pub use routes::Routes;
pub use rule::MAX_DIRECT;
pub use scheduler::{MPTCP_CC, NAMESPACES_CC, Scheduler};
pub use usage::Usage;

use crate::diagnostic::Problem;
use crate::{Engine, Role};
use access::Setting;
use braid_core::Pattern;
use braid_core::rules::{Rule, Written};

/// Configuration of a daemon whose accesses are `A`: [`DeviceAccess`] or [`ProxyAccess`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config<A> {
    /// Engine that the daemon runs, if it is one; absent with `engines`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Engines that the daemon runs at the same time, the one that the status names first in
    /// front; empty: the one of `engine`, or Multipath TCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<Engine>,
    /// The proxy's service addresses, at most one of each family: probes are sent to and
    /// answered at these. A device takes names, too.
    #[serde(deserialize_with = "host::one_or_more")]
    pub proxy: Vec<Host>,
    /// Further proxies in the order of preference, at the device: each is used where those before it
    /// do not answer.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "host::one_or_more"
    )]
    pub fallback: Vec<Host>,
    /// Way of what programs of the device send.
    #[serde(skip_serializing_if = "DefaultWay::is_usual")]
    pub default: DefaultWay,
    /// Refuse what these would send past the bond, also while no daemon runs; absent: yes, with
    /// `default = "bond"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_switch: Option<bool>,
    /// Addresses that a proxy announces to devices (ADD_ADDR), up to 8.
    pub announce: Vec<IpAddr>,
    /// `[manager]`.
    pub manager: Manager,
    /// `[routes]`.
    pub routes: Routes,
    /// `[probe]`.
    pub probe: Probe,
    /// `[registration]`.
    pub registration: Registration,
    /// `[metrics]`.
    pub metrics: Metrics,
    /// `[control_socket]`.
    pub control_socket: ControlSocket,
    /// `[usage]`.
    pub usage: Usage,
    /// `[power]`.
    pub power: Power,
    /// `[buffers]`.
    pub buffers: Buffers,
    /// `[scheduler]`; absent: the kernel's way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// `[control]`.
    pub control: Control,
    /// `[access.NAME]`: at the device its accesses in the order of preference, at the proxy
    /// those of its peers.
    pub access: IndexMap<String, A>,
    /// `[mpquic]`; with that engine only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpquic: Option<Mpquic>,
    /// `[lan]`; absent: what hosts behind the device send goes as its routes say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lan: Option<Lan>,
    /// `[class.NAME]`: classes of what hosts and programs send, at most 7.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub class: IndexMap<String, Class>,
    /// `[[rule]]` in the order of precedence: what hosts and programs send goes over the bond where
    /// none says otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<Written>,
    /// `[gateway]`; absent: the proxy carries no packets of devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
    /// `[converter]`; absent: no connection goes over Multipath TCP by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converter: Option<Converter>,
}

impl<A> Default for Config<A> {
    fn default() -> Self {
        Self {
            engine: None,
            engines: Vec::new(),
            proxy: Vec::new(),
            fallback: Vec::new(),
            default: DefaultWay::default(),
            kill_switch: None,
            announce: Vec::new(),
            manager: Manager::default(),
            routes: Routes::default(),
            probe: Probe::default(),
            registration: Registration::default(),
            metrics: Metrics::default(),
            control_socket: ControlSocket::default(),
            usage: Usage::default(),
            power: Power::default(),
            buffers: Buffers::default(),
            scheduler: None,
            control: Control::default(),
            access: IndexMap::new(),
            mpquic: None,
            lan: None,
            class: IndexMap::new(),
            rule: Vec::new(),
            gateway: None,
            converter: None,
        }
    }
}

/// Form of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// Returns the form of a file: JSON if its name ends in `.json`, else TOML.
    pub fn of(path: &Path) -> Self {
        match path.extension().is_some_and(|e| e == "json") {
            true => Self::Json,
            false => Self::Toml,
        }
    }
}

impl<A: Access> Config<A> {
    /// Reads the text of a file, and checks what it says.
    ///
    /// # Errors
    /// The place in the text, what is wrong there, and what was expected.
    pub fn parse(text: &str, format: Format) -> Result<Self, Problem> {
        let read: Result<Self, Problem> = match format {
            Format::Toml => toml::from_str(text).map_err(Problem::from),
            Format::Json => serde_json::from_str(text).map_err(Problem::from),
        };
        let config = read.map_err(|p| p.reworded(A::WORDS))?;
        config.check()?;
        Ok(config)
    }

    /// Returns the engines that serve, at least one.
    pub fn engines(&self) -> Vec<Engine> {
        match self.engines.is_empty() {
            true => vec![self.engine.unwrap_or(Engine::Mptcp)],
            false => self.engines.clone(),
        }
    }

    /// Checks what the types alone do not rule out, section by section.
    ///
    /// # Errors
    /// The key, what is wrong with its value, and what was expected.
    pub fn check(&self) -> Result<(), Problem> {
        self.check_engines()?;
        let engines = &self.engines();
        check_proxy(&self.proxy, engines, A::ROLE)?;
        check_fallback(&self.fallback, &self.proxy, engines, A::ROLE)?;
        announce::check(&self.announce, A::ROLE, engines)?;
        self.manager.check()?;
        self.probe.check()?;
        self.registration.check(A::ROLE)?;
        self.metrics.check()?;
        self.control_socket.check()?;
        self.power.check(A::ROLE)?;
        self.buffers.check()?;
        self.control
            .check(A::ROLE, engines, self.scheduler.as_ref())?;
        self.check_accesses()?;
        self.check_mpquic()?;
        self.check_lan()?;
        self.default
            .check(self.kill_switch, A::ROLE, self.carries())?;
        let names: Vec<_> = self.access.keys().map(String::as_str).collect();
        let lane = self.mpquic.as_ref().map(|m| m.lane).unwrap_or_default();
        let registers = self.registration.enabled;
        class::check(&self.class, A::ROLE, (engines, lane), registers, &names)?;
        self.check_rules()?;
        if let Some(gateway) = &self.gateway {
            gateway.check(A::ROLE, engines)?;
        }
        if let Some(converter) = &self.converter {
            converter.check(A::ROLE, engines, !self.proxy.is_empty())?;
        }
        match &self.scheduler {
            Some(scheduler) => scheduler.check(engines),
            None => Ok(()),
        }
    }

    /// Whether connections of programs and hosts go over the bond.
    fn carries(&self) -> bool {
        self.engines().contains(&Engine::Mpquic) || self.converter.is_some()
    }

    fn check_engines(&self) -> Result<(), Problem> {
        let at = |what: &str| Err(Problem::at_key(&["engines"], what));
        if self.engines.is_empty() {
            return Ok(());
        }
        if self.engine.is_some() {
            return at("`engine` and `engines` say the same: keep one of them");
        }
        for (i, engine) in self.engines.iter().enumerate() {
            let word = engine.as_str();
            if self.engines[..i].contains(engine) {
                return at(&format!("\"{word}\" is there twice"));
            }
        }
        match self.engines.len() > 1 && self.engines.contains(&Engine::Tcp) {
            true => at(
                "\"tcp\" observes one access and runs alone: expected \"mptcp\" and \"mpquic\", or \
                 engine = \"tcp\"",
            ),
            false => Ok(()),
        }
    }

    fn check_accesses(&self) -> Result<(), Problem> {
        if A::ROLE == Role::Device && self.access.is_empty() {
            let what = "a device needs at least one access: [access.NAME] with its interface";
            return Err(Problem::at_key(&[], what));
        }
        let setting = Setting {
            quic: self.engines().contains(&Engine::Mpquic),
            lane: self.mpquic.as_ref().map(|m| m.lane).unwrap_or_default(),
            estimates: self.control.policy.decides(),
            no_probes: self.no_probes(),
        };
        let policy = self.control.policy;
        if policy.rests() && self.access.values().all(|a| a.power().is_none()) {
            let what = format!(
                "policy \"{}\" goes by the power models of radios: give those that may rest power = \
                 \"SET\" in [access.NAME] (braid trace energy --list)",
                policy.as_str()
            );
            return Err(Problem::at_key(&["control", "policy"], what));
        }
        for (i, (name, a)) in self.access.iter().enumerate() {
            access::check_name(name)?;
            a.check(name, setting)?;
            let mut before = self.access.iter().take(i);
            let same = |(_, b): &(&String, &A)| b.network().is_some() && b.network() == a.network();
            if let Some((other, _)) = before.find(same) {
                let what = format!("accesses \"{other}\" and \"{name}\" have the same address");
                return Err(Problem::at_key(&["access", name, "address"], what));
            }
        }
        self.check_interfaces()
    }

    /// Checks that each access can have an interface. Other engines than Multipath TCP tell
    /// accesses of one interface by their addresses, where both have one.
    fn check_interfaces(&self) -> Result<(), Problem> {
        let by_address = !self.engines().contains(&Engine::Mptcp);
        let all = self.access.iter();
        let all = all.filter(|(_, a)| !by_address || a.network().is_none());
        let all = all.filter_map(|(name, a)| Some((name.as_str(), a.interface()?)));
        let Some((first, second)) = overlap::covered(all) else {
            return Ok(());
        };
        let what = format!(
            "access \"{second}\" never has an interface: \"{first}\" stands before it and has \
             every one that is called so; give each an interface of its own, or put \"{second}\" \
             first"
        );
        Err(Problem::at_key(&["access", second, "interface"], what))
    }

    /// Returns why no access can be probed by transfers; `None` where it can.
    fn no_probes(&self) -> Option<&'static str> {
        match (&self.engines()[..], A::ROLE) {
            ([Engine::Tcp], _) => Some("engine = \"tcp\" has no weights to go by it"),
            _ if !self.probe.enabled => Some("it needs enabled = true in [probe]"),
            _ if self.proxy.is_empty() => Some("it needs the proxy's address: proxy = \"ADDRESS\""),
            (_, Role::Proxy) if !self.control.probe.serve => {
                Some("the proxy serves the transfers: it needs serve = true in [control.probe]")
            }
            _ => None,
        }
    }

    fn check_mpquic(&self) -> Result<(), Problem> {
        let runs = self.engines().contains(&Engine::Mpquic);
        match (runs, &self.mpquic) {
            (true, Some(section)) => section.check(A::ROLE),
            (true, None) => Mpquic::default().check(A::ROLE),
            (false, Some(_)) => {
                let what =
                    "only engine = \"mpquic\" has [mpquic], or engines = [\"mptcp\", \"mpquic\"]";
                Err(Problem::at_key(&["mpquic"], what))
            }
            (false, None) => Ok(()),
        }
    }

    fn check_lan(&self) -> Result<(), Problem> {
        let Some(lan) = &self.lan else { return Ok(()) };
        // A pattern stands for others than those that are named here.
        let serves = |name: &str| {
            let is_of = |p: &Pattern| p.is_name() && p.as_str() == name;
            let mut all = self.access.iter();
            let found = all.find(|(_, a)| a.interface().is_some_and(is_of));
            found.map(|(access, _)| access.as_str())
        };
        lan.check(A::ROLE, self.carries(), serves)
    }

    /// Returns the rules of `[[rule]]`.
    ///
    /// # Errors
    /// A table is no rule, and why.
    pub fn rules(&self) -> Result<Vec<Rule>, Problem> {
        rule::read(&self.rule)
    }

    fn check_rules(&self) -> Result<(), Problem> {
        let setting = rule::Setting {
            role: A::ROLE,
            engines: &self.engines(),
            lan: self.lan.as_ref(),
            default: self.default,
            manager: &self.manager,
            accesses: self.access.keys().map(String::as_str).collect(),
            classes: self.class.keys().map(String::as_str).collect(),
        };
        rule::check(&self.rules()?, &setting)
    }
}

/// Proxies at most, that of `proxy` among them.
const MAX_PROXIES: usize = 8;

fn check_fallback(
    fallback: &[Host],
    proxy: &[Host],
    engines: &[Engine],
    role: Role,
) -> Result<(), Problem> {
    let wrong = |what: &str| Err(Problem::at_key(&["fallback"], what));
    if fallback.is_empty() {
        return Ok(());
    }
    if role == Role::Proxy {
        return wrong("devices turn from one proxy to another: set it there");
    }
    if !engines.contains(&Engine::Mpquic) {
        return wrong(
            "a session of Multipath QUIC turns to another proxy: expected \"mpquic\" among `engines`",
        );
    }
    if fallback.len() >= MAX_PROXIES {
        return wrong(&format!(
            "{} proxies beside that of `proxy` are too many: at most {}",
            fallback.len(),
            MAX_PROXIES - 1
        ));
    }
    let is_none = |a: IpAddr| a.is_multicast() || a.is_unspecified();
    for (i, host) in fallback.iter().enumerate() {
        if host.address().is_some_and(is_none) {
            return wrong(&format!("{host} is no host's address: expected a proxy's"));
        }
        if fallback[..i].contains(host) || proxy.contains(host) {
            return wrong(&format!("\"{host}\" is there twice"));
        }
    }
    Ok(())
}

fn check_proxy(proxy: &[Host], engines: &[Engine], role: Role) -> Result<(), Problem> {
    let wrong = |what: &str| Err(Problem::at_key(&["proxy"], what));
    let addresses: Vec<IpAddr> = proxy.iter().filter_map(Host::address).collect();
    let of_no_host = |a: &&IpAddr| a.is_multicast() || a.is_unspecified() && role == Role::Device;
    if let Some(address) = addresses.iter().find(of_no_host) {
        return wrong(&format!(
            "{address} is no host's address: expected the proxy's"
        ));
    }
    let of = |v4: bool| addresses.iter().filter(|a| a.is_ipv4() == v4).count();
    if of(true) > 1 || of(false) > 1 {
        return wrong("the proxy has at most one address of each family");
    }
    if role == Role::Proxy && addresses.len() < proxy.len() {
        return wrong("a proxy answers at an address of its host: expected that, not a name");
    }
    if engines.contains(&Engine::Mpquic) && proxy.is_empty() {
        return wrong("Multipath QUIC needs the proxy's address: proxy = \"ADDRESS\"");
    }
    Ok(())
}
