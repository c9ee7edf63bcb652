//! Configuration of a daemon: a strict TOML file, or JSON.
//!
//! [`Config`] is the file as it is written, both ways: a daemon reads it, the lab writes it. It
//! is generic over its accesses, which a device knows by interface and a proxy by address. Each
//! section stands in a file of its own, with its defaults and its `check`. Whether an engine
//! has a congestion control or a scheduler of some name, and whether text is a key, the engine
//! tells: the daemon checks these when it takes a configuration over.

mod access;
mod announce;
mod buffers;
mod manager;
mod metrics;
mod mpquic;
mod probe;
mod scheduler;
#[cfg(test)]
mod tests;
mod text;

use std::net::IpAddr;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use access::{Access, DeviceAccess, KERNEL_WINDOWS, NO_LANE, ProxyAccess};
pub use buffers::{Buffers, Sizes};
pub use manager::{Manager, Mesh};
pub use metrics::Metrics;
pub use mpquic::{Forward, Mpquic};
pub use probe::Probe;
pub use scheduler::Scheduler;

use crate::diagnostic::Problem;
use crate::{Engine, Role};
use access::Setting;

/// Configuration of a daemon whose accesses are `A`: [`DeviceAccess`] or [`ProxyAccess`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config<A> {
    /// Engine that the daemon runs; Multipath TCP by default.
    pub engine: Engine,
    /// The proxy's service addresses, at most one of each family: probes are sent to and
    /// answered at these.
    #[serde(deserialize_with = "text::one_or_more")]
    pub proxy: Vec<IpAddr>,
    /// Addresses that a proxy announces to devices (ADD_ADDR), up to 8.
    pub announce: Vec<IpAddr>,
    /// `[manager]`.
    pub manager: Manager,
    /// `[probe]`.
    pub probe: Probe,
    /// `[metrics]`.
    pub metrics: Metrics,
    /// `[buffers]`.
    pub buffers: Buffers,
    /// `[scheduler]`; absent: the kernel's way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// `[access.NAME]`: at the device its accesses in the order of preference, at the proxy
    /// those of its peers.
    pub access: IndexMap<String, A>,
    /// `[mpquic]`; with that engine only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpquic: Option<Mpquic>,
}

impl<A> Default for Config<A> {
    fn default() -> Self {
        Self {
            engine: Engine::Mptcp,
            proxy: Vec::new(),
            announce: Vec::new(),
            manager: Manager::default(),
            probe: Probe::default(),
            metrics: Metrics::default(),
            buffers: Buffers::default(),
            scheduler: None,
            access: IndexMap::new(),
            mpquic: None,
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

    /// Checks what the types alone do not rule out, section by section.
    ///
    /// # Errors
    /// The key, what is wrong with its value, and what was expected.
    pub fn check(&self) -> Result<(), Problem> {
        check_proxy(&self.proxy, self.engine)?;
        announce::check(&self.announce, A::ROLE, self.engine)?;
        self.manager.check()?;
        self.probe.check()?;
        self.metrics.check()?;
        self.buffers.check()?;
        self.check_accesses()?;
        self.check_mpquic()?;
        match &self.scheduler {
            Some(scheduler) => scheduler.check(self.engine),
            None => Ok(()),
        }
    }

    fn check_accesses(&self) -> Result<(), Problem> {
        if A::ROLE == Role::Device && self.access.is_empty() {
            let what = "a device needs at least one access: [access.NAME] with its interface";
            return Err(Problem::at_key(&[], what));
        }
        let setting = Setting {
            engine: self.engine,
            lane: self.mpquic.as_ref().map(|m| m.lane).unwrap_or_default(),
        };
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
        Ok(())
    }

    fn check_mpquic(&self) -> Result<(), Problem> {
        match (self.engine, &self.mpquic) {
            (Engine::Mpquic, Some(section)) => section.check(A::ROLE),
            (Engine::Mpquic, None) => Mpquic::default().check(A::ROLE),
            (_, Some(_)) => {
                let what = "only engine = \"mpquic\" has [mpquic]";
                Err(Problem::at_key(&["mpquic"], what))
            }
            (_, None) => Ok(()),
        }
    }
}

fn check_proxy(proxy: &[IpAddr], engine: Engine) -> Result<(), Problem> {
    let of = |v4: bool| proxy.iter().filter(|a| a.is_ipv4() == v4).count();
    if of(true) > 1 || of(false) > 1 {
        let what = "the proxy has at most one address of each family";
        return Err(Problem::at_key(&["proxy"], what));
    }
    if engine == Engine::Mpquic && proxy.is_empty() {
        let what = "Multipath QUIC needs the proxy's address: proxy = \"ADDRESS\"";
        return Err(Problem::at_key(&["proxy"], what));
    }
    Ok(())
}
