//! Way out of what is not bonded: packets of sockets that are bound to no address, such as plain
//! TCP, UDP and the first subflow of an MPTCP connection.
//!
//! The main table decides about these. As long as the interface that it names serves no access,
//! or serves one that works and is to be used, nothing is set. Else rules directly before the
//! main table ([`DEFAULT_PRIORITY`]) lead to the accesses that work ([`DEFAULT_TABLE`]):
//!
//! | rule | purpose |
//! |---|---|
//! | `lookup DEFAULT_TABLE suppress_prefixlength 0` | routes to the proxy alone, where the default route is not enough |
//! | `lookup main suppress_prefixlength 0` | neighbours, static routes, VPNs: all of the main table but its default routes |
//! | `lookup DEFAULT_TABLE` | everything else |
//!
//! They hold for packets whose source the kernel has still to choose. What has a source has begun
//! somewhere, and goes on there: by the rules of that address ([`crate::routing`]), or as the main
//! table says. For this reason routes name the source, which is an address that has such rules.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use super::memory::Memory;
use super::plan::Use;
use super::routing::{From, way_out};
use super::rules::Verdict;
use super::settings::{AccessSpec, Condition, Settings};
use super::view::{
    Action, DEFAULT_PRIORITY, DEFAULT_TABLE, MAIN_PRIORITY, MAIN_TABLE, PROTOCOL, Route, Rule,
    View, everywhere,
};

/// Inputs of the plan.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Settings of the accesses.
    pub settings: &'a Settings,
    /// The kernel's configuration.
    pub view: &'a View,
    /// Routes that interfaces had.
    pub memory: &'a Memory,
    /// Condition of addresses that do not work.
    pub conditions: &'a BTreeMap<IpAddr, Condition>,
    /// Addresses that serve, with the accesses in the order of preference.
    pub uses: &'a [Use],
    /// Verdict on each interface of the view, in its order.
    pub verdicts: &'a [Verdict],
}

impl Facts<'_> {
    /// Whether nothing comes back at an address.
    pub(crate) fn is_silent(&self, u: &Use) -> bool {
        let condition = self.conditions.get(&u.address);
        matches!(condition, Some(Condition::Silent { .. }))
    }
}

/// Rules and routes for what is not bonded; none where the main table does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultRoute {
    /// Our rules, in the order in which they are to be asked.
    pub rules: Vec<Rule>,
    /// Our routes.
    pub routes: Vec<Route>,
    /// Accesses that are used instead of others, and why, each in a sentence.
    pub notes: Vec<String>,
}

/// Plans the way out of what is not bonded.
pub fn default_route(facts: Facts<'_>) -> DefaultRoute {
    let mut all = DefaultRoute::default();
    for v4 in [true, false] {
        let family = Family::new(facts, v4);
        let (routes, notes) = family.routes();
        all.rules.extend(family.rules(&routes));
        all.routes.extend(routes);
        for note in notes {
            if v4 {
                all.notes.push(note);
            } else if !all.notes.contains(&note) {
                all.notes.push(format!("IPv6: {note}"));
            }
        }
    }
    all
}

/// Place of an access: those of the least one are active, others wait for them to go.
type Place = (bool, u32);

fn place(access: &AccessSpec) -> Place {
    match access.is_backup() {
        // Backups take no part in the order.
        true => (true, 0),
        false => (false, access.priority.map_or(u32::MAX, u32::from)),
    }
}

/// Access by which the main table leads although it is not to be used.
struct Unfit<'a> {
    access: &'a str,
    why: &'static str,
}

/// Plan of one family.
pub(crate) struct Family<'a> {
    facts: Facts<'a>,
    v4: bool,
    /// Addresses that work, the most wanted first.
    pub(crate) exits: Vec<&'a Use>,
}

impl<'a> Family<'a> {
    pub(crate) fn new(facts: Facts<'a>, v4: bool) -> Self {
        let mut family = Self {
            facts,
            v4,
            exits: vec![],
        };
        let works = |u: &&Use| family.works(u);
        let mut exits: Vec<_> = family.uses().filter(works).collect();
        // One that removes the options of MPTCP bonds nothing: better than a backup, no more.
        let stripped = |u: &Use| facts.conditions.contains_key(&u.address);
        exits.sort_by_key(|u| {
            let place = place(&facts.settings.accesses[u.access]);
            (place, stripped(u), u.access)
        });
        family.exits = exits;
        family
    }

    /// Addresses of this family that lead out.
    fn uses(&self) -> impl Iterator<Item = &'a Use> + Clone {
        let v4 = self.v4;
        let routed = move |u: &&Use| u.routed && u.address.is_ipv4() == v4;
        self.facts.uses.iter().filter(routed)
    }

    fn is_silent(&self, u: &Use) -> bool {
        self.facts.is_silent(u)
    }

    fn works(&self, u: &Use) -> bool {
        !u.trial && !self.is_silent(u)
    }

    fn access(&self, number: usize) -> &'a AccessSpec {
        &self.facts.settings.accesses[number]
    }

    /// Routes to everywhere and to the proxy, as far as the main table's lead by accesses that are
    /// not to be used; and notes about them.
    fn routes(&self) -> (Vec<Route>, Vec<String>) {
        let (mut routes, mut notes) = (vec![], vec![]);
        let main = Rule::new(MAIN_PRIORITY, everywhere(self.v4), MAIN_TABLE);
        if !self.facts.view.rules.iter().any(|r| r.is_like(&main)) {
            return (routes, notes);
        }
        if let Some((new, by, unfit)) = self.instead_of_main(None) {
            notes.push(format!(
                "new connections that are not bonded leave by {by}: {}, which has the default \
                 route, {}",
                unfit.access, unfit.why
            ));
            routes.extend(new);
        }
        let peers = self.facts.settings.proxy.iter();
        for peer in peers.filter(|p| p.is_ipv4() == self.v4) {
            if !self.is_by_default(*peer)
                && let Some((new, by, unfit)) = self.instead_of_main(Some(*peer))
            {
                notes.push(format!(
                    "new connections to {peer} leave by {by}: {}, which has the route to it, {}",
                    unfit.access, unfit.why
                ));
                routes.extend(new);
            }
        }
        (routes, notes)
    }

    /// Routes to take the place of the main table's, the name of the access that they prefer, and
    /// what is wrong with the main table's; `None` where the main table is right or nothing
    /// better is there.
    fn instead_of_main(&self, to: Option<IpAddr>) -> Option<(Vec<Route>, &'a str, Unfit<'a>)> {
        let new = self.routes_to(to);
        let best = self.access(self.serving(new.first()?.ifindex)?);
        let unfit = self.unfit(to, best)?;
        Some((new, best.name.as_str(), unfit))
    }

    /// Whether packets to the proxy need no route beside the default route.
    fn is_by_default(&self, peer: IpAddr) -> bool {
        let default = |r: &Route| r.is_default();
        let all = self.routes_to(None).len() == self.routes_to(Some(peer)).len();
        self.in_main(Some(peer)).iter().all(|r| default(r)) && all
    }

    /// Best routes of the main table to the proxy's address, or to everywhere.
    fn in_main(&self, to: Option<IpAddr>) -> Vec<&'a Route> {
        let leads = |r: &&Route| match to {
            Some(to) => r.to.contains(&to),
            None => r.is_default() && r.is_v4() == self.v4,
        };
        let here = |r: &&Route| r.table == MAIN_TABLE && !r.is_ours() && r.from.is_none();
        let order = |r: &Route| (std::cmp::Reverse(r.to.prefix_len()), r.metric);
        let all = self.facts.view.routes.iter().filter(here).filter(leads);
        let best = all.clone().map(order).min();
        all.filter(|r| Some(order(r)) == best).collect()
    }

    /// Returns the access that has a best route of the main table and is not to be used while
    /// `best` works; `None` where the main table is right.
    fn unfit(&self, to: Option<IpAddr>, best: &AccessSpec) -> Option<Unfit<'a>> {
        let holders = self.in_main(to).into_iter().map(|r| r.ifindex);
        // A tunnel, or whatever else is no access, is somebody's intention.
        let serving = holders.map(|i| Some((i, self.access(self.serving(i)?))));
        let serving: Vec<_> = serving.collect::<Option<_>>()?;
        serving.into_iter().find_map(|(ifindex, access)| {
            let why = self.drawback(ifindex, access, best)?;
            let access = access.name.as_str();
            Some(Unfit { access, why })
        })
    }

    /// Number of the access that an interface serves, or would if it were enabled.
    fn serving(&self, ifindex: u32) -> Option<usize> {
        let mut all = self.facts.view.interfaces.iter().zip(self.facts.verdicts);
        match all.find(|(i, _)| i.index == ifindex)?.1 {
            Verdict::Serves(access) => Some(*access),
            Verdict::Out { .. } => None,
        }
    }

    /// Why an access is not to be used by an interface while `best` works.
    fn drawback(
        &self,
        ifindex: u32,
        access: &AccessSpec,
        best: &AccessSpec,
    ) -> Option<&'static str> {
        let interface = self.facts.view.interface(ifindex)?;
        let mut mine = self.uses().filter(|u| u.ifindex == ifindex);
        let silent = mine.clone().any(|u| self.is_silent(u)) && !mine.any(|u| self.works(u));
        match () {
            () if !access.enabled => Some("is switched off"),
            () if !interface.up => Some("is down"),
            () if !interface.carrier => Some("has no carrier"),
            () if silent => Some("is silent"),
            () if access.is_backup() && !best.is_backup() => Some("is a backup"),
            () if place(access) > place(best) => Some("comes later in the order of priorities"),
            () => None,
        }
    }

    /// Our routes by the accesses that work, one for each interface, the most wanted first.
    fn routes_to(&self, to: Option<IpAddr>) -> Vec<Route> {
        let mut interfaces: Vec<u32> = Vec::new();
        for u in &self.exits {
            if !interfaces.contains(&u.ifindex) {
                interfaces.push(u.ifindex);
            }
        }
        let routes = interfaces.into_iter().filter_map(|i| self.route_by(i, to));
        (1..)
            .zip(routes)
            .map(|(metric, r)| Route { metric, ..r })
            .collect()
    }

    /// Our route by an interface, if it leads there.
    pub(crate) fn route_by(&self, ifindex: u32, to: Option<IpAddr>) -> Option<Route> {
        let Facts { view, memory, .. } = self.facts;
        let mut mine = self.exits.iter().filter(|u| u.ifindex == ifindex);
        // Beside a global address, a local one (RFC 4193) leads to the proxy at most.
        let local = |u: &Use| matches!(u.address, IpAddr::V6(a) if a.is_unique_local());
        let first = mine.clone().next()?;
        let source = mine.find(|u| to.is_some() || !local(u)).unwrap_or(first);
        let mut addresses = view.addresses.iter();
        let from = From {
            interface: view.interface(ifindex)?,
            address: addresses.find(|a| (a.ifindex, a.address) == (ifindex, source.address))?,
            peers: &self.facts.settings.proxy,
        };
        let hop = way_out(view, memory, from, to)?;
        let to = to.map_or(everywhere(self.v4), IpNet::from);
        Some(Route {
            gateway: hop.gateway,
            onlink: hop.onlink,
            source: Some(source.address),
            protocol: PROTOCOL,
            ..Route::new(DEFAULT_TABLE, to, ifindex)
        })
    }

    /// Our rules for these routes.
    fn rules(&self, routes: &[Route]) -> Vec<Rule> {
        let mut rules = Vec::new();
        if routes.is_empty() {
            return rules;
        }
        let rule = |source, action, suppress| Rule {
            action,
            suppress,
            protocol: PROTOCOL,
            ..Rule::new(DEFAULT_PRIORITY, source, 0)
        };
        let unsourced = match self.v4 {
            true => IpNet::from(everywhere(true).addr()),
            // No source of IPv6 stands for none: what has one passes by the other rules.
            false => {
                let halves = [
                    Ipv6Addr::UNSPECIFIED,
                    Ipv6Addr::new(0x8000, 0, 0, 0, 0, 0, 0, 0),
                ];
                for half in halves {
                    let half = IpNet::new_assert(half.into(), 1);
                    rules.push(rule(half, Action::Goto(MAIN_PRIORITY), None));
                }
                everywhere(false)
            }
        };
        let asks = |table, suppress| rule(unsourced, Action::Lookup(table), suppress);
        if routes.iter().any(|r| !r.is_default()) {
            rules.push(asks(DEFAULT_TABLE, Some(0)));
        }
        if routes.iter().any(Route::is_default) {
            rules.push(asks(MAIN_TABLE, Some(0)));
            rules.push(asks(DEFAULT_TABLE, None));
        }
        rules
    }
}

#[cfg(test)]
mod tests;
