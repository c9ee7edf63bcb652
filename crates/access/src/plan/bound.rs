//! Addresses for sockets that are bound to an interface: they need no route of their source.

use std::collections::BTreeMap;

use super::candidates::{Known, in_order};
use super::{Plan, Use};
use crate::memory::Memory;
use crate::routing::{self, From};
use crate::rules::{Verdict, choose};
use crate::settings::Settings;
use crate::view::{Interface, View};

/// Decides which addresses serve each access, in the order in which they are to be tried, and why
/// an access has none. There is nothing to be set.
///
/// An address that nothing leads out by stays, behind those that lead: the kernel takes the
/// network for local where it finds no route (IPv4).
pub fn bound(settings: &Settings, view: &View) -> Plan {
    let verdicts = choose(settings, view);
    let mut plan = Plan::default();
    let mut uses = Vec::new();
    for (interface, verdict) in view.interfaces.iter().zip(&verdicts) {
        match verdict {
            Verdict::Out { why, .. } if !interface.loopback => {
                plan.ignored.push((interface.name.clone(), why.clone()));
            }
            Verdict::Out { .. } => {}
            Verdict::Serves(access) => {
                if interface.up && interface.carrier && settings.accesses[*access].enabled {
                    uses.extend((0..).zip(addresses(settings, view, *access, interface)));
                }
            }
        }
    }
    // The best address of each interface comes before the second of any.
    uses.sort_by_key(|(rank, u): &(usize, Use)| (u.access, !u.routed, *rank, u.ifindex));
    plan.uses = uses.into_iter().map(|(_, u)| u).collect();
    plan.judge(settings, view, verdicts);
    plan
}

/// Returns the addresses of an interface that may serve an access, of the families that the proxy
/// has.
fn addresses(settings: &Settings, view: &View, access: usize, interface: &Interface) -> Vec<Use> {
    let (memory, conditions) = (Memory::default(), BTreeMap::new());
    let known = Known {
        settings,
        view,
        memory: &memory,
        conditions: &conditions,
    };
    let peers = &settings.proxy;
    let families = [true, false].into_iter();
    let families = families.filter(|v4| peers.iter().any(|p| p.is_ipv4() == *v4));
    let mut all = Vec::new();
    for v4 in families {
        for address in in_order(known, access, interface, v4) {
            let from = From {
                interface,
                address,
                peers,
            };
            let lacks = routing::bound(view, from);
            all.push(Use {
                access,
                address: address.address,
                ifindex: interface.index,
                interface: interface.name.clone(),
                routed: lacks.is_none(),
                lacks: lacks.unwrap_or_default(),
                trial: false,
                networked: address.reaches_more(),
                endpoint: false,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests;
