//! Traffic of the device's own programs, and the routes by which it is known.
//!
//! What a program sends without having bound itself to an address or an interface gets a source of
//! its own ([`source`]), which belongs to no access: connections over the bond outlive each of these.
//! Rules of nftables know it by that source, and divert it as they divert what hosts send
//! ([`super::tables`]). These rules of routing give it, in the order of precedence:
//!
//! | rule | purpose |
//! |---|---|
//! | `fwmark RESOLVING lookup main` | questions to resolvers, where they may leave past the bond |
//! | `from SOURCE lookup TABLE` | what has the source already |
//! | `to PROXY lookup main` | what goes to the proxy itself, or to many: as it would without the bond |
//! | `lookup main suppress_prefixlength 0` | neighbours, static routes, VPNs: all of the main table but its default routes |
//! | `lookup TABLE` | everything else |
//!
//! But for the first two they hold for packets whose source the kernel has still to choose: who has
//! bound itself goes on as before, and so does whoever answers a connection that has begun elsewhere.
//!
//! The table leads to an interface that goes with the process. Nothing leaves by it: rules mark
//! packets, so that they are routed once more. Behind it stands a route that refuses, if there is a kill
//! switch.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressScope};
use rtnetlink::packet_route::route::RouteProtocol;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, IpVersion};

use super::RESOLVING;
use super::routes::{FAMILIES, Hop, Marked, PROTOCOL, RouteError, done, loopback, open};
use crate::ipv6;
use crate::tunnel::{Interface, TunnelError};

/// Interface that the routes lead to.
const INTERFACE: &str = "braid-own";
/// Table of the routes.
const TABLE: u32 = 76_999_997;
/// Main routing table.
const MAIN: u32 = 254;
/// Priorities of the rules: behind those of accesses' addresses (7700), and before the rules of
/// others for what has no source.
const PRIORITIES: std::ops::RangeInclusive<u32> = 7705..=7711;
/// Multicast and broadcast, which have no routes of their own in IPv4.
const TO_MANY: [(Ipv4Addr, u8); 2] = [(Ipv4Addr::new(224, 0, 0, 0), 4), (Ipv4Addr::BROADCAST, 32)];

/// Returns the source of what the device's own programs send: of IPv4 out of the prefix that is
/// there for this (RFC 7335), of IPv6 beside the addresses of tunnels.
pub(crate) fn source(v4: bool) -> IpNet {
    match v4 {
        true => IpAddr::from(Ipv4Addr::new(192, 0, 0, 6)),
        false => IpAddr::from(Ipv6Addr::new(0xfd62, 0x7261, 0x6964, 0xffff, 0, 0, 0, 6)),
    }
    .into()
}

/// Routes of the table of one mark, of which those of the source are not told by a mark.
const OWN: Marked = Marked {
    mark: 0,
    table: TABLE,
    priority: 0,
};

/// Interface that the routes of the device's own programs lead to. The routes stay when this is
/// dropped, without the interface: what refuses then stands alone.
pub(crate) struct Own {
    // It goes with this.
    _interface: Interface,
    routes: OwnRoutes,
}

impl Own {
    /// Makes it, in the network namespace of the calling thread. With `refuse` programs are refused when
    /// this has gone.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) async fn create(refuse: bool) -> Result<Self, TunnelError> {
        let interface = Interface::create(INTERFACE.to_owned()).await?;
        let routes = OwnRoutes {
            by: interface.index(),
            refuse,
        };
        Ok(Self {
            _interface: interface,
            routes,
        })
    }

    /// Returns its routes.
    pub(crate) fn routes(&self) -> OwnRoutes {
        self.routes
    }
}

/// Routes of the device's own programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRoutes {
    /// Index of the interface.
    by: u32,
    refuse: bool,
}

impl OwnRoutes {
    /// Leads what programs send to where rules mark it, but for what goes to the addresses `past`: the
    /// proxy's. Whoever manages the machine's routes may have removed some.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn lay(self, past: &[IpAddr]) -> Result<(), RouteError> {
        for v4 in FAMILIES {
            add_source(v4).await?;
            match self.refuse {
                true => OWN.refuse(v4).await?,
                false => OWN.clear(v4).await?,
            }
            let hop = Hop::Sourced {
                by: self.by,
                source: source(v4).addr(),
            };
            OWN.set(v4, None, hop).await?;
            set_rules(v4, &rules(v4, past)).await?;
        }
        Ok(())
    }

    /// Whether all rules are there.
    ///
    /// # Errors
    /// The kernel does not say.
    pub async fn are_laid(self, past: &[IpAddr]) -> Result<bool, RouteError> {
        let handle = open()?;
        for v4 in FAMILIES {
            let Some(there) = list(&handle, v4).await? else {
                continue;
            };
            let is_there = |rule: &Rule| there.iter().any(|(r, _)| r == rule);
            if !rules(v4, past).iter().all(is_there) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Takes the rules, the routes and the sources back, if they are there.
///
/// # Errors
/// The kernel's refusal.
pub(crate) async fn remove() -> Result<(), RouteError> {
    for v4 in FAMILIES {
        set_rules(v4, &[]).await?;
        OWN.clear(v4).await?;
        remove_source(v4).await?;
    }
    Ok(())
}

/// Rule of routing. Those of one priority differ in their networks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    priority: u32,
    from: Option<IpNet>,
    to: Option<IpNet>,
    action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// Asks a table.
    Lookup(u32),
    /// Asks a table for all but its default routes.
    LookupNetworks(u32),
    /// Asks a table about packets with a mark.
    LookupMarked(u32, u32),
    /// Goes on with the rules from another priority.
    Goto(u32),
    /// Is there to be gone to.
    Nothing,
}

/// Lists the rules of one family. The first of them do nothing without the last.
fn rules(v4: bool, past: &[IpAddr]) -> Vec<Rule> {
    let rule = |priority, from, to, action| Rule {
        priority,
        from,
        to,
        action,
    };
    let (first, last) = (*PRIORITIES.start(), *PRIORITIES.end());
    let mut all = vec![];
    // In IPv4 that is the source of what has none. In IPv6 a rule with sources is not met by it: what
    // has one goes past the others.
    let mut unsourced = None;
    if v4 {
        unsourced = Some(IpNet::from(Ipv4Net::from(Ipv4Addr::UNSPECIFIED)));
    } else {
        // A rule leads on to another alone that is there.
        all.push(rule(last, None, None, Action::Nothing));
        for half in [0, 0x8000] {
            let half = Ipv6Net::new_assert(Ipv6Addr::new(half, 0, 0, 0, 0, 0, 0, 0), 1);
            all.push(rule(first + 2, Some(half.into()), None, Action::Goto(last)));
        }
    }
    all.push(rule(
        first,
        None,
        None,
        Action::LookupMarked(RESOLVING, MAIN),
    ));
    all.push(rule(
        first + 1,
        Some(source(v4)),
        None,
        Action::Lookup(TABLE),
    ));
    let many = TO_MANY.map(|(ip, length)| IpNet::from(Ipv4Net::new_assert(ip, length)));
    let many = many.into_iter().filter(|_| v4);
    let past = past.iter().filter(|a| a.is_ipv4() == v4);
    let past: BTreeSet<IpNet> = past.map(|a| IpNet::from(*a)).chain(many).collect();
    let past = past.into_iter();
    all.extend(past.map(|to| rule(first + 3, unsourced, Some(to), Action::Lookup(MAIN))));
    let networks = Action::LookupNetworks(MAIN);
    all.push(rule(first + 4, unsourced, None, networks));
    all.push(rule(first + 5, unsourced, None, Action::Lookup(TABLE)));
    all
}

/// Puts these rules in place of those that are there. Others are added before any is deleted.
async fn set_rules(v4: bool, wanted: &[Rule]) -> Result<(), RouteError> {
    let handle = open()?;
    let there = list(&handle, v4).await?.unwrap_or_default();
    for rule in wanted {
        if there.iter().any(|(r, _)| r == rule) {
            continue;
        }
        let mut add = handle.rule().add();
        *add.message_mut() = rule.message(v4);
        done(add.execute().await, || format!("add the rule {rule:?}"))?;
    }
    let mut gone: Vec<_> = there
        .into_iter()
        .filter(|(rule, _)| !wanted.contains(rule))
        .collect();
    // What others lead on to goes last.
    gone.sort_by_key(|(rule, _)| (rule.action == Action::Nothing, Reverse(rule.priority)));
    for (rule, message) in gone {
        let removed = handle.rule().del(message).execute().await;
        done(removed, || format!("delete the rule {rule:?}"))?;
    }
    Ok(())
}

/// Lists our rules that are there; `None` where the machine does without that family.
async fn list(handle: &Handle, v4: bool) -> Result<Option<Vec<(Rule, RuleMessage)>>, RouteError> {
    let version = match v4 {
        true => IpVersion::V4,
        false => IpVersion::V6,
    };
    let there = handle.rule().get(version).execute();
    let there: Vec<RuleMessage> = match there.try_collect().await {
        Ok(there) => there,
        Err(e) => {
            done(Err(e), || "list the rules of routing".to_owned())?;
            vec![]
        }
    };
    // The kernel has rules of its own for every family.
    let has_family = !there.is_empty();
    let ours = there.into_iter().filter_map(|m| Some((Rule::read(&m)?, m)));
    Ok(has_family.then(|| ours.collect()))
}

impl Rule {
    fn message(&self, v4: bool) -> RuleMessage {
        let mut m = RuleMessage::default();
        m.header.family = match v4 {
            true => AddressFamily::Inet,
            false => AddressFamily::Inet6,
        };
        m.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL)),
            // What is forwarded is no program's.
            RuleAttribute::Iifname("lo".to_owned()),
        ];
        if let Some(net) = self.from {
            m.header.src_len = net.prefix_len();
            m.attributes.push(RuleAttribute::Source(net.addr()));
        }
        if let Some(net) = self.to {
            m.header.dst_len = net.prefix_len();
            m.attributes.push(RuleAttribute::Destination(net.addr()));
        }
        m.header.action = RuleAction::ToTable;
        match self.action {
            Action::Lookup(table) => m.attributes.push(RuleAttribute::Table(table)),
            Action::LookupNetworks(table) => m.attributes.extend([
                RuleAttribute::Table(table),
                RuleAttribute::SuppressPrefixLen(0),
            ]),
            Action::LookupMarked(mark, table) => m
                .attributes
                .extend([RuleAttribute::Table(table), RuleAttribute::FwMark(mark)]),
            Action::Goto(to) => {
                m.header.action = RuleAction::Goto;
                m.attributes.push(RuleAttribute::Goto(to));
            }
            Action::Nothing => m.header.action = RuleAction::Nop,
        }
        m
    }

    /// Reads one that is ours.
    fn read(m: &RuleMessage) -> Option<Self> {
        let (mut priority, mut protocol, mut table) = (None, None, u32::from(m.header.table));
        let (mut from, mut to, mut mark, mut networks, mut on) = (None, None, None, false, None);
        for attribute in &m.attributes {
            match attribute {
                RuleAttribute::Priority(p) => priority = Some(*p),
                RuleAttribute::Protocol(p) => protocol = Some(u8::from(*p)),
                RuleAttribute::Table(t) => table = *t,
                RuleAttribute::Source(a) => from = IpNet::new(*a, m.header.src_len).ok(),
                RuleAttribute::Destination(a) => to = IpNet::new(*a, m.header.dst_len).ok(),
                RuleAttribute::FwMark(n) if *n != 0 => mark = Some(*n),
                RuleAttribute::SuppressPrefixLen(n) => networks = *n == 0,
                RuleAttribute::Goto(p) => on = Some(*p),
                _ => {}
            }
        }
        let priority = priority.filter(|p| PRIORITIES.contains(p))?;
        protocol.filter(|p| *p == PROTOCOL)?;
        let action = match (m.header.action, mark) {
            (RuleAction::Goto, _) => Action::Goto(on?),
            (RuleAction::Nop, _) => Action::Nothing,
            (_, Some(mark)) => Action::LookupMarked(mark, table),
            (_, None) if networks => Action::LookupNetworks(table),
            (_, None) => Action::Lookup(table),
        };
        Some(Self {
            priority,
            from,
            to,
            action,
        })
    }
}

/// Gives the loopback the source, which stays there whatever becomes of other interfaces. Its
/// scope keeps it from being the source of anything else.
async fn add_source(v4: bool) -> Result<(), RouteError> {
    if !ipv6::takes("lo", &source(v4).addr()) {
        return Ok(());
    }
    let (net, lo) = (source(v4), loopback()?);
    let handle = open()?;
    let mut add = handle.address().add(lo, net.addr(), net.prefix_len());
    let message = add.message_mut();
    match v4 {
        true => message.header.scope = AddressScope::Link,
        // Routes name it from now on: it is not to be checked for others first.
        false => {
            let flags = AddressAttribute::Flags(AddressFlags::Nodad);
            message.attributes.push(flags);
        }
    }
    done(add.execute().await, || format!("add {net} to lo"))
}

async fn remove_source(v4: bool) -> Result<(), RouteError> {
    let handle = open()?;
    let get = handle.address().get();
    let get = get.set_link_index_filter(loopback()?);
    let there = get.set_address_filter(source(v4).addr()).execute();
    let there: Vec<_> = match there.try_collect().await {
        Ok(there) => there,
        Err(e) => return done(Err(e), || "list the addresses of lo".to_owned()),
    };
    for address in there {
        let removed = handle.address().del(address).execute().await;
        done(removed, || format!("delete {} of lo", source(v4)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_was_written() {
        let past = [
            "203.0.113.7".parse().unwrap(),
            "2001:db8::7".parse().unwrap(),
        ];
        for v4 in FAMILIES {
            let all = rules(v4, &past);
            for rule in &all {
                assert_eq!(Rule::read(&rule.message(v4)).as_ref(), Some(rule));
            }
            let past = all.iter().filter(|r| r.to.is_some()).count();
            assert_eq!(past, if v4 { 3 } else { 1 });
            let mut there = all.clone();
            there.sort();
            there.dedup();
            assert_eq!(there.len(), all.len(), "no two are the same");
        }
    }

    #[test]
    fn rules_of_others_are_not_ours() {
        let [first, ..] = &rules(true, &[])[..] else {
            panic!("no rules")
        };
        let mut other = first.message(true);
        let protocol = |a: &mut RuleAttribute| {
            if let RuleAttribute::Protocol(p) = a {
                *p = RouteProtocol::from(4);
            }
        };
        other.attributes.iter_mut().for_each(protocol);
        assert_eq!(Rule::read(&other), None);
        let elsewhere = Rule {
            priority: 771,
            ..first.clone()
        };
        assert_eq!(Rule::read(&elsewhere.message(true)), None);
    }
}
