//! Estimator `probe`: short transfers of plain TCP over one access at a time (paper 000, sections
//! 5 and 6.5; `docs/internals/control.md`).
//!
//! The device orders, asks and measures uplinks ([`client`]); the proxy serves and measures
//! downlinks ([`server`], [`gate`]). [`wire`] has their messages, [`transfer`] the data.

mod book;
mod budget;
mod client;
mod gate;
mod peers;
mod rest;
mod server;
#[cfg(test)]
mod tests;
mod transfer;
mod wire;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::Role;
use braid_api::config::{Estimator, Transfers};
use braid_core::Time;
use braid_core::control::PerDirection;
use braid_core::control::{Direction, ProbeResult, ProbeSettings};
use braid_core::estimate::ProbeOrder;
use ipnet::IpNet;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::task::{Steered, apply};
use crate::DaemonError;
use crate::config::{Config, access_at};
use crate::mptcp_check::{self, Hands};
use crate::places::Places;
use crate::state::{lock, now};

use peers::Peers;
use server::{Owner, Server, Work};

pub(super) use book::Book;
pub(crate) use client::Origin;
pub(crate) use wire::{FIRST, LEN};

/// Interval at which the device looks whether a probe is due, while accesses are probed.
const TICK: Duration = Duration::from_secs(1);
/// Time after which a proxy tries again to listen where it could not.
const RETRY: Duration = Duration::from_secs(10);
/// Refusals that a proxy waits for to be read, at one time.
const REFUSALS: usize = 64;
/// Connections that ask for a transfer and wait for their turn; a transfer has 33 at most.
const QUEUE: usize = 128;

/// End whose accesses are probed.
pub(crate) trait Probed: Steered {
    /// Returns where to probe an access of this device from; `None` where it has no address.
    fn origin(&self, access: &str) -> impl Future<Output = Option<Origin>> + Send;

    /// Returns the addresses from which devices have connections or sessions now, at the proxy.
    /// Connections to `port`, that of checks and transfers, are none that anything is probed for.
    fn peers(&self, port: u16) -> BTreeSet<IpAddr>;

    /// Returns the payload bytes that all accesses have carried, both directions.
    fn carried(&self) -> u64;

    /// Whether others listen at the port of `[probe]`, and hand over who asks for a transfer.
    fn hands_over(&self) -> bool;

    /// Returns where connections to that port are handed to.
    fn hands(&self) -> Hands;
}

/// Configuration of the probes of an end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    role: Role,
    transfers: Transfers,
    /// Port of `[probe]`.
    port: u16,
    /// Place of it at each address of the proxy, if probes are answered at all.
    at: Vec<SocketAddr>,
    /// Accesses with the estimator `probe`, where there is anything to decide by it.
    accesses: Vec<String>,
    /// Addresses of devices on each access, at the proxy.
    networks: Vec<(IpNet, String)>,
}

impl Plan {
    pub(super) fn new(role: Role, config: &Config) -> Self {
        let probed = config.accesses.iter();
        let probed = probed.filter(|a| a.estimator == Estimator::Probe);
        let port = config.probe.port;
        let answered = config.proxy.iter().filter(|_| config.probe.enabled);
        let at = answered.map(|a| SocketAddr::new(*a, port));
        Self {
            role,
            transfers: config.control.probe.clone(),
            port,
            at: at.collect(),
            accesses: probed.map(|a| a.name.clone()).collect(),
            // What anybody may register is no reason to serve a transfer.
            networks: Config::networks(&config.accesses),
        }
    }

    /// Returns the settings of the loop: how each access is probed.
    pub(super) fn settings(config: &Config) -> ProbeSettings {
        let t = &config.control.probe;
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        ProbeSettings {
            flows: t.flows,
            duration_ms: ms(t.duration),
            interval_ms: ms(t.interval),
            directions: PerDirection {
                // The proxy says by itself whether it goes by downlinks.
                down: true,
                up: config.control.policy.decides(),
            },
            bytes_per_probe: t.probe_bytes,
            bytes_per_hour: t.hour_bytes,
            bytes_per_day: t.day_bytes,
            bytes_per_month: t.month_bytes,
        }
    }

    /// Returns where transfers are to be asked for.
    fn places(&self) -> Vec<SocketAddr> {
        match self.transfers.serve {
            true => self.at.clone(),
            false => Vec::new(),
        }
    }

    /// Returns the access of a device's address.
    fn access_of(&self, address: IpAddr) -> Option<String> {
        access_at(&self.networks, address).map(str::to_owned)
    }

    /// Whether a device has anything to probe.
    pub(super) fn probes(&self) -> bool {
        self.role == Role::Device && !self.accesses.is_empty()
    }
}

/// Connection that asks for a transfer, or brings a flow of one.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Connection itself.
    pub(crate) stream: TcpStream,
    /// Address at its other end.
    pub(crate) from: IpAddr,
    /// First message, which was read from it.
    pub(crate) message: [u8; LEN],
}

/// Connections that ask for transfers, from whoever listens at the port of `[probe]`.
#[derive(Debug)]
pub(super) struct Intake {
    to: mpsc::Sender<Asked>,
    from: tokio::sync::Mutex<mpsc::Receiver<Asked>>,
    pub(super) plan: watch::Sender<Plan>,
}

impl Intake {
    pub(super) fn new(plan: Plan) -> Self {
        let (to, from) = mpsc::channel(QUEUE);
        Self {
            to,
            from: tokio::sync::Mutex::new(from),
            plan: watch::channel(plan).0,
        }
    }

    /// Returns where to hand connections whose first byte is [`FIRST`].
    pub(super) fn hands(&self) -> mpsc::Sender<Asked> {
        self.to.clone()
    }
}

/// Probes accesses, or serves transfers, for ever.
pub(crate) async fn run<S: Probed>(state: Arc<S>) -> DaemonError {
    let role = state.control().intake.plan.borrow().role;
    match role {
        Role::Device => probe(&*state).await,
        Role::Proxy => serve(state).await,
    }
}

async fn probe<S: Probed>(state: &S) -> DaemonError {
    let control = state.control();
    let mut plan = control.intake.plan.subscribe();
    let mut rest = rest::Rest::new(Time::from_nanos(now()));
    loop {
        let now_in_force = plan.borrow_and_update().clone();
        let changed = async { plan.changed().await.is_ok() };
        if !now_in_force.probes() {
            changed.await;
            continue;
        }
        tokio::select! {
            _ = changed => continue,
            () = tokio::time::sleep(TICK) => {}
        }
        let at = Time::from_nanos(now());
        rest.look(at, state.carried());
        let rests = rest.is_over(at, now_in_force.transfers.rest);
        control.rests(rests);
        if rests {
            continue;
        }
        // Where accesses cannot be looked at, the other task says so.
        let Ok(look) = state.look() else {
            continue;
        };
        let (decided, order) = control.order(at, look.states);
        apply(state, decided).await;
        if let Some(order) = order {
            one(state, &order).await;
            rest.probed(Time::from_nanos(now()));
        }
    }
}

/// Runs one probe and takes its result in.
async fn one<S: Probed>(state: &S, order: &ProbeOrder) {
    let outcome = match state.origin(&order.access).await {
        Some(origin) => client::probe(&origin, order, client::PATIENCE).await,
        None => client::Outcome {
            bytes: 0,
            rate: Err("the access has no address that reaches the proxy".to_owned()),
        },
    };
    let result = ProbeResult {
        access: order.access.clone(),
        direction: order.direction,
        bytes: outcome.bytes,
        rate: outcome.rate.as_ref().ok().copied(),
    };
    let at = Time::from_nanos(now());
    let decided = state.control().probed(at, result, outcome.rate.err());
    apply(state, decided).await;
}

/// Proxy of a daemon.
struct Proxy<S> {
    state: Arc<S>,
    peers: Mutex<Peers>,
}

impl<S: Probed> Owner for Proxy<S> {
    fn transfers(&self) -> Transfers {
        self.state.control().intake.plan.borrow().transfers.clone()
    }

    fn access(&self, address: IpAddr) -> Option<String> {
        let control = self.state.control();
        control.intake.plan.borrow().access_of(address)
    }

    fn is_connected(&self, address: IpAddr) -> bool {
        let port = self.state.control().intake.plan.borrow().port;
        let at = Time::from_nanos(now());
        lock(&self.peers).contains(address, at, || self.state.peers(port))
    }

    fn wants(&self, access: &str, direction: Direction) -> bool {
        let control = self.state.control();
        // How a device shares what it sends is its own affair.
        let probed = || {
            let plan = control.intake.plan.borrow();
            plan.accesses.iter().any(|a| a == access)
        };
        direction == Direction::Up || control.decides() && probed()
    }

    fn is_full(&self, access: &str) -> bool {
        self.state.control().is_full(access)
    }

    async fn probed(&self, result: ProbeResult) {
        let at = Time::from_nanos(now());
        let weights = self.state.control().probed(at, result, None);
        apply(&*self.state, weights).await;
    }
}

async fn serve<S: Probed>(state: Arc<S>) -> DaemonError {
    let intake = &state.control().intake;
    let mut plan = intake.plan.subscribe();
    let mut from = intake.from.lock().await;
    let server = Arc::new(Server::new(client::PATIENCE));
    let owner = Arc::new(Proxy {
        state: Arc::clone(&state),
        peers: Mutex::default(),
    });
    let mut open = JoinSet::new();
    let mut refused = Places::new(REFUSALS);
    let mut listening = JoinSet::new();
    let mut at = Vec::new();
    loop {
        let mut wanted = plan.borrow_and_update().places();
        if state.hands_over() {
            wanted.clear();
        }
        if wanted != at {
            // The ports are free once their tasks have ended.
            listening.shutdown().await;
            for at in &wanted {
                listening.spawn(listen(*at, state.hands()));
            }
            at = wanted;
        }
        tokio::select! {
            Ok(()) = plan.changed() => {}
            Some(asked) = from.recv() => {
                let address = asked.from;
                match server.take(asked, &*owner) {
                    Some(Work::Transfer(transfer)) => {
                        let owner = Arc::clone(&owner);
                        open.spawn(async move { transfer.run(&*owner).await });
                    }
                    Some(Work::Refusal(refusal)) => refused.take(address, refusal.tell()),
                    None => {}
                }
            }
            Some(_) = open.join_next() => {}
            else => return DaemonError::Failed("serve transfers: the daemon ends".into()),
        }
    }
}

/// Listens for transfers at `at`, for ever.
async fn listen(at: SocketAddr, hands: Hands) {
    let mut told = None;
    loop {
        match mptcp_check::listen(at, false).map_err(|e| e.to_string()) {
            Ok(listener) => mptcp_check::answer(listener, hands.clone()).await,
            Err(e) if told.as_ref() == Some(&e) => {}
            Err(e) => {
                tracing::warn!("serve transfers ([control.probe] serve): {e}");
                told = Some(e);
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}
