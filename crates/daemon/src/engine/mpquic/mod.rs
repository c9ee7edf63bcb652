//! Multipath QUIC in this process: at the device a session with the proxy over all accesses, and
//! ports that are forwarded over it; at the proxy the sessions of devices, and connections to
//! where they ask for.

mod api_view;
mod arp;
mod class_meter;
mod device;
mod keys;
mod observe;
mod proxy;
mod registered;
mod sessions;
mod standby;
mod states;
mod status;
mod steered;
mod unbonded;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::config::NO_LANE;
use braid_api::registration::Request;
use braid_api::{
    AccessChange, Connection, Engine as Kind, EventKind, Lane, Priorities, Role, SchedulerChange,
};
use braid_core::Pattern;
use braid_core::Rate;
use braid_core::class::ClassSteering;
use braid_core::control::PerDirection;
use braid_forward::Carrier;
use braid_mpquic::{Device, Options, Proxy, Session};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};

use super::tcp::AT_THE_DEVICE;
use super::view::EngineStatus;
use super::{
    ByName, Capabilities, Change, Detail, Engine, Registered, Result, Setup, Started, Steering,
    Tokens,
};
use crate::DaemonError;
use crate::config::quic::{self, Quic, Who};
use crate::config::{self, Config};
use crate::contact::Lost;
use crate::control::Look;
use crate::meter::Flow;
use crate::shared::Shared;
use crate::state::lock;
use class_meter::ClassMeter;
use sessions::Sessions;
use steered::Steered;
use unbonded::Unbonded;

pub(crate) use keys::identity;

/// Time in which peers may acknowledge that their sessions are closed.
const CLOSING: Duration = Duration::from_millis(500);

/// Time without an answer after which contact with the proxy is lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Multipath QUIC of one end.
pub(crate) struct Mpquic {
    shared: Arc<Shared>,
    tokens: Arc<Tokens>,
    quic: Quic,
    /// Service addresses of the proxy.
    proxies: Mutex<Vec<IpAddr>>,
    /// Interfaces that are never used.
    ignore: Vec<Pattern>,
    /// Told when the proxy's addresses are others.
    reached: Notify,
    /// Accesses as configured.
    accesses: Mutex<Vec<config::Access>>,
    steered: Mutex<Steered>,
    sessions: Mutex<Sessions>,
    /// Bytes that the device has sent of each class.
    class_meter: Mutex<ClassMeter>,
    /// Session that new connections of programs take, at the device.
    current: watch::Sender<Option<Session>>,
    device: Mutex<Option<Device>>,
    proxy: Mutex<Option<Arc<Proxy>>>,
    /// Reason why the device has no session, where that is not for a moment only.
    trouble: Mutex<Option<String>>,
    /// Notes for the user, each in a sentence.
    notes: Mutex<Vec<String>>,
    /// Accesses on which a path was validated since they lead out.
    proven: Mutex<BTreeSet<String>>,
    /// Told when the state of an access may be another.
    moved: Notify,
    /// Way out of what is not bonded, where this engine has a part in it.
    unbonded: Option<Unbonded>,
    /// Work that begins with the engine.
    work: Mutex<Option<BoxFuture<'static, ()>>>,
}

/// Makes the engine.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Arc<dyn Engine>> {
    let (shared, config) = (setup.shared, setup.config);
    let missing = || {
        let file = shared.file.display();
        DaemonError::Config(format!("{file}: [mpquic] is missing"))
    };
    let quic = config.quic.clone().ok_or_else(missing)?;
    let mut steered = Steered::configured(config, &quic, shared.role)?;
    setup.wanted.iter().for_each(|w| steered.adopt(w));
    let unbonded = match config.steerer(shared.role) {
        Some(Kind::Mpquic) => Some(Unbonded::new(config, setup.control)?),
        _ => None,
    };
    let mut class_meter = ClassMeter::default();
    class_meter.name(config.class_names());
    Ok(Arc::new(Mpquic {
        shared: Arc::clone(shared),
        tokens: Arc::clone(setup.tokens),
        quic,
        proxies: Mutex::new(config.proxy.clone()),
        reached: Notify::new(),
        ignore: config.manager.ignore.clone(),
        accesses: Mutex::new(config.accesses.clone()),
        steered: Mutex::new(steered),
        sessions: Mutex::default(),
        class_meter: Mutex::new(class_meter),
        current: watch::channel(None).0,
        device: Mutex::new(None),
        proxy: Mutex::new(None),
        trouble: Mutex::new(None),
        notes: Mutex::new(Vec::new()),
        proven: Mutex::default(),
        moved: Notify::new(),
        unbonded,
        work: Mutex::new(None),
    }))
}

impl Mpquic {
    fn options(&self) -> Options {
        Options {
            lane: self.quic.lane,
            steering: lock(&self.steered).scheduling.clone(),
            congestion_control: self.quic.cc.clone(),
            resume: self.quic.resume,
            acks: self.quic.acks,
            send_window: self.quic.send_window,
            trust_peer_expectations: self.quic.trust != Who::Anyone,
            reset_key: None,
            ignore: self.ignore.clone(),
        }
    }

    /// Notes a drawback.
    fn note(&self, what: String) {
        tracing::warn!("{what}");
        self.remember(what);
    }

    /// Notes what the other end has to be told.
    fn tell(&self, what: String) {
        tracing::info!("{what}");
        self.remember(what);
    }

    fn remember(&self, what: String) {
        let mut notes = lock(&self.notes);
        if !notes.contains(&what) {
            notes.push(what);
        }
    }

    /// Meters what the sessions have sent of each class; at the proxy a class has no name.
    fn read_classes(&self) {
        if self.shared.role == Role::Proxy {
            return;
        }
        let sessions = lock(&self.sessions).all();
        let mut meter = lock(&self.class_meter);
        for (token, session) in sessions {
            if let Ok(counted) = session.class_bytes() {
                meter.read(token, counted);
            }
        }
    }

    /// Notes that paths are others, or work otherwise.
    fn paths_changed(&self) {
        self.shared.control.wake();
        self.shared.registration.changed.notify_one();
        self.moved.notify_one();
        if let Some(unbonded) = &self.unbonded {
            unbonded.changed.notify_one();
        }
    }

    fn log(&self, access: Option<String>, what: EventKind) {
        self.shared.log(access, what);
    }

    /// Changes how sessions are steered, or leaves everything as it was.
    fn steer_by(&self, change: impl FnOnce(&mut Steered) -> Result<()>) -> Result<()> {
        let before = {
            let mut steered = lock(&self.steered);
            let before = steered.clone();
            let mut new = before.clone();
            change(&mut new)?;
            *steered = new;
            before
        };
        let done = self.steer_all();
        if done.is_err() {
            *lock(&self.steered) = before;
            // Roll back. A failing rollback has the same cause, so only the first error is
            // returned.
            let _ = self.steer_all();
        }
        done
    }

    /// Steers all sessions anew, those to come included; what an earlier check has let pass does
    /// not fail.
    fn steer_all(&self) -> Result<()> {
        if let Some(proxy) = &*lock(&self.proxy) {
            let accesses = lock(&self.steered).configured_accesses();
            proxy
                .set_options(&self.options(), accesses)
                .map_err(|e| DaemonError::Refused(e.to_string()))?;
        }
        let sessions = lock(&self.sessions).all();
        for (token, session) in sessions {
            match self.steer(token, &session) {
                // It has ended meanwhile.
                Err(_) if session.paths().is_err() => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Uses an access otherwise.
    fn change(&self, name: &str, change: AccessChange) -> Result<()> {
        let enable = |enabled| match &*lock(&self.device) {
            Some(device) => device
                .enable(name, enabled)
                .map_err(|e| DaemonError::Refused(e.to_string())),
            None => Ok(()),
        };
        if let Some(enabled) = change.enabled {
            enable(enabled)?;
        }
        let done = self.steer_by(|steered| {
            for a in steered.accesses.iter_mut().filter(|a| a.name == name) {
                a.backup = change.backup.unwrap_or(a.backup);
                a.expected = change.expected.unwrap_or(a.expected);
                a.limit = change.limit.map_or(a.limit, |l| l.up);
            }
            if let Some(enabled) = change.enabled {
                steered.disabled.retain(|n| n != name);
                if !enabled {
                    steered.disabled.push(name.to_owned());
                }
            }
            Ok(())
        });
        if let (Err(_), Some(enabled)) = (&done, change.enabled) {
            let _ = enable(!enabled);
        }
        done
    }

    /// Puts accesses in order, for the schedulers that have one, `active-standby` and
    /// `priority-based`.
    fn put_in_order(&self, order: &Priorities) -> Result<()> {
        self.steer_by(|steered| {
            for a in &mut steered.accesses {
                if let Some(place) = order.0.get(&a.name) {
                    a.priority = place.unwrap_or(0).into();
                }
            }
            Ok(())
        })
    }

    fn set_weights(&self, new: &Steering) -> Result<()> {
        let before = lock(&self.sessions).set_weights(new.connections.clone());
        let done = self.steer_by(|steered| {
            steered.set_weights(&new.weights);
            Ok(())
        });
        if done.is_err() {
            lock(&self.sessions).set_weights(before);
        }
        done
    }

    fn schedule(&self, change: &SchedulerChange) -> Result<()> {
        self.steer_by(|steered| {
            let new = quic::steering(change, &steered.scheduling, self.quic.lane);
            steered.scheduling = new.map_err(DaemonError::Config)?;
            Ok(())
        })
    }

    /// Ends all sessions, so that the other ends know.
    async fn end(&self) {
        self.current.send_replace(None);
        let sessions = lock(&self.sessions).take();
        sessions.values().for_each(Session::close);
        drop(sessions);
        let (device, proxy) = (lock(&self.device).take(), lock(&self.proxy).take());
        if let Some(proxy) = &proxy {
            proxy.stop();
        }
        let idle = async {
            if let Some(device) = &device {
                device.wait_idle().await;
            }
            if let Some(proxy) = &proxy {
                proxy.wait_idle().await;
            }
        };
        // Who does not answer is not waited for.
        let _ = tokio::time::timeout(CLOSING, idle).await;
    }

    async fn begin(self: Arc<Self>) -> Result<Started> {
        if std::env::var_os("QLOGDIR").is_some() && !cfg!(feature = "qlog") {
            let what =
                "QLOGDIR: this program was built without the feature `qlog`, and writes none";
            self.note(what.to_owned());
        }
        let work = match self.shared.role {
            Role::Device => device::start(&self).await,
            Role::Proxy => proxy::start(&self).await,
        };
        let work = work.map_err(|e| match e {
            DaemonError::Config(e) => {
                DaemonError::Config(format!("{}: {e}", self.shared.file.display()))
            }
            other => other,
        })?;
        *lock(&self.work) = Some(work);
        Ok(Started::default())
    }
}

/// Parts of a configuration that cannot change while the engine runs, each with its name.
fn fixed(c: &Config) -> [(&'static str, String); 5] {
    let of = |a: &config::Access| (a.name.clone(), a.interface.clone(), a.address);
    let named = c.accesses.iter().filter(|a| a.registered.is_none());
    let accesses: Vec<_> = named.map(of).collect();
    [
        ("proxy", format!("{:?}", c.hosts)),
        ("fallback", format!("{:?}", c.fallback)),
        ("`ignore` of [manager]", format!("{:?}", c.manager.ignore)),
        ("[mpquic] or [gateway]", format!("{:?}", c.quic)),
        (
            "the accesses with their interfaces and addresses",
            format!("{accesses:?}"),
        ),
    ]
}

impl Engine for Mpquic {
    fn kind(&self) -> Kind {
        Kind::Mpquic
    }

    fn connection_word(&self) -> &'static str {
        "session"
    }

    fn capabilities(&self) -> Capabilities {
        let change = match self.shared.role {
            Role::Device => Ok(()),
            Role::Proxy => Err(AT_THE_DEVICE),
        };
        Capabilities {
            schedule: Ok(()),
            leave_out: Ok(()),
            change,
            order: Ok(()),
            limit: change,
            expect: PerDirection {
                down: match self.quic.lane {
                    Lane::Stream => Err(NO_LANE),
                    Lane::Datagram => Ok(()),
                },
                up: Ok(()),
            },
            always_weighted: true,
            checks: false,
            registers: true,
        }
    }

    fn start(self: Arc<Self>, _: &Config) -> BoxFuture<'_, Result<Started>> {
        self.begin().boxed()
    }

    fn tasks(self: Arc<Self>) -> Result<Vec<BoxFuture<'static, DaemonError>>> {
        let mut all = Vec::new();
        if let Some(work) = lock(&self.work).take() {
            // Where no session can be taken in any more, those that there are go on.
            let work = async move {
                work.await;
                std::future::pending().await
            };
            all.push(work.boxed());
        }
        if self.shared.role == Role::Device {
            all.push(arp::follow(Arc::clone(&self)).boxed());
            all.push(states::follow(Arc::clone(&self)).boxed());
            all.push(unbonded::follow(self).boxed());
        }
        Ok(all)
    }

    fn status(&self, detail: Detail) -> BoxFuture<'_, Result<EngineStatus>> {
        async move { Ok(self.describe(detail)) }.boxed()
    }

    fn connections(&self) -> Result<Vec<Connection>> {
        Ok(self.connections_of(&self.paths()))
    }

    fn tokens(&self) -> Result<BTreeSet<u32>> {
        Ok(lock(&self.sessions).numbers())
    }

    fn flows(&self) -> Result<Vec<Flow>> {
        let paths = self.paths();
        self.prove(&paths);
        self.read_classes();
        Ok(api_view::flows(&paths))
    }

    fn look(&self) -> Result<Look> {
        Ok(observe::look(self))
    }

    fn sources<'a>(&'a self, access: &'a str) -> BoxFuture<'a, Vec<(IpAddr, String)>> {
        async move { observe::source(self, access).into_iter().collect() }.boxed()
    }

    fn peers(&self, _: u16) -> Result<BTreeSet<IpAddr>> {
        Ok(observe::peers(&self.paths()))
    }

    fn check_connection(&self, _: u32, _: &ByName, _: &Steering) -> Result<()> {
        Ok(())
    }

    fn apply<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<()>> {
        async move {
            let done = match change {
                Change::Access(name, change) => self.change(name, *change),
                Change::Order(order) => self.put_in_order(order),
                Change::Weights(new) => self.set_weights(new),
                Change::Scheduler(change) => self.schedule(change),
            };
            self.moved.notify_one();
            self.lead_unbonded().await;
            done
        }
        .boxed()
    }

    fn scheduler(&self) -> SchedulerChange {
        let steered = lock(&self.steered);
        SchedulerChange {
            name: Some(steered.scheduling.scheduler.clone()),
            wrr_mode: Some(steered.scheduling.wrr_mode),
            ..SchedulerChange::default()
        }
    }

    fn prepare<'a>(&'a self, before: &'a Config, config: &'a Config) -> BoxFuture<'a, Result<()>> {
        let changed = fixed(before).into_iter().zip(fixed(config));
        let mut changed = changed.filter(|(a, b)| a != b).map(|((what, _), _)| what);
        let done = match changed.next() {
            Some(what) => Err(self.shared.fixed(what)),
            None => Steered::configured(config, &self.quic, self.shared.role).map(drop),
        };
        async move { done }.boxed()
    }

    fn reload<'a>(
        &'a self,
        config: &'a Config,
        weights: &'a Steering,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let mut new = Steered::configured(config, &self.quic, self.shared.role)?;
            new.set_weights(&weights.weights);
            let disabled = std::mem::take(&mut lock(&self.steered).disabled);
            if let Some(device) = &*lock(&self.device) {
                for name in disabled {
                    let enabled = device.enable(&name, true);
                    enabled.map_err(|e| DaemonError::Refused(e.to_string()))?;
                }
            }
            lock(&self.accesses).clone_from(&config.accesses);
            lock(&self.class_meter).name(config.class_names());
            lock(&self.sessions).set_weights(BTreeMap::new());
            *lock(&self.steered) = new;
            let done = self.steer_all();
            if let Some(unbonded) = &self.unbonded {
                unbonded.adopt(config).await;
                self.lead_unbonded().await;
            }
            done
        }
        .boxed()
    }

    fn reach<'a>(&'a self, proxy: &'a [IpAddr]) -> BoxFuture<'a, Result<()>> {
        *lock(&self.proxies) = proxy.to_vec();
        self.reached.notify_one();
        async {
            self.lead_unbonded().await;
            Ok(())
        }
        .boxed()
    }

    fn learn<'a>(
        &'a self,
        accesses: &'a [config::Access],
        weights: &'a Steering,
    ) -> BoxFuture<'a, ()> {
        self.go_by_registered(accesses, weights);
        async {}.boxed()
    }

    fn sessions(&self) -> BTreeSet<u32> {
        lock(&self.sessions).numbers()
    }

    fn configured_paths(&self, token: u32) -> BTreeMap<u32, Option<String>> {
        self.configured_paths_of(token)
    }

    fn name_paths(&self, token: u32, names: &BTreeMap<u32, String>) {
        self.name_paths_of(token, names);
    }

    fn class_bytes(&self) -> BTreeMap<(String, String), u64> {
        self.read_classes();
        lock(&self.class_meter).all()
    }

    fn steer_classes(&self, token: u32, classes: BTreeMap<u8, ClassSteering>) {
        self.steer_classes_of(token, classes);
    }

    fn limit_accesses(&self, token: u32, limits: BTreeMap<String, Rate>) {
        self.limit_accesses_of(token, limits);
    }

    fn register<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Registered>> {
        registered::register(self, request).boxed()
    }

    fn session_paths(&self) -> BTreeMap<u32, String> {
        registered::paths(self)
    }

    fn carrier(self: Arc<Self>) -> Option<Arc<dyn Carrier>> {
        Some(device::carrier(&self))
    }

    fn tunnel_sessions(&self) -> Option<watch::Receiver<Option<Session>>> {
        Some(self.current.subscribe())
    }

    fn lost_contact(&self) -> BoxFuture<'_, Option<Lost>> {
        // Who refuses, or is another, has answered.
        let silent = lock(&self.trouble).is_none();
        let device = lock(&self.device).clone().filter(|_| silent);
        let lasts = device.and_then(|d| d.lost_for());
        let lost = lasts.filter(|t| *t >= PATIENCE).map(|lasts| Lost {
            port: ("port", self.quic.port),
            lasts,
            refused: false,
        });
        async move { lost }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        async move {
            self.end().await;
            match &self.unbonded {
                Some(unbonded) => unbonded.take_back().await,
                None => Ok(()),
            }
        }
        .boxed()
    }
}
