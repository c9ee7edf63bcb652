//! Hosts behind the device: their connections over the bond, and the kill switch, which keeps them
//! from leaving past it.

mod direct;
mod listeners;
mod throttle;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use braid_api::{LanStatus, RuleCount, RuleStatus, Rules, config};
use braid_core::class::DEFAULT_NUMBER;
use braid_core::rules::{Outcome, Rule};
use braid_forward::carrier::next_session;
use braid_forward::divert::{self, Counts, DEFAULT, Direct, Divert, Numbered, Steered};
use braid_forward::tunnel::device::{Classes, State, Tunnel};
use braid_forward::{Carrier, Reach};
use braid_mpquic::Session;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::DaemonError;
use crate::config::Config;
use crate::engine::Result;
use crate::shared::Shared;
use crate::state::{lock, now};
use listeners::Listeners;

/// Diversion of the hosts' connections, while a daemon runs.
pub(crate) struct Lan {
    config: config::Lan,
    divert: Arc<Mutex<Divert>>,
    direct: Arc<tokio::sync::Mutex<Direct>>,
    listeners: Mutex<Listeners>,
    /// Followers of the proxy's reach and of the accesses that work.
    following: Vec<JoinHandle<()>>,
    packets: Packets,
}

/// Packets of hosts that belong to no connection of TCP.
enum Packets {
    /// Carried through the tunnel, if that is up.
    Tunnel(watch::Receiver<State>, Classes, JoinHandle<()>),
    /// Refused, and why.
    Refused(String),
}

impl Packets {
    /// Makes a tunnel with interfaces for these classes, over the session that there is. What comes
    /// out of it has to be filtered already.
    async fn start(
        sessions: Option<watch::Receiver<Option<Session>>>,
        classes: &BTreeSet<u8>,
    ) -> Self {
        let Some(sessions) = sessions else {
            return Self::Refused("no engine carries packets".to_owned());
        };
        match Tunnel::create().await {
            Ok(tunnel) => {
                let (state, there) = (tunnel.state(), tunnel.classes());
                let told = |why: String| tracing::warn!("{why}");
                let running = tokio::spawn(tunnel.run(sessions, told));
                let packets = Self::Tunnel(state, there, running);
                packets.carry(classes).await;
                packets
            }
            Err(e) => {
                tracing::warn!("packets of hosts beside TCP are refused: {e}");
                Self::Refused(e.to_string())
            }
        }
    }

    /// Carries those of these classes apart from now on, where the kernel lets it.
    async fn carry(&self, classes: &BTreeSet<u8>) {
        let Self::Tunnel(_, there, _) = self else {
            return;
        };
        let all: Vec<u8> = classes.iter().copied().collect();
        if let Err(e) = there.add(&all).await {
            tracing::warn!("packets of a class go as the default's: {e}");
        }
    }

    /// Returns the device's addresses in the tunnel, or why there is none.
    fn status(&self) -> (Vec<IpAddr>, Option<String>) {
        let state = match self {
            Self::Refused(why) => return (vec![], Some(why.clone())),
            Self::Tunnel(state, ..) => state.borrow().clone(),
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
        if let Self::Tunnel(.., running) = self {
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
    /// Diverts the hosts' connections to a carrier, and their packets into a tunnel over sessions, but
    /// for what the rules say otherwise.
    pub(crate) async fn start(
        lan: config::Lan,
        config: &Config,
        carrier: Arc<dyn Carrier>,
        sessions: Option<watch::Receiver<Option<Session>>>,
        shared: &Arc<Shared>,
    ) -> Result<Self> {
        let classes = classes(config);
        let mut listeners = Listeners::new(carrier);
        let ports = listeners.make(&classes)?;
        let mut direct = Direct::default();
        let mut exits = shared.exits.subscribe();
        // Those that are known already count.
        exits.mark_changed();
        // It refuses until the first exits are known.
        let number = |name: &str| config.class_number(name);
        let steered = direct.add(&config.rules, number).await;
        let steered = steered.map_err(|e| failed("make the ways of [[rule]] direct", &e))?;
        let divert = Divert::start(&lan.interfaces, ports, lan.dns, steered).await;
        let divert = divert.map_err(|e| failed("divert connections of hosts", &e))?;
        let divert = Arc::new(Mutex::new(divert));
        let direct = Arc::new(tokio::sync::Mutex::new(direct));
        let follow = |sessions| tokio::spawn(follow_reach(sessions, Arc::clone(&divert)));
        let mut following: Vec<_> = sessions.clone().map(follow).into_iter().collect();
        let turning = direct::follow(exits, Arc::clone(&direct), Arc::clone(shared));
        following.push(tokio::spawn(turning));
        let packets = Packets::start(sessions, &classes).await;
        tracing::info!(
            "connections of hosts on {} go over the bond{}",
            lan.interfaces.join(", "),
            match lan.kill_switch {
                true => "; what cannot is refused, also without a daemon (braid down ends that)",
                false => "; what cannot leaves past it (kill_switch = false)",
            }
        );
        Ok(Self {
            config: lan,
            divert,
            direct,
            listeners: Mutex::new(listeners),
            following,
            packets,
        })
    }

    /// Describes it.
    pub(crate) fn status(&self) -> LanStatus {
        let (tunnel, no_packets) = self.packets.status();
        LanStatus {
            interfaces: self.config.interfaces.clone(),
            kill_switch: self.config.kill_switch,
            connections: lock(&self.listeners).open() as u64,
            tunnel,
            no_packets,
        }
    }

    /// Goes by the rules of a configuration from now on; or, if that fails, by those that there were.
    pub(crate) async fn set_rules(&self, config: &Config, shared: &Shared) -> Result<()> {
        let mut direct = self.direct.lock().await;
        let before = self.steered();
        let before = before.iter().map(|s| (&s.rule, s.class));
        if before.eq(config.rules.iter().map(|r| (r, class_of(r, config)))) {
            return Ok(());
        }
        let classes = classes(config);
        let ports = lock(&self.listeners).make(&classes)?;
        self.packets.carry(&classes).await;
        // Ways are there before packets are sent on them, and for as long.
        let number = |name: &str| config.class_number(name);
        let set = match direct.add(&config.rules, number).await {
            Ok(steered) => lock(&self.divert).set_rules(steered, ports),
            Err(e) => Err(e.into()),
        };
        let kept = direct.keep(&self.steered()).await;
        // New ways are led as the others.
        shared.exits.send_modify(|_| {});
        let done = set.and(kept.map_err(divert::DivertError::from));
        done.map_err(|e| failed("set the rules", &e))
    }

    /// Lists the rules in force.
    fn steered(&self) -> Vec<Steered> {
        let divert = lock(&self.divert);
        divert.rules().iter().map(|r| r.steered.clone()).collect()
    }

    /// Describes the rules, and what has met them.
    pub(crate) async fn rules(&self) -> Result<Rules> {
        let direct = self.direct.lock().await;
        let mut divert = lock(&self.divert);
        let counts = divert.counts();
        let counts = counts.map_err(|e| failed("read what has met the rules", &e))?;
        let unforwarded = unforwarded(true);
        let placed = divert.rules().iter().zip(1..);
        let rules = placed.map(|(Numbered { number, steered }, place)| {
            let rule = &steered.rule;
            let by = match &rule.outcome {
                Outcome::Direct(accesses) => direct.by(accesses),
                Outcome::Class(_) | Outcome::Block => [None, None],
            };
            RuleStatus {
                title: rule.title(place),
                note: direct::note(&rule.outcome, by, &unforwarded),
                by: by.map(|name| name.map(str::to_owned)),
                count: count(&counts, *number),
                rule: rule.clone(),
            }
        });
        Ok(Rules {
            t_ns: now(),
            rules: rules.collect(),
            default: count(&counts, DEFAULT),
            classes: vec![],
        })
    }

    /// Ends it. The kill switch stays.
    pub(crate) async fn close(self) -> Result<()> {
        lock(&self.listeners).close();
        for following in self.following {
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

/// Returns the number of the class that a rule puts flows into.
fn class_of(rule: &Rule, config: &Config) -> u8 {
    match &rule.outcome {
        Outcome::Class(name) => config.class_number(name),
        Outcome::Direct(_) | Outcome::Block => DEFAULT_NUMBER,
    }
}

/// Returns the numbers of the classes that rules name, and of the default.
fn classes(config: &Config) -> BTreeSet<u8> {
    let named = config.rules.iter().map(|r| class_of(r, config));
    named.chain([DEFAULT_NUMBER]).collect()
}

fn count(all: &Counts, number: u8) -> RuleCount {
    let count = all.get(&number).copied().unwrap_or_default();
    RuleCount {
        flows: count.flows,
        up_packets: count.up.packets,
        up_bytes: count.up.bytes,
        down_packets: count.down.packets,
        down_bytes: count.down.bytes,
    }
}
