//! TUN interface of either end: packets in and out, many in a system call.
//!
//! The kernel hands over what one flow has to send as one large packet, and takes such from us
//! (TSO, USO): they are cut on the way in, and joined on the way out.

use std::io;
use std::net::IpAddr;

use bytes::Bytes;
use futures_util::TryStreamExt;
use rtnetlink::{Handle, LinkUnspec};
use tun_rs::{AsyncDevice, DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, VIRTIO_NET_HDR_LEN};

use super::{MTU, TunnelError};
use crate::ipv6;

/// Bytes of the largest packet that the kernel hands over or takes.
const LARGEST: usize = 65535;

/// TUN interface, which goes when this is dropped.
pub(crate) struct Interface {
    name: String,
    tun: AsyncDevice,
    index: u32,
    handle: Handle,
}

impl Interface {
    /// Creates it, up, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) async fn create(name: String) -> Result<Self, TunnelError> {
        let built = DeviceBuilder::new()
            .name(&name)
            .mtu(MTU)
            .offload(true)
            .enable(true)
            .build_async();
        let tun = built.map_err(|e| {
            TunnelError::new(
                format!(
                    "create the TUN interface {name} (it takes /dev/net/tun, CAP_NET_ADMIN and \
                     that no other daemon has it)"
                ),
                e,
            )
        })?;
        let index = nix::net::if_::if_nametoindex(&*name)
            .map_err(|e| TunnelError::new(format!("find {name}"), e.into()))?;
        let (connection, handle, _) = rtnetlink::new_connection()
            .map_err(|e| TunnelError::new("open a netlink socket", e))?;
        tokio::spawn(connection);
        Ok(Self {
            name,
            tun,
            index,
            handle,
        })
    }

    /// Returns its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns its index.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Whether it can have an address.
    pub(super) fn takes(&self, address: &IpAddr) -> bool {
        ipv6::takes(&self.name, address)
    }

    /// Gives it those of these addresses that it can have, and no others.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(super) async fn set_addresses(&self, all: &[(IpAddr, u8)]) -> Result<(), TunnelError> {
        let get = self.handle.address().get();
        let mut there = get.set_link_index_filter(self.index).execute();
        let listed = |e| TunnelError::of(&format!("list the addresses of {}", self.name), e);
        while let Some(old) = there.try_next().await.map_err(listed)? {
            // What is just going is no error.
            let _ = self.handle.address().del(old).execute().await;
        }
        for (ip, prefix) in all.iter().filter(|(ip, _)| self.takes(ip)) {
            let add = self.handle.address().add(self.index, *ip, *prefix);
            let added = add.execute().await;
            added
                .map_err(|e| TunnelError::of(&format!("add {ip}/{prefix} to {}", self.name), e))?;
        }
        Ok(())
    }

    /// Takes it up or down.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(super) async fn set_up(&self, up: bool) -> Result<(), TunnelError> {
        let link = LinkUnspec::new_with_index(self.index);
        let link = if up { link.up() } else { link.down() };
        let set = self.handle.link().set(link.build()).execute().await;
        set.map_err(|e| TunnelError::of(&format!("set {} up or down", self.name), e))
    }
}

/// Buffers to read from an interface.
pub(super) struct Reader {
    large: Vec<u8>,
    packets: Vec<Vec<u8>>,
    lengths: Vec<usize>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            large: vec![0; VIRTIO_NET_HDR_LEN + LARGEST],
            packets: vec![vec![0; MTU.into()]; IDEAL_BATCH_SIZE],
            lengths: vec![0; IDEAL_BATCH_SIZE],
        }
    }
}

impl Reader {
    /// Waits for packets, and adds them to `into`.
    ///
    /// # Errors
    /// The interface's, as when it has been deleted.
    pub(super) async fn read(&mut self, at: &Interface, into: &mut Vec<Bytes>) -> io::Result<()> {
        let read = at
            .tun
            .recv_multiple(&mut self.large, &mut self.packets, &mut self.lengths, 0);
        let n = match read.await {
            Ok(n) => n,
            // The interface's own errors have a number; what has none is a packet that cannot be
            // cut, and is lost.
            Err(e) if e.raw_os_error().is_none() => return Ok(()),
            Err(e) => return Err(e),
        };
        let all = self.packets.iter().zip(&self.lengths).take(n);
        into.extend(all.map(|(packet, len)| Bytes::copy_from_slice(&packet[..*len])));
        Ok(())
    }
}

/// Buffers to write to an interface.
#[derive(Default)]
pub(super) struct Writer {
    packets: Vec<Vec<u8>>,
    joined: GROTable,
}

impl Writer {
    /// Writes packets. What the kernel does not take is lost.
    pub(super) async fn write(&mut self, at: &Interface, packets: &[Bytes]) {
        for some in packets.chunks(IDEAL_BATCH_SIZE) {
            // Room for the header of what is joined, and for all that joins it.
            let room = || Vec::with_capacity(VIRTIO_NET_HDR_LEN + LARGEST);
            self.packets
                .resize_with(self.packets.len().max(some.len()), room);
            let buffers = &mut self.packets[..some.len()];
            for (buffer, packet) in buffers.iter_mut().zip(some) {
                buffer.clear();
                buffer.resize(VIRTIO_NET_HDR_LEN, 0);
                buffer.extend_from_slice(packet);
            }
            let sent = at
                .tun
                .send_multiple(&mut self.joined, buffers, VIRTIO_NET_HDR_LEN);
            // One that is no IP packet, or goes nowhere.
            let _ = sent.await;
        }
    }
}
