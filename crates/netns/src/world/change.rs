//! Changes to a world from outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_access::view::{FIRST_TABLE, RULE_PRIORITY};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage, CacheInfo};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage};
use rtnetlink::packet_route::rule::{RuleAttribute, RuleMessage};
use rtnetlink::{Handle, RouteMessageBuilder};

use super::{World, address, device4, index, v6};

impl World {
    /// Gives the device another IPv4 network on access `k`, as a DHCP client does
    /// that came to another place: address 10.78.k.2, gateway 10.78.k.1.
    pub fn move_to_another_network(&self, k: u8) {
        let (old, new) = (device4(k), Ipv4Addr::new(10, 78, k, 2));
        let gateway = Ipv4Addr::new(10, 78, k, 1);
        self.proxy.with_netlink(async |h| {
            address(&h, &format!("p{k}"), gateway.into(), 30).await;
        });
        self.device.with_netlink(async |h| {
            let i = index(&h, &format!("d{k}")).await;
            delete(&h, i, old).await;
            address(&h, &format!("d{k}"), new.into(), 30).await;
            default4(&h, k, i, gateway).await;
        });
    }

    /// Renews the lease of the device's IPv4 address on access `k`, as a DHCP client
    /// does: the same address with new lifetimes.
    pub fn renew(&self, k: u8, seconds: u32) {
        self.device.with_netlink(async |h| {
            let i = index(&h, &format!("d{k}")).await;
            let mut lifetimes = CacheInfo::default();
            lifetimes.ifa_valid = seconds;
            lifetimes.ifa_preferred = seconds;
            let mut add = h.address().add(i, device4(k), 30).replace();
            let attributes = &mut add.message_mut().attributes;
            attributes.push(AddressAttribute::CacheInfo(lifetimes));
            add.execute().await.expect("renew an address");
        });
    }

    /// Takes the device's IPv4 address on access `k` away, as a DHCP client does
    /// whose lease ran out; the kernel deletes its routes.
    pub fn expire(&self, k: u8) {
        self.device.with_netlink(async |h| {
            let i = index(&h, &format!("d{k}")).await;
            delete(&h, i, device4(k)).await;
        });
    }

    /// Gives it back, with the default route.
    pub fn lease(&self, k: u8) {
        self.device.with_netlink(async |h| {
            let i = index(&h, &format!("d{k}")).await;
            address(&h, &format!("d{k}"), device4(k), 30).await;
            default4(&h, k, i, Ipv4Addr::new(10, 77, k, 1)).await;
        });
    }

    /// Gives access `k` its IPv4 default route back, as a DHCP client does after link-up.
    pub fn route(&self, k: u8) {
        self.device.with_netlink(async |h| {
            let i = index(&h, &format!("d{k}")).await;
            default4(&h, k, i, Ipv4Addr::new(10, 77, k, 1)).await;
        });
    }

    /// Adds and deletes an address on the device's loopback `n` times.
    pub fn churn(&self, n: usize) {
        self.device.with_netlink(async |h| {
            let i = index(&h, "lo").await;
            for _ in 0..n {
                address(&h, "lo", Ipv4Addr::new(10, 99, 0, 9).into(), 32).await;
                let mut all = h.address().get().set_link_index_filter(i).execute();
                let mut found = vec![];
                while let Some(a) = all.try_next().await.expect("list addresses") {
                    if a.header.prefix_len == 32 {
                        found.push(a);
                    }
                }
                for a in found {
                    h.address()
                        .del(a)
                        .execute()
                        .await
                        .expect("delete an address");
                }
            }
        });
    }

    /// How many rules there are at the device that the daemon made.
    pub fn rules_of_ours(&self) -> usize {
        self.device
            .with_netlink(async |h| rules_of_ours(&h).await.len())
    }

    /// Deletes them, and the routes of access `k` that go with them, as other managers of
    /// the network do that take all for theirs.
    pub fn flush(&self, k: u8) {
        self.device.with_netlink(async |h| {
            for rule in rules_of_ours(&h).await {
                h.rule().del(rule).execute().await.expect("delete a rule");
            }
            let table = FIRST_TABLE + index(&h, &format!("d{k}")).await;
            let any = RouteMessageBuilder::<Ipv4Addr>::new().build();
            let all = h.route().get(any).execute();
            let all: Vec<RouteMessage> = all.try_collect().await.expect("list routes");
            let of = RouteAttribute::Table(table);
            for route in all.into_iter().filter(|r| r.attributes.contains(&of)) {
                let deleted = h.route().del(route).execute().await;
                deleted.expect("delete a route");
            }
        });
    }

    /// Gives the device its IPv6 address of access `k` back, and the default
    /// route, as a router advertisement does.
    pub fn restore6(&self, k: u8) {
        self.device.with_netlink(async |h| {
            address(&h, &format!("d{k}"), v6(k, 2).into(), 64).await;
            let i = index(&h, &format!("d{k}")).await;
            let route = RouteMessageBuilder::<Ipv6Addr>::new()
                .gateway(v6(k, 1))
                .output_interface(i)
                .priority(u32::from(k));
            let add = h.route().add(route.build()).replace();
            add.execute().await.expect("add a route");
        });
    }

    /// Loses everything that the proxy sends on access `k` to the device's IPv4
    /// address, without a word: it goes to a station that is not there. Or no
    /// longer.
    pub fn silence(&self, k: u8, on: bool) {
        self.proxy.with_netlink(async |h| {
            let i = index(&h, &format!("p{k}")).await;
            let add = h.neighbours().add(i, device4(k)).replace();
            let nowhere = [2, 0, 0, 0, 0, 99];
            match on {
                true => {
                    let add = add.link_layer_address(&nowhere);
                    add.execute().await.expect("set a neighbour");
                }
                false => {
                    let state = rtnetlink::packet_route::neighbour::NeighbourState::Probe;
                    let device = self.device.with_netlink(async |h| mac(&h, k).await);
                    let add = add.link_layer_address(&device).state(state);
                    add.execute().await.expect("set a neighbour");
                }
            }
        });
    }
}

async fn rules_of_ours(h: &Handle) -> Vec<RuleMessage> {
    let all = h.rule().get(rtnetlink::IpVersion::V4).execute();
    let mut all: Vec<_> = all.try_collect().await.expect("list rules");
    let ours = RuleAttribute::Priority(RULE_PRIORITY);
    all.retain(|r: &RuleMessage| r.attributes.contains(&ours));
    all
}

/// The IPv4 default route of access `k`.
async fn default4(h: &Handle, k: u8, i: u32, gateway: Ipv4Addr) {
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .gateway(gateway)
        .output_interface(i)
        .priority(u32::from(k));
    let add = h.route().add(route.build()).replace();
    add.execute().await.expect("add a route");
}

/// Deletes an IPv4 address of interface `i`.
async fn delete(h: &Handle, i: u32, gone: IpAddr) {
    let all = h.address().get().set_link_index_filter(i).execute();
    let all: Vec<AddressMessage> = all.try_collect().await.expect("list addresses");
    let gone = AddressAttribute::Local(gone);
    for a in all.into_iter().filter(|a| a.attributes.contains(&gone)) {
        let deleted = h.address().del(a).execute().await;
        deleted.expect("delete an address");
    }
}

/// The device's link-layer address on access `k`.
async fn mac(h: &Handle, k: u8) -> Vec<u8> {
    let found = h.link().get().match_name(format!("d{k}")).execute();
    let mut found = std::pin::pin!(found);
    let link = found.try_next().await.expect("list links").expect("a link");
    let of = |a: &LinkAttribute| match a {
        LinkAttribute::Address(mac) => Some(mac.clone()),
        _ => None,
    };
    link.attributes.iter().find_map(of).expect("an address")
}
