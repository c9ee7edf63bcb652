//! Engine of tests: it remembers what it is to do, and refuses what it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::{AccessState, Connection, Engine as Kind, SchedulerChange};
use braid_core::control::PerDirection;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::UnboundedSender;

use super::view::{AccessView, EngineStatus};
use super::{ByName, Capabilities, Change, Detail, Engine, Result, Started, Steering};
use crate::DaemonError;
use crate::config::{Access, Config};
use crate::control::Look;
use crate::meter::Flow;
use crate::state::lock;

/// Changes that an engine refuses.
type Refuses = fn(&Change) -> bool;

/// Engine in memory.
pub(crate) struct Fake {
    pub(crate) kind: Kind,
    pub(crate) can: Capabilities,
    pub(crate) tokens: BTreeSet<u32>,
    /// State of each access.
    pub(crate) states: Vec<AccessState>,
    /// Weights that it goes on with.
    pub(crate) adopts: Option<Steering>,
    pub(crate) refuses: Mutex<Option<Refuses>>,
    /// Changes that were made.
    pub(crate) made: Mutex<Vec<Change>>,
    /// Addresses of accesses, with their interfaces.
    pub(crate) sources: Vec<(String, IpAddr, String)>,
    /// Addresses from which connections come.
    pub(crate) peers: BTreeSet<IpAddr>,
    /// Addresses of the proxy that it was told.
    pub(crate) reached: Mutex<Vec<Vec<IpAddr>>>,
    /// Count of the times that flows or connections were listed.
    pub(crate) listed: AtomicU32,
    /// Names of the accesses, with the weights of all, that it was told last.
    pub(crate) learned: Mutex<(Vec<String>, ByName)>,
    /// Whether its tokens are sessions of devices that have shown their keys.
    pub(crate) has_sessions: bool,
    /// Names of paths that it was told, by session.
    pub(crate) named: Mutex<BTreeMap<u32, BTreeMap<u32, String>>>,
    /// Takes its time for changes, and tells of it.
    pub(crate) slow: Option<UnboundedSender<&'static str>>,
}

impl Fake {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            can: Capabilities {
                schedule: Ok(()),
                leave_out: Ok(()),
                change: Ok(()),
                order: Ok(()),
                limit: Ok(()),
                expect: PerDirection {
                    down: Ok(()),
                    up: Ok(()),
                },
                always_weighted: false,
                checks: false,
                registers: false,
            },
            tokens: BTreeSet::from([1]),
            states: vec![AccessState::Active; 2],
            adopts: None,
            refuses: Mutex::new(None),
            made: Mutex::default(),
            sources: Vec::new(),
            peers: BTreeSet::new(),
            reached: Mutex::default(),
            listed: AtomicU32::new(0),
            learned: Mutex::default(),
            has_sessions: false,
            named: Mutex::default(),
            slow: None,
        }
    }

    /// Returns the changes that were made since this was called last.
    pub(crate) fn made(&self) -> Vec<Change> {
        std::mem::take(&mut lock(&self.made))
    }
}

fn connection(token: &u32) -> Connection {
    Connection {
        token: Some(*token),
        engine: None,
        fallback: false,
        fallback_at: None,
        inode: 0,
        mptcp: None,
        subflows: vec![],
        weights: None,
    }
}

impl Engine for Fake {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn connection_word(&self) -> &'static str {
        "connection"
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }

    fn start(self: Arc<Self>, _: &Config) -> BoxFuture<'_, Result<Started>> {
        async move {
            Ok(Started {
                adopted: self.adopts.clone(),
                lacking: None,
            })
        }
        .boxed()
    }

    fn tasks(self: Arc<Self>) -> Result<Vec<BoxFuture<'static, DaemonError>>> {
        Ok(vec![])
    }

    fn status(&self, detail: Detail) -> BoxFuture<'_, Result<EngineStatus>> {
        let view = |state: &AccessState| AccessView {
            state: *state,
            why: format!("so says {}", self.kind.as_str()),
            subflows: 1,
            ..AccessView::default()
        };
        let status = EngineStatus {
            accesses: self.states.iter().map(view).collect(),
            connections: match detail {
                Detail::Accesses => vec![],
                Detail::Connections => self.tokens.iter().map(connection).collect(),
            },
            ..EngineStatus::default()
        };
        self.listed.fetch_add(1, Ordering::Relaxed);
        async move {
            // As the real ones, which ask the kernel: others come in between.
            tokio::task::yield_now().await;
            Ok(status)
        }
        .boxed()
    }

    fn connections(&self) -> Result<Vec<Connection>> {
        self.listed.fetch_add(1, Ordering::Relaxed);
        Ok(self.tokens.iter().map(connection).collect())
    }

    fn tokens(&self) -> Result<BTreeSet<u32>> {
        Ok(self.tokens.clone())
    }

    fn flows(&self) -> Result<Vec<Flow>> {
        Ok(vec![])
    }

    fn look(&self) -> Result<Look> {
        Ok(Look::default())
    }

    fn sources<'a>(&'a self, access: &'a str) -> BoxFuture<'a, Vec<(IpAddr, String)>> {
        let mine = self.sources.iter().filter(move |(name, ..)| name == access);
        let mine = mine.map(|(_, address, interface)| (*address, interface.clone()));
        let all = mine.collect();
        async { all }.boxed()
    }

    fn peers(&self, _: u16) -> Result<BTreeSet<IpAddr>> {
        Ok(self.peers.clone())
    }

    fn check_connection(&self, _: u32, _: &ByName, _: &Steering) -> Result<()> {
        Ok(())
    }

    fn apply<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<()>> {
        async move {
            if let Some(tell) = &self.slow {
                tell.send("begun").unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
                tell.send("finished").unwrap();
            }
            if lock(&self.refuses).is_some_and(|refuses| refuses(change)) {
                return Err(DaemonError::Refused(format!(
                    "{} refuses",
                    self.kind.as_str()
                )));
            }
            lock(&self.made).push(change.clone());
            Ok(())
        }
        .boxed()
    }

    fn scheduler(&self) -> SchedulerChange {
        SchedulerChange {
            name: Some("wrr".into()),
            ..SchedulerChange::default()
        }
    }

    fn prepare<'a>(&'a self, _: &'a Config, _: &'a Config) -> BoxFuture<'a, Result<()>> {
        async { Ok(()) }.boxed()
    }

    fn reload<'a>(&'a self, _: &'a Config, weights: &'a Steering) -> BoxFuture<'a, Result<()>> {
        lock(&self.made).push(Change::Weights(weights.clone()));
        async { Ok(()) }.boxed()
    }

    fn reach<'a>(&'a self, proxy: &'a [IpAddr]) -> BoxFuture<'a, Result<()>> {
        lock(&self.reached).push(proxy.to_vec());
        async { Ok(()) }.boxed()
    }

    fn learn<'a>(&'a self, accesses: &'a [Access], weights: &'a Steering) -> BoxFuture<'a, ()> {
        let names = accesses.iter().map(|a| a.name.clone()).collect();
        *lock(&self.learned) = (names, weights.weights.clone());
        async {}.boxed()
    }

    fn sessions(&self) -> BTreeSet<u32> {
        match self.has_sessions {
            true => self.tokens.clone(),
            false => BTreeSet::new(),
        }
    }

    fn configured_paths(&self, _: u32) -> BTreeMap<u32, Option<String>> {
        (0..10).map(|path| (path, None)).collect()
    }

    fn name_paths(&self, token: u32, names: &BTreeMap<u32, String>) {
        lock(&self.named).insert(token, names.clone());
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        async { Ok(()) }.boxed()
    }
}
