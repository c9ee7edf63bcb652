//! Choice and order of the addresses of an interface.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::links::preference::{self, Towards};
use crate::memory::Memory;
use crate::settings::{Condition, Settings};
use crate::view::{Address, Interface, View, live, live_default};

/// Inputs of the choice.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) settings: &'a Settings,
    pub(super) view: &'a View,
    pub(super) memory: &'a Memory,
    pub(super) conditions: &'a BTreeMap<IpAddr, Condition>,
}

/// An address that may serve an access.
pub(super) struct Candidate<'a> {
    /// Its place among those of the interface.
    pub(super) rank: usize,
    pub(super) access: usize,
    pub(super) interface: &'a Interface,
    pub(super) address: &'a Address,
    /// Trial: it takes the place of one that is silent, and nothing has come back on it yet.
    pub(super) trial: bool,
}

/// The addresses of an interface that may serve an access: IPv4 and IPv6 take turns, the
/// preferred one of each first. One that is silent stays, as it may come back, and gives its
/// place to the next of its family.
pub(super) fn candidates<'a>(
    known: Known<'a>,
    access: usize,
    interface: &'a Interface,
) -> Vec<Candidate<'a>> {
    let own = known.settings.accesses[access].max_addresses;
    let most = own.unwrap_or(known.settings.max_addresses).max(1);
    let families = [true, false].map(|v4| in_order(known, access, interface, v4));
    let turns = |i: usize| {
        let all = 0..families[i].len();
        all.map(move |n| (2 * n + i, i))
    };
    let mut places: Vec<_> = turns(0).chain(turns(1)).collect();
    places.sort_unstable();
    places.truncate(most);
    let mut chosen = Vec::new();
    for (i, family) in families.into_iter().enumerate() {
        let mut ranks = (0..).zip(&places).filter(|(_, (_, of))| *of == i);
        let Some((mut rank, _)) = ranks.next() else {
            continue;
        };
        let mut gone = false;
        for address in family {
            let condition = known.conditions.get(&address.address);
            let silent = matches!(condition, Some(Condition::Silent { .. }));
            let trials = &known.memory.trials;
            let heard = trials.heard(&interface.name, address.address);
            chosen.push(Candidate {
                rank,
                access,
                interface,
                address,
                trial: gone && !silent && !heard,
            });
            gone |= silent;
            if !silent {
                match ranks.next() {
                    Some((next, _)) => rank = next,
                    None => break,
                }
            }
        }
    }
    chosen.sort_by_key(|c| c.rank);
    chosen
}

/// Returns the usable addresses of one family, in the order of RFC 6724 towards the proxy. Those
/// over which nothing could be opened come last; those that soon go serve only where there is no
/// other.
pub(super) fn in_order<'a>(
    known: Known<'a>,
    access: usize,
    interface: &'a Interface,
    v4: bool,
) -> Vec<&'a Address> {
    let (settings, view) = (known.settings, known.view);
    let pinned = settings.accesses[access].address;
    let usable = |a: &&Address| {
        a.ifindex == interface.index
            && a.address.is_ipv4() == v4
            && (a.global && !a.unusable)
            && pinned.is_none_or(|p| p == a.address)
    };
    let mut all: Vec<&Address> = view.addresses.iter().filter(usable).collect();
    let lasts = |a: &Address| !a.deprecated && !a.temporary;
    if all.iter().any(|a| lasts(a)) {
        all.retain(|a| lasts(a));
    }
    let host = settings.proxy.iter().copied().find(|p| p.is_ipv4() == v4);
    let route = match host {
        Some(host) => live(view, interface, host, None),
        None => live_default(view, interface, v4, None),
    };
    let towards = Towards {
        host,
        gateway: route.and_then(|r| r.gateway),
        source: route.and_then(|r| r.source),
    };
    preference::sort(&mut all, towards);
    all.sort_by_key(|a| known.memory.trials.failed(&interface.name, a.address));
    all
}
