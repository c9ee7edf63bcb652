//! All that a daemon knows, and the answers it gives from it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use braid_api::config::KERNEL_WINDOWS;
use braid_api::{
    AccessChange, AccessStatus, Connections, Counters, EventKind, Events, Priorities, Role,
    SubflowEvent,
};
use braid_core::Time;
use braid_mptcp::diag::{self, Diag};
use braid_mptcp::events::{Event as KernelEvent, EventKind as KernelKind};
use braid_mptcp::manage::slow::Slowness;
use braid_mptcp::mib;
use braid_mptcp::support;
use ipnet::IpNet;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

use super::DaemonError;
use super::answerer::Answerer;
use super::config::Access;
use super::engine::Engine;
use super::keep::ByName;
use super::log::Log;
use super::manager::{Happened, Manager};
use super::meter::Meter;

/// Addresses whose access is remembered, those that are gone included.
const REMEMBERED: usize = 256;
/// How often the connections are looked at, beyond whether their paths live.
const LOOK: Duration = Duration::from_millis(240);
/// How old the list of subflows may be: the kernel's events tell of new ones.
pub(super) const LIST: Duration = Duration::from_secs(1);

/// The state shared by requests and listeners. The manager is locked over waits,
/// the rest only between them.
pub(super) struct State {
    pub(super) role: Role,
    pub(super) manager: tokio::sync::Mutex<Manager>,
    /// Told when the manager wants to be looked at.
    pub(super) wake: Notify,
    /// Whether the manager is to look at once.
    hurried: AtomicBool,
    pub(super) engine: Mutex<Engine>,
    pub(super) accesses: Mutex<Vec<Access>>,
    pub(super) weights: Mutex<ByName>,
    /// Weights of single connections, by token.
    pub(super) own_weights: Mutex<BTreeMap<u32, ByName>>,
    /// Weights were set by a request: new addresses get them, too.
    pub(super) weighed: Mutex<bool>,
    /// The access of each address of the device, the newest last.
    pub(super) names: Mutex<Vec<(IpNet, String)>>,
    pub(super) diag: Mutex<Diag>,
    /// When connections were looked at last.
    looked: Mutex<Time>,
    pub(super) meter: Mutex<Meter<u64>>,
    pub(super) slowness: Mutex<Slowness>,
    pub(super) config_error: Mutex<Option<String>>,
    pub(super) answerer: tokio::sync::Mutex<Answerer>,
    log: Mutex<Log>,
    stale_loss_cnt: u32,
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(super) fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, nanos)
}

/// Returns the time of `CLOCK_MONOTONIC` when the kernel last counted a tick (jiffy).
pub(super) fn ticked() -> Time {
    let last = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE);
    last.map_or_else(|_| Time::from_nanos(now()), |t| Time::from_nanos(nanos(t)))
}

fn nanos(t: TimeSpec) -> u64 {
    let ns = t.tv_sec() * 1_000_000_000 + t.tv_nsec();
    u64::try_from(ns).unwrap_or(0)
}

/// Locks, even after a panic in another request: what that left is still consistent, since
/// every change is made in one step.
pub(super) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As configured.
pub(super) fn weights(accesses: &[Access]) -> ByName {
    let of = |a: &Access| Some((a.name.clone(), a.weight?));
    accesses.iter().filter_map(of).collect()
}

impl State {
    pub(super) fn new(role: Role, manager: Manager, engine: Engine) -> Result<Self, DaemonError> {
        let stale_loss_cnt = support::sysctl("net.mptcp.stale_loss_cnt")
            .and_then(|s| s.parse().ok())
            .unwrap_or(4);
        let accesses = manager.config().accesses.clone();
        Ok(Self {
            role,
            weights: Mutex::new(weights(&accesses)),
            own_weights: Mutex::new(BTreeMap::new()),
            weighed: Mutex::new(false),
            names: Mutex::new(vec![]),
            accesses: Mutex::new(accesses),
            manager: tokio::sync::Mutex::new(manager),
            wake: Notify::new(),
            hurried: AtomicBool::new(false),
            engine: Mutex::new(engine),
            diag: Mutex::new(Diag::open()?),
            looked: Mutex::new(Time::ZERO),
            meter: Mutex::default(),
            slowness: Mutex::new(Slowness::default()),
            config_error: Mutex::new(None),
            answerer: tokio::sync::Mutex::new(Answerer::default()),
            log: Mutex::new(Log::default()),
            stale_loss_cnt,
        })
    }

    /// Sets up.
    pub(super) async fn begin(&self) -> Result<(), DaemonError> {
        let mut manager = self.manager.lock().await;
        let goes_on = self.go_on(&mut manager);
        manager.begin().await?;
        let mut answerer = self.answerer.lock().await;
        answerer.serve(self.role, manager.config()).await?;
        drop(answerer);
        self.renamed(&manager);
        match self.set_up(&manager, goes_on) {
            // It works without weights.
            Err(e @ DaemonError::Lacking(_)) => {
                eprintln!("braid: {e}");
                *lock(&self.config_error) = Some(e.to_string());
            }
            other => other?,
        }
        Ok(())
    }

    /// Follows what has changed.
    pub(super) async fn reconcile(&self) {
        let mut manager = self.manager.lock().await;
        let done = manager.reconcile().await;
        self.note(&manager, done);
        self.wake.notify_one();
    }

    /// Judges the accesses.
    pub(super) async fn tick(&self) {
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
        let sockets = lock(&self.diag).subflows(listed);
        let done = match sockets {
            Ok(sockets) => manager.tick(&sockets, ticked, look).await,
            Err(e) => Err(e.into()),
        };
        self.note(&manager, done);
    }

    /// Something began or ended: have a look. Waits for no one.
    pub(super) fn hurry(&self) {
        if self.weighs_each() {
            self.put_known_weights();
        }
        lock(&self.diag).forget();
        *lock(&self.looked) = Time::ZERO;
        self.hurried.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// When [`State::tick`] is wanted next.
    pub(super) async fn due(&self) -> Time {
        let mut manager = self.manager.lock().await;
        if self.hurried.swap(false, Ordering::AcqRel) {
            manager.hurry();
        }
        manager.due()
    }

    fn note(&self, manager: &Manager, done: Result<Vec<Happened>, DaemonError>) {
        self.renamed(manager);
        match done {
            Ok(all) => {
                let mut log = lock(&self.log);
                for (access, what) in all {
                    log.add(now(), access, what);
                }
            }
            // It is tried again with the next change.
            Err(e) => eprintln!("braid: {e}"),
        }
    }

    /// Learns which address is which access's.
    pub(super) fn renamed(&self, manager: &Manager) {
        let accesses = lock(&self.accesses);
        let now: Vec<(IpNet, String)> = match self.role {
            Role::Proxy => accesses
                .iter()
                .filter_map(|a| Some((a.address?, a.name.clone())))
                .collect(),
            Role::Device => {
                let pinned = accesses
                    .iter()
                    .filter_map(|a| Some((a.address?, a.name.clone())));
                let used = manager.plan().uses.iter().filter_map(|u| {
                    let name = manager.settings().accesses.get(u.access)?.name.clone();
                    Some((IpNet::from(u.address), name))
                });
                pinned.chain(used).collect()
            }
        };
        let mut names = lock(&self.names);
        let fresh = now.iter().any(|n| !names.contains(n));
        names.retain(|(net, _)| now.iter().all(|(n, _)| n != net));
        names.extend(now);
        let extra = names.len().saturating_sub(REMEMBERED);
        names.drain(..extra);
        drop((names, accesses));
        if fresh && *lock(&self.weighed) {
            self.put_known_weights();
        }
    }

    pub(super) async fn change(
        &self,
        name: &str,
        change: AccessChange,
    ) -> Result<AccessStatus, DaemonError> {
        // Before its number is looked up: the file may just be read again.
        let mut manager = self.manager.lock().await;
        let i = {
            let accesses = lock(&self.accesses);
            let i = accesses.iter().position(|a| a.name == name);
            i.ok_or_else(|| DaemonError::Unknown(no_access(&accesses, name)))?
        };
        if change.expected.is_some() {
            let why = format!("access \"{name}\": {KERNEL_WINDOWS}");
            return Err(DaemonError::Refused(why));
        }
        let changed = manager.change(i, change).await;
        // A request that was refused has changed things for a moment.
        self.renamed(&manager);
        self.wake.notify_one();
        let changed = changed?;
        let status = self.access(i, &manager, &BTreeMap::new());
        if changed {
            let what = EventKind::AccessChanged {
                enabled: status.enabled,
                backup: status.backup,
            };
            lock(&self.log).add(now(), Some(name.to_owned()), what);
        }
        Ok(status)
    }

    /// Changes the order of the accesses.
    pub(super) async fn prioritise(&self, change: &Priorities) -> Result<Priorities, DaemonError> {
        let mut manager = self.manager.lock().await;
        {
            let accesses = lock(&self.accesses);
            let unknown = |n: &&String| !accesses.iter().any(|a| a.name == **n);
            if let Some(name) = change.0.keys().find(unknown) {
                return Err(DaemonError::Unknown(no_access(&accesses, name)));
            }
        }
        let before = manager.plan().accesses.clone();
        let now = manager.prioritise(change).await;
        let told = manager.changed_since(&before);
        self.note(&manager, Ok(told));
        self.wake.notify_one();
        now
    }

    pub(super) fn connections(&self) -> Result<Connections, DaemonError> {
        let (t_ns, start) = (now(), Instant::now());
        let mut diag = lock(&self.diag);
        let (tcp, mptcp) = (diag.tcp()?, diag.mptcp()?);
        let mut connections =
            diag::connections(&tcp, &mptcp, self.stale_loss_cnt, &|local, remote| {
                self.access_of(Some(local), Some(remote))
            });
        for c in &mut connections {
            c.weights = self.own_weights_of(c.token);
        }
        Ok(Connections {
            t_ns,
            took_us: u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX),
            connections,
        })
    }

    pub(super) fn counters(&self) -> Result<Counters, DaemonError> {
        let all = mib::Counters::read()?;
        Ok(Counters {
            t_ns: now(),
            counters: all.iter().map(|(n, v)| (n.to_owned(), v)).collect(),
        })
    }

    pub(super) fn events(&self, after: u64) -> Events {
        lock(&self.log).after(after)
    }

    /// The access of a subflow: by the device's address, whichever end this is.
    pub(super) fn access_of(
        &self,
        local: Option<IpAddr>,
        remote: Option<IpAddr>,
    ) -> Option<String> {
        let address = match self.role {
            Role::Device => local,
            Role::Proxy => remote,
        }?;
        // Of prefixes that contain it, the longest.
        lock(&self.names)
            .iter()
            .filter(|(net, _)| net.contains(&address))
            .max_by_key(|(net, _)| net.prefix_len())
            .map(|(_, name)| name.clone())
    }

    pub(super) fn log_event(&self, t_ns: u64, access: Option<String>, what: EventKind) {
        lock(&self.log).add(t_ns, access, what);
    }

    /// Notes that the kernel lost events.
    pub(super) fn note_lost(&self) {
        lock(&self.log).lost();
    }

    /// Notes an event of MPTCP.
    pub(super) fn note_mptcp(&self, e: &KernelEvent) {
        let token = e.token.unwrap_or(0);
        if e.kind == KernelKind::Closed {
            self.forget(token);
        }
        let subflow = || SubflowEvent {
            token,
            local_id: e.local_id.unwrap_or(0),
            remote_id: e.remote_id.unwrap_or(0),
            local: e.local,
            remote: e.remote,
            backup: e.backup.unwrap_or(false),
            error: e.error,
        };
        let remote_id = e.remote_id.unwrap_or(0);
        let what = match e.kind {
            KernelKind::Created => EventKind::Created { token },
            KernelKind::Established => EventKind::Established { token },
            KernelKind::Closed => EventKind::Closed { token },
            KernelKind::SubflowEstablished => EventKind::SubflowEstablished(subflow()),
            KernelKind::SubflowClosed => EventKind::SubflowClosed(subflow()),
            KernelKind::SubflowPriority => EventKind::SubflowPriority(subflow()),
            KernelKind::Announced => EventKind::Announced {
                token,
                remote_id,
                address: e.remote.map(|r| r.ip()),
            },
            KernelKind::Removed => EventKind::Removed { token, remote_id },
            KernelKind::ListenerCreated | KernelKind::ListenerClosed | KernelKind::Other(_) => {
                return;
            }
        };
        let access = self.access_of(e.local.map(|a| a.ip()), e.remote.map(|a| a.ip()));
        lock(&self.log).add(now(), access, what);
    }
}

pub(super) fn no_access(accesses: &[Access], name: &str) -> String {
    let names: Vec<_> = accesses.iter().map(|a| a.name.as_str()).collect();
    format!(
        "no access is called \"{name}\": the accesses are {}",
        names.join(", ")
    )
}
