//! Planning of what is to be set for the accesses as things are.

mod endpoints;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use braid_access::exits::Exits;
use braid_access::plan as network;
use braid_access::plan::Use;
use braid_access::rules::Verdict;
use braid_access::settings::{Condition, Settings};
use braid_access::view::{Route, Rule};
use braid_api::AccessState;

use super::memory::Memory;
use super::view::View;
use crate::pm::{Endpoint, EndpointFlags};
use endpoints::endpoints;
use state::{Facts, state};

/// Configuration that is to be set, and the state of each access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Endpoints, their ids left to the kernel.
    pub endpoints: Vec<Endpoint>,
    /// Our routes.
    pub routes: Vec<Route>,
    /// Our rules.
    pub rules: Vec<Rule>,
    /// Ids of endpoints in the view that are ours to change.
    pub owned: BTreeSet<u8>,
    /// Numbers of the accesses that wait for others of lower priority to go.
    pub standby: BTreeSet<usize>,
    /// Every address that serves or could.
    pub uses: Vec<Use>,
    /// State and reason of each access.
    pub accesses: Vec<(AccessState, String)>,
    /// Drawbacks of the routing of accesses that are used, by the number of the access.
    pub notes: Vec<(usize, String)>,
    /// Interfaces left out, with the reason.
    pub ignored: Vec<(String, String)>,
    /// Where new connections that are not bonded leave by another access than the system's
    /// routes say, and why, each in a sentence.
    pub steered: Vec<String>,
    /// Exits of the accesses that work.
    pub exits: Exits,
}

/// Decides what is to be set.
pub fn plan(
    settings: &Settings,
    view: &View,
    memory: &Memory,
    conditions: &BTreeMap<IpAddr, Condition>,
) -> Plan {
    let network = network::plan(settings, view, &memory.known, conditions);
    with_endpoints(network, settings, view, memory, conditions)
}

/// Plans what is set once where nothing is repaired: the endpoint of every access that
/// is not switched off, whatever its interface is like. No route is touched.
pub fn plan_once(settings: &Settings, view: &View, memory: &Memory) -> Plan {
    let network = network::plan_once(settings, view, &memory.known);
    with_endpoints(network, settings, view, memory, &BTreeMap::new())
}

fn with_endpoints(
    network: network::Plan,
    settings: &Settings,
    view: &View,
    memory: &Memory,
    conditions: &BTreeMap<IpAddr, Condition>,
) -> Plan {
    let serving = view.interfaces.iter().zip(&network.verdicts);
    let serving = serving.filter(|(_, v)| matches!(v, Verdict::Serves(_)));
    let serving = serving.map(|(i, _)| i.index).collect();
    let mut plan = Plan {
        owned: owned(view, memory, &serving, &network.uses),
        routes: network.routes,
        rules: network.rules,
        uses: network.uses,
        notes: network.notes,
        ignored: network.ignored,
        steered: network.steered,
        exits: network.exits,
        ..Plan::default()
    };
    endpoints(&mut plan, settings, view, memory, conditions);
    let facts = Facts {
        settings,
        view,
        verdicts: &network.verdicts,
        plan: &plan,
        memory,
        conditions,
    };
    let states = network.out.into_iter().enumerate();
    plan.accesses = states.map(|(i, out)| state(i, out, facts)).collect();
    plan
}

/// An endpoint is ours if we made it, or if it is what we would make, on an
/// interface of an access: one that was left by a daemon that was killed, or is
/// NetworkManager's (`subflow`; `subflow laminar` since 1.56). Those that the kernel
/// made for an address that serves are taken over, too.
fn owned(view: &View, memory: &Memory, serving: &BTreeSet<u32>, uses: &[Use]) -> BTreeSet<u8> {
    let may = EndpointFlags::SUBFLOW
        | EndpointFlags::FULLMESH
        | EndpointFlags::BACKUP
        | EndpointFlags::LAMINAR;
    let ours = |e: &&Endpoint| {
        if e.flags.contains(EndpointFlags::IMPLICIT) {
            return uses.iter().any(|u| u.address == e.address);
        }
        let like_ours =
            may.contains(e.flags) && e.flags.contains(EndpointFlags::SUBFLOW) && e.port.is_none();
        like_ours
            && (memory.added.contains(&e.address)
                || e.ifindex.is_some_and(|i| serving.contains(&i)))
    };
    view.endpoints.iter().filter(ours).map(|e| e.id).collect()
}

#[cfg(test)]
mod tests;
