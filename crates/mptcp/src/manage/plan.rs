//! What is to be set for the accesses as things are.

mod endpoints;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use braid_core::Time;
use braid_core::api::AccessState;

use super::memory::Memory;
use super::pattern::Pattern;
use super::routing::{Lead, lead};
use super::rules::{Verdict, choose};
use super::view::{Address, DefaultRoute, Interface, SourceRule, View};
use crate::pm::{Endpoint, EndpointFlags};
use endpoints::endpoints;
use state::state;

/// Which subflows an access opens.
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

/// What does not depend on the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The accesses, the most wanted first.
    pub accesses: Vec<AccessSpec>,
    /// Interfaces that are never used.
    pub ignore: Vec<Pattern>,
    /// Which subflows to open.
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
    /// Whether an endpoint is wanted, or somebody else's is there.
    pub endpoint: bool,
}

/// What is to be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Endpoints, their ids left to the kernel.
    pub endpoints: Vec<Endpoint>,
    /// Our routes.
    pub routes: Vec<DefaultRoute>,
    /// Our rules.
    pub rules: Vec<SourceRule>,
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
    /// Interfaces left out, with the reason.
    pub ignored: Vec<(String, String)>,
}

impl Plan {
    /// Whether another interface that leads out has the address: the kernel takes one endpoint
    /// of an address, and rules by source cannot tell the two apart.
    fn is_double(
        &mut self,
        settings: &Settings,
        access: usize,
        interface: &str,
        address: IpAddr,
    ) -> bool {
        let mut others = self.uses.iter();
        let Some(other) = others.find(|u| u.address == address && u.routed) else {
            return false;
        };
        let why = format!(
            "{interface} has the same address as {} ({}), {address}: give one of them another",
            settings.accesses[other.access].name, other.interface
        );
        self.doubles.push((access, why));
        true
    }
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
    let mut candidates = Vec::new();
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
                    let chosen = addresses(settings, *access, view, interface);
                    candidates.extend(chosen.map(|(rank, a)| (rank, *access, interface, a)));
                }
            }
        }
    }
    // Every access gets one before any gets two.
    candidates.sort_by_key(|(rank, access, interface, _)| (*rank, *access, interface.index));
    for (_, access, interface, address) in candidates {
        if plan.is_double(settings, access, &interface.name, address.address) {
            continue;
        }
        let lead = lead(view, memory, interface, address);
        let near = settings.proxy.iter().any(|p| address.reaches(*p));
        match lead {
            Lead::Restored(route) => plan.routes.push(route),
            Lead::Ours(rule, route) => {
                plan.rules.push(rule);
                plan.routes.push(route);
            }
            Lead::Theirs | Lead::Nothing => {}
        }
        plan.uses.push(Use {
            access,
            address: address.address,
            ifindex: interface.index,
            interface: interface.name.clone(),
            routed: near || lead != Lead::Nothing,
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

/// What is set once where nothing is repaired: the endpoint of every access that
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
            None => addresses(settings, *access, view, interface)
                .map(|(_, a)| a.address)
                .collect(),
        };
        if settings.accesses[*access].enabled {
            uses.extend(addresses.into_iter().map(|address| Use {
                access: *access,
                address,
                ifindex: interface.index,
                interface: interface.name.clone(),
                routed: true,
                endpoint: false,
            }));
        }
    }
    uses.sort_by_key(|u| u.access);
    for u in uses {
        if !plan.is_double(settings, u.access, &u.interface, u.address) {
            plan.uses.push(u);
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

/// The addresses of an interface that may serve an access, with their rank on
/// it: IPv4 and IPv6 take turns.
fn addresses<'a>(
    settings: &'a Settings,
    access: usize,
    view: &'a View,
    interface: &'a Interface,
) -> impl Iterator<Item = (usize, &'a Address)> {
    let pinned = settings.accesses[access].address;
    let own = settings.accesses[access].max_addresses;
    let of = move |v4: bool| {
        view.addresses
            .iter()
            .filter(move |a| a.ifindex == interface.index && a.address.is_ipv4() == v4)
            .filter(|a| a.global && !a.unusable && !a.temporary)
            .filter(move |a| pinned.is_none_or(|p| p == a.address))
            .enumerate()
    };
    let mut all: Vec<_> = of(true)
        .map(|(i, a)| (2 * i, a))
        .chain(of(false).map(|(i, a)| (2 * i + 1, a)))
        .collect();
    all.sort_by_key(|(i, _)| *i);
    all.into_iter()
        .enumerate()
        .map(|(rank, (_, a))| (rank, a))
        .take(own.unwrap_or(settings.max_addresses).max(1))
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
