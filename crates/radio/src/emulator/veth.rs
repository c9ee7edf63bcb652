//! Packet sockets that exchange super-packets with one end of a veth pair, for
//! where TUN devices are not to be had, as in a user namespace.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use thiserror::Error;

// linux/if_packet.h; not all of them are in libc.
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Bytes the kernel may hold for us in each direction.
const SOCKET_BUFFER: libc::c_int = 32 << 20;

/// Why a packet socket could not be set up.
#[derive(Debug, Error)]
#[error(
    "cannot {what} for interface {ifindex}: {source}; it takes CAP_NET_RAW in the network namespace and Linux 4.20 or later"
)]
pub struct VethError {
    what: &'static str,
    ifindex: u32,
    source: io::Error,
}

/// Opens a packet socket on the interface `ifindex` of the calling thread's
/// network namespace. It sees what the far end of the pair sends, as
/// super-packets with an Ethernet header; the descriptor is non-blocking and
/// closed on exec, and works from any namespace afterwards.
///
/// # Errors
/// See [`VethError`].
pub fn open(ifindex: u32) -> Result<OwnedFd, VethError> {
    let failed = |what| {
        move |source| VethError {
            what,
            ifindex,
            source,
        }
    };
    let flags = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // Protocol 0: nothing arrives before the socket is bound to its interface.
    // SAFETY: socket() touches no memory of ours.
    let fd = unsafe { libc::socket(libc::AF_PACKET, flags, 0) };
    if fd < 0 {
        return Err(failed("open a packet socket")(io::Error::last_os_error()));
    }
    // SAFETY: `fd` is a fresh descriptor that nothing else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    option(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, 1).map_err(failed("receive super-packets"))?;
    option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        .map_err(failed("ignore our own packets"))?;
    option(&fd, libc::SOL_PACKET, PACKET_QDISC_BYPASS, 1).map_err(failed("bypass the qdisc"))?;
    for (force, plain) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        // Beyond the system's limit only with CAP_NET_ADMIN in the first user namespace.
        if option(&fd, libc::SOL_SOCKET, force, SOCKET_BUFFER).is_err() {
            option(&fd, libc::SOL_SOCKET, plain, SOCKET_BUFFER)
                .map_err(failed("size the buffers"))?;
        }
    }
    // SAFETY: an all-zero sockaddr_ll is a valid value of this plain C struct.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = ifindex as libc::c_int;
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    let rc = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if rc != 0 {
        return Err(failed("bind a packet socket")(io::Error::last_os_error()));
    }
    Ok(fd)
}

/// Takes down or brings up the interface that the packet socket `fd` is bound
/// to, so that the far end of the pair loses or regains its carrier.
///
/// # Errors
/// The kernel's; it takes CAP_NET_ADMIN in the interface's namespace.
pub fn set_up(fd: BorrowedFd<'_>, up: bool) -> io::Result<()> {
    // SAFETY: an all-zero sockaddr_ll is a valid value of this plain C struct.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointers describe `address` and its length, which outlive the call.
    check(unsafe {
        libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut length)
    })?;
    // SAFETY: an all-zero ifreq is a valid value of this plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = address.sll_ifindex;
    ifreq(fd, libc::SIOCGIFNAME as u32, &mut request)?;
    ifreq(fd, libc::SIOCGIFFLAGS as u32, &mut request)?;
    // SAFETY: the kernel has just filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let bit = libc::IFF_UP as libc::c_short;
    request.ifr_ifru.ifru_flags = if up { flags | bit } else { flags & !bit };
    ifreq(fd, libc::SIOCSIFFLAGS as u32, &mut request)
}

fn ifreq(fd: BorrowedFd<'_>, what: u32, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the callers' requests read and write one ifreq, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), what as _, request as *mut libc::ifreq) })
}

fn option(
    fd: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
}

fn check(rc: libc::c_int) -> io::Result<()> {
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
