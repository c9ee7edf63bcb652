//! Hosts behind the device: their connections over the bond, and the kill switch, which keeps them
//! from leaving past it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use braid_api::LanStatus;
use braid_api::config;
use braid_forward::carrier::next_session;
use braid_forward::divert::{self, Divert};
use braid_forward::inbound::{Open, Tproxy};
use braid_forward::tunnel::device::{State, Tunnel};
use braid_forward::{Carrier, Reach};
use braid_mpquic::Session;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::DaemonError;
use crate::engine::Result;
use crate::state::lock;

/// Seconds between two lines of the log about destinations that cannot be connected.
const TOLD_EVERY: u64 = 10;

/// Diversion of the hosts' connections, while a daemon runs.
pub(crate) struct Lan {
    config: config::Lan,
    divert: Arc<Mutex<Divert>>,
    serving: JoinHandle<()>,
    /// Follows what the proxy reaches.
    following: Option<JoinHandle<()>>,
    open: Open,
    packets: Packets,
}

/// Packets of hosts that belong to no connection of TCP.
enum Packets {
    /// Carried through the tunnel, if that is up.
    Tunnel(watch::Receiver<State>, JoinHandle<()>),
    /// Refused, and why.
    Refused(String),
}

impl Packets {
    /// Makes a tunnel over the session that there is.
    async fn start(sessions: Option<watch::Receiver<Option<Session>>>) -> Self {
        let Some(sessions) = sessions else {
            return Self::Refused("no engine carries packets".to_owned());
        };
        match Tunnel::create().await {
            Ok(tunnel) => Self::Tunnel(tunnel.state(), tokio::spawn(tunnel.run(sessions))),
            Err(e) => {
                tracing::warn!("packets of hosts beside TCP are refused: {e}");
                Self::Refused(e.to_string())
            }
        }
    }

    /// Returns the device's addresses in the tunnel, or why there is none.
    fn status(&self) -> (Vec<IpAddr>, Option<String>) {
        let state = match self {
            Self::Refused(why) => return (vec![], Some(why.clone())),
            Self::Tunnel(state, _) => state.borrow().clone(),
        };
        match state {
            State::Up(given) => {
                let why = unforwarded(given.v6.is_some());
                let why = (!why.is_empty()).then(|| {
                    let what = match (&*why, given.v6) {
                        (["net.ipv6.conf.all.forwarding"], _) => "those of IPv6 end here",
                        (["net.ipv4.ip_forward"], Some(_)) => "those of IPv4 end here",
                        _ => "they end here",
                    };
                    format!("{what}: sysctl -w {}=1", why.join("=1 "))
                });
                (given.iter().collect(), why)
            }
            State::Waiting => (
                vec![],
                Some("there is no session with the proxy".to_owned()),
            ),
            State::Down(why) => (vec![], Some(why)),
        }
    }

    async fn close(self) {
        if let Self::Tunnel(_, running) = self {
            running.abort();
            let _ = running.await;
        }
    }
}

/// Refuses IPv6 of hosts while the proxy of the session that there is reaches none.
async fn follow_reach(mut sessions: watch::Receiver<Option<Session>>, divert: Arc<Mutex<Divert>>) {
    let mut before = None;
    while let Some(session) = next_session(&mut sessions, before.as_ref()).await {
        // A session that ends before it answers is followed by another.
        if let Ok(reach) = Reach::ask(&session).await {
            if !reach.v6 {
                tracing::info!("IPv6 of hosts is refused: the proxy reaches none");
            }
            if let Err(e) = lock(&divert).divert_v6(reach.v6) {
                tracing::warn!("[lan]: {e}");
            }
        }
        before = Some(session);
    }
}

/// Lists the settings by which this machine does not forward, as it has to for packets of others.
pub(crate) fn unforwarded(v6: bool) -> Vec<&'static str> {
    let all = [
        (true, "net.ipv4.ip_forward"),
        (v6, "net.ipv6.conf.all.forwarding"),
    ];
    let is_off = |name: &str| {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(file).is_ok_and(|v| v.trim() == "0")
    };
    let wanted = all.into_iter().filter(|(wanted, _)| *wanted);
    wanted.map(|(_, name)| name).filter(|n| is_off(n)).collect()
}

/// Puts the kill switch in place, or takes it back, as is configured. It stays when the daemon ends.
pub(crate) fn guard(lan: Option<&config::Lan>) -> Result<()> {
    let Some(lan) = lan else {
        // Not in the way of whoever has no hosts, nor rights.
        if divert::is_kill_switch_engaged().unwrap_or(false) {
            tracing::warn!(
                "hosts stay cut off by the kill switch of an earlier configuration: braid down takes \
                 it back"
            );
        }
        return Ok(());
    };
    let done = match lan.kill_switch {
        true => divert::engage_kill_switch(&lan.interfaces),
        false => divert::release_kill_switch(),
    };
    done.map_err(|e| failed("set the kill switch", &e))
}

/// Takes the kill switch and the route of the diversion back. Says what it did.
pub(crate) async fn take_back() -> Result<String> {
    let engaged = divert::is_kill_switch_engaged()
        .and_then(|engaged| divert::release_kill_switch().map(|()| engaged));
    let engaged = engaged.map_err(|e| failed("take the kill switch back", &e))?;
    let removed = divert::remove_routes().await;
    removed.map_err(|e| failed("remove the route of the diversion", &e))?;
    Ok(match engaged {
        true => "the kill switch is taken back: hosts leave as the routes of this machine say",
        false => "there is no kill switch: hosts leave as the routes of this machine say",
    }
    .into())
}

fn failed(what: &str, e: &dyn std::error::Error) -> DaemonError {
    DaemonError::Failed(format!("[lan]: {what}: {e}"))
}

impl Lan {
    /// Diverts the hosts' connections to a carrier, and their packets into a tunnel over sessions.
    pub(crate) async fn start(
        config: config::Lan,
        carrier: Arc<dyn Carrier>,
        sessions: Option<watch::Receiver<Option<Session>>>,
    ) -> Result<Self> {
        let listener = Tproxy::listen()
            .map_err(|e| failed("listen for connections of hosts (IP_TRANSPARENT)", &e))?;
        let divert = Divert::start(&config.interfaces, listener.ports(), config.dns).await;
        let divert = divert.map_err(|e| failed("divert connections of hosts", &e))?;
        let divert = Arc::new(Mutex::new(divert));
        let follow = |sessions| tokio::spawn(follow_reach(sessions, Arc::clone(&divert)));
        let following = sessions.clone().map(follow);
        let packets = Packets::start(sessions).await;
        tracing::info!(
            "connections of hosts on {} go over the bond{}",
            config.interfaces.join(", "),
            match config.kill_switch {
                true => "; what cannot is refused, also without a daemon (braid down ends that)",
                false => "; what cannot leaves past it (kill_switch = false)",
            }
        );
        let open = listener.open();
        let serving = tokio::spawn(listener.serve(carrier, Throttle::default().told()));
        Ok(Self {
            config,
            divert,
            serving,
            following,
            open,
            packets,
        })
    }

    /// Describes it.
    pub(crate) fn status(&self) -> LanStatus {
        let (tunnel, no_packets) = self.packets.status();
        LanStatus {
            interfaces: self.config.interfaces.clone(),
            kill_switch: self.config.kill_switch,
            connections: self.open.count() as u64,
            tunnel,
            no_packets,
        }
    }

    /// Ends it. The kill switch stays.
    pub(crate) async fn close(self) -> Result<()> {
        self.serving.abort();
        if let Some(following) = self.following {
            following.abort();
            let _ = following.await;
        }
        self.packets.close().await;
        drop(self.divert);
        let closed = divert::remove_routes().await;
        if self.config.kill_switch {
            tracing::info!(
                "hosts on {} are cut off until a daemon runs again: braid down lets them leave as the \
                 routes say",
                self.config.interfaces.join(", ")
            );
        }
        closed.map_err(|e| failed("end the diversion of hosts", &e))
    }
}

/// Log of destinations that cannot be connected: hosts ask for many.
#[derive(Clone)]
struct Throttle(Arc<Told>);

struct Told {
    begin: Instant,
    /// Seconds since the begin before which nothing is told.
    next: AtomicU64,
    suppressed: AtomicU64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self(Arc::new(Told {
            begin: Instant::now(),
            next: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        }))
    }
}

impl Throttle {
    fn told(self) -> impl Fn(String) + Clone + Send + 'static {
        move |what| {
            let told = &self.0;
            let now = told.begin.elapsed().as_secs();
            let next = told.next.load(Ordering::Relaxed);
            if now < next {
                told.suppressed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            told.next.store(now + TOLD_EVERY, Ordering::Relaxed);
            match told.suppressed.swap(0, Ordering::Relaxed) {
                0 => tracing::warn!("{what}"),
                n => tracing::warn!("{what} (and {n} others before)"),
            }
        }
    }
}
