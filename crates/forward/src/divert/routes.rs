//! Routes for packets with a mark, and the rules by which it leads to them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{
    RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, RouteMessageBuilder};
use thiserror::Error;

/// Mark of who made them: another than that of routes by accesses, which go where no access needs
/// them.
const PROTOCOL: u8 = 78;

/// Why a route or a rule cannot be set or removed.
#[derive(Debug, Error)]
#[error("{what}: {source}")]
pub struct RouteError {
    /// Attempt, in words.
    what: String,
    source: io::Error,
}

/// Default route for packets with a mark, in a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) mark: u32,
    pub(crate) table: u32,
    /// Priority of the rule.
    pub(crate) priority: u32,
}

impl Marked {
    /// Leads packets of a family by an interface; `local`: delivers them to this machine.
    pub(crate) async fn add(self, v4: bool, by: u32, local: bool) -> Result<(), RouteError> {
        let handle = open()?;
        let route = handle.route().add(self.route(v4, by, local)).replace();
        done(route.execute().await, || {
            format!("add a default route to table {}", self.table)
        })?;
        // One that is there already would be added once more.
        self.remove_rule(&handle, v4).await?;
        let mut add = handle.rule().add();
        *add.message_mut() = self.rule(v4);
        done(add.execute().await, || {
            format!("add the rule {}", self.words())
        })
    }

    /// Removes rules and routes of both families, whether they are there or not.
    pub(crate) async fn remove(self, by: u32, local: bool) -> Result<(), RouteError> {
        self.remove_rules().await?;
        let handle = open()?;
        for v4 in [true, false] {
            let route = handle.route().del(self.route(v4, by, local));
            done(route.execute().await, || {
                format!("delete the default route of table {}", self.table)
            })?;
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

    fn route(self, v4: bool, by: u32, local: bool) -> RouteMessage {
        let mut m = match v4 {
            true => RouteMessageBuilder::<Ipv4Addr>::new().build(),
            false => RouteMessageBuilder::<Ipv6Addr>::new().build(),
        };
        (m.header.kind, m.header.scope) = match local {
            true => (RouteType::Local, RouteScope::Host),
            false => (RouteType::Unicast, RouteScope::Link),
        };
        m.header.protocol = RouteProtocol::from(PROTOCOL);
        // As the attribute says.
        m.header.table = 0;
        m.attributes = vec![RouteAttribute::Table(self.table), RouteAttribute::Oif(by)];
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

/// Returns the index of the loopback.
pub(crate) fn loopback() -> Result<u32, RouteError> {
    nix::net::if_::if_nametoindex("lo").map_err(|e| RouteError {
        what: "find the interface lo".into(),
        source: e.into(),
    })
}

fn open() -> Result<Handle, RouteError> {
    let opened = rtnetlink::new_connection();
    let (connection, handle, _) = opened.map_err(|source| RouteError {
        what: "open a netlink socket".into(),
        source,
    })?;
    tokio::spawn(connection);
    Ok(handle)
}

/// There already, or not there.
const AS_WANTED: [i32; 4] = [libc::EEXIST, libc::ESRCH, libc::ENOENT, libc::EAFNOSUPPORT];

fn done(result: Result<(), rtnetlink::Error>, what: impl Fn() -> String) -> Result<(), RouteError> {
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
