//! The state of an access, and why.

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_access::plan::Use;
use braid_access::rules::Verdict;
use braid_access::settings::{Condition, Settings};
use braid_api::AccessState;

use super::super::memory::Memory;
use super::super::rejected::Refusal;
use super::super::view::View;
use super::Plan;
use crate::pm::LIMIT_MAX;

/// Inputs of the state of every access, whose uses and endpoints are planned.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) settings: &'a Settings,
    pub(super) view: &'a View,
    pub(super) verdicts: &'a [Verdict],
    pub(super) plan: &'a Plan,
    pub(super) memory: &'a Memory,
    pub(super) conditions: &'a BTreeMap<IpAddr, Condition>,
}

/// Returns state and reason of access number `i`; `out` are those where no address leads out.
pub(super) fn state(
    i: usize,
    out: Option<(AccessState, String)>,
    facts: Facts<'_>,
) -> (AccessState, String) {
    let Facts {
        settings,
        view,
        verdicts,
        plan,
        memory,
        conditions,
    } = facts;
    let access = &settings.accesses[i];
    let uses: Vec<&Use> = plan.uses.iter().filter(|u| u.access == i).collect();
    if let Some((state, lacks)) = out {
        let tried: Vec<_> = uses.iter().filter(|u| u.endpoint).collect();
        if tried.is_empty() {
            return (state, lacks);
        }
        if tried.iter().any(|u| !u.trial) && !plan.standby.contains(&i) && !access.is_backup() {
            let why = format!("used to addresses that servers announce: {lacks}");
            return (AccessState::Active, why);
        }
        let why = format!("{lacks}; it is tried to addresses that servers announce");
        return (AccessState::NoAddress, why);
    }
    let up = || {
        let mut all = view.interfaces.iter().zip(verdicts);
        let up = all.find(|(n, v)| **v == Verdict::Serves(i) && n.up && n.carrier);
        up.map_or("", |(n, _)| &n.name)
    };
    let routed: Vec<_> = uses.iter().filter(|u| u.routed).collect();
    let refusal = |u: &&Use| memory.refused.of(u.ifindex, u.address);
    let refused = routed.iter().find_map(|u| refusal(u));
    let taken: Vec<_> = routed.iter().filter(|u| refusal(u).is_none()).collect();
    if let (true, Some(r)) = (taken.is_empty(), refused) {
        return refused_by_kernel(r);
    }
    let bad: Vec<_> = taken
        .iter()
        .filter_map(|u| conditions.get(&u.address))
        .collect();
    // What takes the place of one that is silent may be as dead.
    let untried = taken
        .iter()
        .filter(|u| u.trial && !conditions.contains_key(&u.address));
    if !bad.is_empty() && bad.len() + untried.count() == taken.len() {
        let kept = match taken.iter().any(|u| u.endpoint && !u.trial) {
            true => "; it is kept because no other access is left",
            false => "",
        };
        return match bad.contains(&&Condition::Stripped) {
            true => (
                AccessState::Stripped,
                "something on the path removes the options of MPTCP: plain TCP only".into(),
            ),
            false => (
                AccessState::Silent,
                format!("nothing comes back on {}{kept}", up()),
            ),
        };
    }
    if !taken.iter().any(|u| u.endpoint) {
        if let Some(r) = refused {
            return refused_by_kernel(r);
        }
        let why = format!("the kernel takes {LIMIT_MAX} endpoints and others come before it");
        return (AccessState::Ignored, why);
    }
    match (access.backup, access.excluded) {
        (true, _) => (AccessState::Backup, "used when no other is active".into()),
        (_, true) => {
            let why = "its weight is 0: used when no other is active";
            (AccessState::Backup, why.into())
        }
        _ if plan.standby.contains(&i) => {
            let why = match access.priority {
                Some(p) => format!("its priority is {p}: used when none of a lower number is"),
                None => "it has no priority: used when none that has one is".into(),
            };
            (AccessState::Backup, why)
        }
        _ => {
            let trials = &memory.known.trials;
            match taken.iter().any(|u| trials.heard(&u.interface, u.address)) {
                true => (AccessState::Active, "used".into()),
                false => (
                    AccessState::Init,
                    format!("nothing has come back on {} yet", up()),
                ),
            }
        }
    }
}

fn refused_by_kernel(refusal: &Refusal) -> (AccessState, String) {
    let why = format!("the kernel refused to {}", refusal.why);
    (AccessState::Ignored, why)
}
