//! The device registers its accesses: over the session with the proxy where there is one, and by
//! TCP from each of its addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_access::dial::dial;
use braid_api::registration::{self, Reply, Request, is_name};
use braid_api::{Engine as Kind, Role};
use braid_core::Time;
use braid_core::control::Direction;
use braid_mptcp::socket;
use futures_util::future::join_all;
use socket2::SockRef;
use tokio::time::timeout;

use super::identity;
use super::{ByName, converse};
use crate::DaemonError;
use crate::config::{Access, Config};
use crate::daemon::Daemon;
use crate::state::{lock, now};

/// Longest wait for a handshake and the reply. Who asks for weights by the control socket waits
/// for 5 s: perhaps for a round under way, for that with the weights, and for one that takes them
/// back.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Time in which changes that belong together arrive.
const SETTLE: Duration = Duration::from_millis(100);
/// First and longest wait before a registration that got no reply is repeated.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(300);
/// Interval of registrations while an access has traffic: a proxy that was started anew knows
/// nothing.
const AGAIN: Duration = Duration::from_secs(60);

/// Bytes beyond which an access has had traffic: a registration itself is less.
const TRAFFIC: u64 = 20_000;

/// Way to the proxy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    /// Session of an engine, with its token.
    Session(&'static str, u32),
    Tcp {
        access: String,
        address: IpAddr,
        interface: String,
        to: SocketAddr,
    },
}

/// Latest registration by a channel.
#[derive(Debug)]
struct Sent {
    request: Request,
    at: Time,
    /// Bytes that its access, or all of them, had carried.
    carried: u64,
    /// Reply, or the wait before it is tried again.
    outcome: Result<Reply, Duration>,
}

impl Sent {
    /// Returns when to register again, if it is not sooner for another reason.
    fn due(&self, carried: u64) -> Option<Time> {
        match &self.outcome {
            Err(wait) => Some(self.at + *wait),
            // Of a path that it has not validated yet, the proxy does not know the access.
            Ok(reply)
                if self
                    .request
                    .paths
                    .values()
                    .any(|n| !reply.accesses.contains_key(n)) =>
            {
                Some(self.at + RETRY)
            }
            Ok(_) => (carried.saturating_sub(self.carried) > TRAFFIC).then(|| self.at + AGAIN),
        }
    }
}

/// Registration of the accesses of one device.
#[derive(Debug, Default)]
pub(crate) struct Device {
    id: u64,
    state: tokio::sync::Mutex<State>,
    /// Weights of downlinks in force, as the proxy told last.
    in_force: Mutex<ByName>,
}

#[derive(Debug, Default)]
struct State {
    sent: BTreeMap<Channel, Sent>,
    /// Weights of downlinks that were requested.
    requested: Option<ByName>,
}

impl State {
    fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.sent.values().filter_map(|s| s.outcome.as_ref().ok())
    }
}

impl Device {
    /// Makes the registration of the daemon with this control socket.
    pub(crate) fn beside(control: &Path) -> Self {
        Self {
            id: identity::number(control),
            ..Self::default()
        }
    }

    /// Returns the weights of downlinks in force at the proxy, as far as it has told.
    pub(crate) fn weights(&self) -> ByName {
        lock(&self.in_force).clone()
    }

    /// Requests weights of downlinks; returns those in force then.
    ///
    /// # Errors
    /// The proxy refuses them, or is not reached; nothing has changed then.
    pub(crate) async fn set_weights(
        &self,
        daemon: &Daemon,
        change: &ByName,
    ) -> Result<ByName, String> {
        let mut state = self.state.lock().await;
        let before = state.requested.clone();
        let requested = state.requested.get_or_insert_default();
        requested.extend(change.clone());
        let done = self.request_weights(&mut state, daemon, change).await;
        if done.is_err() {
            state.requested = before;
            // What one channel has taken before another refused.
            self.round(&mut state, daemon, false).await;
        }
        done
    }

    /// Forgets the weights that were requested: they are as configured again.
    pub(crate) async fn forget_requests(&self) {
        self.state.lock().await.requested = None;
    }

    async fn request_weights(
        &self,
        state: &mut State,
        daemon: &Daemon,
        change: &ByName,
    ) -> Result<ByName, String> {
        self.round(state, daemon, true).await;
        let replies = || state.replies();
        let in_force = self.weights();
        if change.iter().all(|(n, w)| in_force.get(n) == Some(w)) {
            return Ok(in_force);
        }
        let refused = replies().find_map(|r| r.refused.clone());
        let unknown = || {
            let missing = change.keys().find(|n| !in_force.contains_key(*n));
            missing
                .map(|n| format!("the proxy does not know access {n} yet: it has not reached it"))
        };
        Err(match (replies().next().is_some(), refused) {
            (_, Some(why)) => why,
            (true, None) => unknown().unwrap_or_else(|| "the proxy keeps its own".to_owned()),
            (false, None) => {
                "the proxy is not reached, or takes no registrations (an older Braid, or \
                 enabled = false in its [registration])"
                    .to_owned()
            }
        })
    }

    /// Registers by every channel for which it is time, or by all of them. Returns when it is time
    /// again, unless something changes before.
    async fn round(&self, state: &mut State, daemon: &Daemon, all: bool) -> Option<Time> {
        let config = daemon.config();
        let channels = match config.registration.enabled {
            true => channels(daemon, &config).await,
            false => BTreeSet::new(),
        };
        state.sent.retain(|c, _| channels.contains(c));
        let mut next: Option<Time> = None;
        let mut due = Vec::new();
        for channel in channels {
            let request = self.request(&config, &channel, daemon, state.requested.clone());
            let at = Time::from_nanos(now());
            let carried = carried(daemon, &channel);
            let known = state.sent.get(&channel);
            let same = known.filter(|s| !all && s.request == request);
            let again = same.map(|s| s.due(carried));
            if let Some(again) = again.filter(|d| d.is_none_or(|t| t > at)) {
                next = next.into_iter().chain(again).min();
                continue;
            }
            due.push((channel, request, carried));
        }
        // All at once: one that does not answer holds up no other.
        let all = due.into_iter().map(async |(channel, request, carried)| {
            let outcome = register(daemon, &channel, &request).await;
            (channel, request, carried, outcome)
        });
        for (channel, request, carried, outcome) in join_all(all).await {
            let wait = state.sent.get(&channel);
            let wait = wait.and_then(|s| s.outcome.as_ref().err());
            let wait = wait.map_or(RETRY, |w| (*w * 2).min(RETRY_MAX));
            let outcome = outcome.map_err(|why| {
                tracing::debug!("register by {channel:?}: {why}; again in {wait:?}");
                wait
            });
            let at = Time::from_nanos(now());
            let sent = Sent {
                request,
                at,
                carried,
                outcome,
            };
            next = next.into_iter().chain(sent.due(u64::MAX)).min();
            state.sent.insert(channel, sent);
        }
        let replies = || state.replies();
        *lock(&self.in_force) = replies().flat_map(|r| r.weights.clone()).collect();
        let mut refused = replies().filter_map(|r| r.refused.clone());
        daemon.shared().registration.set_refused(refused.next());
        next
    }

    fn request(
        &self,
        config: &Config,
        channel: &Channel,
        daemon: &Daemon,
        weights: Option<ByName>,
    ) -> Request {
        let access = |a: &Access| {
            let described = registration::Access {
                kind: a.kind,
                weight: a.weight,
                limit_bps: None,
            };
            (a.name.clone(), described)
        };
        let accesses = registered(config).map(access);
        let name = identity::name(config.registration.name.as_deref());
        let mut request = Request::new(&name, self.id, accesses.collect());
        request.weights = weights.map(|mut w| {
            w.retain(|name, _| request.accesses.contains_key(name));
            w
        });
        match channel {
            Channel::Tcp { access, .. } => request.over = Some(access.clone()),
            Channel::Session(..) => {
                let paths = daemon.engines().iter().map(|e| e.session_paths());
                let mut paths: BTreeMap<u32, String> = paths.flatten().collect();
                paths.retain(|_, name| request.accesses.contains_key(name));
                request.paths = paths;
                request.classes = config.class_steering(Direction::Down);
                for (name, limit) in daemon.limits() {
                    if let Some(access) = request.accesses.get_mut(&name) {
                        access.limit_bps = limit.down;
                    }
                }
                // Accesses beyond those that a proxy takes have no name there.
                let there = |name: &str| request.accesses.contains_key(name);
                let there = |name: &str| there(name).then(|| name.to_owned());
                for class in request.classes.values_mut() {
                    *class = class.renamed(there);
                }
            }
        }
        request
    }
}

/// Returns the accesses that are registered: as many as a proxy takes, and whose names it takes.
fn registered(config: &Config) -> impl Iterator<Item = &Access> {
    let named = config.accesses.iter().filter(|a| is_name(&a.name));
    named.take(registration::MAX_ACCESSES)
}

/// Returns the bytes that the access of a channel has carried, or all of them.
fn carried(daemon: &Daemon, channel: &Channel) -> u64 {
    let meter = lock(&daemon.shared().meter);
    match channel {
        Channel::Session(..) => meter.payload(),
        Channel::Tcp { access, .. } => {
            let (bytes, _) = meter.carried(access);
            bytes.sent + bytes.received
        }
    }
}

/// Returns every way to the proxy that there is now.
async fn channels(daemon: &Daemon, config: &Config) -> BTreeSet<Channel> {
    let mut all = BTreeSet::new();
    for e in daemon.engines() {
        if let (Some(token), false) = (e.sessions().last(), e.session_paths().is_empty()) {
            all.insert(Channel::Session(Kind::as_str(e.kind()), *token));
        }
        if !(e.capabilities().checks && config.probe.enabled) {
            continue;
        }
        for a in registered(config) {
            for (address, interface) in e.sources(&a.name).await {
                let mut to = config.proxy.iter();
                let Some(to) = to.find(|p| p.is_ipv4() == address.is_ipv4()) else {
                    continue;
                };
                all.insert(Channel::Tcp {
                    access: a.name.clone(),
                    address,
                    interface,
                    to: SocketAddr::new(*to, config.probe.port),
                });
            }
        }
    }
    all
}

async fn register(daemon: &Daemon, channel: &Channel, request: &Request) -> Result<Reply, String> {
    let registered = async {
        match channel {
            Channel::Session(engine, _) => {
                let mut engines = daemon.engines().iter();
                let engine = engines.find(|e| Kind::as_str(e.kind()) == *engine);
                let ended = || "the session has ended".to_owned();
                let registered = engine.ok_or_else(ended)?.register(request).await;
                registered.ok_or_else(ended)?
            }
            Channel::Tcp {
                address,
                interface,
                to,
                ..
            } => by_tcp(*address, interface, *to, request).await,
        }
    };
    let late = |_| "the proxy does not answer".to_owned();
    timeout(PATIENCE, registered).await.map_err(late)?
}

async fn by_tcp(
    address: IpAddr,
    interface: &str,
    to: SocketAddr,
    request: &Request,
) -> Result<Reply, String> {
    let socket = socket::stream(&to, false).map_err(|e| e.to_string())?;
    let dialed = dial(socket, address, interface, to).await;
    let mut stream = dialed.map_err(|e| format!("connect to {to} by TCP from {address}: {e}"))?;
    let reply = converse(&mut stream, request).await;
    // Nothing is outstanding: no need to linger in TIME-WAIT.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    reply
}

/// Registers the accesses, and whatever changes of them, for ever.
pub(crate) async fn follow(daemon: Arc<Daemon>) -> DaemonError {
    if daemon.shared().role == Role::Proxy {
        return std::future::pending().await;
    }
    let device = daemon.registers();
    loop {
        let next = {
            let mut state = device.state.lock().await;
            device.round(&mut state, &daemon, false).await
        };
        let next = next.map(|t| t.since(Time::from_nanos(now())));
        // Where nothing was carried since, it is looked at again.
        let wait = tokio::time::sleep(next.unwrap_or(AGAIN).max(SETTLE));
        tokio::select! {
            () = wait => {}
            () = daemon.shared().registration.changed.notified() => {
                tokio::time::sleep(SETTLE).await;
            }
        }
    }
}
