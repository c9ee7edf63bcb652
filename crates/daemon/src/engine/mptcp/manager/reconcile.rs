//! Plans, takes the steps, and stands by what was refused: it is tried again, said, and not
//! kept where a request brought it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_access::plan::Use;
use braid_access::settings::AccessSpec;
use braid_api::Engine as Kind;
use braid_core::Time;
use braid_mptcp::manage::diff::{Op, diff};
use braid_mptcp::manage::rejected::{Refusal, Refused};
use braid_mptcp::manage::{Plan, View, plan, plan_once};

use super::Manager;
use crate::DaemonError;
use crate::arp::ask_neighbours;
use crate::state::now;

/// How long until steps that the kernel refused are tried again, at first and
/// after that.
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(20);
pub(crate) const RETRY: Duration = Duration::from_secs(1);

impl Manager {
    /// Plans for the view, and takes the steps if `apply`.
    pub(crate) async fn settle(&mut self, apply: bool) -> Result<(), DaemonError> {
        self.memory.known.learn(&self.view, &self.config.proxy);
        if self.recovers() {
            self.routes.keep(&self.memory.known);
        }
        self.plan_anew();
        if apply && self.kernel.pm.is_some() {
            let before = self.memory.refused.clone();
            let ops = diff(&self.view, &self.plan);
            self.memory.refused = self.take(&ops).await;
            self.expect(&ops);
            if !ops.is_empty() {
                self.view = self.kernel.view(&self.config.proxy).await?;
            }
            if self.memory.refused != before {
                self.make_way().await?;
            }
            self.stand_by(&before);
        }
        if self.recovers() {
            let of = |u: &Use| (u.address, u.interface.clone());
            let probed: BTreeMap<_, _> =
                self.plan.uses.iter().filter(|u| u.routed).map(of).collect();
            let addresses = self.liveness.watch(probed, &self.config);
            self.rest();
            self.watch_progress(&addresses).await;
            self.answer_arp().await;
        }
        Ok(())
    }

    /// Sets how often what is at rest is probed; radios of accesses that wait may sleep.
    fn rest(&mut self) {
        let probe = self.config.probe;
        let every = Duration::from_secs(probe.idle_interval.into());
        let waits = |u: &&Use| {
            let spec = self.settings.accesses.get(u.access);
            self.plan.standby.contains(&u.access) || spec.is_some_and(AccessSpec::is_backup)
        };
        let waiting: BTreeSet<IpAddr> = self
            .plan
            .uses
            .iter()
            .filter(waits)
            .map(|u| u.address)
            .collect();
        let rests = |a| (probe.idle_backups || !waiting.contains(&a)).then_some(every);
        self.liveness.detector.rest(rests);
        let proxy = &self.config.proxy;
        let asked = |a: IpAddr| probe.enabled && proxy.iter().any(|p| p.is_ipv4() == a.is_ipv4());
        self.liveness.detector.first_contact(asked);
    }

    /// Makes each interface that serves answer ARP for itself alone.
    async fn answer_arp(&mut self) {
        let serving = self.plan.uses.iter().filter(|u| u.routed);
        let serving = serving.filter(|u| u.address.is_ipv4());
        let names = serving.clone().map(|u| u.interface.clone()).collect();
        let new = self.shared.answer_arp(Kind::Mptcp, names);
        let new: BTreeSet<u32> = serving
            .filter(|u| new.contains(&u.interface))
            .map(|u| u.ifindex)
            .collect();
        if !new.is_empty()
            && let Err(e) = ask_neighbours(self.kernel.handle(), &new).await
        {
            tracing::warn!("ask the neighbours again: {e}");
        }
    }

    /// Plans for the view, and tells by which exits the accesses lead out.
    fn plan_anew(&mut self) {
        self.plan = self.planned(&self.view);
        self.shared.lead_out(&self.settings, &self.plan.exits);
    }

    /// As things are, and by what was refused last.
    pub(crate) fn planned(&self, view: &View) -> Plan {
        match self.recovers() {
            true => plan(
                &self.settings,
                view,
                &self.memory,
                &self.liveness.conditions(),
            ),
            false => plan_once(&self.settings, view, &self.memory),
        }
    }

    /// Others take the place of accesses that were refused, or give it back.
    async fn make_way(&mut self) -> Result<(), DaemonError> {
        self.plan_anew();
        let mut ops = diff(&self.view, &self.plan);
        ops.retain(|op| !self.memory.refused.has(op));
        if !ops.is_empty() {
            let refused = self.take(&ops).await;
            self.memory.refused.extend(refused);
            self.expect(&ops);
            self.view = self.kernel.view(&self.config.proxy).await?;
        }
        Ok(())
    }

    /// Peers are to hear of what they were asked.
    fn expect(&mut self, ops: &[Op]) {
        for op in ops {
            if let Op::SetBackup(e, backup) = op {
                let t = Time::from_nanos(now());
                self.repair.priority_repeat.asked(e.address, *backup, t);
            }
        }
    }

    /// Schedules another try of rejected steps, for as long as they are rejected.
    fn stand_by(&mut self, before: &Refused) {
        let refused = &self.memory.refused;
        self.said.retain(|s| refused.iter().any(|r| r.why == *s));
        if refused.is_empty() || !self.recovers() {
            self.retry = None;
            return;
        }
        // At first it may be a change that was overtaken by the next.
        let wait = match refused.since(before) {
            Some(_) => RETRY_FIRST,
            None => RETRY,
        };
        self.retry = Some(Time::from_nanos(now()) + wait);
        let again = refused.iter().filter(|r| before.has(&r.op));
        let unsaid: Vec<_> = again.filter(|r| !self.said.contains(&r.why)).collect();
        for r in &unsaid {
            tracing::warn!("{}; it is tried again every second", self.refusal(r));
        }
        let unsaid: Vec<_> = unsaid.iter().map(|r| r.why.clone()).collect();
        self.said.extend(unsaid);
    }

    /// Describes a rejected step: of which access, what was attempted, and what the kernel said.
    pub(crate) fn refusal(&self, r: &Refusal) -> DaemonError {
        let interface = r.ifindex(&self.view).and_then(|i| self.view.interface(i));
        let of = interface.and_then(|n| {
            let mut uses = self.plan.uses.iter();
            let used = uses.find(|u| u.ifindex == n.index).map(|u| u.access);
            let mut all = self.settings.accesses.iter();
            match used {
                Some(access) => all.nth(access),
                None => all.find(|a| a.interface.matches(&n.name)),
            }
        });
        let of = of.map(|a| format!("access \"{}\": ", a.name));
        DaemonError::Failed(format!(
            "{}the kernel refused to {}",
            of.unwrap_or_default(),
            r.why
        ))
    }

    /// Takes the steps to what the settings are now. Where the kernel refuses one of them,
    /// the accesses are as `before` again, and nothing of it is kept.
    pub(crate) async fn apply_or_return_to(
        &mut self,
        before: Vec<AccessSpec>,
    ) -> Result<(), DaemonError> {
        let known = self.memory.refused.clone();
        let applied = self.look_and_settle(true).await;
        let new = self.memory.refused.since(&known);
        let done = applied.and_then(|_| new.map_or(Ok(()), |r| Err(self.refusal(r))));
        if done.is_err() {
            self.settings.accesses = before;
            // What this meets is tried again.
            if self.look_and_settle(true).await.is_err() && self.recovers() {
                self.retry = Some(Time::from_nanos(now()) + RETRY);
            }
        }
        done
    }

    /// By what the kernel has now; returns what was seen of it before.
    pub(crate) async fn look_and_settle(&mut self, apply: bool) -> Result<View, DaemonError> {
        let from = Time::from_nanos(now());
        let done = async {
            let view = self.kernel.view(&self.config.proxy).await?;
            let before = std::mem::replace(&mut self.view, view);
            self.settle(apply).await.map(|()| before)
        }
        .await;
        self.liveness.detector.worked(from, Time::from_nanos(now()));
        done
    }
}
