//! The route netlink requests that a topology is made of. Every one can be
//! made again without harm: what is there already is left or replaced.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use ipnet::IpNet;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use rtnetlink::packet_route::rule::RuleAction;
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, RouteMessageBuilder, RuleAddRequest};

/// The errno of a refused request.
pub(super) fn errno(error: &rtnetlink::Error) -> Option<i32> {
    match error {
        rtnetlink::Error::NetlinkError(message) => Some(message.raw_code().abs()),
        _ => None,
    }
}

/// An error that reads like any other of the kernel's.
pub(super) fn to_io(error: rtnetlink::Error) -> io::Error {
    errno(&error).map_or_else(
        || io::Error::other(error.to_string()),
        io::Error::from_raw_os_error,
    )
}

/// Awaits a request; on failure, says what was attempted.
async fn ask(
    request: impl Future<Output = Result<(), rtnetlink::Error>>,
    what: impl Fn() -> String,
) -> Result<()> {
    request.await.map_err(to_io).with_context(what)
}

/// Awaits a request that may already have been granted: what is to be added is
/// there, or what is to be removed is not. On failure, says what was attempted.
async fn ask_once(
    request: impl Future<Output = Result<(), rtnetlink::Error>>,
    what: impl Fn() -> String,
) -> Result<()> {
    const GRANTED: [i32; 3] = [libc::EEXIST, libc::ENOENT, libc::EADDRNOTAVAIL];
    match request.await {
        Err(e) if errno(&e).is_some_and(|n| GRANTED.contains(&n)) => Ok(()),
        result => result.map_err(to_io).with_context(what),
    }
}

/// Changes a link.
pub(super) async fn set_link(
    handle: &Handle,
    link: LinkMessageBuilder<LinkUnspec>,
    what: &str,
) -> Result<()> {
    ask(handle.link().set(link.build()).execute(), || {
        what.to_string()
    })
    .await
}

/// Adds a link.
pub(super) async fn add_link(handle: &Handle, link: LinkMessage, what: &str) -> Result<()> {
    ask(handle.link().add(link).execute(), || what.to_string()).await
}

/// A link as the kernel sees it now.
pub(super) async fn get_link(handle: &Handle, name: &str) -> Result<LinkMessage> {
    let mut links = handle.link().get().match_name(name).execute();
    let found = links
        .try_next()
        .await
        .map_err(to_io)
        .with_context(|| format!("look up interface {name}"))?;
    found.with_context(|| format!("look up interface {name}: there is none"))
}

/// Whether a link is administratively up, and whether it has a carrier.
pub(super) fn link_state(link: &LinkMessage) -> (bool, bool) {
    let carrier = link
        .attributes
        .iter()
        .any(|a| matches!(a, LinkAttribute::Carrier(1)));
    (link.header.flags.contains(LinkFlags::Up), carrier)
}

/// Gives an interface an address. It is usable at once: no duplicate address
/// detection (RFC 4862 5.4), which a namespace of our own does not need.
pub(super) async fn add_address(
    handle: &Handle,
    ifindex: u32,
    addr: IpAddr,
    prefix_len: u8,
) -> Result<()> {
    let mut request = handle.address().add(ifindex, addr, prefix_len).replace();
    if addr.is_ipv6() {
        request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
    }
    ask_once(request.execute(), || {
        format!("add address {addr}/{prefix_len} to interface {ifindex}")
    })
    .await
}

/// Takes an address from an interface.
pub(super) async fn remove_address(
    handle: &Handle,
    ifindex: u32,
    addr: IpAddr,
    prefix_len: u8,
) -> Result<()> {
    let mut like_the_one_added = handle.address().add(ifindex, addr, prefix_len);
    let message = like_the_one_added.message_mut().clone();
    ask_once(handle.address().del(message).execute(), || {
        format!("remove address {addr}/{prefix_len} from interface {ifindex}")
    })
    .await
}

/// A default route.
#[derive(Clone, Copy, Debug)]
pub(super) struct DefaultRoute {
    pub(super) gateway: IpAddr,
    pub(super) ifindex: u32,
    /// The address that packets without one leave with.
    pub(super) source: IpAddr,
    pub(super) table: u32,
    pub(super) metric: u32,
}

/// Adds or replaces a default route.
pub(super) async fn add_default_route(handle: &Handle, route: DefaultRoute) -> Result<()> {
    let DefaultRoute {
        gateway,
        ifindex,
        source,
        table,
        metric,
    } = route;
    let message = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(anywhere(gateway.is_ipv4()), 0)?
        .gateway(gateway)?
        .pref_source(source)?
        .output_interface(ifindex)
        .table_id(table)
        .priority(metric)
        .build();
    ask(handle.route().add(message).replace().execute(), || {
        format!("add the default route through {gateway} (interface {ifindex}) to table {table}")
    })
    .await
}

/// Adds or replaces a route to a network in the main table.
pub(super) async fn add_route(
    handle: &Handle,
    to: IpNet,
    gateway: IpAddr,
    ifindex: u32,
) -> Result<()> {
    let message = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(to.addr(), to.prefix_len())?
        .gateway(gateway)?
        .output_interface(ifindex)
        .build();
    ask(handle.route().add(message).replace().execute(), || {
        format!("add the route to {to} through {gateway} (interface {ifindex})")
    })
    .await
}

/// Makes `table` refuse what none of its other routes takes: without, the
/// search would go on in the main table.
pub(super) async fn add_unreachable_route(handle: &Handle, v4: bool, table: u32) -> Result<()> {
    let message = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(anywhere(v4), 0)?
        .kind(RouteType::Unreachable)
        .table_id(table)
        .priority(u32::MAX)
        .build();
    ask(handle.route().add(message).replace().execute(), || {
        format!("end table {table} with \"unreachable\"")
    })
    .await
}

/// The destination of default routes.
fn anywhere(v4: bool) -> IpAddr {
    if v4 {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    }
}

/// Makes packets from `source` use `table`.
pub(super) async fn add_source_rule(handle: &Handle, source: IpAddr, table: u32) -> Result<()> {
    let rule = source_rule(handle, table);
    let what = || format!("add the rule that sends packets from {source} by table {table}");
    match source {
        IpAddr::V4(a) => ask_once(rule.v4().source_prefix(a, 32).execute(), what).await,
        IpAddr::V6(a) => ask_once(rule.v6().source_prefix(a, 128).execute(), what).await,
    }
}

/// Ends that.
pub(super) async fn remove_source_rule(handle: &Handle, source: IpAddr, table: u32) -> Result<()> {
    let rule = source_rule(handle, table);
    let message = match source {
        IpAddr::V4(a) => rule.v4().source_prefix(a, 32).message_mut().clone(),
        IpAddr::V6(a) => rule.v6().source_prefix(a, 128).message_mut().clone(),
    };
    let what = || format!("remove the rule that sends packets from {source} by table {table}");
    ask_once(handle.rule().del(message).execute(), what).await
}

/// Priority of the rule of table 0: like one of a user who names none, it comes after those of a
/// daemon.
const PRIORITY: u32 = 20_000;

fn source_rule(handle: &Handle, table: u32) -> RuleAddRequest {
    handle
        .rule()
        .add()
        .table_id(table)
        .priority(PRIORITY + table)
        .action(RuleAction::ToTable)
}

/// Every unicast or local route with a destination prefix (default routes
/// have none worth naming), and the name of its interface.
pub(super) async fn routes(handle: &Handle) -> Result<Vec<(IpNet, String)>> {
    let mut names = HashMap::new();
    let mut links = handle.link().get().execute();
    while let Some(link) = links
        .try_next()
        .await
        .map_err(to_io)
        .context("list the interfaces")?
    {
        let name = link.attributes.iter().find_map(|a| match a {
            LinkAttribute::IfName(name) => Some(name.clone()),
            _ => None,
        });
        names.insert(link.header.index, name.unwrap_or_default());
    }
    let mut found = Vec::new();
    let families = [
        RouteMessageBuilder::<Ipv4Addr>::new().build(),
        RouteMessageBuilder::<Ipv6Addr>::new().build(),
    ];
    for family in families {
        let mut routes = handle.route().get(family).execute();
        while let Some(route) = routes
            .try_next()
            .await
            .map_err(to_io)
            .context("list the routes")?
        {
            if !matches!(route.header.kind, RouteType::Unicast | RouteType::Local) {
                continue;
            }
            let Some(net) = destination(&route) else {
                continue;
            };
            let oif = route.attributes.iter().find_map(|a| match a {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
            let name = oif.and_then(|index| names.get(&index).cloned());
            found.push((net, name.unwrap_or_else(|| "several interfaces".into())));
        }
    }
    Ok(found)
}

/// A route's destination; `None` for a default route.
fn destination(route: &RouteMessage) -> Option<IpNet> {
    let addr = route.attributes.iter().find_map(|a| match a {
        RouteAttribute::Destination(RouteAddress::Inet(a)) => Some(IpAddr::V4(*a)),
        RouteAttribute::Destination(RouteAddress::Inet6(a)) => Some(IpAddr::V6(*a)),
        _ => None,
    })?;
    match route.header.destination_prefix_length {
        0 => None,
        len => IpNet::new(addr, len).ok().map(|net| net.trunc()),
    }
}
