//! Plain TCP on one access: nothing is set up, only observed.

pub(crate) mod events;
pub(crate) mod observer;
pub(crate) mod sockets;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use braid_access::links::{Heard, RouteEvents};
use braid_access::settings::Settings;
use braid_api::{Connection, Engine as Kind, Role, SchedulerChange};
use braid_core::control::PerDirection;
use braid_mptcp::diag::ClosedSockets;
use braid_mptcp::manage::memory::Memory;
use braid_mptcp::manage::{Plan, View, plan_once};
use braid_mptcp::support::Support;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ipnet::IpNet;

use super::view::{AccessView, EngineStatus};
use super::{ByName, Capabilities, Change, Detail, Engine, Result, Setup, Started, Steering};
use crate::DaemonError;
use crate::config::{Access, Config};
use crate::control::Look;
use crate::kernel::Kernel;
use crate::meter::Flow;
use crate::responder::Responder;
use crate::shared::Shared;
use crate::state::lock;
use crate::takeover::sysctls::Before;
use braid_api::config::{KERNEL_WINDOWS, NO_LIMIT};
use sockets::Sockets;

/// Reason why nothing is scheduled.
const ONE_PATH: &str = "the engine \"tcp\" has one path: there is nothing to schedule";
/// Reason why no access is changed.
const FIXED: &str = "the engine \"tcp\" has one fixed access: nothing can be changed";
/// Reason why no access of a proxy is changed there.
pub(crate) const AT_THE_DEVICE: &str =
    "an access is changed at the device, which has it; this is the proxy";

/// Plain TCP.
pub(crate) struct Tcp {
    shared: Arc<Shared>,
    sockets: Sockets,
    observed: tokio::sync::Mutex<Observed>,
    responder: tokio::sync::Mutex<Responder>,
    changes: Mutex<Option<RouteEvents>>,
}

/// Accesses, and what the kernel has for them.
struct Observed {
    accesses: Vec<Access>,
    settings: Settings,
    kernel: Kernel,
    memory: Memory,
    view: View,
    plan: Plan,
    /// Settings that a killed daemon's other engine has changed.
    before: Before,
}

/// Makes the engine.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Arc<dyn Engine>> {
    // Before anything is read, so that no change falls between.
    let changes = RouteEvents::open()?;
    let mut kernel = Kernel::open(None)?;
    kernel.watched_by(changes.hosts());
    Ok(Arc::new(Tcp {
        shared: Arc::clone(setup.shared),
        sockets: Sockets::open(setup.shared.role)?,
        observed: tokio::sync::Mutex::new(Observed::new(setup.config, setup.control, kernel)),
        responder: tokio::sync::Mutex::default(),
        changes: Mutex::new(Some(changes)),
    }))
}

impl Observed {
    fn new(config: &Config, control: &Path, kernel: Kernel) -> Self {
        Self {
            accesses: config.accesses.clone(),
            settings: config.settings(),
            kernel,
            memory: Memory::default(),
            view: View::default(),
            plan: Plan::default(),
            before: Before::beside(control),
        }
    }

    /// Looks at the kernel; returns what was seen of it before.
    async fn look(&mut self) -> Result<View> {
        let view = self.kernel.view(&self.settings.proxy).await?;
        self.memory.known.learn(&view, &self.settings.proxy);
        self.plan = plan_once(&self.settings, &view, &self.memory);
        Ok(std::mem::replace(&mut self.view, view))
    }

    fn names(&self, role: Role) -> Vec<(IpNet, String)> {
        match role {
            Role::Proxy => Config::peers(&self.accesses),
            Role::Device => observer::names(&self.settings, &self.plan),
        }
    }
}

impl Tcp {
    /// Takes in changes of interfaces, addresses and routes.
    async fn reconcile(&self) {
        if self.shared.role == Role::Proxy {
            return;
        }
        let mut observed = self.observed.lock().await;
        let states = observed.plan.accesses.clone();
        match observed.look().await {
            Ok(before) => {
                let mut happened = observer::moves(&observed.settings, &before, &observed.view);
                let (settings, plan) = (&observed.settings, &observed.plan);
                happened.extend(observer::changes(settings, plan, &states));
                for (access, what) in happened {
                    self.shared.log(access, what);
                }
            }
            // It is tried again with the next change.
            Err(e) => tracing::warn!("{e}"),
        }
        self.sockets.rename(observed.names(self.shared.role));
    }

    async fn follow(&self, mut changes: RouteEvents) -> DaemonError {
        loop {
            match changes.next().await {
                Ok(heard) => {
                    settle().await;
                    if heard == Heard::Lost {
                        self.shared.lost();
                    }
                    self.reconcile().await;
                }
                Err(e) => {
                    return DaemonError::Failed(format!("{e}: interfaces cannot be followed"));
                }
            }
        }
    }

    async fn begin(&self, config: &Config) -> Result<Started> {
        if config.scheduler.is_some() {
            return Err(DaemonError::Refused(ONE_PATH.into()));
        }
        let mut observed = self.observed.lock().await;
        if self.shared.role == Role::Device {
            observed.look().await?;
            observer::all_there(&observed.settings, &observed.view)?;
        }
        let mut responder = self.responder.lock().await;
        responder.serve(self.shared.role, config, None).await?;
        self.sockets.rename(observed.names(self.shared.role));
        Ok(Started::default())
    }

    async fn describe(&self, detail: Detail) -> Result<EngineStatus> {
        let observed = self.observed.lock().await;
        let support = Support::detect();
        let sockets = self.sockets.tcp()?;
        let traffic = self.sockets.traffic(&sockets);
        let view = |(i, a): (usize, &Access)| {
            let mut view = match self.shared.role {
                Role::Proxy => observer::at_proxy(a.address),
                Role::Device => {
                    observer::view_of(&observed.settings, &observed.view, &observed.plan, i)
                }
            };
            let traffic = traffic.get(&a.name).copied().unwrap_or_default();
            traffic.fill(&mut view);
            self.sockets.judge(&a.name, &mut view);
            view
        };
        let views: Vec<AccessView> = observed.accesses.iter().enumerate().map(view).collect();
        Ok(EngineStatus {
            scheduler: support.scheduler,
            congestion_control: support.default_congestion_control,
            accesses: views,
            flows: self.sockets.flows(&sockets),
            connections: self.sockets.detailed(detail, &sockets)?,
            ignored: ignored(&observed.plan),
            ..EngineStatus::default()
        })
    }

    async fn go_by(&self, config: &Config) -> Result<()> {
        let mut observed = self.observed.lock().await;
        observed.accesses.clone_from(&config.accesses);
        observed.settings = config.settings();
        let looked = match self.shared.role {
            Role::Device => observed.look().await.map(drop),
            Role::Proxy => Ok(()),
        };
        self.sockets.rename(observed.names(self.shared.role));
        looked?;
        match config.scheduler {
            Some(_) => Err(DaemonError::Refused(ONE_PATH.into())),
            None => Ok(()),
        }
    }
}

/// Returns the interfaces that serve as no access.
pub(crate) fn ignored(plan: &Plan) -> Vec<braid_api::Ignored> {
    let one = |(interface, why): &(String, String)| braid_api::Ignored {
        interface: interface.clone(),
        why: why.clone(),
    };
    plan.ignored.iter().map(one).collect()
}

/// Waits until a burst of changes is over: what belongs together comes in one go.
pub(crate) async fn settle() {
    /// How often others get their turn before a burst is taken for over.
    const TURNS: usize = 4;
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

impl Engine for Tcp {
    fn kind(&self) -> Kind {
        Kind::Tcp
    }

    fn connection_word(&self) -> &'static str {
        "TCP connection"
    }

    fn capabilities(&self) -> Capabilities {
        let change = match self.shared.role {
            Role::Proxy => AT_THE_DEVICE,
            Role::Device => FIXED,
        };
        Capabilities {
            schedule: Err(ONE_PATH),
            leave_out: Err(ONE_PATH),
            change: Err(change),
            order: Err(change),
            limit: Err(NO_LIMIT),
            expect: PerDirection {
                down: Err(KERNEL_WINDOWS),
                up: Err(KERNEL_WINDOWS),
            },
            always_weighted: false,
            checks: false,
            registers: false,
        }
    }

    fn start(self: Arc<Self>, config: &Config) -> BoxFuture<'_, Result<Started>> {
        async move { self.begin(config).await }.boxed()
    }

    fn tasks(self: Arc<Self>) -> Result<Vec<BoxFuture<'static, DaemonError>>> {
        let closed = ClosedSockets::open()?;
        let changes = lock(&self.changes).take();
        let metered = Arc::clone(&self);
        let mut all =
            vec![async move { metered.sockets.meter(closed, &metered.shared).await }.boxed()];
        if let Some(changes) = changes {
            all.push(async move { self.follow(changes).await }.boxed());
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
        Ok(Look::default())
    }

    fn sources<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Vec<(IpAddr, String)>> {
        async { Vec::new() }.boxed()
    }

    fn peers(&self, _: u16) -> Result<BTreeSet<IpAddr>> {
        Ok(BTreeSet::new())
    }

    fn check_connection(&self, _: u32, _: &ByName, _: &Steering) -> Result<()> {
        Err(DaemonError::Refused(ONE_PATH.into()))
    }

    fn apply<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<()>> {
        let why = match change {
            Change::Access(..) | Change::Order(_) => FIXED,
            Change::Weights(_) | Change::Scheduler(_) => ONE_PATH,
        };
        async move { Err(DaemonError::Refused(why.into())) }.boxed()
    }

    fn scheduler(&self) -> SchedulerChange {
        SchedulerChange::default()
    }

    fn prepare<'a>(&'a self, _: &'a Config, config: &'a Config) -> BoxFuture<'a, Result<()>> {
        async move {
            let mut responder = self.responder.lock().await;
            responder.serve(self.shared.role, config, None).await
        }
        .boxed()
    }

    fn reload<'a>(&'a self, config: &'a Config, _: &'a Steering) -> BoxFuture<'a, Result<()>> {
        self.go_by(config).boxed()
    }

    fn reach<'a>(&'a self, proxy: &'a [IpAddr]) -> BoxFuture<'a, Result<()>> {
        async move {
            self.observed.lock().await.settings.proxy = proxy.to_vec();
            self.reconcile().await;
            Ok(())
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        async move {
            self.observed.lock().await.before.restore(None);
            Ok(())
        }
        .boxed()
    }
}
