//! A socket option for which no safe wrapper exists.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Sets a socket to send its datagrams whole or not at all, up to the interface's MTU: neither
/// this end nor a router cuts them, and what the kernel knows of the path's MTU does not count
/// (`IP_PMTUDISC_PROBE`, as RFC 8899 4.5 wants it of probes).
///
/// # Errors
/// The kernel's refusal.
pub(crate) fn never_fragment<S: AsFd>(socket: &S, ipv4: bool) -> io::Result<()> {
    let (level, name, value) = match ipv4 {
        true => (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
        ),
        false => (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        ),
    };
    set(socket.as_fd(), level, name, value)
}

/// Sets an option of one number.
fn set(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads `value`, of the length that is given, and keeps no pointer.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match rc {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
