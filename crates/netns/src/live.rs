//! Changes to the links of a running topology, as the device sees them.

use anyhow::{Context, Result};
use rtnetlink::LinkUnspec;

use super::build::{Access, Device, Topology};
use super::namespace::Namespace;
use super::netlink;
use crate::error::LabError;

impl Topology {
    /// Takes an access's interface down at the device: the kernel removes its
    /// routes, and what the emulator writes to it is lost.
    ///
    /// # Errors
    /// [`LabError::BadInput`] for an unknown access; else what the kernel said.
    pub fn link_down(&self, device: &str, access: &str) -> Result<(), LabError> {
        let (device, access) = self.access(device, access)?;
        set_up(&device.namespace, &access.device.name, false)
            .with_context(|| what("down", device, access))?;
        Ok(())
    }

    /// Brings an access's interface up at the device again, and restores its
    /// address, number `address`, and routes, as a DHCP client does.
    ///
    /// # Errors
    /// As for [`Self::link_down`].
    pub fn link_up(&self, device: &str, access: &str, address: u32) -> Result<(), LabError> {
        let (device, access) = self.access(device, access)?;
        let up = set_up(&device.namespace, &access.device.name, true)
            .and_then(|()| device.route(access, access.address(address)));
        up.with_context(|| what("up", device, access))?;
        Ok(())
    }

    /// Takes address number `address` from an access's interface at the device,
    /// with its rule; the kernel removes its routes.
    ///
    /// # Errors
    /// As for [`Self::link_down`].
    pub fn forget_address(&self, device: &str, access: &str, address: u32) -> Result<(), LabError> {
        let (device, access) = self.access(device, access)?;
        let (addr, ifindex) = (access.address(address), access.device.ifindex);
        let (prefix_len, table) = (access.prefix_len, access.table);
        let gone = device.namespace.netlink(async |handle| {
            netlink::remove_source_rule(&handle, addr, table).await?;
            netlink::remove_address(&handle, ifindex, addr, prefix_len).await
        });
        gone.with_context(|| what("new address", device, access))?;
        Ok(())
    }

    /// Takes the carrier of an access's interface from the device, or gives it
    /// back: the interface stays up and keeps its routes, but they are not
    /// used. The kernel may act on it up to a second late (its link watch).
    ///
    /// # Errors
    /// As for [`Self::link_down`].
    pub fn carrier(&self, device: &str, access: &str, on: bool) -> Result<(), LabError> {
        let (device, access) = self.access(device, access)?;
        let name = &access.device.name;
        let changed = match (&self.radio, &access.radio_if) {
            // A veth end has a carrier as long as its peer is up.
            (Some(radio), Some(peer)) => set_up(radio, peer, on),
            _ => device.namespace.netlink(async |handle| {
                let change = LinkUnspec::new_with_name(name).carrier(on);
                netlink::set_link(&handle, change, &format!("set the carrier of {name}")).await
            }),
        };
        changed.with_context(|| what(if on { "carrier" } else { "no carrier" }, device, access))?;
        Ok(())
    }

    /// Whether an access's interface at the device is up, and has a carrier.
    ///
    /// # Errors
    /// As for [`Self::link_down`].
    pub fn link_state(&self, device: &str, access: &str) -> Result<(bool, bool), LabError> {
        let (device, access) = self.access(device, access)?;
        let name = &access.device.name;
        let link = device
            .namespace
            .netlink(async |handle| netlink::get_link(&handle, name).await)?;
        Ok(netlink::link_state(&link))
    }
}

fn set_up(namespace: &Namespace, name: &str, up: bool) -> Result<()> {
    namespace.netlink(async |handle| {
        let link = LinkUnspec::new_with_name(name);
        let (link, word) = if up {
            (link.up(), "up")
        } else {
            (link.down(), "down")
        };
        netlink::set_link(&handle, link, &format!("set {name} {word}")).await
    })
}

fn what(change: &str, device: &Device, access: &Access) -> String {
    format!("set access {} of {}: {change}", access.name, device.name)
}
