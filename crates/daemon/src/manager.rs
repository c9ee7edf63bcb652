//! Brings what the kernel has set to what it should be, whenever anything changes.

mod notes;
mod order;
mod progress;
mod settle;
mod steps;
#[cfg(test)]
mod tests;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use braid_api::{AccessState, Engine as Kind, EventKind, Role};
use braid_core::Time;
use braid_link::Hosts;
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::manage::demand::Demand;
use braid_mptcp::manage::health::{Detector, Outcome};
use braid_mptcp::manage::memory::Memory;
use braid_mptcp::manage::missing::Missing;
use braid_mptcp::manage::stripping::Stripping;
use braid_mptcp::manage::unheard::Unheard;
use braid_mptcp::manage::{Plan, Settings, View};

use super::arp::Arp;
use super::checker::{Checker, Verdict};
use super::config::Config;
use super::endpoints::Endpoints;
use super::kernel::Kernel;
use super::knocker::Knocker;
use super::prober::{Answers, Back, Prober};
use super::requests::Requests;
use super::routes::Routes;
use super::state::now;
use super::{DaemonError, events, samples};

/// Event: the name of the access that it concerns, if any, and its kind.
pub(super) type Happened = (Option<String>, EventKind);

/// Receivers of the answers to probes and of the verdicts of checks.
pub(super) struct Heard {
    pub(super) answers: Answers,
    pub(super) verdicts: tokio::sync::mpsc::Receiver<Verdict>,
}

/// The path manager of one end.
pub(super) struct Manager {
    role: Role,
    file: PathBuf,
    config: Config,
    /// As configured, and as changed by requests since.
    settings: Settings,
    requests: Requests,
    kernel: Kernel,
    memory: Memory,
    routes: Routes,
    arp: Arp,
    detector: Detector,
    missing: Missing,
    progress: progress::Progress,
    unheard: Unheard,
    demand: Demand,
    prober: Prober,
    knocker: Knocker,
    checker: Checker,
    /// The addresses that are watched, with their interfaces.
    probed: BTreeMap<IpAddr, String>,
    stripped: BTreeSet<IpAddr>,
    stripping: Stripping,
    view: View,
    plan: Plan,
    retry: Option<Time>,
    /// The id of the endpoint that was added last.
    last_id: u8,
    /// Reasons of rejected steps that were reported.
    said: BTreeSet<String>,
}

impl Manager {
    /// Inside a runtime, in the namespace that is to be managed. It takes up what a killed one
    /// with the same control socket has left.
    pub(super) fn new(
        role: Role,
        file: &Path,
        config: Config,
        control: &Path,
    ) -> Result<(Self, Heard), DaemonError> {
        let pm = match (role, config.engine) {
            (Role::Device, Kind::Mptcp) => Some(Endpoints::open()?),
            _ => None,
        };
        let (prober, answers) = Prober::new();
        let (checker, verdicts) = Checker::new();
        let mut settings = config.settings();
        let requests = Requests::beside(control);
        requests.go_on(&mut settings);
        let (routes, memory) = Routes::beside(control);
        let manager = Self {
            role,
            file: file.to_owned(),
            settings,
            requests,
            config,
            kernel: Kernel::open(pm)?,
            memory,
            routes,
            arp: Arp::routed(control),
            detector: Detector::default(),
            missing: Missing::default(),
            progress: progress::Progress::default(),
            unheard: Unheard::default(),
            demand: Demand::default(),
            knocker: Knocker::new(prober.tells()),
            prober,
            checker,
            probed: BTreeMap::new(),
            stripped: BTreeSet::new(),
            stripping: Stripping::default(),
            view: View::default(),
            plan: Plan::default(),
            retry: None,
            last_id: 0,
            said: BTreeSet::new(),
        };
        Ok((manager, Heard { answers, verdicts }))
    }

    /// Tells whoever follows the changes of routes to which hosts they matter.
    pub(super) fn watched_by(&mut self, hosts: Hosts) {
        self.kernel.hosts = hosts;
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The kernel as it was seen last.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn detector(&self) -> &Detector {
        &self.detector
    }

    /// Whether it follows and repairs.
    pub(super) fn recovers(&self) -> bool {
        self.config.manager.recover && self.kernel.pm.is_some()
    }

    /// Sets up.
    pub(super) async fn begin(&mut self) -> Result<Vec<Happened>, DaemonError> {
        if self.role == Role::Proxy {
            return Ok(vec![]);
        }
        self.view = self.kernel.view(&self.config.proxy).await?;
        if !self.recovers() {
            for a in &self.settings.accesses {
                let there = self.view.interfaces.iter();
                if a.interface.is_name() && !there.clone().any(|i| a.interface.matches(&i.name)) {
                    return Err(DaemonError::Failed(format!(
                        "access \"{}\": no interface \"{}\" in this network namespace",
                        a.name, a.interface
                    )));
                }
            }
        }
        self.settle(true).await?;
        match self.memory.refused.iter().next() {
            // What cannot be set up at the start is not to be waited for.
            Some(r) if !self.recovers() => Err(self.refusal(r)),
            _ => Ok(vec![]),
        }
    }

    /// Looks at the kernel and does what is to be done.
    pub(super) async fn reconcile(&mut self) -> Result<Vec<Happened>, DaemonError> {
        if self.role == Role::Proxy {
            return Ok(vec![]);
        }
        let states = self.plan.accesses.clone();
        let before = self.look_and_settle(self.recovers()).await?;
        let mut happened = self.told(&before);
        happened.extend(self.changed_since(&states));
        Ok(happened)
    }

    /// Returns an event for each access that is in another state than before.
    pub(super) fn changed_since(&self, before: &[(AccessState, String)]) -> Vec<Happened> {
        let mut happened = Vec::new();
        for (i, (state, why)) in self.plan.accesses.iter().enumerate() {
            let changed = before.get(i).is_some_and(|(was, _)| was != state);
            if changed {
                let (state, why) = (*state, why.clone());
                let name = self.settings.accesses[i].name.clone();
                happened.push((Some(name), EventKind::AccessState { state, why }));
            }
        }
        happened
    }

    /// Changes of links and addresses that concern an access.
    fn told(&self, before: &View) -> Vec<Happened> {
        let name = |index: u32| {
            let of = |v: &View| v.interface(index).map(|i| i.name.clone());
            of(&self.view).or_else(|| of(before))
        };
        let access = |index: u32, what: &EventKind| {
            let interface = name(index)?;
            let mut all = self.settings.accesses.iter();
            let access = all.find(|a| a.interface.matches(&interface))?;
            match what {
                EventKind::AddressAdded { address } | EventKind::AddressRemoved { address } => {
                    let mine = access.address.is_none_or(|a| a == *address);
                    mine.then(|| access.name.clone())
                }
                _ => Some(access.name.clone()),
            }
        };
        events::between(before, &self.view)
            .into_iter()
            .filter_map(|(index, what)| Some((Some(access(index, &what)?), what)))
            .collect()
    }

    /// When [`Manager::tick`] is wanted next.
    pub(super) fn due(&self) -> Time {
        let health = match self.recovers() {
            true => self.detector.due().min(self.progress.due()),
            false => Time::MAX,
        };
        health.min(self.retry.unwrap_or(Time::MAX))
    }

    /// A subflow is missed, and whether it is being opened only a list of all sockets tells.
    pub(super) fn misses(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Something was heard that makes a look at the sockets worthwhile.
    pub(super) fn hurry(&mut self) {
        self.detector.hurry(Time::from_nanos(now()));
    }

    /// Takes what came back to a probe.
    pub(super) fn answer(&mut self, address: IpAddr, back: Back, at: Time) {
        match back {
            Back::Answer(number) => {
                if self.detector.answer(address, number, at).is_some() {
                    self.answered(address, at);
                }
            }
            Back::Tcp(number, rtt) => {
                if self.detector.accepted(address, number, rtt, at).is_some() {
                    self.answered(address, at);
                }
            }
            Back::Size(number, length) => {
                if self.progress.size(address, number, length, at) {
                    self.detector.hurry(at);
                }
            }
            Back::Subflows(number, verdicts) => self.told_of_subflows(address, number, &verdicts),
            Back::Refused => self.detector.refused(address, at),
        }
    }

    /// Takes what was found out about MPTCP on an address; says whether that is
    /// news.
    pub(super) fn verdict(&mut self, address: IpAddr, stripped: bool) -> bool {
        match stripped {
            true => self.stripped.insert(address),
            false => self.stripped.remove(&address),
        }
    }

    /// Judges the accesses by their subflows, and probes; on a `look`, also what their
    /// connections lack and want. The sockets were read when the kernel had counted a tick at
    /// `ticked`.
    pub(super) async fn tick(
        &mut self,
        sockets: &[TcpSocket],
        ticked: Time,
        look: bool,
    ) -> Result<Vec<Happened>, DaemonError> {
        let t = Time::from_nanos(now());
        let mut changed = self.retry.is_some_and(|r| r <= t);
        let mut happened = Vec::new();
        if self.recovers() {
            self.detector
                .sample(&samples::samples(sockets, t.since(ticked)), t);
            for outcome in self.detector.tick(t) {
                match outcome {
                    Outcome::Probe { address, number } => self.prober.send(address, number),
                    Outcome::Knock {
                        address,
                        to,
                        number,
                    } => self.knock(address, to, number),
                    Outcome::Silent { .. } | Outcome::Alive { .. } => changed = true,
                }
            }
            if look {
                self.demand.look(&samples::looks(sockets), t);
                changed |= self.look_at_trials(sockets, t);
                happened = self.look_for_stripping(sockets, t);
                self.look_at_arrivals(sockets, t);
            }
            happened.extend(self.measure(t).await);
        }
        // First: an access that has died is not to wait for what others need.
        if changed {
            match self.reconcile().await {
                Ok(more) => happened.extend(more),
                Err(e) => {
                    self.retry = Some(t + settle::RETRY);
                    return Err(e);
                }
            }
        } else if look && self.recovers() {
            let (stalled, more) = self.look_for_stalls(sockets, t.since(ticked), t);
            happened.extend(more);
            self.open_again(sockets, &stalled, t).await;
            self.ask_again(&samples::subflows(sockets), t).await;
        }
        Ok(happened)
    }

    fn knock(&mut self, address: IpAddr, to: SocketAddr, number: u32) {
        let mut uses = self.plan.uses.iter();
        let by = uses.find(|u| u.address == address && u.routed);
        if let (Some(by), true) = (by, self.config.probe.enabled && self.config.probe.knock) {
            self.knocker.send(address, &by.interface, to, number);
        }
    }

    /// Reads the file again, which changes nothing yet.
    pub(super) fn read_again(&self) -> Result<Config, DaemonError> {
        let config = Config::load(&self.file, self.role)?;
        let fixed = match () {
            () if config.engine != self.config.engine => "the engine",
            () if config.pin != self.config.pin => "`pin` of [scheduler]",
            () if config.metrics != self.config.metrics => "`listen` of [metrics]",
            () => return Ok(config),
        };
        Err(DaemonError::Config(format!(
            "{}: {fixed} cannot change while it runs: restart the daemon",
            self.file.display()
        )))
    }

    /// Goes by another configuration. What requests changed is as configured again.
    pub(super) async fn adopt(&mut self, config: Config) -> Result<(), DaemonError> {
        self.settings = config.settings();
        self.config = config;
        self.keep();
        if self.role == Role::Device {
            self.view = self.kernel.view(&self.config.proxy).await?;
            self.settle(true).await?;
            if !self.recovers() {
                let refused = self.memory.refused.iter();
                refused.for_each(|r| eprintln!("braid: {}", self.refusal(r)));
            }
        }
        Ok(())
    }
}
