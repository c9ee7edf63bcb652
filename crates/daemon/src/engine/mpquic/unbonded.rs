//! Way out of what is not bonded, where this engine serves alone: planned and set as beside
//! MPTCP ([`braid_access::default_route`]), by what the paths tell of the accesses.
//!
//! Sockets of this engine are bound to their interfaces and need no rule. So nothing is set until
//! something has to be led around an access. From then on the rules by source are there as well:
//! what begins on an access goes on there once the main table is right again.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_access::kernel::Kernel;
use braid_access::links::RouteEvents;
use braid_access::memory::Memory;
use braid_access::plan::{Plan, plan};
use braid_access::reconcile::steps;
use braid_access::settings::{Condition, Settings};
use braid_access::view::{Rule, View};
use braid_core::Time;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Mpquic, Steered};
use crate::DaemonError;
use crate::config::Config;
use crate::engine::Result;
use crate::engine::tcp::settle;
use crate::state::{lock, now};
use crate::takeover::next_hops::Routes;

/// Time in which a path from a new address has to be validated.
const GRACE: Duration = Duration::from_secs(1);
/// Pause before a step that was rejected is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(3600);
/// Schedulers that go by the order of the accesses.
const ORDERED: [&str; 2] = ["active-standby", "priority-based"];

/// Rules and routes of this engine.
pub(super) struct Unbonded {
    setter: tokio::sync::Mutex<Setter>,
    changes: Mutex<Option<RouteEvents>>,
    /// Told when a path or an access has changed.
    pub(super) changed: Notify,
    /// Accesses that are used instead of others, and rejected steps, each in a sentence.
    notes: Mutex<Vec<String>>,
}

/// State of what is set.
struct Setter {
    settings: Settings,
    kernel: Kernel,
    memory: Memory,
    routes: Routes,
    silence: Silence,
    /// Reason of the step that was rejected last, if it still is.
    rejected: Option<String>,
}

/// Judgement of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Address that has still to show that it works.
    New(Time),
    Works,
    /// No path from any address is usable: it is not known whose fault that is.
    Lost,
    Silent(Time),
}

/// Judgement of addresses by the paths from them.
#[derive(Debug, Default)]
struct Silence(BTreeMap<IpAddr, Known>);

impl Silence {
    /// Takes every address that paths are tried from, and whether one is usable; returns what is
    /// wrong with addresses. While no path is usable, no other address is found silent.
    fn look(&mut self, addresses: &[(IpAddr, bool)], now: Time) -> BTreeMap<IpAddr, Condition> {
        let before = std::mem::take(&mut self.0);
        let others_work = addresses.iter().any(|(_, usable)| *usable);
        for (address, usable) in addresses {
            let known = match before.get(address) {
                _ if *usable => Known::Works,
                Some(Known::Silent(since)) => Known::Silent(*since),
                _ if !others_work => Known::Lost,
                None | Some(Known::Lost) => Known::New(now),
                Some(Known::Works) => Known::Silent(now),
                Some(Known::New(t)) if now.since(*t) >= GRACE => Known::Silent(*t),
                Some(Known::New(t)) => Known::New(*t),
            };
            self.0.insert(*address, known);
        }
        let silent = |(a, known): (&IpAddr, &Known)| match known {
            Known::Silent(since) => Some((*a, Condition::Silent { since: *since })),
            Known::New(_) | Known::Works | Known::Lost => None,
        };
        self.0.iter().filter_map(silent).collect()
    }

    /// When to look again, whatever happens.
    fn due(&self) -> Option<Time> {
        let due = self.0.values().filter_map(|known| match known {
            Known::New(t) => Some(*t + GRACE),
            Known::Works | Known::Lost | Known::Silent(_) => None,
        });
        due.min()
    }
}

/// Plans rules and routes, none as long as there were none and none is needed, and exits.
fn planned(
    settings: &Settings,
    view: &View,
    memory: &Memory,
    conditions: &BTreeMap<IpAddr, Condition>,
) -> Plan {
    let plan = plan(settings, view, memory, conditions);
    let began = view.rules.iter().any(Rule::is_ours);
    match settings.steers_unbonded && (began || !plan.steered.is_empty()) {
        true => plan,
        false => Plan {
            exits: plan.exits,
            ..Plan::default()
        },
    }
}

/// Returns the settings of a configuration, with the accesses as they are steered.
fn settings(base: &Settings, steered: &Steered, proxies: Vec<IpAddr>) -> Settings {
    let mut settings = base.clone();
    settings.proxy = proxies;
    let ordered = ORDERED.contains(&&*steered.scheduling.scheduler);
    for access in &mut settings.accesses {
        access.enabled = !steered.disabled.contains(&access.name);
        let mut all = steered.accesses.iter();
        if let Some(a) = all.find(|a| a.name == access.name) {
            access.backup = a.backup;
            access.excluded = a.weight == 0.0;
            access.priority = ordered.then(|| u16::try_from(a.priority).unwrap_or(u16::MAX));
        }
    }
    settings
}

impl Unbonded {
    /// Opens what it needs in the calling thread's namespace, inside a runtime.
    pub(super) fn new(config: &Config, control: &Path) -> Result<Self> {
        // Before anything is read, so that no change falls between.
        let changes = RouteEvents::open()?;
        let mut kernel = Kernel::open()?;
        kernel.hosts = changes.hosts();
        let (routes, memory) = Routes::beside(control);
        let setter = Setter {
            settings: config.settings(),
            kernel,
            memory,
            routes,
            silence: Silence::default(),
            rejected: None,
        };
        Ok(Self {
            setter: tokio::sync::Mutex::new(setter),
            changes: Mutex::new(Some(changes)),
            changed: Notify::new(),
            notes: Mutex::default(),
        })
    }

    pub(super) fn notes(&self) -> Vec<String> {
        lock(&self.notes).clone()
    }

    /// Goes by another configuration.
    pub(super) async fn adopt(&self, config: &Config) {
        self.setter.lock().await.settings = config.settings();
    }

    /// Takes back all rules and routes.
    pub(super) async fn take_back(&self) -> Result<()> {
        let mut setter = self.setter.lock().await;
        let view = setter.kernel.view(&setter.settings.proxy).await?;
        match view.rules.iter().any(Rule::is_ours) {
            true => {
                let Setter { routes, memory, .. } = &mut *setter;
                routes.end(memory, &view);
            }
            false => setter.routes.forget(),
        }
        setter.set(&view, &Plan::default()).await
    }
}

impl Setter {
    /// Sets rules and routes, whatever is rejected of them.
    async fn set(&self, view: &View, plan: &Plan) -> Result<()> {
        let mut done = Ok(());
        for step in steps(view, &plan.rules, &plan.routes) {
            let taken = self.kernel.take(&step).await;
            done = done.and(taken.map_err(DaemonError::from));
        }
        done
    }

    /// Looks at the kernel, and does what is to be done; returns the plan, and what was rejected of it.
    async fn reconcile(
        &mut self,
        settings: &Settings,
        addresses: &[(IpAddr, bool)],
    ) -> Result<(Plan, Result<()>)> {
        let view = self.kernel.view(&settings.proxy).await?;
        self.memory.learn(&view, &settings.proxy);
        if settings.steers_unbonded {
            self.routes.keep(&self.memory);
        }
        let conditions = self.silence.look(addresses, Time::from_nanos(now()));
        let plan = planned(settings, &view, &self.memory, &conditions);
        let set = self.set(&view, &plan).await;
        Ok((plan, set))
    }
}

impl Mpquic {
    /// Leads what is not bonded by the accesses that work now. Returns after what time that is to
    /// be looked at again, if nothing has changed until then.
    pub(super) async fn lead_unbonded(&self) -> Duration {
        let Some(unbonded) = &self.unbonded else {
            return LONGEST;
        };
        let mut setter = unbonded.setter.lock().await;
        let steered = lock(&self.steered).clone();
        let proxies = lock(&self.proxies).clone();
        let settings = settings(&setter.settings, &steered, proxies);
        let done = setter.reconcile(&settings, &self.addresses(&steered)).await;
        let (notes, done) = match done {
            Ok((plan, done)) => {
                self.shared.lead_out(&settings, &plan.exits);
                (plan.steered, done)
            }
            Err(e) => (vec![], Err(e)),
        };
        let rejected = done.err().map(|e| e.to_string());
        // Where a step was rejected, they do not all lead as they say.
        let notes = match rejected {
            Some(_) => vec![],
            None => notes,
        };
        if let Some(why) = rejected
            .as_ref()
            .filter(|w| setter.rejected.as_ref() != Some(w))
        {
            tracing::warn!("what is not bonded: {why}; it is tried again every second");
        }
        *lock(&unbonded.notes) = notes.into_iter().chain(rejected.clone()).collect();
        setter.rejected = rejected;
        let again = setter.silence.due();
        let again = again.map_or(LONGEST, |t| t.since(Time::from_nanos(now())));
        match setter.rejected {
            Some(_) => again.min(RETRY),
            None => again,
        }
    }

    /// Returns the address of each access that is up and may be used, and whether a path from it
    /// is usable.
    fn addresses(&self, steered: &Steered) -> Vec<(IpAddr, bool)> {
        let Some(device) = lock(&self.device).clone() else {
            return vec![];
        };
        let sessions = self.paths();
        let paths = || sessions.iter().flat_map(|(_, paths)| paths);
        let enabled = steered.accesses.iter().map(|a| &a.name);
        let enabled = enabled.filter(|n| !steered.disabled.contains(n));
        let of = |name: &String| {
            let link = device.link_of(name).ok().filter(|l| l.up)?;
            let usable = paths().any(|p| p.usable && p.access.as_ref() == Some(name));
            Some((link.address?, usable))
        };
        enabled.filter_map(of).collect()
    }
}

/// Follows interfaces, routes, rules and paths until that fails: says why.
pub(super) async fn follow(state: Arc<Mpquic>) -> DaemonError {
    let Some(unbonded) = &state.unbonded else {
        return std::future::pending().await;
    };
    let Some(mut changes) = lock(&unbonded.changes).take() else {
        return std::future::pending().await;
    };
    loop {
        let again = Instant::now() + state.lead_unbonded().await;
        tokio::select! {
            heard = changes.next() => {
                if let Err(e) = heard {
                    return DaemonError::Failed(format!("{e}: routes cannot be followed"));
                }
            }
            () = unbonded.changed.notified() => {}
            () = tokio::time::sleep_until(again) => {}
        }
        settle().await;
    }
}

#[cfg(test)]
mod tests;
