//! Makes interfaces, brings them up, and opens the ports behind those of an access.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use anyhow::Result;
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth};

use super::namespace::Namespace;
use super::netlink;
use super::ports::{self, Port};
use crate::error::LabError;

/// An interface of a topology.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name in its namespace.
    pub name: String,
    /// Its index in its namespace.
    pub ifindex: u32,
    /// Its address.
    pub addr: IpAddr,
}

/// The two ports of an access, for the emulator.
#[derive(Debug)]
pub struct AccessPorts {
    /// Port where the packets that the device sends come out.
    pub device: Port,
    /// Port where the packets that the proxy sends come out.
    pub proxy: Port,
}

/// The names of an access's interfaces.
pub(super) struct LinkNames {
    pub(super) device: String,
    pub(super) proxy: String,
    /// Far ends of veth pairs: the device's, the proxy's.
    pub(super) radio: [String; 2],
}

/// A TUN device at either end.
pub(super) fn tun_ports(
    device: &Namespace,
    proxy: &Namespace,
    names: &LinkNames,
) -> Result<AccessPorts> {
    Ok(AccessPorts {
        device: device.run(|| ports::open_tun(&names.device))??,
        proxy: proxy.run(|| ports::open_tun(&names.proxy))??,
    })
}

/// A veth pair at either end, whose far end is in the radio namespace with a
/// packet socket on it.
pub(super) fn packet_ports(
    radio: &Namespace,
    device: &Namespace,
    proxy: &Namespace,
    names: &LinkNames,
    number: u32,
) -> Result<AccessPorts> {
    let [device_far, proxy_far] = &names.radio;
    Ok(AccessPorts {
        device: packet_port(
            radio,
            device,
            [&names.device, device_far],
            hardware_address(number, 2),
        )?,
        proxy: packet_port(
            radio,
            proxy,
            [&names.proxy, proxy_far],
            hardware_address(number, 1),
        )?,
    })
}

fn packet_port(
    radio: &Namespace,
    end: &Namespace,
    [near, far]: [&str; 2],
    mac: [u8; 6],
) -> Result<Port> {
    veth_pair(end, near, (radio, far), mac)?;
    let ifindex = radio.netlink(async |handle| {
        // The MTU that counts is that of the near end.
        let change = LinkUnspec::new_with_name(far).mtu(65_535).arp(false).up();
        netlink::set_link(&handle, change, &format!("bring {far} up")).await?;
        Ok(netlink::get_link(&handle, far).await?.header.index)
    })?;
    radio.run(|| ports::open_packet(ifindex, mac))?
}

/// Lays a veth pair from `at` to another namespace; `mac` is the hardware address of the near end.
pub(super) fn veth_pair(
    at: &Namespace,
    near: &str,
    (other, far): (&Namespace, &str),
    mac: [u8; 6],
) -> Result<()> {
    let there = LinkUnspec::new_with_name(far)
        .setns_by_fd(other.as_raw_fd())
        .build();
    let pair = LinkVeth::new(near, far).address(mac.to_vec());
    let pair = pair
        .set_info_data(InfoData::Veth(InfoVeth::Peer(there)))
        .build();
    let what = format!("add the veth pair {near} - {far}");
    at.netlink(async |handle| netlink::add_link(&handle, pair, &what).await)
        .map_err(explain_veth_error)
}

/// Brings an interface up with its address and MTU, and with `change`.
pub(super) fn bring_up(
    at: &Namespace,
    name: &str,
    (addr, len): (IpAddr, u8),
    mtu: u32,
    change: impl FnOnce(LinkMessageBuilder<LinkUnspec>) -> LinkMessageBuilder<LinkUnspec> + Send,
) -> Result<Interface> {
    at.netlink(async |handle| {
        let link = change(LinkUnspec::new_with_name(name).mtu(mtu)).up();
        let what = format!("set {name} to an MTU of {mtu} and bring it up");
        netlink::set_link(&handle, link, &what).await?;
        let ifindex = netlink::get_link(&handle, name).await?.header.index;
        netlink::add_address(&handle, ifindex, addr, len).await?;
        Ok(Interface {
            name: name.into(),
            ifindex,
            addr,
        })
    })
}

/// Hardware addresses are locally administered (IEEE 802, 8.2) and tell the
/// access and the side.
pub(super) fn hardware_address(number: u32, side: u8) -> [u8; 6] {
    let [_, a, b, c] = number.to_be_bytes();
    [0x02, 0x62, a, b, c, side]
}

/// Says so where the kernel has no veth driver.
fn explain_veth_error(error: anyhow::Error) -> anyhow::Error {
    let code = error
        .chain()
        .find_map(|e| e.downcast_ref::<std::io::Error>())
        .and_then(std::io::Error::raw_os_error);
    if code == Some(libc::EOPNOTSUPP) {
        return LabError::missing(
            "make a veth pair: the kernel has no veth driver",
            "sudo modprobe veth",
        )
        .into();
    }
    error
}
