//! Network configuration of the kernel, as far as accesses are concerned.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use crate::links::{Address, Interface};
use ipnet::IpNet;

/// The number by which the routing protocol of our routes and rules is told
/// apart (`RTPROT_*`; not assigned to anyone in iproute2's table).
pub const PROTOCOL: u8 = 77;
/// The priority of our rule that asks our table for routes to the proxy alone: they come
/// before whatever the main table has for it by another interface.
pub const PEER_PRIORITY: u32 = 7697;
/// The priority of our rule that asks the main table for everything but its default routes:
/// neighbours, static routes, VPNs.
pub const NETWORKS_PRIORITY: u32 = 7698;
/// The priority of our rule that asks our table for all the rest: before the rules of others
/// that lead elsewhere, after the kernel's own (0).
pub const RULE_PRIORITY: u32 = 7700;
/// Our routing table of an interface is this plus the interface's index.
pub const FIRST_TABLE: u32 = 77_000_000;
/// Our table of what is not bonded: no interface has the index 0.
pub const DEFAULT_TABLE: u32 = FIRST_TABLE;
/// The main routing table.
pub const MAIN_TABLE: u32 = 254;
/// The priority of the kernel's rule that asks the main table.
pub const MAIN_PRIORITY: u32 = 32766;
/// The priority of our rules for what is not bonded: directly before the main table, after
/// whatever others have there.
pub const DEFAULT_PRIORITY: u32 = MAIN_PRIORITY - 1;

/// Action of a route on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteKind {
    /// Sends them out by an interface.
    #[default]
    Unicast,
    /// Refuses them (`unreachable`, `prohibit`, `blackhole`).
    Refuse,
    /// Passes them on to the next rule (`throw`).
    Throw,
}

/// A route by one next hop. One of several next hops (`nexthop`) is as many of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// The routing table.
    pub table: u32,
    /// The destinations; of length 0 for a default route.
    pub to: IpNet,
    /// The sources that it is for, where it is for some only (IPv6).
    pub from: Option<IpNet>,
    /// Action on packets.
    pub kind: RouteKind,
    /// The interface that it leads out by; 0 for none.
    pub ifindex: u32,
    /// The next hop; absent where the interface leads to the destination itself.
    pub gateway: Option<IpAddr>,
    /// The gateway is on the link, whatever the networks of the interface are.
    pub onlink: bool,
    /// The source address that it asks for (`src`).
    pub source: Option<IpAddr>,
    /// Its metric.
    pub metric: u32,
    /// Number of the routing protocol that made it (`RTPROT_*`).
    pub protocol: u8,
}

impl Route {
    /// A route of nobody's in `table` to `to`, without a gateway.
    pub fn new(table: u32, to: IpNet, ifindex: u32) -> Self {
        Self {
            table,
            to,
            from: None,
            kind: RouteKind::Unicast,
            ifindex,
            gateway: None,
            onlink: false,
            source: None,
            metric: 0,
            protocol: 0,
        }
    }

    /// Whether it is one of IPv4, else of IPv6.
    pub fn is_v4(&self) -> bool {
        self.to.addr().is_ipv4()
    }

    /// Whether it is a default route.
    pub fn is_default(&self) -> bool {
        self.to.prefix_len() == 0
    }

    /// Whether it is one of ours.
    pub fn is_ours(&self) -> bool {
        self.protocol == PROTOCOL
    }

    /// Whether it is one of ours for what is not bonded.
    pub fn is_for_unbonded(&self) -> bool {
        self.is_ours() && self.table == DEFAULT_TABLE
    }

    /// Whether it takes packets from `source` to `to`.
    pub fn takes(&self, source: IpAddr, to: IpAddr) -> bool {
        self.to.contains(&to) && self.from.is_none_or(|f| f.contains(&source))
    }

    /// Whether `other` is the same for the kernel, which does not tell all of it in the same
    /// way for both families.
    pub fn is_like(&self, other: &Self) -> bool {
        let key = |r: &Self| {
            (
                (r.table, r.to, r.from, r.kind),
                (r.ifindex, r.gateway, r.source),
                (r.metric, r.protocol),
            )
        };
        key(self) == key(other)
    }
}

/// All destinations of IPv4, or of IPv6.
pub fn everywhere(v4: bool) -> IpNet {
    let any = match v4 {
        true => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        false => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    IpNet::new_assert(any, 0)
}

/// Action of a rule on the packets that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Looks them up in this table.
    Lookup(u32),
    /// Refuses them.
    Refuse,
    /// Goes on with the first rule of this priority or a later one.
    Goto(u32),
    /// Nothing.
    Nothing,
}

/// Whether the packets of an access meet the conditions of a rule beyond source and
/// destination: packets of this machine's programs, without a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rest {
    /// Conditions met: there are no more, or none that counts.
    #[default]
    Met,
    /// Conditions not met, as with a mark or another incoming interface.
    Unmet,
    /// Conditions met by some packets, as with a user, a port or a protocol.
    Perhaps,
}

/// A rule of the routing policy database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule {
    /// Its place: lower ones are asked first.
    pub priority: u32,
    /// Sources of the packets; of length 0 for all of the family.
    pub source: IpNet,
    /// Whereto, if not anywhere.
    pub to: Option<IpNet>,
    /// Its other conditions.
    pub rest: Rest,
    /// Inversion: the rule is for packets that do not meet the conditions (`not`).
    pub inverted: bool,
    /// Action on the packets.
    pub action: Action,
    /// Routes of this prefix length or less do not count (`suppress_prefixlength`).
    pub suppress: Option<u8>,
    /// Number of the routing protocol that made it (`RTPROT_*`); 0 where not told.
    pub protocol: u8,
}

impl Rule {
    /// A rule of nobody's "packets from `source` use `table`".
    pub fn new(priority: u32, source: IpNet, table: u32) -> Self {
        Self {
            priority,
            source,
            to: None,
            rest: Rest::Met,
            inverted: false,
            action: Action::Lookup(table),
            suppress: None,
            protocol: 0,
        }
    }

    /// Whether it is one of ours.
    pub fn is_ours(&self) -> bool {
        let ours = [
            PEER_PRIORITY,
            NETWORKS_PRIORITY,
            RULE_PRIORITY,
            DEFAULT_PRIORITY,
        ];
        self.protocol == PROTOCOL && ours.contains(&self.priority)
    }

    /// Whether it is one of ours for what is not bonded.
    pub fn is_for_unbonded(&self) -> bool {
        self.is_ours() && self.priority == DEFAULT_PRIORITY
    }

    /// Whether somebody made it for certain sources, before the main table is asked.
    pub fn is_by_source(&self) -> bool {
        self.source.prefix_len() > 0 && self.priority < MAIN_PRIORITY
    }

    /// Whether `other` does the same at the same place, whoever made it: the kernel takes only
    /// one of them.
    pub fn is_like(&self, other: &Self) -> bool {
        let protocol = self.protocol;
        *self == Self { protocol, ..*other }
    }
}

impl std::fmt::Display for Rule {
    /// In the words of `ip rule`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.priority)?;
        if self.inverted {
            f.write_str("not ")?;
        }
        match self.source.prefix_len() {
            0 => f.write_str("from all")?,
            _ if self.source == IpNet::from(self.source.addr()) => {
                write!(f, "from {}", self.source.addr())?;
            }
            _ => write!(f, "from {}", self.source)?,
        }
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        match self.action {
            Action::Lookup(MAIN_TABLE) => f.write_str(" lookup main")?,
            Action::Lookup(table) => write!(f, " lookup {table}")?,
            Action::Refuse => f.write_str(" prohibit")?,
            Action::Goto(priority) => write!(f, " goto {priority}")?,
            Action::Nothing => f.write_str(" nop")?,
        }
        match self.suppress {
            Some(n) => write!(f, " suppress_prefixlength {n}"),
            None => Ok(()),
        }
    }
}

/// Everything at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Their addresses.
    pub addresses: Vec<Address>,
    /// Routes of all tables but the local one: default routes, those that lead to the proxy,
    /// and ours.
    pub routes: Vec<Route>,
    /// The rules, in the order in which they are asked.
    pub rules: Vec<Rule>,
}

impl View {
    /// The interface with this index.
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|i| i.index == index)
    }

    /// The name of the interface with this index.
    pub fn name(&self, index: u32) -> String {
        let known = self.interface(index).map(|i| i.name.clone());
        known.unwrap_or_else(|| format!("interface {index}"))
    }
}

/// The best route that somebody has by this interface to a host, as the kernel has it now: in
/// the main table, else in any other. Those for certain sources count for `source`, if one is
/// given.
pub fn live<'a>(
    view: &'a View,
    interface: &Interface,
    to: IpAddr,
    source: Option<IpAddr>,
) -> Option<&'a Route> {
    best(view, interface, source, |r| r.to.contains(&to))
}

/// Returns the best default route that somebody has by this interface, chosen as `live` does.
pub fn live_default<'a>(
    view: &'a View,
    interface: &Interface,
    v4: bool,
    source: Option<IpAddr>,
) -> Option<&'a Route> {
    best(view, interface, source, |r| {
        r.is_default() && r.is_v4() == v4
    })
}

fn best<'a>(
    view: &'a View,
    interface: &Interface,
    source: Option<IpAddr>,
    leads: impl Fn(&Route) -> bool,
) -> Option<&'a Route> {
    let fits = |r: &&Route| {
        let from = match (r.from, source) {
            (Some(from), Some(source)) => from.contains(&source),
            _ => true,
        };
        r.ifindex == interface.index
            && !r.is_ours()
            && r.kind == RouteKind::Unicast
            && leads(r)
            && from
    };
    let order = |r: &&Route| {
        let length = std::cmp::Reverse(r.to.prefix_len());
        (r.table != MAIN_TABLE, length, r.metric)
    };
    view.routes.iter().filter(fits).min_by_key(order)
}
