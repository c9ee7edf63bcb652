//! The interfaces of the namespace: how they are now, and when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use braid_core::api::EventKind;
use futures_util::{StreamExt, TryStreamExt};
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::{Handle, MulticastGroup};

use super::EndError;

/// How the interfaces are at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    /// Index and whether it is up with a carrier, by name.
    pub(super) by_name: BTreeMap<String, (u32, bool)>,
    /// Index of the interface and address.
    pub(super) addresses: BTreeSet<(u32, IpAddr)>,
}

impl Links {
    /// Asks the kernel.
    pub(super) async fn read(handle: &Handle) -> Result<Self, EndError> {
        let failed = |e: rtnetlink::Error| EndError::Failed(format!("list the interfaces: {e}"));
        let mut links = Self::default();
        let mut all = handle.link().get().execute();
        while let Some(message) = all.try_next().await.map_err(failed)? {
            if let Some(name) = name(&message) {
                links
                    .by_name
                    .insert(name, (message.header.index, is_up(&message)));
            }
        }
        let mut all = handle.address().get().execute();
        while let Some(message) = all.try_next().await.map_err(failed)? {
            links
                .addresses
                .extend(address(&message).map(|a| (message.header.index, a)));
        }
        Ok(links)
    }

    /// Indices by name.
    pub(super) fn indices(&self) -> BTreeMap<String, u32> {
        self.by_name
            .iter()
            .map(|(n, &(i, _))| (n.clone(), i))
            .collect()
    }
}

fn name(message: &LinkMessage) -> Option<String> {
    message.attributes.iter().find_map(|a| match a {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })
}

fn is_up(message: &LinkMessage) -> bool {
    message
        .header
        .flags
        .contains(LinkFlags::Up | LinkFlags::LowerUp)
}

/// The interface's own address (`Address` is the peer's on point-to-point links).
fn address(message: &AddressMessage) -> Option<IpAddr> {
    let of = |own: bool| {
        message.attributes.iter().find_map(|a| match a {
            AddressAttribute::Local(a) if own => Some(*a),
            AddressAttribute::Address(a) if !own => Some(*a),
            _ => None,
        })
    };
    of(true).or_else(|| of(false))
}

/// Asks and listens; must be called inside the runtime. `tell` is given every
/// change of links and addresses.
pub(super) fn watch(
    mut tell: impl FnMut(EventKind) + Send + 'static,
    mut known: BTreeMap<String, bool>,
) -> Result<Handle, EndError> {
    let groups = [
        MulticastGroup::Link,
        MulticastGroup::Ipv4Ifaddr,
        MulticastGroup::Ipv6Ifaddr,
    ];
    let (connection, handle, mut messages) = rtnetlink::new_multicast_connection(&groups)
        .map_err(|e| EndError::Failed(format!("listen to changes of interfaces: {e}")))?;
    tokio::spawn(connection);
    tokio::spawn(async move {
        while let Some((message, _)) = messages.next().await {
            let NetlinkPayload::InnerMessage(message) = message.payload else {
                continue;
            };
            match message {
                RouteNetlinkMessage::NewLink(m) => {
                    let Some(interface) = name(&m) else { continue };
                    let up = is_up(&m);
                    // The kernel tells of many changes: only up and down matter here.
                    if known.insert(interface.clone(), up) != Some(up) {
                        tell(if up {
                            EventKind::LinkUp { interface }
                        } else {
                            EventKind::LinkDown { interface }
                        });
                    }
                }
                RouteNetlinkMessage::DelLink(m) => {
                    if let Some(interface) = name(&m)
                        && known.remove(&interface) == Some(true)
                    {
                        tell(EventKind::LinkDown { interface });
                    }
                }
                RouteNetlinkMessage::NewAddress(m) => {
                    if let Some(address) = address(&m) {
                        tell(EventKind::AddressAdded { address });
                    }
                }
                RouteNetlinkMessage::DelAddress(m) => {
                    if let Some(address) = address(&m) {
                        tell(EventKind::AddressRemoved { address });
                    }
                }
                _ => {}
            }
        }
    });
    Ok(handle)
}
