//! The kernel's Multipath TCP: its path manager follows the interfaces, weights and congestion
//! control are set in the network namespace, and what the kernel leaves is repaired.
//!
//! With `[manager] recover = false` it sets up once and only reports: this is what the *stock*
//! path manager does.

mod announce;
mod endpoints;
mod follow;
mod manager;
mod namespace;
mod observe;
mod samples;
mod slow_access;
mod weights;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_access::links::RouteEvents;
use braid_api::config::{KERNEL_WINDOWS, NO_LIMIT};
use braid_api::{AccessChange, Connection, Engine as Kind, Priorities, Role, SchedulerChange};
use braid_core::Time;
use braid_core::control::PerDirection;
use braid_forward::Carrier;
use braid_mptcp::diag::ClosedSockets;
use braid_mptcp::events::{AsyncEvents, Event, EventKind};
use braid_mptcp::repair::window_limited::Slowness;
use braid_mptcp::support::Support;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::tcp::sockets::Sockets;
use super::tcp::{AT_THE_DEVICE, ignored, observer};
use super::view::{AccessView, EngineStatus};
use super::{ByName, Capabilities, Change, Detail, Engine, Result, Setup, Started, Steering};
use crate::DaemonError;
use crate::config::{Access, Config};
use crate::contact::Lost;
use crate::control::Look;
use crate::meter::Flow;
use crate::responder::Responder;
use crate::shared::Shared;
use crate::state::{lock, now, ticked};
use crate::takeover::pins::Configured;
use crate::takeover::sysctls::Before;
use manager::{Happened, Heard, Manager};
use namespace::Namespace;

pub(crate) use endpoints::Endpoints;

/// How often the connections are looked at, beyond whether their paths live.
const LOOK: Duration = Duration::from_millis(240);
/// How old the list of subflows may be: the kernel's events tell of new ones.
const LIST: Duration = Duration::from_secs(1);
/// Reason why a proxy leaves no access out: who has the address sends MP_PRIO.
const MP_PRIO: &str = "weight 0 leaves an access out (MP_PRIO), which only the device can do: set \
                       it there, or take a small weight here";

/// Multipath TCP of one end. The manager is locked over waits, the rest only between them.
pub(crate) struct Mptcp {
    shared: Arc<Shared>,
    sockets: Sockets,
    manager: tokio::sync::Mutex<Manager>,
    namespace: Mutex<Namespace>,
    weights: Mutex<weights::InForce>,
    /// Accesses as configured.
    accesses: Mutex<Vec<Access>>,
    responder: tokio::sync::Mutex<Responder>,
    slowness: Mutex<Slowness>,
    /// Told when the manager wants to be looked at.
    wake: Notify,
    /// Whether the manager is to look at once.
    hurried: AtomicBool,
    /// When connections were looked at last.
    looked: Mutex<Time>,
    incoming: Mutex<Option<Incoming>>,
}

/// Sources that are followed, opened before anything is read, so that no change falls between.
struct Incoming {
    changes: RouteEvents,
    events: AsyncEvents,
    heard: Heard,
}

/// Makes the engine; its namespace is set up from then on.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Arc<dyn Engine>> {
    Ok(Mptcp::new(setup)?)
}

impl Mptcp {
    pub(crate) fn new(setup: &Setup<'_>) -> Result<Arc<Self>> {
        let (role, config) = (setup.shared.role, setup.config);
        let changes = RouteEvents::open()?;
        let events = AsyncEvents::open()?;
        let namespace = Namespace::set_up(config, role, Before::beside(setup.control))?;
        let (mut manager, heard) = Manager::new(setup)?;
        manager.watched_by(changes.hosts());
        let incoming = Incoming {
            changes,
            events,
            heard,
        };
        Ok(Arc::new(Self {
            shared: Arc::clone(setup.shared),
            sockets: Sockets::open(role)?,
            manager: tokio::sync::Mutex::new(manager),
            namespace: Mutex::new(namespace),
            weights: Mutex::new(weights::InForce::configured(config)),
            accesses: Mutex::new(config.accesses.clone()),
            responder: tokio::sync::Mutex::default(),
            slowness: Mutex::new(Slowness::default()),
            wake: Notify::new(),
            hurried: AtomicBool::new(false),
            looked: Mutex::new(Time::ZERO),
            incoming: Mutex::new(Some(incoming)),
        }))
    }

    /// Whether this is the device, which has the accesses.
    fn is_device(&self) -> bool {
        self.shared.role == Role::Device
    }

    async fn begin(&self, config: &Config) -> Result<Started> {
        let mut manager = self.manager.lock().await;
        let adopted = self.adopt(&mut manager);
        manager.begin().await?;
        let mut responder = self.responder.lock().await;
        responder
            .serve(self.shared.role, config, Some(&self.shared.hands()))
            .await?;
        drop(responder);
        self.renamed(&manager);
        let lacking = match self.set_up(config, adopted.is_some()).await {
            // It works without weights.
            Err(e @ (DaemonError::Lacking(_) | DaemonError::Config(_))) => {
                tracing::warn!("{e}");
                Some(e.to_string())
            }
            other => {
                other?;
                None
            }
        };
        Ok(Started { adopted, lacking })
    }

    /// Follows what has changed.
    async fn reconcile(&self) {
        let mut manager = self.manager.lock().await;
        let done = manager.reconcile().await;
        self.note(&manager, done);
        self.wake.notify_one();
    }

    /// Judges the accesses.
    async fn tick(&self) {
        let mut manager = self.manager.lock().await;
        let t = Time::from_nanos(now());
        // Before the sockets are read: a packet may seem older for it, but never newer.
        let ticked = ticked();
        let look = {
            let mut looked = lock(&self.looked);
            let look = t.since(*looked) >= LOOK;
            if look {
                *looked = t;
            }
            look
        };
        let listed = match look && manager.misses() {
            true => Duration::ZERO,
            false => LIST,
        };
        let done = match self.sockets.subflows(listed) {
            Ok(sockets) => manager.tick(&sockets, ticked, look).await,
            Err(e) => Err(e),
        };
        self.note(&manager, done);
    }

    /// Asks for a look if something began or ended by these events. Waits for no one.
    fn hurry(&self, events: &[Event]) {
        let mut counts = false;
        for e in events {
            match (e.kind, e.local.zip(e.remote)) {
                (EventKind::SubflowEstablished, Some((local, remote))) => {
                    self.sockets.learn(local, remote, e.ifindex);
                }
                // It is not told to which interface a first one is bound.
                (EventKind::SubflowEstablished | EventKind::Established, _) => {
                    self.sockets.forget()
                }
                (EventKind::SubflowClosed, _) => {}
                _ => continue,
            }
            counts = true;
        }
        if !counts {
            return;
        }
        if self.weighs_each() {
            self.put_known_weights();
        }
        self.shared.control.wake();
        *lock(&self.looked) = Time::ZERO;
        self.hurried.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Returns when [`Mptcp::tick`] is wanted next.
    async fn due(&self) -> Time {
        let mut manager = self.manager.lock().await;
        if self.hurried.swap(false, Ordering::AcqRel) {
            manager.hurry();
        }
        manager.due()
    }

    fn note(&self, manager: &Manager, done: Result<Vec<Happened>>) {
        self.renamed(manager);
        match done {
            Ok(all) => self.tell(all),
            // It is tried again with the next change.
            Err(e) => tracing::warn!("{e}"),
        }
    }

    fn tell(&self, happened: Vec<Happened>) {
        for (access, what) in happened {
            self.shared.log(access, what);
        }
    }

    /// Learns which address is which access's.
    fn renamed(&self, manager: &Manager) {
        let now = match self.is_device() {
            true => observer::names(manager.settings(), manager.plan()),
            false => Config::peers(&lock(&self.accesses)),
        };
        let fresh = self.sockets.rename(now);
        if fresh && lock(&self.weights).counts {
            self.put_known_weights();
        }
    }

    async fn change(&self, access: &str, change: AccessChange) -> Result<()> {
        let mut manager = self.manager.lock().await;
        let changed = manager.change(access, change).await;
        // A request that was refused has changed things for a moment.
        self.renamed(&manager);
        self.wake.notify_one();
        changed
    }

    /// Changes the order of the accesses.
    async fn put_in_order(&self, order: &Priorities) -> Result<()> {
        let mut manager = self.manager.lock().await;
        let before = manager.plan().accesses.clone();
        let done = manager.prioritise(order).await;
        let happened = observer::changes(manager.settings(), manager.plan(), &before);
        self.note(&manager, Ok(happened));
        self.wake.notify_one();
        done
    }

    async fn describe(&self, detail: Detail) -> Result<EngineStatus> {
        let manager = self.manager.lock().await;
        let support = Support::detect();
        let sockets = self.sockets.tcp()?;
        let traffic = self.sockets.traffic(&sockets);
        let mut views = Vec::new();
        for (i, a) in lock(&self.accesses).iter().enumerate() {
            let mut view = self.view(&manager, i, a);
            let traffic = traffic.get(&a.name).copied().unwrap_or_default();
            traffic.fill(&mut view);
            // A path manager that repairs hears more than sockets tell, and later ones anew.
            if !manager.recovers() {
                self.sockets.judge(&a.name, &mut view);
            }
            views.push(view);
        }
        let mut namespace = lock(&self.namespace);
        let steered = manager.plan().steered.iter();
        let notes = namespace.notes().iter().chain(steered).cloned().collect();
        Ok(EngineStatus {
            limits: namespace.limits(),
            scheduling: Some(namespace.scheduling(&support.default_congestion_control)),
            scheduler: support.scheduler,
            congestion_control: support.default_congestion_control,
            recover: manager.recovers(),
            ignored: ignored(manager.plan()),
            notes,
            accesses: views,
            flows: self.sockets.flows(&sockets),
            connections: self.sockets.detailed(detail, &sockets)?,
        })
    }

    /// Describes access number `i`, but for what its sockets tell.
    fn view(&self, manager: &Manager, i: usize, a: &Access) -> AccessView {
        let slow = lock(&self.slowness)
            .of(&a.name)
            .map(|s| format!("slow: {s}"));
        let mut view = match self.is_device() {
            false => observer::at_proxy(a.address),
            true => {
                let (settings, plan) = (manager.settings(), manager.plan());
                let mut view = observer::view_of(settings, manager.view(), plan, i);
                let mut uses = plan.uses.iter().filter(|u| u.access == i);
                let rtt = uses.find_map(|u| manager.detector().probe_rtt(u.address));
                view.probe_rtt_ms = rtt.map(|rtt| rtt.as_secs_f64() * 1e3);
                view.notes = manager.notes(i);
                view
            }
        };
        let notes = std::mem::take(&mut view.notes);
        view.notes = slow.into_iter().chain(notes).collect();
        view
    }

    async fn go_by(&self, config: &Config, new: &Steering) -> Result<()> {
        let mut manager = self.manager.lock().await;
        let before = manager.config().buffers;
        let adopted = manager.adopt(config.clone()).await;
        // In any case: the manager goes by them.
        lock(&self.accesses).clone_from(&config.accesses);
        lock(&self.weights).steering.clone_from(new);
        self.renamed(&manager);
        self.wake.notify_one();
        adopted?;
        // What others have set since stays, if the file says the same.
        if config.buffers != before {
            lock(&self.namespace).shorten(&config.buffers)?;
            lock(&self.namespace).widen(&config.buffers)?;
        }
        lock(&self.namespace).announce(&config.announce)?;
        // Programs may be loaded.
        drop(manager);
        self.set_up(config, false).await
    }
}

impl Engine for Mptcp {
    fn kind(&self) -> Kind {
        Kind::Mptcp
    }

    fn connection_word(&self) -> &'static str {
        "MPTCP connection"
    }

    fn capabilities(&self) -> Capabilities {
        let change = match self.is_device() {
            true => Ok(()),
            false => Err(AT_THE_DEVICE),
        };
        // The kernel's windows begin as the kernel has it, but a policy goes by it.
        let expect = match self.shared.control.decides() {
            true => Ok(()),
            false => Err(KERNEL_WINDOWS),
        };
        Capabilities {
            schedule: Ok(()),
            leave_out: match self.is_device() || braid_mptcp::weights::known_to_kernel() {
                true => Ok(()),
                false => Err(MP_PRIO),
            },
            change,
            order: change,
            limit: Err(NO_LIMIT),
            expect: PerDirection {
                down: expect,
                up: expect,
            },
            always_weighted: false,
            checks: true,
            registers: false,
        }
    }

    fn start(self: Arc<Self>, config: &Config) -> BoxFuture<'_, Result<Started>> {
        async move { self.begin(config).await }.boxed()
    }

    fn tasks(self: Arc<Self>) -> Result<Vec<BoxFuture<'static, DaemonError>>> {
        let closed = ClosedSockets::open()?;
        let metered = Arc::clone(&self);
        let meter = async move { metered.sockets.meter(closed, &metered.shared).await };
        let mut all = vec![
            meter.boxed(),
            slow_access::watch(Arc::clone(&self)).boxed(),
            announce::watch(Arc::clone(&self)).boxed(),
        ];
        if let Some(incoming) = lock(&self.incoming).take() {
            all.push(follow::connections(incoming.events, Arc::clone(&self)).boxed());
            all.push(follow::links(incoming.changes, Arc::clone(&self)).boxed());
            all.push(follow::liveness(incoming.heard, Arc::clone(&self)).boxed());
        }
        Ok(all)
    }

    fn status(&self, detail: Detail) -> BoxFuture<'_, Result<EngineStatus>> {
        self.describe(detail).boxed()
    }

    fn connections(&self) -> Result<Vec<Connection>> {
        self.sockets.connections()
    }

    fn tokens(&self) -> Result<BTreeSet<u32>> {
        self.sockets.tokens()
    }

    fn flows(&self) -> Result<Vec<Flow>> {
        Ok(self.sockets.flows(&self.sockets.tcp()?))
    }

    fn look(&self) -> Result<Look> {
        observe::look(self)
    }

    fn sources<'a>(&'a self, access: &'a str) -> BoxFuture<'a, Vec<(IpAddr, String)>> {
        observe::sources(self, access).boxed()
    }

    fn peers(&self, port: u16) -> Result<BTreeSet<IpAddr>> {
        Ok(observe::peers(&self.sockets.subflows(LIST)?, port))
    }

    fn check_connection(&self, token: u32, own: &ByName, general: &Steering) -> Result<()> {
        self.can_weigh(token, own, general)
    }

    fn apply<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<()>> {
        async move {
            match change {
                Change::Access(name, change) => self.change(name, *change).await,
                Change::Order(order) => self.put_in_order(order).await,
                Change::Weights(new) => self.set_weights(new).await,
                Change::Scheduler(change) => {
                    let mut loaded = self.load_weights(Some(change), false).await?;
                    let manager = self.manager.lock().await;
                    lock(&self.namespace).schedule(change, &mut loaded)?;
                    self.remember(Configured::of(manager.config()))
                }
            }
        }
        .boxed()
    }

    fn scheduler(&self) -> SchedulerChange {
        lock(&self.namespace).scheduler()
    }

    fn prepare<'a>(&'a self, before: &'a Config, config: &'a Config) -> BoxFuture<'a, Result<()>> {
        async move {
            if config.pin != before.pin {
                return Err(self.shared.fixed("`pin` of [scheduler]"));
            }
            let mut responder = self.responder.lock().await;
            responder
                .serve(self.shared.role, config, Some(&self.shared.hands()))
                .await
        }
        .boxed()
    }

    fn reload<'a>(
        &'a self,
        config: &'a Config,
        weights: &'a Steering,
    ) -> BoxFuture<'a, Result<()>> {
        self.go_by(config, weights).boxed()
    }

    fn learn<'a>(&'a self, accesses: &'a [Access], weights: &'a Steering) -> BoxFuture<'a, ()> {
        async move {
            let manager = self.manager.lock().await;
            *lock(&self.accesses) = accesses.to_vec();
            let counts = {
                let mut in_force = lock(&self.weights);
                in_force.steering.clone_from(weights);
                in_force.counts
            };
            self.renamed(&manager);
            if counts {
                self.put_known_weights();
            }
        }
        .boxed()
    }

    fn reach<'a>(&'a self, proxy: &'a [IpAddr]) -> BoxFuture<'a, Result<()>> {
        async move {
            let mut manager = self.manager.lock().await;
            let done = manager.reach(proxy.to_vec()).await;
            self.note(&manager, done);
            self.wake.notify_one();
            Ok(())
        }
        .boxed()
    }

    fn carrier(self: Arc<Self>) -> Option<Arc<dyn Carrier>> {
        self.shared.conversion.carrier()
    }

    fn lost_contact(&self) -> BoxFuture<'_, Option<Lost>> {
        async move {
            let manager = self.manager.lock().await;
            let lost = manager.lost_contact()?;
            Some(Lost {
                port: ("probe port", manager.config().probe.port),
                lasts: lost.lasts,
                refused: lost.refused,
            })
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        async move { self.manager.lock().await.take_back().await }.boxed()
    }
}
