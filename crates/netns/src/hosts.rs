//! A host behind the device and a server behind the proxy, which know nothing of each other's
//! accesses.
//!
//! ```text
//!   host   .2 ---- .1 lan  device  ==accesses==  proxy  net .1 ---- .2   server
//! ```
//!
//! Both routers forward. The host's packets find the server by the routes of the device, as
//! behind any CPE; what comes back finds the host only where the topology says by which access.

use std::net::IpAddr;

use anyhow::{Context, Result};
use ipnet::IpNet;

use super::addressing::LinkAddresses;
use super::build::Device;
use super::links::{self, Interface};
use super::namespace::Namespace;
use super::netlink::{self, DefaultRoute};
use super::spec::{HostsSpec, TopologySpec};
use super::sysctl;

/// Names of the interfaces at the far ends.
const FAR: &str = "eth0";
/// Numbers in hardware addresses, beyond those of accesses.
const NUMBERS: [u32; 2] = [0x00f0_0001, 0x00f0_0002];

/// Host behind the first device, and server behind the proxy.
#[derive(Debug)]
pub struct Hosts {
    /// Where the host's programs run.
    pub host: Namespace,
    /// Where the server's programs run.
    pub server: Namespace,
    /// Interface of the device to the host.
    pub lan: Interface,
    /// Address of the host.
    pub host_addr: IpAddr,
    /// Address of the server.
    pub server_addr: IpAddr,
}

impl Hosts {
    /// Lays both wires: the names of the routers' interfaces, and the addresses, are those of the
    /// LAN and of the network behind the proxy.
    pub(super) fn lay(
        spec: &TopologySpec,
        of: &HostsSpec,
        (device, proxy): (&Device, &Namespace),
        [host, server]: [Namespace; 2],
        [lan, net]: [String; 2],
        [inner, outer]: [LinkAddresses; 2],
    ) -> Result<Self> {
        for router in [&device.namespace, proxy] {
            let refused = router.run(|| sysctl::apply(&sysctl::forwarding(spec.family)))?;
            anyhow::ensure!(
                refused.is_empty(),
                "forward packets: {}",
                refused.join("; ")
            );
        }
        let lan = wire(spec, (&device.namespace, &lan), &host, inner, NUMBERS[0])
            .context("join the host to the device")?;
        wire(spec, (proxy, &net), &server, outer, NUMBERS[1])
            .context("join the server to the proxy")?;
        if let Some(access) = &of.routed_by {
            let by = (device.accesses.iter().find(|a| a.name == *access))
                .with_context(|| format!("no access \"{access}\" leads back to the host"))?;
            let network = IpNet::new(inner.device, inner.prefix_len)?.trunc();
            let (gateway, ifindex) = (by.device.addr, by.proxy.ifindex);
            proxy.netlink(async move |handle| {
                netlink::add_route(&handle, network, gateway, ifindex).await
            })?;
        }
        Ok(Self {
            host,
            server,
            lan,
            host_addr: inner.device,
            server_addr: outer.device,
        })
    }
}

/// Joins a router to an end, whose default route it becomes; returns the router's interface.
fn wire(
    spec: &TopologySpec,
    (router, near): (&Namespace, &str),
    end: &Namespace,
    link: LinkAddresses,
    number: u32,
) -> Result<Interface> {
    let mac = links::hardware_address(number, 1);
    links::veth_pair(router, near, (end, FAR), mac)?;
    router.run(|| sysctl::apply(&sysctl::link_local(near)))?;
    let len = link.prefix_len;
    let here = links::bring_up(router, near, (link.proxy, len), spec.mtu, |l| l)?;
    let there = links::bring_up(end, FAR, (link.device, len), spec.mtu, |l| l)?;
    end.netlink(async move |handle| {
        let route = DefaultRoute {
            gateway: here.addr,
            ifindex: there.ifindex,
            source: there.addr,
            table: libc::RT_TABLE_MAIN.into(),
            metric: 100,
        };
        netlink::add_default_route(&handle, route).await?;
        Ok(here)
    })
}
