//! The control API of the engine `mpquic`.

use braid_api::config::NO_LANE;
use braid_api::{
    AccessAddress, AccessChange, AccessState, AccessStatus, Connection, Connections, Counters,
    Engine, EventKind, Events, Lane, Priorities, Role, SchedulerChange, Status, Weights,
};
use braid_mpquic::{PathInfo, Session};
use braid_mptcp::mib;

use super::state::State;
use super::told::{self, Traffic};
use crate::DaemonError;
use crate::config;
use crate::meter;
use crate::serve::Api;
use crate::state::{lock, no_access, now};

/// Seconds after which a start takes long.
const STARTING: u64 = 2;

type Result<T> = std::result::Result<T, DaemonError>;

impl State {
    pub(super) fn paths(&self) -> Vec<(u32, Vec<PathInfo>)> {
        let sessions: Vec<(u32, Session)> = {
            let all = lock(&self.sessions);
            all.iter().map(|(t, s)| (*t, s.clone())).collect()
        };
        let paths = |(t, s): (u32, Session)| Some((t, s.paths().ok()?));
        sessions.into_iter().filter_map(paths).collect()
    }

    /// Describes the outage while the device has no session, or none that is heard of.
    fn outage(&self) -> Option<String> {
        let device = lock(&self.device).clone();
        let lost = device.and_then(|d| d.lost_for());
        let seconds = lost.map(|t| t.as_secs());
        let lasting = seconds.map_or(String::new(), |s| format!("; connecting for {s} s"));
        let session = self.current.borrow().clone();
        if session.is_some() {
            let silent = lost?.as_secs();
            return Some(format!(
                "nothing comes back from the proxy on any access for {silent} s: its session is \
                 asked, and another is tried beside it"
            ));
        }
        let trouble = lock(&self.trouble).clone();
        let starting = || {
            seconds
                .filter(|s| *s >= STARTING)
                .map(|_| "no answer yet".to_owned())
        };
        let why = trouble.or_else(starting)?;
        Some(format!("no session: {why}{lasting}"))
    }

    pub(super) fn find(&self, name: &str) -> Result<usize> {
        let config = lock(&self.config);
        let found = config.accesses.iter().position(|a| a.name == name);
        found.ok_or_else(|| DaemonError::Unknown(no_access(&config.accesses, name)))
    }

    fn accesses(&self) -> Vec<AccessStatus> {
        let paths = self.paths();
        lock(&self.meter).read(now(), meter::paths(&paths));
        let traffic = told::traffic(&paths);
        let all = lock(&self.config).accesses.clone();
        let one = |(i, a)| self.access(i, a, traffic.get(&a.name).cloned().unwrap_or_default());
        all.iter().enumerate().map(one).collect()
    }

    fn access(&self, i: usize, a: &config::Access, traffic: Traffic) -> AccessStatus {
        let (own, enabled) = {
            let steered = lock(&self.steered);
            let enabled = !steered.disabled.contains(&a.name);
            (steered.accesses[i].clone(), enabled)
        };
        let device = self.role == Role::Device;
        let link = match &*lock(&self.device) {
            Some(d) => d.link_of(&a.name).unwrap_or((false, None)),
            None => (!device, None),
        };
        let connected = !lock(&self.sessions).is_empty();
        let interface = a.interface.as_ref().map(ToString::to_string);
        let missing = interface.as_deref().is_some_and(is_missing);
        let (state, why) = judge(
            device, connected, enabled, missing, link, own.backup, &traffic,
        );
        let (carried, rate_mbps) = lock(&self.meter).carried(&a.name);
        let address = link.1.or(a.address.map(|n| n.addr()));
        AccessStatus {
            name: a.name.clone(),
            kind: a.kind,
            address,
            interface: interface.clone(),
            ifindex: None,
            up: link.0,
            has_address: !device || link.1.is_some(),
            enabled,
            backup: own.backup,
            weight: Some(own.weight),
            priority: u16::try_from(own.priority).ok().filter(|p| *p > 0),
            expected: own.expected,
            endpoint_id: None,
            state,
            why: why.to_owned(),
            note: traffic.longest.map(|bytes| {
                format!("packets of up to {bytes} bytes pass, longer ones are lost on the way")
            }),
            addresses: link
                .1
                .map(|address| AccessAddress {
                    address,
                    interface,
                    endpoint_id: None,
                })
                .into_iter()
                .collect(),
            srtt_ms: traffic.srtt_ms,
            probe_rtt_ms: None,
            loss: traffic.loss,
            rate_mbps,
            sent_bytes: carried.sent,
            retransmitted_bytes: carried.retransmitted,
            received_bytes: carried.received,
            subflows: traffic.paths,
        }
    }
}

/// Whether there is no such interface in this network namespace.
pub(super) fn is_missing(interface: &str) -> bool {
    nix::net::if_::if_nametoindex(interface).is_err()
}

/// Whether an access is used, and if not, why.
fn judge(
    device: bool,
    connected: bool,
    enabled: bool,
    missing: bool,
    link: (bool, Option<std::net::IpAddr>),
    backup: bool,
    traffic: &Traffic,
) -> (AccessState, &'static str) {
    match traffic {
        _ if !enabled => (AccessState::Ignored, "left out by a request"),
        _ if missing => (
            AccessState::Down,
            "it has no such interface: ip link lists those that there are",
        ),
        t if t.usable > 0 && backup => (AccessState::Backup, "used when no other access is"),
        t if t.usable > 0 => (AccessState::Active, "a path on it carries data"),
        _ if device && !connected => (AccessState::Down, "there is no session with the proxy"),
        _ if !connected => (AccessState::Down, "no device is connected"),
        t if t.paths > 0 => (AccessState::Silent, "nothing comes back on its path"),
        _ if device && link.1.is_none() => (AccessState::NoAddress, "it has no address"),
        _ if device && !link.0 => (AccessState::Down, "its link is down"),
        _ => (
            AccessState::Silent,
            "it has no path: attempts to open one get no answer",
        ),
    }
}

impl Api for State {
    async fn status(&self) -> Result<Status> {
        Ok(Status {
            role: self.role,
            engine: Engine::Mpquic,
            t_ns: now(),
            accesses: self.accesses(),
            limits: None,
            scheduler: Some(lock(&self.steered).steering.scheduler.clone()),
            default_congestion_control: self.quic.cc.clone(),
            recover: true,
            ignored: Vec::new(),
            config_error: lock(&self.config_error).clone(),
            notes: {
                let notes = lock(&self.notes).clone();
                self.outage().into_iter().chain(notes).collect()
            },
        })
    }

    fn connections(&self) -> Result<Connections> {
        let begun = std::time::Instant::now();
        let of = |(token, paths): &(u32, Vec<PathInfo>)| Connection {
            weights: self.own_weights(*token),
            ..told::connection(*token, paths, &self.quic.cc)
        };
        let connections = self.paths().iter().map(of).collect();
        Ok(Connections {
            t_ns: now(),
            took_us: u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX),
            connections,
        })
    }

    /// Reads the counters; those that concern this engine stand under `Udp`.
    fn counters(&self) -> Result<Counters> {
        let all = mib::Counters::read()?;
        Ok(Counters {
            t_ns: now(),
            counters: all.iter().map(|(n, v)| (n.to_owned(), v)).collect(),
        })
    }

    fn events(&self, after: u64) -> Events {
        lock(&self.log).after(after)
    }

    async fn change(&self, name: &str, change: AccessChange) -> Result<AccessStatus> {
        let i = self.find(name)?;
        if self.role == Role::Proxy {
            return Err(DaemonError::Refused(format!(
                "access \"{name}\": its use is changed at the device"
            )));
        }
        if let Some(expected) = change.expected {
            let of = |why: &str| format!("access \"{name}\": {why}");
            let wrong = |why: String| DaemonError::Config(of(&why));
            expected.check().map_err(wrong)?;
            if expected.down.is_some() && self.quic.lane == Lane::Stream {
                return Err(DaemonError::Refused(of(NO_LANE)));
            }
        }
        if let Some(enabled) = change.enabled {
            {
                let mut steered = lock(&self.steered);
                steered.disabled.retain(|n| n != name);
                if !enabled {
                    steered.disabled.push(name.to_owned());
                }
            }
            if let Some(device) = &*lock(&self.device) {
                device
                    .enable(name, enabled)
                    .map_err(|e| DaemonError::Refused(e.to_string()))?;
            }
        }
        if change.backup.is_some() || change.expected.is_some() {
            {
                let access = &mut lock(&self.steered).accesses[i];
                access.backup = change.backup.unwrap_or(access.backup);
                access.expected = change.expected.unwrap_or(access.expected);
            }
            self.steer_all()?;
        }
        let status = self.accesses().swap_remove(i);
        if change != AccessChange::default() {
            let what = EventKind::AccessChanged {
                enabled: status.enabled,
                backup: status.backup,
            };
            self.log(Some(name.to_owned()), what);
        }
        Ok(status)
    }

    async fn schedule(&self, change: &SchedulerChange) -> Result<SchedulerChange> {
        Self::schedule(self, change)
    }

    /// The order counts for the schedulers that have one, `active-standby` and
    /// `priority-based`.
    async fn prioritise(&self, order: &Priorities) -> Result<Priorities> {
        for name in order.0.keys() {
            self.find(name)?;
        }
        let now = {
            let mut steered = lock(&self.steered);
            for a in &mut steered.accesses {
                if let Some(place) = order.0.get(&a.name) {
                    a.priority = place.unwrap_or(0).into();
                }
            }
            let place = |p: u32| u16::try_from(p).ok().filter(|p| *p > 0);
            let all = steered.accesses.iter();
            Priorities(all.map(|a| (a.name.clone(), place(a.priority))).collect())
        };
        self.steer_all()?;
        Ok(now)
    }

    async fn weigh(&self, weights: &Weights) -> Result<Weights> {
        self.weigh_all(weights)
    }

    async fn weigh_connection(&self, token: &str, weights: Option<&Weights>) -> Result<Weights> {
        self.weigh_one(token, weights)
    }
}
