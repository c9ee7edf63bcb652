//! The ends of a link that the emulator reads and writes: a TUN device's
//! descriptor, or a packet socket on the far end of a veth pair.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// What a port's descriptor is, and so how packets are framed on it. Both
/// kinds put a 10-byte virtio-net header in front (virtio 1.2, 5.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortKind {
    /// A TUN device: IP packets, nothing between the header and them.
    Tun,
    /// A raw packet socket: Ethernet frames.
    Packet {
        /// Hardware address that frames must be sent to.
        peer: [u8; 6],
    },
}

/// One end of an access's link, for the emulator.
#[derive(Debug)]
pub struct Port {
    /// How packets are framed on it.
    pub kind: PortKind,
    fd: OwnedFd,
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a topology can use TUN here.
///
/// # Errors
/// [`LabError::Missing`], with the line that enables it.
pub fn tun_usable() -> Result<(), LabError> {
    open_tun_device().map(drop).map_err(|e| tun_missing(&e))
}

fn open_tun_device() -> io::Result<OwnedFd> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    Ok(file.into())
}

fn tun_missing(error: &io::Error) -> LabError {
    let fix = match error.kind() {
        io::ErrorKind::PermissionDenied => "sudo chmod 0666 /dev/net/tun",
        _ => {
            "sudo modprobe tun && sudo sh -c 'mkdir -p /dev/net; mknod -m 0666 /dev/net/tun c 10 200'"
        }
    };
    LabError::missing(format!("open /dev/net/tun: {error}"), fix)
}

/// The start of `struct ifreq`, as `TUNSETIFF` reads it.
#[repr(C)]
struct IfReq {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    pad: [u8; 22],
}

/// Makes a TUN device in the calling thread's namespace, with every offload
/// that the kernel has, so that it hands over super-packets unsplit. It exists
/// as long as the port does.
pub(super) fn open_tun(name: &str) -> Result<Port> {
    let fd = open_tun_device().map_err(|e| tun_missing(&e))?;
    let mut request = IfReq {
        name: [0; libc::IFNAMSIZ],
        flags: 0,
        pad: [0; 22],
    };
    ensure!(
        name.len() < libc::IFNAMSIZ,
        "create TUN device {name}: the name is too long"
    );
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    request.flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &mut request) })
        .with_context(|| format!("create TUN device {name}"))?;
    // Kernels before 6.2 do not know the offloads of UDP.
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let offload = |flags: libc::c_uint| {
        // SAFETY: TUNSETOFFLOAD takes its flags by value.
        check(unsafe {
            libc::ioctl(
                fd.as_raw_fd(),
                libc::TUNSETOFFLOAD,
                libc::c_ulong::from(flags),
            )
        })
    };
    offload(tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6)
        .or_else(|_| offload(tcp))
        .with_context(|| format!("set the offloads of TUN device {name}"))?;
    Ok(Port {
        kind: PortKind::Tun,
        fd,
    })
}

/// Opens a packet socket on an interface of the calling thread's namespace,
/// whose veth peer has the hardware address `peer`.
pub(super) fn open_packet(name: &str, ifindex: u32, peer: [u8; 6]) -> Result<Port> {
    // Protocol 0: nothing arrives before the socket is bound to its interface.
    // SAFETY: takes no pointers.
    let raw = unsafe {
        libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            0,
        )
    };
    check(raw).with_context(|| format!("open a packet socket for {name}"))?;
    // SAFETY: socket() returned it, and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    let on: libc::c_int = 1;
    // SAFETY: the option's value is one int, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_VNET_HDR,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    })
    .with_context(|| format!("ask for virtio-net headers on {name}"))?;
    // SAFETY: sockaddr_ll is made of integers: all zeros is one.
    let mut addr: libc::sockaddr_ll = unsafe { mem::zeroed() };
    addr.sll_family = libc::AF_PACKET as u16;
    addr.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    addr.sll_ifindex = i32::try_from(ifindex).context("an interface index is positive")?;
    // SAFETY: the address is a whole sockaddr_ll, which outlives the call.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const addr).cast(),
            size_of_val(&addr) as libc::socklen_t,
        )
    })
    .with_context(|| format!("bind a packet socket to {name}"))?;
    Ok(Port {
        kind: PortKind::Packet { peer },
        fd,
    })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
