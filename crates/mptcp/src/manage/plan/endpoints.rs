//! The endpoints of the addresses that serve, and which accesses wait.

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_access::plan::Use;
use braid_access::priority::{Candidate, standby};
use braid_access::settings::{AccessSpec, Condition, Mesh, Settings};

use super::super::memory::Memory;
use super::super::view::View;
use super::Plan;
use crate::pm::{Endpoint, EndpointFlags, LIMIT_MAX};

/// Plans the endpoints, and which accesses wait.
pub(super) fn endpoints(
    plan: &mut Plan,
    settings: &Settings,
    view: &View,
    memory: &Memory,
    conditions: &BTreeMap<IpAddr, Condition>,
) {
    let silent_since = |u: &Use| match conditions.get(&u.address) {
        Some(Condition::Silent { since }) => Some(*since),
        _ => None,
    };
    let may =
        |u: &&Use| u.routed && !matches!(conditions.get(&u.address), Some(Condition::Stripped));
    // One that the kernel refused is tried again, and nobody has to wait for it.
    let refused = |u: &Use| memory.refused.of(u.ifindex, u.address).is_some();
    // The last one that might work stays: of silent ones, that which lived longest.
    let alive = plan
        .uses
        .iter()
        .filter(may)
        .any(|u| silent_since(u).is_none() && !u.trial && !refused(u));
    let last = match alive {
        true => None,
        false => plan
            .uses
            .iter()
            .filter(may)
            .max_by_key(|u| (!refused(u), silent_since(u)))
            .map(|u| u.address),
    };
    let theirs: Vec<&Endpoint> = view
        .endpoints
        .iter()
        .filter(|e| !plan.owned.contains(&e.id))
        .collect();
    let mut room = (LIMIT_MAX as usize).saturating_sub(theirs.len());
    let base = match settings.mesh {
        Mesh::Full => EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH,
        Mesh::Pairs => EndpointFlags::SUBFLOW,
    };
    let mut ours = Vec::new();
    for u in &mut plan.uses {
        let wanted = may(&&*u) && (silent_since(u).is_none() || last == Some(u.address));
        if !wanted {
            continue;
        }
        if theirs.iter().any(|e| e.address == u.address) {
            u.endpoint = true;
            continue;
        }
        if room == 0 {
            continue;
        }
        room -= 1;
        u.endpoint = true;
        ours.push((u.access, Endpoint::new(u.address, Some(u.ifindex), base)));
    }
    // What servers announce may be in a network that leads nowhere else, and the kernel joins
    // there in the moment in which it hears of it, or never. With room that nobody else wants.
    let bare = |u: &&mut Use| !u.routed && u.networked && settings.mesh == Mesh::Full;
    for u in plan.uses.iter_mut().filter(bare).take(room) {
        if theirs.iter().all(|e| e.address != u.address) {
            u.endpoint = true;
            ours.push((u.access, Endpoint::new(u.address, Some(u.ifindex), base)));
        }
    }
    let candidate = |(i, a): (usize, &AccessSpec)| {
        let carries = |u: &&Use| u.access == i && u.endpoint;
        let alive = |u: &Use| {
            let lives = silent_since(u).is_none() && !u.trial;
            (lives || last == Some(u.address)) && !refused(u)
        };
        Candidate {
            priority: a.priority,
            usable: !a.is_backup() && plan.uses.iter().filter(carries).any(alive),
        }
    };
    let all: Vec<_> = settings
        .accesses
        .iter()
        .enumerate()
        .map(candidate)
        .collect();
    let waits = standby(&all).into_iter().enumerate();
    plan.standby = waits.filter(|(_, w)| *w).map(|(i, _)| i).collect();
    for (access, mut endpoint) in ours {
        let a = &settings.accesses[access];
        let backup = a.is_backup() || plan.standby.contains(&access);
        endpoint.flags.set(EndpointFlags::BACKUP, backup);
        plan.endpoints.push(endpoint);
    }
}
