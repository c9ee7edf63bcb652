//! Route that delivers diverted packets to this machine, and the rule by which their mark leads to
//! it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{
    RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, RouteMessageBuilder};

use super::{DivertError, MARK};
use crate::inbound::Ports;

/// Table of the route, and priority of the rule: before those that lead by accesses.
const TABLE: u32 = 76_999_999;
const PRIORITY: u32 = 7690;
/// Mark of who made them, as of Braid's other routes.
const PROTOCOL: u8 = 77;

/// Adds rule and route of each family that there is a listener for.
pub(super) async fn add(ports: Ports) -> Result<(), DivertError> {
    let handle = open()?;
    let lo = loopback()?;
    for v4 in [true, false] {
        if !v4 && ports.v6.is_none() {
            continue;
        }
        let route = handle.route().add(route(v4, lo)).execute().await;
        done(route, || {
            format!("add the route local default dev lo table {TABLE}")
        })?;
        // One that is there already would be added once more.
        remove_rule(&handle, v4).await?;
        let mut add = handle.rule().add();
        *add.message_mut() = rule(v4);
        done(add.execute().await, || {
            format!("add the rule {PRIORITY}: fwmark {MARK:#x} lookup {TABLE}")
        })?;
    }
    Ok(())
}

/// Removes them, whether they are there or not.
pub(super) async fn remove() -> Result<(), DivertError> {
    let handle = open()?;
    let lo = loopback()?;
    for v4 in [true, false] {
        remove_rule(&handle, v4).await?;
        let removed = handle.route().del(route(v4, lo)).execute().await;
        done(removed, || {
            format!("delete the route local default dev lo table {TABLE}")
        })?;
    }
    Ok(())
}

async fn remove_rule(handle: &Handle, v4: bool) -> Result<(), DivertError> {
    let removed = handle.rule().del(rule(v4)).execute().await;
    done(removed, || {
        format!("delete the rule {PRIORITY}: fwmark {MARK:#x} lookup {TABLE}")
    })
}

fn open() -> Result<Handle, DivertError> {
    let opened = rtnetlink::new_connection();
    let (connection, handle, _) = opened.map_err(|source| DivertError::Route {
        what: "open a netlink socket".into(),
        source,
    })?;
    tokio::spawn(connection);
    Ok(handle)
}

fn loopback() -> Result<u32, DivertError> {
    nix::net::if_::if_nametoindex("lo").map_err(|e| DivertError::Route {
        what: "find the interface lo".into(),
        source: e.into(),
    })
}

fn route(v4: bool, lo: u32) -> RouteMessage {
    let mut m = match v4 {
        true => RouteMessageBuilder::<Ipv4Addr>::new().build(),
        false => RouteMessageBuilder::<Ipv6Addr>::new().build(),
    };
    m.header.kind = RouteType::Local;
    m.header.scope = RouteScope::Host;
    m.header.protocol = RouteProtocol::from(PROTOCOL);
    // As the attribute says.
    m.header.table = 0;
    m.attributes = vec![RouteAttribute::Table(TABLE), RouteAttribute::Oif(lo)];
    m
}

fn rule(v4: bool) -> RuleMessage {
    let mut m = RuleMessage::default();
    m.header.family = match v4 {
        true => AddressFamily::Inet,
        false => AddressFamily::Inet6,
    };
    m.header.action = RuleAction::ToTable;
    m.attributes = vec![
        RuleAttribute::Priority(PRIORITY),
        RuleAttribute::FwMark(MARK),
        RuleAttribute::Table(TABLE),
        RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL)),
    ];
    m
}

/// There already, or not there.
const AS_WANTED: [i32; 4] = [libc::EEXIST, libc::ESRCH, libc::ENOENT, libc::EAFNOSUPPORT];

fn done(
    result: Result<(), rtnetlink::Error>,
    what: impl Fn() -> String,
) -> Result<(), DivertError> {
    let source = match result {
        Ok(()) => return Ok(()),
        Err(rtnetlink::Error::NetlinkError(m)) => match m.raw_code().abs() {
            code if AS_WANTED.contains(&code) => return Ok(()),
            code => io::Error::from_raw_os_error(code),
        },
        Err(e) => io::Error::other(e.to_string()),
    };
    Err(DivertError::Route {
        what: what(),
        source,
    })
}
