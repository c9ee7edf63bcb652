//! The daemon of one end: one state for all engines. It knows what is wished for, by the
//! configuration and by requests since, and has every engine do it.

mod apply;
mod observe;
mod probed;
mod registered;
mod reload;
mod requests;
mod rules;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use braid_api::config::Host;
use braid_api::{Connection, Connections, ControlStatus, Counters, Engine as Kind, Events, Role};
use braid_core::{Time, weight};
use braid_mptcp::mib;
use tokio::task::JoinHandle;

use super::DaemonError;
use super::accesses::Wanted;
use super::config::{Access, Config};
use super::converter;
use super::engine::{self, ByName, Capabilities, Engine, Result, Setup, Steering, Tokens};
use super::lan::{self, Lan};
use super::meter;
use super::proxies::words;
use super::registration::{self, Registry};
use super::shared::Shared;
use super::state::{lock, now};
use super::takeover::overrides::Requests;
use super::takeover::state_file::KeptFile;

pub(crate) use reload::{hangups, on_hangups};

/// Daemon of one end.
pub(crate) struct Daemon {
    shared: Arc<Shared>,
    /// Engines, in the order of the configuration; at least one.
    engines: Vec<Arc<dyn Engine>>,
    /// Held by whoever changes anything: changes are made one after the other.
    turn: tokio::sync::Mutex<()>,
    config: Mutex<Config>,
    /// Reason why the configuration is not in force as it stands.
    config_error: Mutex<Option<String>>,
    wanted: Mutex<Vec<Wanted>>,
    weights: Mutex<Weights>,
    /// Accesses that a policy lets rest.
    resting: Mutex<BTreeSet<String>>,
    /// Saves what requests change of the accesses.
    saved: Requests,
    /// Accesses that devices have registered, at the proxy.
    registry: Mutex<Registry>,
    kept_registry: KeptFile,
    /// Registration of the accesses at the proxy, at the device.
    registers: registration::Device,
    /// Hosts behind the device, once they are served.
    lan: tokio::sync::Mutex<Option<Lan>>,
    /// Converter at the proxy.
    converting: Mutex<Converting>,
}

/// Converter that serves, and what the user is to know of it.
#[derive(Default)]
struct Converting {
    serving: Vec<JoinHandle<()>>,
    note: Option<String>,
}

/// Weights that are wished for.
#[derive(Clone, Debug, Default, PartialEq)]
struct Weights {
    /// Weights of all connections: of the accesses that were named.
    all: ByName,
    /// Weights of single connections by token, with the engine that has each.
    connections: BTreeMap<u32, (Kind, ByName)>,
    /// Weights of single addresses of devices, at the proxy.
    addresses: BTreeMap<IpAddr, f64>,
}

impl Weights {
    fn configured(accesses: &[Access]) -> Self {
        let of = |a: &Access| Some((a.name.clone(), a.weight?));
        Self {
            all: accesses.iter().filter_map(of).collect(),
            ..Self::default()
        }
    }

    /// Returns the weights that an engine goes by.
    fn of(&self, engine: Kind) -> Steering {
        let mine = self.connections.iter().filter(|(_, (k, _))| *k == engine);
        Steering {
            weights: self.all.clone(),
            connections: mine.map(|(t, (_, w))| (*t, w.clone())).collect(),
            addresses: self.addresses.clone(),
        }
    }

    /// Checks that some access carries, in every connection; one that nobody has named has 1.
    fn check(&self, accesses: &[Access]) -> std::result::Result<(), String> {
        let carries = |own: Option<&ByName>| {
            let all = accesses.iter().map(|a| {
                let own = own.and_then(|o| o.get(&a.name));
                own.or_else(|| self.all.get(&a.name))
                    .copied()
                    .unwrap_or(1.0)
            });
            weight::check_all(all)
        };
        carries(None)?;
        for (token, (_, own)) in &self.connections {
            carries(Some(own)).map_err(|e| format!("{e} (connection {token})"))?;
        }
        Ok(())
    }
}

impl Daemon {
    /// Makes a daemon and its engines in the calling thread's namespace, inside a runtime. It
    /// takes up what a killed one with the same control socket has left.
    pub(crate) fn new(role: Role, file: &Path, config: Config, control: &Path) -> Result<Self> {
        let shared = Arc::new(Shared::new(role, file, &config, control));
        let saved = Requests::beside(control);
        let mut wanted = Wanted::configured(&config.accesses);
        saved.adopt(&mut wanted);
        let engines = engine::make(&Setup {
            shared: &shared,
            config: &config,
            wanted: &wanted,
            control,
            tokens: &Arc::new(Tokens::default()),
        })?;
        Ok(Self::with(shared, config, wanted, saved, control, engines))
    }

    fn with(
        shared: Arc<Shared>,
        config: Config,
        wanted: Vec<Wanted>,
        saved: Requests,
        control: &Path,
        engines: Vec<Arc<dyn Engine>>,
    ) -> Self {
        const ABOUT: &str = "what devices have registered";
        Self {
            shared,
            engines,
            turn: tokio::sync::Mutex::default(),
            weights: Mutex::new(Weights::configured(&config.accesses)),
            config: Mutex::new(config),
            config_error: Mutex::new(None),
            wanted: Mutex::new(wanted),
            resting: Mutex::default(),
            saved,
            registry: Mutex::default(),
            kept_registry: KeptFile::beside(control, ".registered", ABOUT),
            registers: registration::Device::beside(control),
            lan: tokio::sync::Mutex::default(),
            converting: Mutex::default(),
        }
    }

    /// Sets up.
    pub(crate) async fn start(&self) -> Result<()> {
        let _turn = self.turn.lock().await;
        let config = lock(&self.config).clone();
        if self.shared.role == Role::Device {
            lan::guard(config.lan.as_ref(), config.programs)?;
            self.shared.conversion.begin(&config)?;
        }
        let mut adopted = None;
        for e in &self.engines {
            let started = Arc::clone(e).start(&config).await?;
            if let Some(lacking) = started.lacking {
                *lock(&self.config_error) = Some(lacking);
            }
            if let Some(steering) = started.adopted {
                adopted = Some((e.kind(), steering));
            }
        }
        // Weights of a killed daemon that one engine goes on with count for all.
        if let Some((kind, steering)) = adopted {
            let connections = steering.connections.into_iter();
            let weights = Weights {
                all: steering.weights,
                connections: connections.map(|(t, w)| (t, (kind, w))).collect(),
                addresses: steering.addresses,
            };
            self.adopt_weights(kind, weights).await?;
        }
        if self.shared.role == Role::Proxy {
            let (serving, note) = converter::serve(&config)?;
            *lock(&self.converting) = Converting { serving, note };
        }
        if config.lan.is_some() || config.programs.is_some() {
            // The configuration has seen to an engine that carries them.
            // Sessions carry packets as well, and fall back to a converter by themselves.
            let by_session = |e: &&Arc<dyn Engine>| e.tunnel_sessions().is_some();
            let first = self.engines.iter().find(by_session);
            let mut all = first.into_iter().chain(&self.engines);
            let carrier = all.find_map(|e| Arc::clone(e).carrier());
            if let Some(carrier) = carrier {
                let sessions = self.engines.iter().find_map(|e| e.tunnel_sessions());
                *self.lan.lock().await =
                    Some(Lan::start(&config, carrier, sessions, &self.shared).await?);
            }
        }
        Ok(())
    }

    /// Takes back what the engines set up.
    pub(crate) async fn close(&self) -> Result<()> {
        self.shared.usage.close();
        for serving in std::mem::take(&mut lock(&self.converting).serving) {
            serving.abort();
        }
        let mut done = Ok(());
        if let Some(lan) = self.lan.lock().await.take() {
            done = lan.close().await;
        }
        for e in &self.engines {
            done = done.and(e.close().await);
        }
        done
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns the proxies in the order of preference, as they are configured.
    pub(crate) fn proxies(&self) -> Vec<Vec<Host>> {
        let config = lock(&self.config);
        let fallback = config.fallback.iter().map(|host| vec![host.clone()]);
        [config.hosts.clone()].into_iter().chain(fallback).collect()
    }

    /// Notes these addresses of a proxy, by its place, if `hosts` are still those that it is configured
    /// by. Goes by them from now on if it is in use.
    pub(crate) async fn reach(&self, place: usize, hosts: &[Host], addresses: Vec<IpAddr>) {
        if self.proxies().get(place).is_none_or(|now| now != hosts) {
            return;
        }
        self.shared.proxies.know(place, &addresses);
        if self.shared.proxies.used() == place && self.config().proxy != addresses {
            tracing::info!("the proxy has the address {}", words(&addresses));
            self.go_by(addresses).await;
        }
    }

    /// Goes by these addresses of the proxy in use from now on.
    pub(crate) async fn go_by(&self, addresses: Vec<IpAddr>) {
        let _turn = self.turn.lock().await;
        {
            let mut config = lock(&self.config);
            if config.proxy == addresses {
                return;
            }
            config.proxy.clone_from(&addresses);
            self.shared.conversion.reach(&config, &addresses);
        }
        for e in &self.engines {
            // It is tried again with the next change of an interface.
            if let Err(why) = e.reach(&addresses).await {
                tracing::warn!("{why}");
            }
        }
        if let Some(lan) = &*self.lan.lock().await
            && let Err(why) = lan.reach(&addresses).await
        {
            tracing::warn!("{why}");
        }
    }

    pub(crate) fn engines(&self) -> &[Arc<dyn Engine>] {
        &self.engines
    }

    /// Returns the configuration in force.
    pub(crate) fn config(&self) -> Config {
        lock(&self.config).clone()
    }

    /// Whether weights can be set, so that a policy may decide them.
    pub(crate) fn is_weighted(&self) -> bool {
        self.engines
            .iter()
            .all(|e| e.capabilities().schedule.is_ok())
    }

    /// Meters what flows, for ever.
    pub(crate) async fn meter(self: Arc<Self>) -> DaemonError {
        let mut every = tokio::time::interval(meter::EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            // What cannot be read now is read in a second.
            let flows: Result<Vec<_>> = self.engines.iter().map(|e| e.flows()).collect();
            if let Ok(flows) = flows {
                lock(&self.shared.meter).read(now(), flows.into_iter().flatten());
            }
        }
    }

    /// Checks that every engine can fulfil a request.
    fn all_can(&self, can: impl Fn(&Capabilities) -> engine::Can) -> Result<()> {
        let mut all = self.engines.iter().map(|e| can(&e.capabilities()));
        all.find_map(std::result::Result::err)
            .map_or(Ok(()), |why| Err(DaemonError::Refused(why.into())))
    }

    /// Returns the number of an access.
    fn find(&self, name: &str) -> Result<usize> {
        let wanted = lock(&self.wanted);
        let found = wanted.iter().position(|a| a.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = wanted.iter().map(|a| a.name.as_str()).collect();
            DaemonError::Unknown(format!(
                "no access is called \"{name}\": the accesses are {}",
                names.join(", ")
            ))
        })
    }

    /// Returns the weight of each access that has one: those that were named, and where weights
    /// always count, 1 for the others.
    fn weights_in_force(&self) -> ByName {
        let mut all = lock(&self.weights).all.clone();
        let always = |e: &Arc<dyn Engine>| e.capabilities().always_weighted;
        if self.engines.iter().any(always) {
            for a in lock(&self.wanted).iter() {
                all.entry(a.name.clone()).or_insert(1.0);
            }
        }
        all
    }

    pub(crate) fn connections(&self) -> Result<Connections> {
        let (t_ns, begun) = (now(), Instant::now());
        let all = self
            .engines
            .iter()
            .map(|e| Ok((e.kind(), e.connections()?)));
        let all: Vec<_> = all.collect::<Result<_>>()?;
        Ok(self.joined(all, t_ns, begun))
    }

    /// Joins the connections of the engines, read at `t_ns` by a request that began at `begun`.
    fn joined(
        &self,
        all: impl IntoIterator<Item = (Kind, Vec<Connection>)>,
        t_ns: u64,
        begun: Instant,
    ) -> Connections {
        let weights = lock(&self.weights).connections.clone();
        let mut connections = Vec::new();
        for (kind, mut of_one) in all {
            for c in &mut of_one {
                let own = c.token.and_then(|t| weights.get(&t));
                let own = own.filter(|(of, _)| *of == kind);
                c.weights = own.map(|(_, w)| w.clone());
                c.engine = Some(kind);
            }
            connections.append(&mut of_one);
        }
        Connections {
            t_ns,
            took_us: u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX),
            connections,
        }
    }

    /// Reads the counters of the namespace; those that concern Multipath QUIC stand under `Udp`.
    pub(crate) fn counters(&self) -> Result<Counters> {
        let all = mib::Counters::read()?;
        Ok(Counters {
            t_ns: now(),
            counters: all.iter().map(|(n, v)| (n.to_owned(), v)).collect(),
        })
    }

    pub(crate) fn events(&self, after: u64) -> Events {
        lock(&self.shared.log).after(after)
    }

    pub(crate) fn decisions(&self) -> ControlStatus {
        self.shared.control.report(Time::from_nanos(now()))
    }
}
