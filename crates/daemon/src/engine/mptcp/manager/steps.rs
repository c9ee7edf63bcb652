//! Takes steps at the kernel.

use std::collections::BTreeSet;
use std::net::IpAddr;

use braid_core::Time;
use braid_mptcp::buffers::Wide;
use braid_mptcp::diag::{Diag, TcpSocket};
use braid_mptcp::manage::Plan;
use braid_mptcp::manage::diff::{Op, take_back};
use braid_mptcp::manage::rejected::Refused;
use braid_mptcp::pm::{Endpoint, EndpointFlags};
use braid_mptcp::repair::priority_repeat::{Remedy, Subflow};
use braid_mptcp::repair::stalls::Ends;

use super::super::samples;
use super::Manager;
use super::reconcile::RETRY_FIRST;
use crate::DaemonError;
use crate::state::now;

impl Manager {
    /// Takes steps; goes on after one that the kernel refuses, but for what needs it. Returns
    /// those that it refused.
    pub(crate) async fn take(&mut self, ops: &[Op]) -> Refused {
        let mut refused = Refused::default();
        let width = self
            .config
            .buffers
            .manage
            .then(|| self.repair.receive_window.needs());
        for op in ops {
            if refused.holds_back(op) {
                continue;
            }
            // The kernel opens its subflows meanwhile.
            let joins = matches!(op, Op::AddEndpoint(_));
            let wide = width.filter(|_| joins).map(Wide::begin);
            let applied = self.kernel.apply(&self.with_fresh_id(op)).await;
            drop(wide);
            match applied {
                Ok(()) => {
                    if let Op::AddEndpoint(e) = op {
                        self.memory.added.insert(e.address);
                        self.last_id = self.fresh_id();
                    }
                }
                Err(e) => refused.note(op, e.to_string()),
            }
        }
        refused
    }

    /// Gives an endpoint that is added an id that none had lately: the peer is told that an id has
    /// gone (RM_ADDR, RFC 8684 3.4.2), and where that comes late it would end what has joined
    /// with the same id since. The kernel gives the least free one.
    fn with_fresh_id(&self, op: &Op) -> Op {
        let Op::AddEndpoint(e) = op else {
            return op.clone();
        };
        // The kernel replaces one that it made itself only by one without an id.
        let implicit =
            |t: &Endpoint| t.address == e.address && t.flags.contains(EndpointFlags::IMPLICIT);
        if e.id != 0 || self.view.endpoints.iter().any(implicit) {
            return op.clone();
        }
        let id = self.fresh_id();
        Op::AddEndpoint(Endpoint { id, ..e.clone() })
    }

    /// The next id after the last one that is not taken; 0 if there is none.
    fn fresh_id(&self) -> u8 {
        let taken = |id: &u8| self.view.endpoints.iter().any(|t| t.id == *id);
        let mut after = (self.last_id + 1..=ID_MAX).chain(1..=self.last_id);
        after.find(|id| !taken(id)).unwrap_or(0)
    }

    /// Opens subflows again that ended or stalled while their connection and access live.
    pub(crate) async fn open_again(
        &mut self,
        sockets: &[TcpSocket],
        stalled: &BTreeSet<Ends>,
        t: Time,
    ) {
        // Where no route leads, the kernel cannot be asked for more than it does by itself.
        let leads = |a: &IpAddr| self.plan.uses.iter().any(|u| u.address == *a && u.routed);
        let endpoints = self.own_endpoints();
        let all = endpoints.iter().chain(&self.plan.endpoints);
        let addresses = all.map(|e| e.address).filter(leads).collect();
        let held = self.held(t);
        let connections = samples::paths(sockets, stalled);
        let missing = self
            .repair
            .subflow_reopen
            .check(&addresses, &held, &connections, t);
        let of = endpoints.iter().filter(|e| missing.contains(&e.address));
        let mut ops: Vec<_> = of.flat_map(replace).collect();
        // The first subflow of a connection has the id 0 whenever it is opened: the peer is to
        // hear that the old one has gone before the new one joins.
        let pause_of = |a: IpAddr| samples::pause_of_first(sockets, a);
        if let Some(pause) = missing.iter().filter_map(|a| pause_of(*a)).max() {
            ops.retain(|op| !matches!(op, Op::AddEndpoint(e) if pause_of(e.address).is_some()));
            self.take_again(&ops, t).await;
            let at = t + pause;
            self.retry = Some(self.retry.map_or(at, |r| r.min(at)));
            return;
        }
        self.take_again(&ops, t).await;
    }

    /// Tells peers again which accesses are backups, where they have not heard.
    pub(crate) async fn ask_again(&mut self, subflows: &[Subflow], t: Time) {
        let endpoints = self.own_endpoints();
        let is_backup = |e: &Endpoint| e.flags.contains(EndpointFlags::BACKUP);
        let all = endpoints.iter().map(|e| (e.address, is_backup(e)));
        let remedies = self
            .repair
            .priority_repeat
            .check(&all.collect(), subflows, t);
        let of = |e: &Endpoint| {
            let mut all = remedies.iter();
            let remedy = all.find(|(a, _)| *a == e.address).map(|(_, r)| *r);
            match remedy {
                None => vec![],
                Some(Remedy::Replace) => replace(e).to_vec(),
                Some(Remedy::Repeat) => {
                    let ask = |backup| Op::SetBackup(e.clone(), backup);
                    vec![ask(!is_backup(e)), ask(is_backup(e))]
                }
            }
        };
        let ops: Vec<_> = endpoints.iter().flat_map(of).collect();
        self.take_again(&ops, t).await;
    }

    fn own_endpoints(&self) -> Vec<Endpoint> {
        let planned = &self.plan.endpoints;
        let ours = |e: &&Endpoint| {
            self.plan.owned.contains(&e.id) || planned.iter().any(|p| p.address == e.address)
        };
        self.view.endpoints.iter().filter(ours).cloned().collect()
    }

    /// Takes steps that leave the endpoints as they are, but for their ids.
    async fn take_again(&mut self, ops: &[Op], t: Time) {
        if ops.is_empty() {
            return;
        }
        let from = Time::from_nanos(now());
        let refused = self.take(ops).await;
        if !refused.is_empty() {
            self.memory.refused.extend(refused);
            self.retry = Some(t + RETRY_FIRST);
        }
        if let Some(pm) = &self.kernel.pm
            && let Ok(all) = pm.list().await
        {
            self.view.endpoints = all;
        }
        self.liveness.detector.worked(from, Time::from_nanos(now()));
    }

    /// Takes back everything that is ours. What live connections need stays, and is said;
    /// the next daemon takes it over.
    pub(crate) async fn take_back(&mut self) -> Result<(), DaemonError> {
        if self.kernel.pm.is_none() {
            self.routes.forget();
            return Ok(());
        }
        let view = self.kernel.view(&self.config.proxy).await?;
        self.routes.end(&self.memory.known, &view);
        let all = Plan {
            owned: self.planned(&view).owned,
            ..Plan::default()
        };
        // Where that cannot be told, all may be in use.
        let used = match Diag::open().and_then(|mut d| d.addresses_in_use()) {
            Ok(used) => used,
            Err(_) => view.addresses.iter().map(|a| a.address).collect(),
        };
        let stay = view
            .endpoints
            .iter()
            .filter(|e| all.owned.contains(&e.id) && used.contains(&e.address));
        let stay: Vec<String> = stay.map(|e| e.address.to_string()).collect();
        if !stay.is_empty() {
            tracing::info!(
                "connections go on over {}, whose endpoints, rules and routes stay\n  \
                 to take them over: begin a daemon here; to end both: ip mptcp endpoint flush",
                stay.join(", ")
            );
        }
        let mut refused = Ok(());
        for op in take_back(&view, &all, &used) {
            if let Err(e) = self.kernel.apply(&op).await {
                refused = refused.and(Err(e));
            }
        }
        refused
    }
}

/// The largest id of endpoints with subflows; those of announced addresses come after it.
const ID_MAX: u8 = 247;

/// Ends the subflows on an endpoint, and opens them again.
fn replace(e: &Endpoint) -> [Op; 2] {
    [
        Op::DeleteEndpoint(e.clone()),
        Op::AddEndpoint(Endpoint { id: 0, ..e.clone() }),
    ]
}
