//! From what is set to what is to be set, in steps that can be taken in order.

use std::collections::BTreeSet;
use std::net::IpAddr;

use braid_access::reconcile::{Step, steps};
use braid_access::view::{Route, Rule};

use super::plan::Plan;
use super::view::View;
use crate::pm::{Endpoint, EndpointFlags};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Delete an endpoint; its subflows end.
    DeleteEndpoint(Endpoint),
    /// Delete a rule of ours.
    DeleteRule(Rule),
    /// Delete a route of ours.
    DeleteRoute(Route),
    /// Add a route.
    AddRoute(Route),
    /// Add a rule.
    AddRule(Rule),
    /// Make an endpoint a backup, or a primary again.
    SetBackup(Endpoint, bool),
    /// Add an endpoint; connections join over it.
    AddEndpoint(Endpoint),
}

impl From<Step> for Op {
    fn from(step: Step) -> Self {
        match step {
            Step::DeleteRule(r) => Self::DeleteRule(r),
            Step::DeleteRoute(r) => Self::DeleteRoute(r),
            Step::AddRoute(r) => Self::AddRoute(r),
            Step::AddRule(r) => Self::AddRule(r),
        }
    }
}

/// The steps from `view` to `plan`.
///
/// Endpoints go first, while the routes are there that tell the peer; they come
/// last, when the routes are there that their subflows need: the kernel opens a
/// subflow once.
pub fn diff(view: &View, plan: &Plan) -> Vec<Op> {
    let mut ops = Vec::new();
    let (mut keep, mut backups) = (Vec::new(), Vec::new());
    for e in view.endpoints.iter().filter(|e| plan.owned.contains(&e.id)) {
        let replaced = |w: &Endpoint| w.address == e.address;
        if e.flags.contains(EndpointFlags::IMPLICIT) && plan.endpoints.iter().any(replaced) {
            // The kernel replaces what it made itself, and keeps the id.
            continue;
        }
        let wanted = plan
            .endpoints
            .iter()
            .find(|w| (w.address, w.ifindex) == (e.address, e.ifindex))
            .filter(|w| form(w) == form(e));
        match wanted {
            None => ops.push(Op::DeleteEndpoint(e.clone())),
            Some(w) => {
                keep.push(e.address);
                let is_backup = |e: &Endpoint| e.flags.contains(EndpointFlags::BACKUP);
                if is_backup(w) != is_backup(e) {
                    backups.push(Op::SetBackup(e.clone(), is_backup(w)));
                }
            }
        }
    }
    let steps = steps(&view.network, &plan.rules, &plan.routes);
    ops.extend(steps.into_iter().map(Op::from));
    ops.append(&mut backups);
    for e in &plan.endpoints {
        if !keep.contains(&e.address) {
            ops.push(Op::AddEndpoint(e.clone()));
        }
    }
    ops
}

/// Returns the flags that only a new endpoint can change, and has to. An endpoint that opens
/// subflows to announced addresses, too, as NetworkManager makes it, does as well.
fn form(e: &Endpoint) -> EndpointFlags {
    e.flags - EndpointFlags::BACKUP - EndpointFlags::LAMINAR
}

/// The steps that take back everything that is ours, but for what live connections need:
/// the kernel ends the subflows of an endpoint that is deleted. `used` has the addresses
/// that they are on.
pub fn take_back(view: &View, plan: &Plan, used: &BTreeSet<IpAddr>) -> Vec<Op> {
    let used_by = |ifindex| {
        let mut there = view.addresses.iter();
        there.any(|a| a.ifindex == ifindex && used.contains(&a.address))
    };
    let rest = Plan {
        owned: plan.owned.clone(),
        endpoints: kept(&view.endpoints, |e| used.contains(&e.address)),
        rules: kept(&view.rules, |r| {
            r.is_ours() && !r.is_for_unbonded() && used.contains(&r.source.addr())
        }),
        routes: kept(&view.routes, |r| {
            r.is_ours() && !r.is_for_unbonded() && used_by(r.ifindex)
        }),
        ..Plan::default()
    };
    diff(view, &rest)
}

fn kept<T: Clone>(all: &[T], stays: impl Fn(&T) -> bool) -> Vec<T> {
    all.iter().filter(|t| stays(t)).cloned().collect()
}

#[cfg(test)]
mod tests;
