//! Planning of what is to be set for the accesses as things are.

mod candidates;
mod endpoints;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use braid_api::AccessState;
use braid_core::{Pattern, Time};

use super::memory::Memory;
use super::routing::{From, Lead, lead};
use super::rules::{Verdict, choose};
use super::view::{Route, Rule, View};
use crate::pm::{Endpoint, EndpointFlags};
use candidates::{Candidate, Known, candidates};
use endpoints::endpoints;
use state::state;

/// Subflows that an access opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mesh {
    /// One to every address that the peer announced.
    Full,
    /// One to the address that was connected to.
    #[default]
    Pairs,
}

/// An access as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSpec {
    /// Its name.
    pub name: String,
    /// The interfaces that serve it.
    pub interface: Pattern,
    /// The only address that may be used; all of the interface if absent.
    pub address: Option<IpAddr>,
    /// Use it only when no other access is active.
    pub backup: bool,
    /// Its weight is 0: a backup as well.
    pub excluded: bool,
    /// How many addresses of one of its interfaces are used, if not
    /// [`Settings::max_addresses`].
    pub max_addresses: Option<usize>,
    /// Its place in the order ([`super::priority`]).
    pub priority: Option<u16>,
    /// Switched off by a request if not.
    pub enabled: bool,
}

impl AccessSpec {
    /// Whether it takes no part while any other is active.
    pub fn is_backup(&self) -> bool {
        self.backup || self.excluded
    }
}

/// Settings, which do not depend on the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The accesses, the most wanted first.
    pub accesses: Vec<AccessSpec>,
    /// Interfaces that are never used.
    pub ignore: Vec<Pattern>,
    /// Subflows to open.
    pub mesh: Mesh,
    /// How many addresses of one interface are used, 1 or more, where the access does not
    /// say.
    pub max_addresses: usize,
    /// The proxy's addresses, which may be in an interface's own network.
    pub proxy: Vec<IpAddr>,
}

/// How an address fares, from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing comes back on it.
    Silent {
        /// Since when.
        since: Time,
    },
    /// MPTCP does not pass.
    Stripped,
}

/// An address that may serve an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The number of the access.
    pub access: usize,
    /// The address.
    pub address: IpAddr,
    /// Its interface.
    pub ifindex: u32,
    /// The interface's name.
    pub interface: String,
    /// Whether the routing leads out by the interface.
    pub routed: bool,
    /// Why it does not; empty if it does.
    pub lacks: String,
    /// Nothing has come back on it yet, and it takes the place of one that is silent, or no
    /// route leads out by it.
    pub trial: bool,
    /// There is a network of more than itself around it.
    pub networked: bool,
    /// Whether an endpoint is wanted, or somebody else's is there.
    pub endpoint: bool,
}

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
    /// Accesses that want an address which another one has, with the reason.
    pub doubles: Vec<(usize, String)>,
    /// State and reason of each access.
    pub accesses: Vec<(AccessState, String)>,
    /// Drawbacks of the routing of accesses that are used, by the number of the access.
    pub notes: Vec<(usize, String)>,
    /// Interfaces left out, with the reason.
    pub ignored: Vec<(String, String)>,
}

/// Decides what is to be set.
pub fn plan(
    settings: &Settings,
    view: &View,
    memory: &Memory,
    conditions: &BTreeMap<IpAddr, Condition>,
) -> Plan {
    let verdicts = choose(settings, view);
    let mut plan = Plan::default();
    let mut serving = BTreeSet::new();
    let mut all = Vec::new();
    for (interface, verdict) in view.interfaces.iter().zip(&verdicts) {
        match verdict {
            Verdict::Out { why, .. } => {
                if !interface.loopback {
                    plan.ignored.push((interface.name.clone(), why.clone()));
                }
            }
            Verdict::Serves(access) => {
                serving.insert(interface.index);
                if interface.up && interface.carrier && settings.accesses[*access].enabled {
                    let known = Known {
                        settings,
                        view,
                        memory,
                        conditions,
                    };
                    all.extend(candidates(known, *access, interface));
                }
            }
        }
    }
    // Every access gets one before any gets two.
    all.sort_by_key(|c| (c.rank, c.access, c.interface.index));
    let peers = &settings.proxy;
    let all = all.into_iter().map(|c| {
        let (interface, address) = (c.interface, c.address);
        let from = From {
            interface,
            address,
            peers,
        };
        let lead = lead(view, memory, from);
        (c, lead)
    });
    let all: Vec<_> = all.collect();
    let holders = holders(&all, memory);
    for (c, lead) in all {
        let (access, interface, address) = (c.access, c.interface, c.address.address);
        let routed = lead.lacks.is_none();
        let holder = holders.get(&address).filter(|(_, i)| *i != interface.index);
        if let (true, Some((other, i))) = (routed, holder) {
            let why = same_address(settings, &interface.name, address, *other, &view.name(*i));
            plan.doubles.push((access, why));
            continue;
        }
        // What cannot be used is not to be in the way of an interface with the same address.
        if holder.is_none() {
            plan.rules.extend(lead.rules);
            plan.routes.extend(lead.routes);
        }
        plan.notes.extend(lead.note.map(|n| (access, n)));
        let heard = memory.trials.heard(&interface.name, address);
        plan.uses.push(Use {
            access,
            address,
            ifindex: interface.index,
            interface: interface.name.clone(),
            routed,
            trial: c.trial || !routed && !heard,
            networked: c.address.reaches_more() && holder.is_none(),
            lacks: lead.lacks.unwrap_or_default(),
            endpoint: false,
        });
    }
    plan.owned = owned(view, memory, &serving, &plan.uses);
    plan.routes.sort_unstable();
    plan.routes.dedup();
    plan.rules.sort_unstable();
    endpoints(&mut plan, settings, view, memory, conditions);
    plan.accesses = (0..settings.accesses.len())
        .map(|i| state(i, settings, view, &verdicts, &plan, memory, conditions))
        .collect();
    plan
}

/// Plans what is set once where nothing is repaired: the endpoint of every access that
/// is not switched off, whatever its interface is like. No route is touched.
pub fn plan_once(settings: &Settings, view: &View, memory: &Memory) -> Plan {
    let verdicts = choose(settings, view);
    let (mut plan, mut uses) = (Plan::default(), Vec::new());
    let mut serving = BTreeSet::new();
    for (interface, verdict) in view.interfaces.iter().zip(&verdicts) {
        let Verdict::Serves(access) = verdict else {
            continue;
        };
        serving.insert(interface.index);
        let addresses: Vec<IpAddr> = match settings.accesses[*access].address {
            Some(pinned) => vec![pinned],
            None => {
                let known = Known {
                    settings,
                    view,
                    memory,
                    conditions: &BTreeMap::new(),
                };
                let all = candidates(known, *access, interface);
                all.iter().map(|c| c.address.address).collect()
            }
        };
        if settings.accesses[*access].enabled {
            uses.extend(addresses.into_iter().map(|address| Use {
                access: *access,
                address,
                ifindex: interface.index,
                interface: interface.name.clone(),
                routed: true,
                lacks: String::new(),
                trial: false,
                networked: true,
                endpoint: false,
            }));
        }
    }
    uses.sort_by_key(|u| u.access);
    for u in uses {
        let mut others = plan.uses.iter();
        match others.find(|o| o.address == u.address) {
            Some(o) => {
                let (other, by) = (o.access, &o.interface);
                let why = same_address(settings, &u.interface, u.address, other, by);
                plan.doubles.push((u.access, why));
            }
            None => plan.uses.push(u),
        }
    }
    plan.owned = owned(view, memory, &serving, &plan.uses);
    let conditions = BTreeMap::new();
    endpoints(&mut plan, settings, view, memory, &conditions);
    plan.accesses = (0..settings.accesses.len())
        .map(|i| state(i, settings, view, &verdicts, &plan, memory, &conditions))
        .collect();
    plan
}

/// Returns the access and interface that hold each address for which there is a way: the first
/// that was not found to lead nowhere, else the one that was tried the longest ago. The kernel
/// takes one endpoint of an address, and rules by source cannot tell two interfaces apart.
fn holders(all: &[(Candidate<'_>, Lead)], memory: &Memory) -> BTreeMap<IpAddr, (usize, u32)> {
    let mut best = BTreeMap::new();
    for (c, _) in all.iter().filter(|(_, lead)| lead.lacks.is_none()) {
        let failed = memory.trials.failed(&c.interface.name, c.address.address);
        let new = (failed, c.access, c.interface.index);
        let known = best.entry(c.address.address).or_insert(new);
        if failed < known.0 {
            *known = new;
        }
    }
    let of = |(address, (_, access, index))| (address, (access, index));
    best.into_iter().map(of).collect()
}

fn same_address(
    settings: &Settings,
    interface: &str,
    address: IpAddr,
    other: usize,
    other_interface: &str,
) -> String {
    let name = &settings.accesses[other].name;
    format!(
        "{interface} has the same address as {name} ({other_interface}), {address}: give one of \
         them another"
    )
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
pub(super) mod testing {
    use super::*;

    pub(in super::super) fn access(name: &str, interface: &str) -> AccessSpec {
        AccessSpec {
            name: name.into(),
            interface: interface.parse().expect("a pattern"),
            address: None,
            backup: false,
            excluded: false,
            max_addresses: None,
            priority: None,
            enabled: true,
        }
    }

    pub(in super::super) fn settings(accesses: Vec<AccessSpec>) -> Settings {
        Settings {
            accesses,
            max_addresses: 2,
            ..Settings::default()
        }
    }
}
