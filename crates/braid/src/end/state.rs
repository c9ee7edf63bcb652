//! All that an end knows, and the answers it gives from it.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use braid_core::api::{
    AccessChange, AccessStatus, Connections, Counters, EventKind, Events, Role, SchedulerChange,
    Status, SubflowEvent, Weights,
};
use braid_mptcp::diag::{self, Diag};
use braid_mptcp::events::{Event as KernelEvent, EventKind as KernelKind};
use braid_mptcp::mib;
use braid_mptcp::support::{self, Support};
use nix::time::{ClockId, clock_gettime};
use rtnetlink::Handle;

use super::EndError;
use super::config::Config;
use super::engine::Engine;
use super::links::Links;
use super::log::Log;

/// The state shared by the requests. Locks are held only between waits.
pub(super) struct State {
    config: Config,
    engine: Mutex<Engine>,
    /// In the order of the configuration.
    weights: Mutex<Vec<Option<f64>>>,
    diag: Mutex<Diag>,
    log: Mutex<Log>,
    links: Handle,
    stale_loss_cnt: u32,
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(super) fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
        let ns = t.tv_sec() * 1_000_000_000 + t.tv_nsec();
        u64::try_from(ns).unwrap_or(0)
    })
}

/// What a panic in another request left is still consistent: every change is made
/// in one step.
fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) fn new(config: Config, engine: Engine, links: Handle) -> Result<Self, EndError> {
        let stale_loss_cnt = support::sysctl("net.mptcp.stale_loss_cnt")
            .and_then(|s| s.parse().ok())
            .unwrap_or(4);
        let weights = config.accesses.iter().map(|a| a.weight).collect();
        Ok(Self {
            config,
            weights: Mutex::new(weights),
            engine: Mutex::new(engine),
            diag: Mutex::new(Diag::open()?),
            log: Mutex::new(Log::default()),
            links,
            stale_loss_cnt,
        })
    }

    pub(super) async fn status(&self) -> Result<Status, EndError> {
        let links = Links::read(&self.links).await?;
        let support = Support::detect();
        let limits = lock(&self.engine).limits();
        Ok(Status {
            role: self.config.role,
            engine: self.config.engine,
            t_ns: now(),
            accesses: (0..self.config.accesses.len())
                .map(|i| self.access(i, &links))
                .collect(),
            limits,
            scheduler: support.scheduler,
            default_congestion_control: support.default_congestion_control,
        })
    }

    fn access(&self, i: usize, links: &Links) -> AccessStatus {
        let a = &self.config.accesses[i];
        let used = lock(&self.engine).uses()[i];
        let link = a
            .interface
            .as_ref()
            .map(|name| links.by_name.get(name).copied());
        let index = link.flatten().map(|(index, _)| index);
        AccessStatus {
            name: a.name.clone(),
            kind: a.kind,
            address: a.address,
            interface: a.interface.clone(),
            ifindex: index,
            up: link.is_none_or(|l| l.is_some_and(|(_, up)| up)),
            has_address: link.is_none()
                || index.is_some_and(|index| links.addresses.contains(&(index, a.address))),
            enabled: used.enabled,
            backup: used.backup,
            weight: lock(&self.weights)[i],
            endpoint_id: used.endpoint_id,
        }
    }

    pub(super) async fn change(
        &self,
        name: &str,
        change: AccessChange,
    ) -> Result<AccessStatus, EndError> {
        let accesses = &self.config.accesses;
        let i = accesses
            .iter()
            .position(|a| a.name == name)
            .ok_or_else(|| EndError::Unknown(self.no_access(name)))?;
        let links = Links::read(&self.links).await?;
        let a = &accesses[i];
        let index = a
            .interface
            .as_ref()
            .and_then(|n| links.by_name.get(n))
            .map(|&(i, _)| i);
        let changed = lock(&self.engine)
            .change(i, a.address, index, change.backup, change.enabled)
            .map_err(|e| e.about(&format!("access \"{name}\"")))?;
        let status = self.access(i, &links);
        if changed {
            let what = EventKind::AccessChanged {
                enabled: status.enabled,
                backup: status.backup,
            };
            lock(&self.log).add(now(), Some(name.to_owned()), what);
        }
        Ok(status)
    }

    pub(super) fn schedule(&self, change: &SchedulerChange) -> Result<SchedulerChange, EndError> {
        let mut engine = lock(&self.engine);
        engine.schedule(change)?;
        Ok(engine.scheduler())
    }

    /// Changes some weights, all of them at once or none.
    pub(super) fn weigh(&self, change: &Weights) -> Result<Weights, EndError> {
        let accesses = &self.config.accesses;
        let mut weights = lock(&self.weights);
        let mut new = weights.clone();
        for (name, &weight) in &change.0 {
            let i = accesses.iter().position(|a| a.name == *name);
            let i = i.ok_or_else(|| EndError::Unknown(self.no_access(name)))?;
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(EndError::Config(format!(
                    "access \"{name}\": a weight is a number, 0 or above"
                )));
            }
            new[i] = Some(weight);
        }
        // The kernel's own default, for those that nobody has named yet.
        let all: Vec<_> = accesses
            .iter()
            .zip(&new)
            .map(|(a, w)| (a.address, w.unwrap_or(1.0)))
            .collect();
        lock(&self.engine).weigh(&all)?;
        *weights = new;
        let named = accesses.iter().zip(weights.iter());
        Ok(Weights(
            named
                .filter_map(|(a, w)| Some((a.name.clone(), (*w)?)))
                .collect(),
        ))
    }

    fn no_access(&self, name: &str) -> String {
        let names: Vec<_> = self
            .config
            .accesses
            .iter()
            .map(|a| a.name.as_str())
            .collect();
        format!(
            "no access is called \"{name}\": the accesses are {}",
            names.join(", ")
        )
    }

    pub(super) fn connections(&self) -> Result<Connections, EndError> {
        let (t_ns, start) = (now(), Instant::now());
        let mut diag = lock(&self.diag);
        let (tcp, mptcp) = (diag.tcp()?, diag.mptcp()?);
        let connections = diag::connections(&tcp, &mptcp, self.stale_loss_cnt, &|local, remote| {
            self.access_of(Some(local), Some(remote))
        });
        Ok(Connections {
            t_ns,
            took_us: u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX),
            connections,
        })
    }

    pub(super) fn counters(&self) -> Result<Counters, EndError> {
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
    fn access_of(&self, local: Option<IpAddr>, remote: Option<IpAddr>) -> Option<String> {
        let address = match self.config.role {
            Role::Device => local,
            Role::Proxy => remote,
        }?;
        self.config
            .accesses
            .iter()
            .find(|a| a.address == address)
            .map(|a| a.name.clone())
    }

    /// Notes a change of an access's interface or address; others do not matter.
    pub(super) fn note_link(&self, what: EventKind) {
        let accesses = &self.config.accesses;
        let access = accesses.iter().find(|a| match &what {
            EventKind::LinkUp { interface } | EventKind::LinkDown { interface } => {
                a.interface.as_ref() == Some(interface)
            }
            EventKind::AddressAdded { address } | EventKind::AddressRemoved { address } => {
                a.interface.is_some() && a.address == *address
            }
            _ => false,
        });
        if let Some(a) = access {
            lock(&self.log).add(now(), Some(a.name.clone()), what);
        }
    }

    /// Notes that the kernel lost events.
    pub(super) fn note_lost(&self) {
        lock(&self.log).lost();
    }

    /// Notes an event of MPTCP.
    pub(super) fn note_mptcp(&self, e: &KernelEvent) {
        let token = e.token.unwrap_or(0);
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
