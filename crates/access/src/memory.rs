//! Saved routes, for when they are gone and have to be set again, and addresses that were tried.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::trial::Trials;
use super::view::{Interface, MAIN_TABLE, Route, View, live, live_default};

/// A next hop and its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The gateway; absent where the interface leads to the destination itself.
    pub gateway: Option<IpAddr>,
    /// The gateway is on the link, whatever the networks of the interface are.
    pub onlink: bool,
    /// The metric.
    pub metric: u32,
}

impl From<&Route> for Hop {
    fn from(r: &Route) -> Self {
        Self {
            gateway: r.gateway,
            onlink: r.onlink,
            metric: r.metric,
        }
    }
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
    /// The host that it leads to, where that is not the way to everywhere.
    pub to: Option<IpAddr>,
    /// The next hop.
    pub hop: Hop,
    /// The interface's addresses at that time, where they are known.
    pub addresses: Vec<IpAddr>,
}

impl Remembered {
    /// Whether it can be one of the kernel's: IPv4 may lead by an IPv6 gateway (RFC 8950), but
    /// not the other way round.
    fn fits(&self) -> bool {
        let gateway = self.hop.gateway.is_none_or(|g| g.is_ipv4() <= self.v4);
        gateway && self.to.is_none_or(|t| t.is_ipv4() == self.v4)
    }
}

/// A next hop from before, and the addresses of its interface at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// The next hop.
    pub hop: Hop,
    /// Addresses of the interface at that time; empty where they are not known.
    pub addresses: Vec<IpAddr>,
}

type Key = (String, bool, Option<IpAddr>);

/// The routes that interfaces had, and addresses that lead nowhere.
///
/// The kernel drops the routes of an interface that goes down, and nobody but a
/// DHCP client puts those of the main table back.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The best next hop by name of the interface and family, to everywhere or to a host.
    hops: BTreeMap<Key, Past>,
    /// Next hop to everywhere by name of the interface, family and table.
    tables: BTreeMap<(String, bool, u32), Past>,
    /// Addresses that were found to lead nowhere.
    pub trials: Trials,
    /// Addresses from which packets have to be smaller than what their interfaces take: a route of
    /// ours says so ([`crate::route_mtu`]).
    pub narrow: BTreeSet<IpAddr>,
}

impl Memory {
    /// Notes the routes of `view` that lead to everywhere or to one of `peers`.
    pub fn learn(&mut self, view: &View, peers: &[IpAddr]) {
        for interface in &view.interfaces {
            for v4 in [true, false] {
                self.learn_of(view, interface, v4, peers);
            }
        }
    }

    fn learn_of(&mut self, view: &View, interface: &Interface, v4: bool, peers: &[IpAddr]) {
        let past = |r: &Route| {
            let mine = view.addresses.iter().filter(|a| {
                let family = a.address.is_ipv4() == v4;
                a.ifindex == interface.index && family
            });
            Past {
                hop: r.into(),
                addresses: mine.map(|a| a.address).collect(),
            }
        };
        let of_family = |r: &&Route| r.ifindex == interface.index && r.is_v4() == v4;
        let mine = || view.routes.iter().filter(of_family);
        for r in mine().filter(|r| r.is_default() && !r.is_ours() && r.table != MAIN_TABLE) {
            let key = (interface.name.clone(), v4, r.table);
            self.tables.insert(key, past(r));
        }
        if let Some(r) = live_default(view, interface, v4, None) {
            let key = (interface.name.clone(), v4, None);
            self.hops.insert(key, past(r));
        }
        for peer in peers.iter().filter(|p| p.is_ipv4() == v4) {
            let key = (interface.name.clone(), v4, Some(*peer));
            match live(view, interface, *peer, None) {
                Some(r) if !r.is_default() => {
                    self.hops.insert(key, past(r));
                }
                Some(_) => {
                    self.hops.remove(&key);
                }
                None => {}
            }
        }
        // Of one that was killed, whose file is gone.
        for r in mine().filter(|r| r.is_ours()) {
            let to = (!r.is_default()).then(|| r.to.addr());
            let key = (interface.name.clone(), v4, to);
            let addresses = vec![];
            let hop = Hop::from(r);
            self.hops.entry(key).or_insert(Past { hop, addresses });
        }
    }

    /// All next hops, for whoever follows this program.
    pub fn remembered(&self) -> Vec<Remembered> {
        let entry = |interface: &String, v4, table, to, past: &Past| Remembered {
            interface: interface.clone(),
            v4,
            table,
            to,
            hop: past.hop,
            addresses: past.addresses.clone(),
        };
        let best = self.hops.iter();
        let best = best.map(|((interface, v4, to), past)| entry(interface, *v4, None, *to, past));
        let others = self.tables.iter();
        let others = others.map(|((i, v4, table), past)| entry(i, *v4, Some(*table), None, past));
        best.chain(others).collect()
    }

    /// Takes what the program before this one had seen, but for what cannot be.
    pub fn recall(&mut self, all: impl IntoIterator<Item = Remembered>) {
        for r in all.into_iter().filter(Remembered::fits) {
            let (hop, addresses) = (r.hop, r.addresses);
            let past = Past { hop, addresses };
            match r.table {
                Some(table) => self.tables.insert((r.interface, r.v4, table), past),
                None => self.hops.insert((r.interface, r.v4, r.to), past),
            };
        }
    }

    /// The next hop to everywhere, or to a host, that the interface had last.
    pub fn hop(&self, interface: &str, v4: bool, to: Option<IpAddr>) -> Option<&Past> {
        self.hops.get(&(interface.to_owned(), v4, to))
    }

    /// The next hop that the interface had last in one table, put there by
    /// somebody else.
    pub fn hop_in(&self, interface: &str, v4: bool, table: u32) -> Option<&Past> {
        self.tables.get(&(interface.to_owned(), v4, table))
    }
}
