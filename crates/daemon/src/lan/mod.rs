//! Hosts behind the device, and its own programs: their connections over the bond, and the kill
//! switch, which keeps them from leaving past it.

mod direct;
mod dns;
mod domains;
mod listeners;
mod programs;
mod throttle;
mod units;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use braid_api::config::{Host, Lan as Hosts};
use braid_api::{LanStatus, RuleCount, RuleStatus, Rules};
use braid_core::class::DEFAULT_NUMBER;
use braid_core::rules::{Outcome, Rule};
use braid_forward::carrier::next_session;
use braid_forward::divert::{
    self, Counts, DEFAULT, Direct, Divert, Numbered, Programs, Setting, Steered,
};
use braid_forward::tunnel::device::{Classes, State, Tunnel};
use braid_forward::{Answers, Carrier, Reach};
use braid_mpquic::Session;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::DaemonError;
use crate::config::{self, Config};
use crate::engine::Result;
use crate::shared::Shared;
use crate::state::{lock, now};
use listeners::Listeners;

/// Diversion of connections of hosts and programs, while a daemon runs.
pub(crate) struct Lan {
    hosts: Option<Hosts>,
    programs: Option<config::Programs>,
    divert: Arc<Mutex<Divert>>,
    direct: Arc<tokio::sync::Mutex<Direct>>,
    listeners: Mutex<Listeners>,
    /// Followers of the proxy's reach, of the tunnel and of the accesses that work.
    following: Vec<JoinHandle<()>>,
    packets: Packets,
}

/// Packets that belong to no connection of TCP.
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
        answers: Answers,
    ) -> Self {
        let Some(sessions) = sessions else {
            return Self::Refused("no engine carries packets".to_owned());
        };
        match Tunnel::create().await {
            Ok(tunnel) => {
                let (state, there) = (tunnel.state(), tunnel.classes());
                let tunnel = tunnel.with_answers(answers);
                let told = |why: String| tracing::warn!("{why}");
                let running = tokio::spawn(tunnel.run(sessions, told));
                let packets = Self::Tunnel(state, there, running);
                packets.carry(classes).await;
                packets
            }
            Err(e) => {
                tracing::warn!("packets beside TCP are refused: {e}");
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

    /// Returns the device's addresses in the tunnel, or why there is none; with `forwards`, why packets
    /// of hosts end here.
    fn status(&self, forwards: bool) -> (Vec<IpAddr>, Option<String>) {
        let state = match self {
            Self::Refused(why) => return (vec![], Some(why.clone())),
            Self::Tunnel(state, ..) => state.borrow().clone(),
        };
        match state {
            State::Up(given) => {
                let why = match forwards {
                    true => unforwarded(given.v6.is_some()),
                    false => vec![],
                };
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

/// Refuses IPv6 while the proxy of the session that there is reaches none.
async fn follow_reach(mut sessions: watch::Receiver<Option<Session>>, divert: Arc<Mutex<Divert>>) {
    let mut before = None;
    while let Some(session) = next_session(&mut sessions, before.as_ref()).await {
        // A session that ends before it answers is followed by another.
        if let Ok(reach) = Reach::ask(&session).await {
            if !reach.v6 {
                tracing::info!("IPv6 is refused: the proxy reaches none");
            }
            if let Err(e) = lock(&divert).divert_v6(reach.v6) {
                tracing::warn!("divert IPv6: {e}");
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
pub(crate) fn guard(hosts: Option<&Hosts>, programs: Option<config::Programs>) -> Result<()> {
    if hosts.is_none() && programs.is_none() {
        // Not in the way of whoever has no hosts, nor rights.
        if divert::is_kill_switch_engaged().unwrap_or(false) {
            tracing::warn!(
                "hosts and programs stay cut off by the kill switch of an earlier configuration: braid \
                 down takes it back"
            );
        }
        return Ok(());
    }
    let hosts = hosts.filter(|h| h.kill_switch);
    let hosts = hosts.map(|h| h.interfaces.clone()).unwrap_or_default();
    let programs = programs.is_some_and(|p| p.kill_switch);
    let done = match hosts.is_empty() && !programs {
        false => divert::engage_kill_switch(&hosts, programs),
        true => divert::release_kill_switch(),
    };
    done.map_err(|e| failed("set the kill switch", &e))
}

/// Takes the kill switch and the routes of the diversion back. Says what it did.
pub(crate) async fn take_back() -> Result<String> {
    let engaged = divert::is_kill_switch_engaged()
        .and_then(|engaged| divert::release_kill_switch().map(|()| engaged));
    let engaged = engaged.map_err(|e| failed("take the kill switch back", &e))?;
    let removed = divert::remove_routes().await;
    removed.map_err(|e| failed("remove the route of the diversion", &e))?;
    let released = divert::release_own().await;
    released.map_err(|e| failed("remove the routes of programs", &e))?;
    Ok(match engaged {
        true => "the kill switch is taken back: hosts and programs leave as the routes of this machine say",
        false => "there is no kill switch: hosts and programs leave as the routes of this machine say",
    }
    .into())
}

fn failed(what: &str, e: &dyn std::error::Error) -> DaemonError {
    DaemonError::Failed(format!("{what}: {e}"))
}

impl Lan {
    /// Diverts connections to a carrier, and packets into a tunnel over sessions, but for what the rules
    /// say otherwise.
    pub(crate) async fn start(
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
        let divert = Divert::start(&setting(config), ports, steered).await;
        let divert = divert.map_err(|e| failed("divert connections", &e))?;
        let divert = Arc::new(Mutex::new(divert));
        let direct = Arc::new(tokio::sync::Mutex::new(direct));
        if config.programs.is_some() {
            units::look(&divert)?;
        }
        let follow = |sessions| tokio::spawn(follow_reach(sessions, Arc::clone(&divert)));
        let mut following: Vec<_> = sessions.clone().map(follow).into_iter().collect();
        let turning = direct::follow(
            exits,
            Arc::clone(&direct),
            Arc::clone(&divert),
            Arc::clone(shared),
        );
        following.push(tokio::spawn(turning));
        if config.programs.is_some() {
            following.push(tokio::spawn(units::follow(Arc::clone(&divert))));
        }
        if let Some(routes) = lock(&divert).own_routes() {
            let keep = programs::keep_routes(routes, Arc::clone(shared));
            following.push(tokio::spawn(keep));
        }
        if let Some(carrier) = shared.conversion.carrier() {
            let falls_back = shared.conversion.falls_back();
            let has_sessions = sessions.is_some();
            following.extend(dns::serve(carrier, falls_back, has_sessions, &divert)?);
        }
        following.push(tokio::spawn(domains::follow(Arc::clone(&divert))));
        let packets = Packets::start(sessions, &classes, domains::listen(&divert)).await;
        if let (Some(_), Packets::Tunnel(state, ..)) = (config.programs, &packets) {
            let follow = programs::follow_tunnel(state.clone(), Arc::clone(&divert));
            following.push(tokio::spawn(follow));
        }
        let else_ = |kill_switch| match kill_switch {
            true => "what cannot is refused, also without a daemon (braid down ends that)",
            false => "what cannot leaves past it (kill_switch = false)",
        };
        if let Some(hosts) = &config.lan {
            tracing::info!(
                "connections of hosts on {} go over the bond; {}",
                hosts.interfaces.join(", "),
                else_(hosts.kill_switch)
            );
        }
        if let Some(programs) = config.programs {
            tracing::info!(
                "what programs of this machine send goes over the bond; {}",
                else_(programs.kill_switch)
            );
        }
        Ok(Self {
            hosts: config.lan.clone(),
            programs: config.programs,
            divert,
            direct,
            listeners: Mutex::new(listeners),
            following,
            packets,
        })
    }

    /// Describes it.
    pub(crate) fn status(&self) -> LanStatus {
        let (tunnel, no_packets) = self.packets.status(self.hosts.is_some());
        let hosts = self.hosts.as_ref();
        LanStatus {
            interfaces: hosts.map(|h| h.interfaces.clone()).unwrap_or_default(),
            kill_switch: hosts.is_some_and(|h| h.kill_switch),
            programs: self.programs.is_some(),
            programs_kill_switch: self.programs.is_some_and(|p| p.kill_switch),
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
        done.map_err(|e| failed("set the rules", &e))?;
        units::look(&self.divert)
    }

    /// Lets what programs send to these addresses of the proxy leave past the bond.
    pub(crate) async fn reach(&self, proxy: &[IpAddr]) -> Result<()> {
        let routes = lock(&self.divert).own_routes();
        match routes {
            Some(routes) => programs::lay(routes, proxy).await,
            None => Ok(()),
        }
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
            // What programs of this machine send is not forwarded.
            let forwards = self.hosts.is_some() && rule.descriptor.is_of_hosts();
            let unforwarded = if forwards { &*unforwarded } else { &[] };
            let by = match &rule.outcome {
                Outcome::Direct(accesses) => direct.by(accesses),
                Outcome::Class(_) | Outcome::Block => [None, None],
            };
            RuleStatus {
                title: rule.title(place),
                note: direct::note(&rule.outcome, by, unforwarded),
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
        let mut closed = divert::remove_routes().await;
        let mut cut_off = vec![];
        match self.programs {
            Some(programs) if programs.kill_switch => {
                cut_off.push("programs of this machine".to_owned());
            }
            Some(_) => closed = closed.and(divert::release_own().await),
            None => {}
        }
        if let Some(hosts) = self.hosts.filter(|h| h.kill_switch) {
            cut_off.push(format!("hosts on {}", hosts.interfaces.join(", ")));
        }
        if !cut_off.is_empty() {
            tracing::info!(
                "{} are cut off until a daemon runs again: braid down lets them leave as the routes say",
                cut_off.join(" and ")
            );
        }
        closed.map_err(|e| failed("end the diversion", &e))
    }
}

/// Returns what is diverted.
fn setting(config: &Config) -> Setting {
    let hosts = config.lan.as_ref();
    let is_name = |h: &Host| matches!(h, Host::Name(_));
    Setting {
        lan: hosts.map(|h| h.interfaces.clone()).unwrap_or_default(),
        dns: hosts.is_some_and(|h| h.dns),
        own: config.programs.map(|p| Programs {
            past: config.proxy.clone(),
            refuse: p.kill_switch,
            resolves_past: config.hosts.iter().any(is_name),
        }),
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
