//! Brings what the kernel has set to what it should be, whenever anything changes.

mod liveness;
mod notes;
mod order;
mod progress;
mod reconcile;
mod steps;
#[cfg(test)]
mod tests;
mod trials;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use braid_access::links::Hosts;
use braid_access::liveness::{Detector, Outcome};
use braid_access::probe::client::{Answers, Back};
use braid_access::probe::contact::{Contact, Lost};
use braid_access::settings::Settings;
use braid_api::{EventKind, Role};
use braid_core::Time;
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::manage::memory::Memory;
use braid_mptcp::manage::{Plan, View};
use braid_mptcp::repair::priority_repeat::PriorityRepeat;
use braid_mptcp::repair::receive_window::ReceiveWindow;
use braid_mptcp::repair::stripping::Stripping;
use braid_mptcp::repair::subflow_reopen::SubflowReopen;

use super::endpoints::Endpoints;
use super::samples;
use crate::config::Config;
use crate::engine::tcp::observer;
use crate::engine::{Result, Setup};
use crate::kernel::Kernel;
use crate::mptcp_check::Verdict;
use crate::shared::Shared;
use crate::state::now;
use crate::takeover::next_hops::Routes;

use liveness::Liveness;
pub(crate) use observer::Happened;

/// Receivers of the answers to probes and of the verdicts of checks.
pub(crate) struct Heard {
    pub(crate) answers: Answers,
    pub(crate) verdicts: tokio::sync::mpsc::Receiver<Verdict>,
}

/// The path manager of one end.
pub(crate) struct Manager {
    shared: Arc<Shared>,
    config: Config,
    /// As configured, and as changed by requests since.
    settings: Settings,
    kernel: Kernel,
    memory: Memory,
    routes: Routes,
    liveness: Liveness,
    repair: Repair,
    view: View,
    plan: Plan,
    retry: Option<Time>,
    /// The id of the endpoint that was added last.
    last_id: u8,
    /// Reasons of rejected steps that were reported.
    said: BTreeSet<String>,
}

/// Knowledge about connections, and what was done for them.
#[derive(Default)]
struct Repair {
    /// Subflows that have ended while their connection and access live.
    subflow_reopen: SubflowReopen,
    progress: progress::Progress,
    /// Peers that have not applied MP_PRIO.
    priority_repeat: PriorityRepeat,
    /// Receive buffers that subflows need.
    receive_window: ReceiveWindow,
    /// Servers to which MPTCP does not pass.
    stripping: Stripping,
}

impl Manager {
    /// Opens what it needs in the network namespace that is to be managed, inside a runtime. It
    /// takes up what a killed one with the same control socket has left.
    pub(crate) fn new(setup: &Setup<'_>) -> Result<(Self, Heard)> {
        let pm = match setup.shared.role {
            Role::Device => Some(Endpoints::open()?),
            Role::Proxy => None,
        };
        let (liveness, heard) = Liveness::new();
        let mut settings = setup.config.settings();
        for access in &mut settings.accesses {
            let mut wanted = setup.wanted.iter();
            if let Some(wanted) = wanted.find(|w| w.name == access.name) {
                access.backup = wanted.backup;
                access.enabled = wanted.enabled;
                access.priority = wanted.priority;
            }
        }
        let (routes, known) = Routes::beside(setup.control);
        let manager = Self {
            shared: Arc::clone(setup.shared),
            settings,
            config: setup.config.clone(),
            kernel: Kernel::open(pm)?,
            memory: Memory {
                known,
                ..Memory::default()
            },
            routes,
            liveness,
            repair: Repair::default(),
            view: View::default(),
            plan: Plan::default(),
            retry: None,
            last_id: 0,
            said: BTreeSet::new(),
        };
        Ok((manager, heard))
    }

    /// Tells whoever follows the changes of routes to which hosts they matter.
    pub(crate) fn watched_by(&mut self, hosts: Hosts) {
        self.kernel.watched_by(hosts);
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The kernel as it was seen last.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn detector(&self) -> &Detector {
        &self.liveness.detector
    }

    /// Whether it follows and repairs.
    pub(crate) fn recovers(&self) -> bool {
        self.config.manager.recover && self.kernel.pm.is_some()
    }

    /// Sets up.
    pub(crate) async fn begin(&mut self) -> Result<Vec<Happened>> {
        if self.shared.role == Role::Proxy {
            return Ok(vec![]);
        }
        self.view = self.kernel.view(&self.config.proxy).await?;
        if !self.recovers() {
            observer::all_there(&self.settings, &self.view)?;
        }
        self.settle(true).await?;
        match self.memory.refused.iter().next() {
            // What cannot be set up at the start is not to be waited for.
            Some(r) if !self.recovers() => Err(self.refusal(r)),
            _ => Ok(vec![]),
        }
    }

    /// Looks at the kernel and does what is to be done.
    pub(crate) async fn reconcile(&mut self) -> Result<Vec<Happened>> {
        if self.shared.role == Role::Proxy {
            return Ok(vec![]);
        }
        let states = self.plan.accesses.clone();
        let before = self.look_and_settle(self.recovers()).await?;
        let mut happened = observer::moves(&self.settings, &before, &self.view);
        happened.extend(observer::changes(&self.settings, &self.plan, &states));
        Ok(happened)
    }

    /// When [`Manager::tick`] is wanted next.
    pub(crate) fn due(&self) -> Time {
        let health = match self.recovers() {
            true => self.liveness.detector.due().min(self.repair.progress.due()),
            false => Time::MAX,
        };
        health.min(self.retry.unwrap_or(Time::MAX))
    }

    /// A subflow is missed, and whether it is being opened only a list of all sockets tells.
    pub(crate) fn misses(&self) -> bool {
        !self.repair.subflow_reopen.is_empty()
    }

    /// Something was heard that makes a look at the sockets worthwhile.
    pub(crate) fn hurry(&mut self) {
        self.liveness.detector.hurry(Time::from_nanos(now()));
    }

    /// Takes what came back to a probe.
    pub(crate) fn answer(&mut self, address: IpAddr, back: Back, at: Time) {
        if matches!(back, Back::Answer(_) | Back::Size(..) | Back::Subflows(..)) {
            self.liveness.contact.answered();
        }
        match back {
            Back::Answer(number) => {
                if self.liveness.detector.answer(address, number, at).is_some() {
                    self.answered(address, at);
                }
            }
            Back::Tcp(number, rtt) => {
                if self
                    .liveness
                    .detector
                    .accepted(address, number, rtt, at)
                    .is_some()
                {
                    self.answered(address, at);
                }
            }
            Back::Size(number, length) => {
                self.answered(address, at);
                if self.repair.progress.size(address, number, length, at) {
                    self.liveness.detector.hurry(at);
                }
            }
            Back::Subflows(number, verdicts) => {
                self.answered(address, at);
                self.told_of_subflows(address, number, &verdicts);
            }
            Back::Refused => {
                self.liveness.contact.refused();
                self.liveness.detector.refused(address, at);
            }
        }
    }

    /// Takes what was found out about MPTCP on an address; says whether that is
    /// news.
    pub(crate) fn verdict(&mut self, address: IpAddr, stripped: bool) -> bool {
        self.answered(address, Time::from_nanos(now()));
        self.liveness.verdict(address, stripped)
    }

    /// Returns the loss of contact with the proxy, if there is one.
    pub(crate) fn lost_contact(&self) -> Option<Lost> {
        self.liveness.contact.lost(Time::from_nanos(now()))
    }

    /// Judges the accesses by their subflows, and probes; on a `look`, also what their
    /// connections lack and want. The sockets were read when the kernel had counted a tick at
    /// `ticked`.
    pub(crate) async fn tick(
        &mut self,
        sockets: &[TcpSocket],
        ticked: Time,
        look: bool,
    ) -> Result<Vec<Happened>> {
        let t = Time::from_nanos(now());
        let mut changed = self.retry.is_some_and(|r| r <= t);
        let mut happened = Vec::new();
        if self.recovers() {
            self.liveness
                .detector
                .sample(&samples::samples(sockets, t.since(ticked)), t);
            for outcome in self.liveness.detector.tick(t) {
                match outcome {
                    Outcome::Probe { address, number } => {
                        if self.liveness.prober.send(address, number) {
                            self.liveness.contact.asked(t);
                        }
                    }
                    Outcome::TcpProbe {
                        address,
                        to,
                        number,
                    } => self.tcp_probe(address, to, number),
                    Outcome::Silent { address } | Outcome::Alive { address } => {
                        let silent = matches!(outcome, Outcome::Silent { .. });
                        happened.extend(self.one_of_several(address, silent));
                        changed = true;
                    }
                }
            }
            if look {
                self.repair.receive_window.look(&samples::looks(sockets), t);
                changed |= self.look_at_trials(sockets, t);
                happened.extend(self.look_for_stripping(sockets, t));
                self.look_at_arrivals(sockets, t);
            }
            happened.extend(self.measure(t).await);
        }
        // First: an access that has died is not to wait for what others need.
        if changed {
            match self.reconcile().await {
                Ok(more) => happened.extend(more),
                Err(e) => {
                    self.retry = Some(t + reconcile::RETRY);
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

    /// Tells of an address that is silent, or no more, where its access has others that work: the
    /// state of the access does not show it then.
    fn one_of_several(&self, address: IpAddr, silent: bool) -> Option<Happened> {
        let mut uses = self.plan.uses.iter();
        let access = uses.find(|u| u.address == address)?.access;
        let dead = self.liveness.detector.silent();
        let mut others = self.plan.uses.iter();
        let works = others
            .any(|u| u.access == access && u.address != address && !dead.contains_key(&u.address));
        let name = self.settings.accesses.get(access)?.name.clone();
        let what = EventKind::AddressState { address, silent };
        works.then_some((Some(name), what))
    }

    fn tcp_probe(&mut self, address: IpAddr, to: SocketAddr, number: u32) {
        let mut uses = self.plan.uses.iter();
        let by = uses.find(|u| u.address == address && u.routed);
        if let (Some(by), true) = (by, self.config.probe.enabled && self.config.probe.tcp) {
            self.liveness
                .probe_by_tcp(address, &by.interface, to, number);
        }
    }

    /// Forgets what has come back: another proxy has to answer.
    fn forget_answers(&mut self) {
        self.liveness.contact = Contact::default();
        self.liveness.detector.unheard();
        self.memory.known.trials.unheard();
    }

    /// Goes by other addresses of the proxy.
    pub(crate) async fn reach(&mut self, proxy: Vec<IpAddr>) -> Result<Vec<Happened>> {
        let before = self.plan.accesses.clone();
        self.settings.proxy.clone_from(&proxy);
        if self.config.proxy != proxy {
            self.forget_answers();
        }
        self.config.proxy = proxy;
        self.view = self.kernel.view(&self.config.proxy).await?;
        self.settle(true).await?;
        Ok(observer::changes(&self.settings, &self.plan, &before))
    }

    /// Goes by another configuration. What requests changed is as configured again.
    pub(crate) async fn adopt(&mut self, config: Config) -> Result<()> {
        self.settings = config.settings();
        let asked = |c: &Config| (c.proxy.clone(), c.probe.enabled, c.probe.port);
        if asked(&self.config) != asked(&config) {
            self.forget_answers();
        }
        self.config = config;
        if self.shared.role == Role::Device {
            self.view = self.kernel.view(&self.config.proxy).await?;
            self.settle(true).await?;
            if !self.recovers() {
                let refused = self.memory.refused.iter();
                refused.for_each(|r| tracing::warn!("{}", self.refusal(r)));
            }
        }
        Ok(())
    }
}
