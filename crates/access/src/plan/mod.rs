//! Planning of what serves each access as things are, and of its way out.

mod bound;
mod candidates;
mod state;

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_api::AccessState;

use crate::default_route::{Facts, default_route};
use crate::exits::{Exits, exits};
use crate::memory::Memory;
use crate::routing::{From, Lead, lead};
use crate::rules::{Verdict, choose};
use crate::settings::{Condition, Settings};
use crate::view::{Route, Rule, View};
pub use bound::bound;
use candidates::{Candidate, Known, candidates};
use state::out;

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
    /// Whether the engine uses it; not planned here.
    pub endpoint: bool,
}

/// Routes and rules that are to be set, and what serves each access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Our routes.
    pub routes: Vec<Route>,
    /// Our rules.
    pub rules: Vec<Rule>,
    /// Every address that serves or could.
    pub uses: Vec<Use>,
    /// Accesses that want an address which another one has, with the reason.
    pub doubles: Vec<(usize, String)>,
    /// State and reason of each access by which no address leads out; absent for the others.
    pub out: Vec<Option<(AccessState, String)>>,
    /// Drawbacks of the routing of accesses that are used, by the number of the access.
    pub notes: Vec<(usize, String)>,
    /// Interfaces left out, with the reason.
    pub ignored: Vec<(String, String)>,
    /// Verdict on each interface of the view, in its order.
    pub verdicts: Vec<Verdict>,
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
    let verdicts = choose(settings, view);
    let mut plan = Plan::default();
    let mut all = Vec::new();
    for (interface, verdict) in view.interfaces.iter().zip(&verdicts) {
        match verdict {
            Verdict::Out { why, .. } => {
                if !interface.loopback {
                    plan.ignored.push((interface.name.clone(), why.clone()));
                }
            }
            Verdict::Serves(access) => {
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
    plan.routes.sort_unstable();
    plan.routes.dedup();
    plan.rules.sort_unstable();
    let facts = Facts {
        settings,
        view,
        memory,
        conditions,
        uses: &plan.uses,
        verdicts: &verdicts,
    };
    plan.exits = exits(facts);
    if settings.steers_unbonded {
        let steered = default_route(facts);
        // The kernel asks rules of one priority in the order in which they came.
        plan.rules.extend(steered.rules);
        plan.routes.extend(steered.routes);
        plan.steered = steered.notes;
    }
    plan.judge(settings, view, verdicts);
    plan
}

/// Plans what is set once where nothing is repaired: the addresses of every access that
/// is not switched off, whatever its interface is like. No route is touched.
pub fn plan_once(settings: &Settings, view: &View, memory: &Memory) -> Plan {
    let verdicts = choose(settings, view);
    let (mut plan, mut uses) = (Plan::default(), Vec::new());
    for (interface, verdict) in view.interfaces.iter().zip(&verdicts) {
        let Verdict::Serves(access) = verdict else {
            continue;
        };
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
    plan.judge(settings, view, verdicts);
    plan
}

impl Plan {
    /// Notes which accesses are out, and the verdicts.
    fn judge(&mut self, settings: &Settings, view: &View, verdicts: Vec<Verdict>) {
        let all = 0..settings.accesses.len();
        self.out = all
            .map(|i| out(i, settings, view, &verdicts, self))
            .collect();
        self.verdicts = verdicts;
    }
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
