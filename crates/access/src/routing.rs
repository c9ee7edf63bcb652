//! How packets from an address of an access get out by its interface.
//!
//! Our table of an interface has its default route, and one to the proxy. Three rules by source
//! lead there, so that the main table loses nothing but its default routes:
//!
//! | priority | what is looked up |
//! |---|---|
//! | [`PEER_PRIORITY`] | in our table, the proxy alone |
//! | [`NETWORKS_PRIORITY`] | in the main table, everything but default routes |
//! | [`RULE_PRIORITY`] | in our table, everything else |

mod walk;

use std::net::IpAddr;

use ipnet::IpNet;

use super::memory::{Hop, Memory, Past};
use super::view::{
    Action, Address, FIRST_TABLE, Interface, MAIN_TABLE, NETWORKS_PRIORITY, PEER_PRIORITY,
    PROTOCOL, RULE_PRIORITY, Route, Rule, View, everywhere, live, live_default,
};
pub use walk::{Packet, Way, walk};

/// Routing that takes packets from an address out by its interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lead {
    /// Our rules.
    pub rules: Vec<Rule>,
    /// Our routes: in our table, or one that is back in a table of somebody else's.
    pub routes: Vec<Route>,
    /// Why packets do not get out; absent if they do.
    pub lacks: Option<String>,
    /// How some of them leave elsewhere.
    pub note: Option<String>,
}

impl Lead {
    fn lacking(why: String) -> Self {
        Self {
            lacks: Some(why),
            ..Self::default()
        }
    }
}

/// An address, and where packets from it are to get.
#[derive(Clone, Copy, Debug)]
pub struct From<'a> {
    /// Its interface.
    pub interface: &'a Interface,
    /// The address.
    pub address: &'a Address,
    /// The proxy's addresses.
    pub peers: &'a [IpAddr],
}

impl From<'_> {
    fn v4(&self) -> bool {
        self.address.address.is_ipv4()
    }

    /// The proxy's addresses of this family.
    fn peers(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.v4();
        self.peers
            .iter()
            .copied()
            .filter(move |p| p.is_ipv4() == v4)
    }

    fn packet(&self, to: IpAddr, bound: bool) -> Packet {
        Packet {
            source: self.address.address,
            to,
            bound: bound.then_some(self.interface.index),
        }
    }
}

/// Finds out how packets from an address get out by its interface, and what is to be set for
/// that.
pub fn lead(view: &View, memory: &Memory, from: From<'_>) -> Lead {
    let mut theirs: Vec<&Rule> = view.rules.iter().filter(|r| !r.is_ours()).collect();
    theirs.sort_by_key(|r| r.priority);
    let there: Vec<&Route> = view.routes.iter().filter(|r| !r.is_ours()).collect();
    let narrow = memory.narrow.contains(&from.address.address);
    if is_led(&theirs, &there, view, from) && !(narrow && comes_after(&theirs, &there, from)) {
        return Lead::default();
    }
    if let Some(route) = lost(&theirs, &there, memory, view, from) {
        let routes = vec![route];
        return Lead {
            routes,
            ..Lead::default()
        };
    }
    let (rules, routes) = match ours(view, memory, from) {
        Ok(ours) => ours,
        Err(lacks) => return Lead::lacking(lacks),
    };
    let mut all = theirs;
    all.extend(&rules);
    all.sort_by_key(|r| r.priority);
    let mut ways = there;
    ways.extend(&routes);
    let lacks = astray(&all, &ways, view, from);
    let note = match lacks {
        Some(_) => None,
        None => unbound(&all, &ways, view, from),
    };
    Lead {
        rules,
        routes,
        lacks,
        note,
    }
}

/// Whether rules of others that name the source lead all of its packets to the proxy out by the
/// interface, and all others for which it has a way.
fn is_led(rules: &[&Rule], routes: &[&Route], view: &View, from: From<'_>) -> bool {
    let led = |to| {
        let way = walk(rules, routes, from.packet(to, false));
        way.is_by(from.interface.index) && way.rule().is_some_and(Rule::is_by_source)
    };
    let any = everywhere(from.v4()).addr();
    let source = Some(from.address.address);
    let whole = live_default(view, from.interface, from.v4(), source).is_some();
    let some = from.peers().next().is_some();
    from.peers().all(led) && (some && !whole || led(any))
}

/// Whether a rule of ours would come before the one that leads packets to everywhere.
fn comes_after(rules: &[&Rule], routes: &[&Route], from: From<'_>) -> bool {
    let way = walk(
        rules,
        routes,
        from.packet(everywhere(from.v4()).addr(), false),
    );
    way.rule().is_none_or(|r| r.priority > PEER_PRIORITY)
}

/// The route that a table of somebody else's has lost with the interface.
fn lost(
    rules: &[&Rule],
    routes: &[&Route],
    memory: &Memory,
    view: &View,
    from: From<'_>,
) -> Option<Route> {
    let v4 = from.v4();
    let by_source = |r: &&&Rule| {
        r.is_by_source() && r.source.contains(&from.address.address) && r.suppress.is_none()
    };
    for rule in rules.iter().filter(by_source) {
        let Action::Lookup(table) = rule.action else {
            return None;
        };
        let mut there = routes.iter();
        if table == MAIN_TABLE || there.any(|r| r.table == table && r.is_v4() == v4) {
            return None;
        }
        let had = memory.hop_in(&from.interface.name, v4, table);
        if let Some(hop) = had.and_then(|p| valid(view, from, p)) {
            return Some(route(from, table, everywhere(v4), hop));
        }
    }
    None
}

/// Our rules and routes, or why there is no way out.
fn ours(view: &View, memory: &Memory, from: From<'_>) -> Result<(Vec<Rule>, Vec<Route>), String> {
    let v4 = from.v4();
    let table = FIRST_TABLE + from.interface.index;
    let mut routes = Vec::new();
    let whole = hop(view, memory, from, None);
    for peer in from.peers() {
        if let Ok(hop) = hop(view, memory, from, Some(peer)) {
            routes.push(route(from, table, IpNet::from(peer), hop));
        }
    }
    match whole {
        Ok(hop) => routes.push(route(from, table, everywhere(v4), hop)),
        Err(lacks) if routes.is_empty() => return Err(lacks),
        Err(_) => {}
    }
    let source = IpNet::from(from.address.address);
    let rule = |priority, table, suppress| Rule {
        suppress,
        protocol: PROTOCOL,
        ..Rule::new(priority, source, table)
    };
    let rules = vec![
        rule(PEER_PRIORITY, table, Some(0)),
        rule(NETWORKS_PRIORITY, MAIN_TABLE, Some(0)),
        rule(RULE_PRIORITY, table, None),
    ];
    Ok((rules, routes))
}

/// Returns the next hop by the interface to the proxy's address `to`, or to everywhere, if there
/// is one.
pub(crate) fn way_out(
    view: &View,
    memory: &Memory,
    from: From<'_>,
    to: Option<IpAddr>,
) -> Option<Hop> {
    hop(view, memory, from, to).ok()
}

/// The next hop to the proxy's address `to`, or to everywhere: the one that there is, else the
/// one that there was last.
fn hop(view: &View, memory: &Memory, from: From<'_>, to: Option<IpAddr>) -> Result<Hop, String> {
    let (v4, interface) = (from.v4(), from.interface);
    let source = Some(from.address.address);
    let there = match to {
        Some(to) => live(view, interface, to, source),
        None => live_default(view, interface, v4, source),
    };
    if let Some(r) = there {
        let mut hop = Hop::from(r);
        // A gateway behind a route of its own (an address of length 32 or 128).
        hop.onlink |= hop.gateway.is_some_and(|g| !reaches(view, interface, g));
        return Ok(hop);
    }
    let link = Hop {
        gateway: None,
        onlink: false,
        metric: 0,
    };
    if to.is_some_and(|t| from.address.reaches(t)) {
        return Ok(link);
    }
    let past = memory.hop(&interface.name, v4, None);
    // The way to everywhere is one to the proxy.
    let host = to.and_then(|_| memory.hop(&interface.name, v4, to));
    if let Some(hop) = host
        .into_iter()
        .chain(past)
        .find_map(|p| valid(view, from, p))
    {
        return Ok(hop);
    }
    if interface.point_to_point {
        return Ok(link);
    }
    Err(match past.map(|p| p.hop.gateway) {
        Some(Some(gateway)) => format!(
            "no default route leads out by {}, and its last gateway, {gateway}, is not in its \
             network any more: {WAITS}",
            interface.name
        ),
        _ => nowhere(from),
    })
}

const WAITS: &str = "it waits for DHCP or a router advertisement";

/// Why packets from an address for which there is no route do not get out.
fn nowhere(from: From<'_>) -> String {
    let name = &from.interface.name;
    match from.peers().next() {
        Some(_) => format!("no default route leads out by {name}, nor one to the proxy: {WAITS}"),
        None => format!("no default route leads out by {name}: {WAITS}"),
    }
}

/// Finds out why packets of a socket that is bound to the interface (`SO_BINDTODEVICE`) do not
/// get to the proxy, or to everywhere where no proxy is named; `None` if they do. Nothing has to
/// be set for such a socket.
pub fn bound(view: &View, from: From<'_>) -> Option<String> {
    let mut rules: Vec<&Rule> = view.rules.iter().collect();
    rules.sort_by_key(|r| r.priority);
    let routes: Vec<&Route> = view.routes.iter().collect();
    let to = from.peers().next();
    let on_link = to.is_some_and(|t| from.address.reaches(t)) || from.interface.point_to_point;
    let to = to.unwrap_or(everywhere(from.v4()).addr());
    match walk(&rules, &routes, from.packet(to, true)) {
        Way::Out(..) => None,
        Way::Refused(rule) => Some(format!(
            "packets from {} are refused by the rule \"{rule}\": delete it",
            from.address.address
        )),
        Way::Nowhere => (!on_link).then(|| nowhere(from)),
    }
}

/// A next hop from before, if it still can be one: the gateway is in the interface's network,
/// or the address is one of those that it had then.
fn valid(view: &View, from: From<'_>, past: &Past) -> Option<Hop> {
    let interface = from.interface;
    let same = past.addresses.contains(&from.address.address);
    match past.hop.gateway {
        Some(g) if reaches(view, interface, g) => Some(past.hop),
        Some(_) if same => Some(Hop {
            onlink: true,
            ..past.hop
        }),
        None if same || interface.point_to_point => Some(past.hop),
        _ => None,
    }
}

fn route(from: From<'_>, table: u32, to: IpNet, hop: Hop) -> Route {
    // IPv6 replaces a metric of 0 by one of its own.
    let metric = match table >= FIRST_TABLE {
        true => 1,
        false => hop.metric,
    };
    Route {
        gateway: hop.gateway,
        onlink: hop.onlink,
        metric,
        protocol: PROTOCOL,
        ..Route::new(table, to, from.interface.index)
    }
}

/// Whether the interface reaches `gateway` without another gateway, by its networks.
fn reaches(view: &View, interface: &Interface, gateway: IpAddr) -> bool {
    if let IpAddr::V6(g) = gateway
        && g.is_unicast_link_local()
    {
        return true;
    }
    view.addresses
        .iter()
        .any(|a| a.ifindex == interface.index && a.reaches(gateway))
}

/// Why packets from the address do not get out by the interface although there is a way: a
/// rule of others refuses them, or sends them where it does not lead, and names their source.
fn astray(rules: &[&Rule], routes: &[&Route], view: &View, from: From<'_>) -> Option<String> {
    let (address, index) = (from.address.address, from.interface.index);
    let to = from.peers().next().unwrap_or(everywhere(from.v4()).addr());
    let bound = walk(rules, routes, from.packet(to, true));
    if let Way::Refused(rule) = bound {
        return Some(format!(
            "packets from {address} are refused by the rule \"{rule}\", which is not Braid's: \
             delete it, or give it a priority above {RULE_PRIORITY}"
        ));
    }
    let way = walk(rules, routes, from.packet(to, false));
    let rule = way.rule().filter(|r| !r.is_ours() && r.is_by_source())?;
    // What is bound to the interface, as subflows that join are, goes by the same table.
    let by_it = bound.is_by(index) && bound.rule() == Some(rule);
    let Way::Out(by, _) = &way else { return None };
    (!by_it && !way.is_by(index)).then(|| {
        format!(
            "packets from {address} leave by {} by the rule \"{rule}\", which is not Braid's: \
             delete it, or give it a priority above {RULE_PRIORITY}",
            view.name(by[0].ifindex)
        )
    })
}

/// How packets of sockets that are not bound to the interface leave elsewhere.
fn unbound(rules: &[&Rule], routes: &[&Route], view: &View, from: From<'_>) -> Option<String> {
    let (address, index) = (from.address.address, from.interface.index);
    let any = everywhere(from.v4()).addr();
    let mut to: Vec<(IpAddr, &str)> = from.peers().map(|p| (p, "the proxy")).collect();
    to.push((any, "the Internet"));
    for (to, name) in to {
        let way = walk(rules, routes, from.packet(to, false));
        let how = match &way {
            _ if way.is_by(index) => continue,
            Way::Out(by, _) => {
                let by = by.iter().find(|r| r.ifindex != index);
                format!("leave by {}", view.name(by.map_or(0, |r| r.ifindex)))
            }
            Way::Refused(_) => "are refused".to_owned(),
            Way::Nowhere => continue,
        };
        let Some(rule) = way.rule().filter(|r| before_ours(r)) else {
            continue;
        };
        return Some(format!(
            "packets from {address} to {name} {how} where their socket is not bound to {}, by the \
             rule \"{rule}\", which is not Braid's; subflows that join are bound and are not \
             concerned",
            from.interface.name
        ));
    }
    None
}

/// Whether a rule of others is asked before ours.
fn before_ours(rule: &Rule) -> bool {
    !rule.is_ours() && rule.priority <= RULE_PRIORITY
}

#[cfg(test)]
mod tests;
