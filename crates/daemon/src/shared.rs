//! State that the daemon shares with its engines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use braid_access::exits;
use braid_access::settings::Settings;
use braid_api::{Engine as Kind, EventKind, Role};
use braid_forward::divert::{Exit, Exits};
use tokio::sync::watch;

use super::DaemonError;
use super::arp::Arp;
use super::config::Config;
use super::contact::Contact;
use super::control::Control;
use super::converter::Conversion;
use super::energy::EnergyMeter;
use super::log::Log;
use super::meter::{Flow, Meter};
use super::mptcp_check::Hands;
use super::names::Names;
use super::proxies::Proxies;
use super::registration::Registration;
use super::state::{lock, now};
use super::usage::Usage;
use braid_core::Time;

/// State of an end that its engines share. Locks are held only between waits.
pub(crate) struct Shared {
    pub(crate) role: Role,
    /// Configuration file.
    pub(crate) file: PathBuf,
    pub(crate) control: Control,
    pub(crate) log: Mutex<Log>,
    pub(crate) meter: Mutex<Meter>,
    /// Names of the proxy.
    pub(crate) names: Names,
    /// Proxies, at the device.
    pub(crate) proxies: Proxies,
    /// Contact with the proxy, at the device.
    pub(crate) contact: Contact,
    pub(crate) registration: Registration,
    /// Way over the proxy's converter, at the device.
    pub(crate) conversion: Conversion,
    /// Usage of accesses that have caps.
    pub(crate) usage: Usage,
    /// Energy of the accesses' radios, at the device.
    pub(crate) energy: EnergyMeter,
    /// Exits of the accesses that work, at the device.
    pub(crate) exits: watch::Sender<Exits>,
    arp: Mutex<Answers>,
}

/// How interfaces answer ARP, for all engines together.
struct Answers {
    arp: Arp,
    /// Interfaces that serve each engine.
    serving: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Shared {
    /// Takes up what a killed daemon with the same control socket has left of interfaces.
    pub(crate) fn new(role: Role, file: &Path, config: &Config, control: &Path) -> Self {
        // Sockets that are bound to devices need more than those that are routed.
        let arp = match config.engines.contains(&Kind::Mpquic) {
            true => Arp::bound(control),
            false => Arp::routed(control),
        };
        Self {
            role,
            file: file.to_owned(),
            control: Control::new(role, config, Time::from_nanos(now())),
            log: Mutex::default(),
            meter: Mutex::default(),
            names: Names::default(),
            proxies: Proxies::new(config),
            contact: Contact::default(),
            registration: Registration::default(),
            conversion: Conversion::default(),
            usage: Usage::default(),
            energy: EnergyMeter::default(),
            exits: watch::Sender::default(),
            arp: Mutex::new(Answers {
                arp,
                serving: BTreeMap::new(),
            }),
        }
    }

    /// Returns the error of a part of the configuration that cannot change while it runs.
    pub(crate) fn fixed(&self, what: &str) -> DaemonError {
        DaemonError::Config(format!(
            "{}: {what} cannot change while it runs: restart the daemon",
            self.file.display()
        ))
    }

    /// Returns where connections to the port of `[probe]` that are no checks are handed to.
    pub(crate) fn hands(&self) -> Hands {
        Hands {
            transfers: self.control.transfers(),
            registrations: self.registration.hands(),
        }
    }

    /// Logs an event that happens now.
    pub(crate) fn log(&self, access: Option<String>, what: EventKind) {
        // Addresses or accesses may be others.
        if what.is_about_accesses() {
            self.registration.changed.notify_one();
        }
        lock(&self.log).add(now(), access, what);
    }

    /// Notes by which exits the accesses lead out now.
    pub(crate) fn lead_out(&self, settings: &Settings, planned: &exits::Exits) {
        let exit = |exit: &exits::Exit| Exit {
            by: exit.route.ifindex,
            gateway: exit.route.gateway,
            onlink: exit.route.onlink,
            networks: exit.networks.clone(),
        };
        let named = planned.iter().filter_map(|(access, by)| {
            let name = settings.accesses.get(*access)?.name.clone();
            Some((name, by.each_ref().map(|e| e.as_ref().map(exit))))
        });
        let new: Exits = named.collect();
        self.exits.send_if_modified(|before| {
            let is_new = *before != new;
            *before = new;
            is_new
        });
    }

    /// Notes that events were lost.
    pub(crate) fn lost(&self) {
        lock(&self.log).lost();
    }

    /// Meters the last counters of a flow that has ended.
    pub(crate) fn ended(&self, flow: Flow) {
        lock(&self.meter).end(now(), flow);
    }

    /// Makes the interfaces that serve an engine, beside those of the others, answer ARP for
    /// themselves alone. Returns those that were set just now.
    pub(crate) fn answer_arp(
        &self,
        engine: Kind,
        interfaces: BTreeSet<String>,
    ) -> BTreeSet<String> {
        let mut answers = lock(&self.arp);
        answers.serving.insert(engine.as_str(), interfaces);
        let all = answers.serving.values().flatten().cloned().collect();
        answers.arp.serve(&all)
    }
}
