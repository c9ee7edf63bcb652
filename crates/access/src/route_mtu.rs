//! Limits the packets of routes in our tables, where larger ones do not pass
//! ([`crate::probe::packet_size`]). The kernel takes the segment size of TCP from it, for
//! both directions: what it announces to the peer (MSS, RFC 9293 3.7.1) follows from the same.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::view::{FIRST_TABLE, PROTOCOL};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteMetric, RouteProtocol};
use rtnetlink::{Handle, RouteMessageBuilder};

use crate::{Error, Result};

/// Packets of a table and family at most: the table, whether IPv4, bytes.
pub type Limits = BTreeMap<(u32, bool), u32>;

/// Sets these limits, and no others, on the routes of our tables that lead out by a gateway.
///
/// # Errors
/// What the kernel refuses first; the other routes, and the other family, are set all the same.
pub async fn apply(handle: &Handle, limits: &Limits) -> Result<()> {
    let four = RouteMessageBuilder::<Ipv4Addr>::new().build();
    let six = RouteMessageBuilder::<Ipv6Addr>::new().build();
    let four = apply_to(handle, four, limits).await;
    let six = apply_to(handle, six, limits).await;
    four.and(six)
}

/// Sets the limits on the routes that the request `any` lists.
async fn apply_to(handle: &Handle, any: RouteMessage, limits: &Limits) -> Result<()> {
    let all = handle.route().get(any).execute();
    let all: Vec<RouteMessage> = all
        .try_collect()
        .await
        .map_err(|e| Error::new("list the routes", e))?;
    let mut done = Ok(());
    for route in all {
        let Some((changed, table, bytes)) = limited(&route, limits) else {
            continue;
        };
        let set = handle.route().add(changed).replace().execute().await;
        let what = |e| {
            let to = bytes.map_or("none".to_owned(), |b| format!("{b} bytes"));
            let attempted = format!("set the packet size of the routes in table {table} to {to}");
            Error::new(attempted, e)
        };
        done = done.and(set.map_err(what));
    }
    done
}

/// Returns a route as it is to be, with its table and limit; `None` if it is not ours or as it
/// is to be already.
fn limited(route: &RouteMessage, limits: &Limits) -> Option<(RouteMessage, u32, Option<u32>)> {
    let table = route.attributes.iter().find_map(|a| match a {
        RouteAttribute::Table(t) => Some(*t),
        _ => None,
    })?;
    let by_gateway = |a: &RouteAttribute| {
        matches!(a, RouteAttribute::Gateway(_)) || matches!(a, RouteAttribute::Via(_))
    };
    let ours = route.header.protocol == RouteProtocol::from(PROTOCOL) && table >= FIRST_TABLE;
    let leads_out =
        route.header.destination_prefix_length == 0 || route.attributes.iter().any(by_gateway);
    if !ours || !leads_out {
        return None;
    }
    let v4 = route.header.address_family == AddressFamily::Inet;
    let wanted = limits.get(&(table, v4)).copied();
    let metrics = route.attributes.iter().find_map(|a| match a {
        RouteAttribute::Metrics(all) => Some(all.clone()),
        _ => None,
    });
    let mut metrics = metrics.unwrap_or_default();
    let has = metrics.iter().find_map(|m| match m {
        RouteMetric::Mtu(mtu) => Some(*mtu),
        _ => None,
    });
    if has == wanted {
        return None;
    }
    metrics.retain(|m| !matches!(m, RouteMetric::Mtu(_)));
    metrics.extend(wanted.map(RouteMetric::Mtu));
    let mut changed = route.clone();
    // What the kernel tells beyond what it is asked by.
    changed.attributes.retain(|a| {
        !matches!(
            a,
            RouteAttribute::Metrics(_) | RouteAttribute::CacheInfo(_) | RouteAttribute::Expires(_)
        )
    });
    if !metrics.is_empty() {
        changed.attributes.push(RouteAttribute::Metrics(metrics));
    }
    Some((changed, table, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(table: u32, protocol: u8, gateway: bool, mtu: Option<u32>) -> RouteMessage {
        let mut b = RouteMessageBuilder::<Ipv4Addr>::new()
            .table_id(table)
            .protocol(RouteProtocol::from(protocol));
        b = match gateway {
            true => b.gateway(Ipv4Addr::new(10, 77, 1, 1)),
            false => b.destination_prefix(Ipv4Addr::new(10, 77, 1, 0), 24),
        };
        let mut m = b.build();
        m.attributes
            .extend(mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)])));
        m
    }

    fn mtu(m: &RouteMessage) -> Option<u32> {
        let metrics = m.attributes.iter().find_map(|a| match a {
            RouteAttribute::Metrics(all) => all.first(),
            _ => None,
        })?;
        match metrics {
            RouteMetric::Mtu(mtu) => Some(*mtu),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_ways_out_of_our_tables_are_changed_and_only_once() {
        let ours = FIRST_TABLE + 4;
        let limits = Limits::from([((ours, true), 1400)]);
        let set = |r: &RouteMessage, l: &Limits| limited(r, l).map(|(r, _, _)| mtu(&r));
        assert_eq!(
            set(&route(ours, PROTOCOL, true, None), &limits),
            Some(Some(1400))
        );
        assert_eq!(
            set(&route(ours, PROTOCOL, true, Some(1430)), &limits),
            Some(Some(1400))
        );
        assert_eq!(set(&route(ours, PROTOCOL, true, Some(1400)), &limits), None);
        let none = Limits::new();
        assert_eq!(
            set(&route(ours, PROTOCOL, true, Some(1400)), &none),
            Some(None)
        );
        assert_eq!(set(&route(ours, PROTOCOL, true, None), &none), None);
        // Neighbours are reached at full size; others' routes are theirs.
        assert_eq!(set(&route(ours, PROTOCOL, false, None), &limits), None);
        assert_eq!(set(&route(ours, 4, true, None), &limits), None);
        assert_eq!(set(&route(254, PROTOCOL, true, None), &limits), None);
    }
}
