//! The state of an access, and why.

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_api::AccessState;

use super::super::memory::Memory;
use super::super::refused::Refusal;
use super::super::rules::Verdict;
use super::super::view::{Interface, View};
use super::{Condition, Plan, Settings, Use};
use crate::pm::LIMIT_MAX;

/// Returns state and reason of access number `i`, whose uses are planned.
pub(super) fn state(
    i: usize,
    settings: &Settings,
    view: &View,
    verdicts: &[Verdict],
    plan: &Plan,
    memory: &Memory,
    conditions: &BTreeMap<IpAddr, Condition>,
) -> (AccessState, String) {
    let access = &settings.accesses[i];
    let named = || view.interfaces.iter().zip(verdicts);
    if !access.enabled {
        let why = "switched off by a request: enable it to use it";
        return (AccessState::Ignored, why.into());
    }
    let mine: Vec<&Interface> = named()
        .filter(|(_, v)| **v == Verdict::Serves(i))
        .map(|(n, _)| n)
        .collect();
    if mine.is_empty() {
        let out = named().find_map(|(n, v)| match v {
            Verdict::Out { why, access } if *access == Some(i) => Some(format!("{} {why}", n.name)),
            _ => None,
        });
        return match out {
            Some(why) => (AccessState::Ignored, why),
            None if access.interface.is_name() => (
                AccessState::Down,
                format!("there is no interface {}", access.interface),
            ),
            None => (
                AccessState::Down,
                format!("no interface is called like {}", access.interface),
            ),
        };
    }
    let Some(up) = mine.iter().find(|n| n.up && n.carrier) else {
        let n = mine[0];
        let what = if n.up { "has no carrier" } else { "is down" };
        return (AccessState::Down, format!("{} {what}", n.name));
    };
    let uses: Vec<&Use> = plan.uses.iter().filter(|u| u.access == i).collect();
    let double = plan.doubles.iter().find(|(access, _)| *access == i);
    if let (true, Some((_, why))) = (uses.is_empty(), double) {
        return (AccessState::Ignored, why.clone());
    }
    if uses.is_empty() {
        let what = match access.address {
            Some(a) => format!("{} does not have the address {a}, or not yet", up.name),
            None => format!("{} has no address of global scope yet", up.name),
        };
        return (AccessState::NoAddress, what);
    }
    let routed: Vec<_> = uses.iter().filter(|u| u.routed).collect();
    if routed.is_empty() {
        let lacks = &uses[0].lacks;
        let tried: Vec<_> = uses.iter().filter(|u| u.endpoint).collect();
        if tried.iter().any(|u| !u.trial) && !plan.standby.contains(&i) && !access.is_backup() {
            let why = format!("used to addresses that servers announce: {lacks}");
            return (AccessState::Active, why);
        }
        let why = match tried.is_empty() {
            true => lacks.clone(),
            false => format!("{lacks}; it is tried to addresses that servers announce"),
        };
        return (AccessState::NoAddress, why);
    }
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
                format!("nothing comes back on {}{kept}", up.name),
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
        _ => (AccessState::Active, "used".into()),
    }
}

fn refused_by_kernel(refusal: &Refusal) -> (AccessState, String) {
    let why = format!("the kernel refused to {}", refusal.why);
    (AccessState::Ignored, why)
}
