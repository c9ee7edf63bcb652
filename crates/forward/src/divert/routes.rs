//! Routes for packets with a mark, and the rules by which it leads to them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use futures_util::TryStreamExt;
use ipnet::IpNet;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{
    RouteAttribute, RouteFlags, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, RouteMessageBuilder};
use thiserror::Error;

use crate::ipv6;

/// Mark of who made them: another than that of routes by accesses, which go where no access needs
/// them.
pub(super) const PROTOCOL: u8 = 78;
/// Families: IPv4 and IPv6, as `v4` tells them apart.
pub(super) const FAMILIES: [bool; 2] = [true, false];

/// Why a route or a rule cannot be set or removed.
#[derive(Debug, Error)]
#[error("{what}: {source}")]
pub struct RouteError {
    /// Attempt, in words.
    what: String,
    source: io::Error,
}

/// Metric of a route behind all others, as of one that refuses.
const LAST: u32 = u32::MAX;
/// Metric of the route that is used.
const FIRST: u32 = 1;

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// To this machine, whatever the destination; by the loopback, of this index.
    ThisMachine(u32),
    /// To the destination, which is on the link of an interface.
    Link(u32),
    /// To the destination, as [`Hop::Link`], where no other route leads anywhere.
    LastLink(u32),
    /// To the destination, as [`Hop::Link`], with this source where there is none yet.
    Sourced {
        /// Index of the interface.
        by: u32,
        /// Source.
        source: IpAddr,
    },
    /// To a gateway.
    Gateway {
        /// Index of the interface.
        by: u32,
        /// Its address.
        gateway: IpAddr,
        /// Whether it is on the link, whatever the networks of the interface are.
        onlink: bool,
    },
    /// Nowhere: senders are told that this is prohibited.
    Refuse,
}

impl Hop {
    /// Returns the index of the interface, where it has one.
    fn by(self) -> Option<u32> {
        match self {
            Self::ThisMachine(by) | Self::Link(by) | Self::LastLink(by) => Some(by),
            Self::Sourced { by, .. } | Self::Gateway { by, .. } => Some(by),
            Self::Refuse => None,
        }
    }
}

/// Routes for packets with a mark, in a table of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) mark: u32,
    pub(crate) table: u32,
    /// Priority of the rule.
    pub(crate) priority: u32,
}

impl Marked {
    /// Leads packets of a family to a hop, by a default route and a rule.
    pub(crate) async fn add(self, v4: bool, hop: Hop) -> Result<(), RouteError> {
        self.set(v4, None, hop).await?;
        self.add_rule(v4).await
    }

    /// Sets a route, in place of another to the same destinations; `to`: everywhere if absent. None is
    /// set where its interface has no such family: no packet of that gets there.
    pub(crate) async fn set(self, v4: bool, to: Option<IpNet>, hop: Hop) -> Result<(), RouteError> {
        if !v4 && hop.by().is_some_and(ipv6::is_off_at) {
            return Ok(());
        }
        let route = self.route(v4, to, hop);
        let set = open()?.route().add(route).replace().execute().await;
        done(set, || format!("set {}", self.destination(to)))
    }

    /// Removes a route, whether it is there or not.
    pub(crate) async fn unset(
        self,
        v4: bool,
        to: Option<IpNet>,
        hop: Hop,
    ) -> Result<(), RouteError> {
        let removed = open()?.route().del(self.route(v4, to, hop)).execute().await;
        done(removed, || format!("delete {}", self.destination(to)))
    }

    /// Removes all routes of a family.
    pub(crate) async fn clear(self, v4: bool) -> Result<(), RouteError> {
        clear(v4, self.table..=self.table, true).await
    }

    /// Refuses all packets of a family: behind whatever leads somewhere, and then instead of it.
    pub(crate) async fn refuse(self, v4: bool) -> Result<(), RouteError> {
        self.set(v4, None, Hop::Refuse).await?;
        clear(v4, self.table..=self.table, false).await
    }

    /// Leads packets of a family to the table.
    pub(crate) async fn add_rule(self, v4: bool) -> Result<(), RouteError> {
        let handle = open()?;
        // One that is there already would be added once more.
        self.remove_rule(&handle, v4).await?;
        let mut add = handle.rule().add();
        *add.message_mut() = self.rule(v4);
        done(add.execute().await, || {
            format!("add the rule {}", self.words())
        })
    }

    /// Removes rules and routes of both families, whether they are there or not.
    pub(crate) async fn remove(self, hop: Hop) -> Result<(), RouteError> {
        self.remove_rules().await?;
        for v4 in [true, false] {
            self.unset(v4, None, hop).await?;
        }
        Ok(())
    }

    /// Removes the rules of both families, whether they are there or not.
    pub(crate) async fn remove_rules(self) -> Result<(), RouteError> {
        let handle = open()?;
        for v4 in [true, false] {
            self.remove_rule(&handle, v4).await?;
        }
        Ok(())
    }

    async fn remove_rule(self, handle: &Handle, v4: bool) -> Result<(), RouteError> {
        let removed = handle.rule().del(self.rule(v4)).execute().await;
        done(removed, || format!("delete the rule {}", self.words()))
    }

    fn words(self) -> String {
        format!(
            "{}: fwmark {:#x} lookup {}",
            self.priority, self.mark, self.table
        )
    }

    fn destination(self, to: Option<IpNet>) -> String {
        match to {
            None => format!("the default route of table {}", self.table),
            Some(net) => format!("the route to {net} of table {}", self.table),
        }
    }

    fn route(self, v4: bool, to: Option<IpNet>, hop: Hop) -> RouteMessage {
        let mut m = match v4 {
            true => RouteMessageBuilder::<Ipv4Addr>::new().build(),
            false => RouteMessageBuilder::<Ipv6Addr>::new().build(),
        };
        let (kind, scope, metric) = match hop {
            Hop::ThisMachine(_) => (RouteType::Local, RouteScope::Host, None),
            Hop::Link(_) | Hop::Sourced { .. } => {
                (RouteType::Unicast, RouteScope::Link, Some(FIRST))
            }
            Hop::LastLink(_) => (RouteType::Unicast, RouteScope::Link, Some(LAST)),
            Hop::Gateway { .. } => (RouteType::Unicast, RouteScope::Universe, Some(FIRST)),
            Hop::Refuse => (RouteType::Prohibit, RouteScope::Universe, Some(LAST)),
        };
        (m.header.kind, m.header.scope) = (kind, scope);
        m.header.protocol = RouteProtocol::from(PROTOCOL);
        // As the attribute says.
        m.header.table = 0;
        m.attributes = vec![RouteAttribute::Table(self.table)];
        m.attributes.extend(hop.by().map(RouteAttribute::Oif));
        m.attributes.extend(metric.map(RouteAttribute::Priority));
        if let Some(net) = to {
            m.header.destination_prefix_length = net.prefix_len();
            let to = RouteAttribute::Destination(net.network().into());
            m.attributes.push(to);
        }
        match hop {
            Hop::Gateway {
                gateway, onlink, ..
            } => {
                m.attributes.push(RouteAttribute::Gateway(gateway.into()));
                m.header.flags.set(RouteFlags::Onlink, onlink);
            }
            Hop::Sourced { source, .. } => {
                m.attributes.push(RouteAttribute::PrefSource(source.into()));
            }
            _ => {}
        }
        m
    }

    fn rule(self, v4: bool) -> RuleMessage {
        let mut m = RuleMessage::default();
        m.header.family = match v4 {
            true => AddressFamily::Inet,
            false => AddressFamily::Inet6,
        };
        m.header.action = RuleAction::ToTable;
        m.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::FwMark(self.mark),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL)),
        ];
        m
    }
}

/// Removes all routes of a family in these tables, which are ours; those that refuse only if `all` is
/// said.
pub(crate) async fn clear(
    v4: bool,
    tables: RangeInclusive<u32>,
    all: bool,
) -> Result<(), RouteError> {
    let handle = open()?;
    let of_family = match v4 {
        true => RouteMessageBuilder::<Ipv4Addr>::new().build(),
        false => RouteMessageBuilder::<Ipv6Addr>::new().build(),
    };
    let there = handle.route().get(of_family).execute();
    let there: Vec<RouteMessage> = match there.try_collect().await {
        Ok(there) => there,
        // Without that family there are none.
        Err(e) => return done(Err(e), || "list routes".to_owned()),
    };
    let goes = |r: &RouteMessage| all || r.header.kind != RouteType::Prohibit;
    let there = there.into_iter().filter(|r| tables.contains(&table(r)));
    for route in there.filter(goes) {
        let removed = handle.route().del(route).execute().await;
        done(removed, || format!("delete a route of table {tables:?}"))?;
    }
    Ok(())
}

/// Returns the table of a route.
fn table(route: &RouteMessage) -> u32 {
    let attributes = route.attributes.iter();
    let mut tables = attributes.filter_map(|a| match a {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    tables.next().unwrap_or(route.header.table.into())
}

/// Returns the index of the loopback.
pub(crate) fn loopback() -> Result<u32, RouteError> {
    nix::net::if_::if_nametoindex("lo").map_err(|e| RouteError {
        what: "find the interface lo".into(),
        source: e.into(),
    })
}

pub(super) fn open() -> Result<Handle, RouteError> {
    let opened = rtnetlink::new_connection();
    let (connection, handle, _) = opened.map_err(|source| RouteError {
        what: "open a netlink socket".into(),
        source,
    })?;
    tokio::spawn(connection);
    Ok(handle)
}

/// There already, or not there.
const AS_WANTED: [i32; 5] = [
    libc::EEXIST,
    libc::ESRCH,
    libc::ENOENT,
    // A family that the kernel has not, or was told to do without (ipv6.disable=1).
    libc::EAFNOSUPPORT,
    libc::EOPNOTSUPP,
];

pub(super) fn done(
    result: Result<(), rtnetlink::Error>,
    what: impl Fn() -> String,
) -> Result<(), RouteError> {
    let source = match result {
        Ok(()) => return Ok(()),
        Err(rtnetlink::Error::NetlinkError(m)) => match m.raw_code().abs() {
            code if AS_WANTED.contains(&code) => return Ok(()),
            code => io::Error::from_raw_os_error(code),
        },
        Err(e) => io::Error::other(e.to_string()),
    };
    Err(RouteError {
        what: what(),
        source,
    })
}
