//! Engines: what moves traffic over the accesses, behind one trait.
//!
//! The daemon decides what is wished for, whoever asks, and each engine does it by its own means.
//! To add one: a folder, and a line in [`ENGINES`].

mod mpquic;
pub(crate) mod mptcp;
mod tcp;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use braid_api::registration::{Reply, Request};
use braid_api::{AccessChange, Connection, Engine as Kind, Priorities, SchedulerChange};
use braid_core::Rate;
use braid_core::class::ClassSteering;
use braid_core::control::PerDirection;
use braid_forward::Carrier;
use braid_mpquic::Session;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::DaemonError;
use crate::accesses::Wanted;
use crate::config::{Access, Config};
use crate::contact::Lost;
use crate::control::Look;
use crate::meter::Flow;
use crate::shared::Shared;
use view::EngineStatus;

pub(crate) use crate::takeover::pins::ByName;
pub(crate) use mpquic::identity;

/// Result of an engine's operation.
pub(crate) type Result<T> = std::result::Result<T, DaemonError>;

/// Reply of a proxy to a registration, or why there is none.
pub(crate) type Registered = std::result::Result<Reply, String>;

/// Makes an engine in the calling thread's namespace, inside a runtime.
type Make = fn(&Setup<'_>) -> Result<Arc<dyn Engine>>;

/// Every engine.
static ENGINES: [(Kind, Make); 3] = [
    (Kind::Tcp, tcp::make),
    (Kind::Mptcp, mptcp::make),
    (Kind::Mpquic, mpquic::make),
];

/// Parts that an engine is made from.
pub(crate) struct Setup<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) config: &'a Config,
    /// Accesses as they are to be used.
    pub(crate) wanted: &'a [Wanted],
    /// Control socket, beside which state is saved.
    pub(crate) control: &'a Path,
    pub(crate) tokens: &'a Arc<Tokens>,
}

/// Makes the engines of a configuration, in its order.
///
/// # Errors
/// What the machine lacks, or what is wrong with the configuration.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Vec<Arc<dyn Engine>>> {
    let made = setup.config.engines.iter().map(|kind| {
        let engine = ENGINES.iter().find(|(k, _)| k == kind);
        let (_, make) = engine.expect("every engine has its line");
        make(setup)
    });
    let engines: Vec<_> = made.collect::<Result<_>>()?;
    setup.tokens.are_of(&engines);
    Ok(engines)
}

/// Permission, or the sentence that says why not.
pub(crate) type Can = std::result::Result<(), &'static str>;

/// Requests that an engine can fulfil at this end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Capabilities {
    /// Schedule, and share by weights.
    pub(crate) schedule: Can,
    /// Leave an access out by the weight 0.
    pub(crate) leave_out: Can,
    /// Change the use and the order of accesses.
    pub(crate) change: Can,
    pub(crate) order: Can,
    /// Limit the rate at which an access is sent on.
    pub(crate) limit: Can,
    /// Make use of the rates that an access is expected to carry.
    pub(crate) expect: PerDirection<Can>,
    /// Whether an access without a weight has the weight 1, and weights always count.
    pub(crate) always_weighted: bool,
    /// Whether it answers checks by TCP at the proxy's port of `[probe]`, and so takes in those
    /// that ask for a transfer there.
    pub(crate) checks: bool,
    /// Whether the device registers its accesses on a session.
    pub(crate) registers: bool,
}

/// Weights of all connections, and those of single ones in their place, by token.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Steering {
    pub(crate) weights: ByName,
    pub(crate) connections: BTreeMap<u32, ByName>,
    /// Weights of single addresses of devices, at the proxy, where the engine tells subflows by
    /// address.
    pub(crate) addresses: BTreeMap<IpAddr, f64>,
}

/// Change of how an engine moves traffic.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// Use of an access, by its name.
    Access(String, AccessChange),
    /// Order of the accesses that are named.
    Order(Priorities),
    /// Every weight.
    Weights(Steering),
    /// Packet scheduler.
    Scheduler(SchedulerChange),
}

/// Extent of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The accesses.
    Accesses,
    /// The connections as well, at the same moment.
    Connections,
}

/// State after an engine's start.
#[derive(Debug, Default)]
pub(crate) struct Started {
    /// Weights of a killed daemon that stay in force.
    pub(crate) adopted: Option<Steering>,
    /// Reason why the engine works without what is configured.
    pub(crate) lacking: Option<String>,
}

/// Engine of one end. What it set up goes with [`Engine::close`], or when it is dropped.
pub(crate) trait Engine: Send + Sync {
    fn kind(&self) -> Kind;

    fn capabilities(&self) -> Capabilities;

    /// Returns its word for a connection.
    fn connection_word(&self) -> &'static str;

    /// Sets up what `config` asks for.
    ///
    /// # Errors
    /// What the machine refuses or lacks, if nothing works without it.
    fn start(self: Arc<Self>, config: &Config) -> BoxFuture<'_, Result<Started>>;

    /// Returns what it follows. Each ends by a failure alone, and says why.
    ///
    /// # Errors
    /// Something cannot be followed.
    fn tasks(self: Arc<Self>) -> Result<Vec<BoxFuture<'static, DaemonError>>>;

    /// Describes the engine and its accesses, in the order of the configuration.
    fn status(&self, detail: Detail) -> BoxFuture<'_, Result<EngineStatus>>;

    fn connections(&self) -> Result<Vec<Connection>>;

    /// Returns the tokens of the connections that live.
    fn tokens(&self) -> Result<BTreeSet<u32>>;

    /// Reads what each flow has carried.
    fn flows(&self) -> Result<Vec<Flow>>;

    /// Looks at the paths on which it may send, and at its accesses.
    fn look(&self) -> Result<Look>;

    /// Returns the addresses of an access from which this device can reach out now, each with
    /// its interface; the first of them serves.
    fn sources<'a>(&'a self, access: &'a str) -> BoxFuture<'a, Vec<(IpAddr, String)>>;

    /// Returns the addresses from which devices have connections that carry data now, at the
    /// proxy. Connections to `port`, that of checks and transfers, do not count.
    ///
    /// # Errors
    /// Connections cannot be listed.
    fn peers(&self, port: u16) -> Result<BTreeSet<IpAddr>>;

    /// Checks weights for the single connection `token`, where those of all are `general`.
    ///
    /// # Errors
    /// The engine cannot keep them, and why.
    fn check_connection(&self, token: u32, own: &ByName, general: &Steering) -> Result<()>;

    /// Makes a change, or leaves everything as it was.
    ///
    /// # Errors
    /// What was refused, and by whom.
    fn apply<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<()>>;

    /// Returns how packets are scheduled now.
    fn scheduler(&self) -> SchedulerChange;

    /// Checks that it can go from one configuration to another while it runs, and takes what
    /// others may have taken before anything else changes.
    ///
    /// # Errors
    /// What cannot change, or cannot be taken.
    fn prepare<'a>(&'a self, before: &'a Config, config: &'a Config) -> BoxFuture<'a, Result<()>>;

    /// Goes by another configuration, and by these weights.
    ///
    /// # Errors
    /// What the machine refuses or lacks of it.
    fn reload<'a>(&'a self, config: &'a Config, weights: &'a Steering)
    -> BoxFuture<'a, Result<()>>;

    /// Goes by other addresses of the proxy, whose name was resolved.
    ///
    /// # Errors
    /// What could not be learned of them.
    fn reach<'a>(&'a self, proxy: &'a [IpAddr]) -> BoxFuture<'a, Result<()>>;

    /// Goes by the accesses that devices have registered, which stand behind those of the file, and
    /// by these weights; at the proxy.
    fn learn<'a>(&'a self, _: &'a [Access], _: &'a Steering) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    /// Returns the tokens of the sessions whose devices have shown their keys.
    fn sessions(&self) -> BTreeSet<u32> {
        BTreeSet::new()
    }

    /// Returns the configured access of each path of a session, if it is on one, by the path's
    /// identifier.
    fn configured_paths(&self, _token: u32) -> BTreeMap<u32, Option<String>> {
        BTreeMap::new()
    }

    /// Names the accesses of a session's paths, by their identifiers.
    fn name_paths(&self, _token: u32, _names: &BTreeMap<u32, String>) {}

    /// Returns the bytes that sessions have sent of each class on each access, by the name of both,
    /// since the daemon began; nothing where there are no classes.
    fn class_bytes(&self) -> BTreeMap<(String, String), u64> {
        BTreeMap::new()
    }

    /// Steers classes of a session, by their numbers, as its device requests: all others go as the
    /// default.
    fn steer_classes(&self, _token: u32, _classes: BTreeMap<u8, ClassSteering>) {}

    /// Limits the rates of a session's downlinks, by the names of accesses, as its device requests.
    fn limit_accesses(&self, _token: u32, _limits: BTreeMap<String, Rate>) {}

    /// Registers the accesses of this device by the engine's own session with the proxy; `None`
    /// where it has none.
    fn register<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Option<Registered>> {
        async { None }.boxed()
    }

    /// Returns the access of each path of the session, by the path's identifier; empty without one.
    fn session_paths(&self) -> BTreeMap<u32, String> {
        BTreeMap::new()
    }

    /// Returns the way on which it carries connections of programs and hosts, at a device.
    fn carrier(self: Arc<Self>) -> Option<Arc<dyn Carrier>> {
        None
    }

    /// Returns the sessions that packets of hosts may go over, as they come and go, at a device.
    fn tunnel_sessions(&self) -> Option<watch::Receiver<Option<Session>>> {
        None
    }

    /// Returns the loss of contact with the proxy at a device: nothing has come back from it on any
    /// access for some seconds.
    fn lost_contact(&self) -> BoxFuture<'_, Option<Lost>> {
        async { None }.boxed()
    }

    /// Takes back what it set up, but for what live connections need.
    ///
    /// # Errors
    /// What could not be taken back.
    fn close(&self) -> BoxFuture<'_, Result<()>>;
}

/// Tokens of all engines together: each names one connection.
#[derive(Default)]
pub(crate) struct Tokens(OnceLock<Vec<Weak<dyn Engine>>>);

impl Tokens {
    pub(crate) fn are_of(&self, engines: &[Arc<dyn Engine>]) {
        let _ = self.0.set(engines.iter().map(Arc::downgrade).collect());
    }

    /// Whether another engine than `engine` has a connection of this token now.
    pub(crate) fn are_taken(&self, token: u32, engine: Kind) -> bool {
        let all = self.0.get().into_iter().flatten();
        let others = all.filter_map(Weak::upgrade).filter(|e| e.kind() != engine);
        let mut others = others.filter_map(|e| e.tokens().ok());
        others.any(|tokens| tokens.contains(&token))
    }
}
