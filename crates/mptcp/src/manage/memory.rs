//! What was set before, for when it is gone and has to be set again; and what could not be
//! set.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::refused::Refused;
use super::view::{DefaultRoute, FIRST_TABLE, MAIN_TABLE, PROTOCOL, View};

/// A next hop and its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The gateway; absent where the interface leads to one peer.
    pub gateway: Option<IpAddr>,
    /// The metric.
    pub metric: u32,
}

/// A next hop that an interface has, or had last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The interface's name.
    pub interface: String,
    /// For IPv4, or for IPv6.
    pub v4: bool,
    /// The table of somebody else that it is for; absent: the best that there was.
    pub table: Option<u32>,
    /// The next hop.
    pub hop: Hop,
}

/// The default routes that interfaces had, and the endpoints that we made.
///
/// The kernel drops the routes of an interface that goes down, and nobody but a
/// DHCP client puts those of the main table back.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The best next hop by name of the interface and family.
    hops: BTreeMap<(String, bool), Hop>,
    /// The same of one table.
    tables: BTreeMap<(String, bool, u32), Hop>,
    /// The addresses of endpoints that we added.
    pub added: BTreeSet<IpAddr>,
    /// The steps that the kernel refused when they were tried last.
    pub refused: Refused,
}

impl Memory {
    /// Notes the default routes of `view`.
    pub fn learn(&mut self, view: &View) {
        let mut best: BTreeMap<(String, bool), (u32, u32, Hop)> = BTreeMap::new();
        for route in &view.routes {
            let Some(interface) = view.interface(route.ifindex) else {
                continue;
            };
            let hop = Hop {
                gateway: route.gateway,
                metric: route.metric,
            };
            let key = (interface.name.clone(), route.v4);
            if route.protocol != PROTOCOL {
                let table = (key.0.clone(), key.1, route.table);
                self.tables.insert(table, hop);
            }
            let order = (rank(route), route.metric);
            let known = best.get(&key).map(|(a, b, _)| (*a, *b));
            if known.is_none_or(|k| order < k) {
                best.insert(key, (order.0, order.1, hop));
            }
        }
        self.hops
            .extend(best.into_iter().map(|(key, (_, _, hop))| (key, hop)));
    }

    /// All next hops, for whoever follows this program.
    pub fn remembered(&self) -> Vec<Remembered> {
        let entry = |interface: &String, v4, table, hop: &Hop| Remembered {
            interface: interface.clone(),
            v4,
            table,
            hop: *hop,
        };
        let best = self.hops.iter();
        let best = best.map(|((interface, v4), hop)| entry(interface, *v4, None, hop));
        let others = self.tables.iter();
        let others = others.map(|((i, v4, table), hop)| entry(i, *v4, Some(*table), hop));
        best.chain(others).collect()
    }

    /// Takes what the program before this one had seen. A gateway of the other family is left
    /// out.
    pub fn recall(&mut self, all: impl IntoIterator<Item = Remembered>) {
        let fits = |r: &Remembered| r.hop.gateway.is_none_or(|g| g.is_ipv4() == r.v4);
        for r in all.into_iter().filter(fits) {
            match r.table {
                Some(table) => self.tables.insert((r.interface, r.v4, table), r.hop),
                None => self.hops.insert((r.interface, r.v4), r.hop),
            };
        }
    }

    /// The next hop that the interface has, or had last.
    pub fn hop(&self, interface: &str, v4: bool) -> Option<Hop> {
        self.hops.get(&(interface.to_owned(), v4)).copied()
    }

    /// The next hop that the interface had last in one table, put there by
    /// somebody else.
    pub fn hop_in(&self, interface: &str, v4: bool, table: u32) -> Option<Hop> {
        self.tables.get(&(interface.to_owned(), v4, table)).copied()
    }
}

/// Where a route counts most: in the main table, then in others' tables.
fn rank(route: &DefaultRoute) -> u32 {
    match route.table {
        MAIN_TABLE => 0,
        t if t < FIRST_TABLE => 1,
        _ => 2,
    }
}
