//! Sockets that have addresses which are not this machine's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

use super::Ports;

/// Opens a socket at an address, this machine's or not, that does not block.
///
/// # Errors
/// The kernel's refusal: it takes the capability CAP_NET_ADMIN.
pub(super) fn open(at: SocketAddr, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), kind, None)?;
    match at.ip() {
        IpAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
        IpAddr::V6(_) => {
            socket.set_only_v6(true)?;
            socket.set_ip_transparent_v6(true)?;
        }
    }
    socket.set_nonblocking(true)?;
    if kind == Type::DGRAM {
        // Several answer from one address.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&at.into())?;
    Ok(socket)
}

/// Opens a socket at the loopback of each family, that of IPv6 where the machine has it. Returns them
/// with their ports.
///
/// # Errors
/// The socket's.
pub(super) fn of_both_families<S>(
    open: impl Fn(IpAddr) -> io::Result<S>,
    address: impl Fn(&S) -> io::Result<SocketAddr>,
) -> io::Result<(S, Option<S>, Ports)> {
    let v4 = open(Ipv4Addr::LOCALHOST.into())?;
    let v6 = match open(Ipv6Addr::LOCALHOST.into()) {
        Ok(v6) => Some(v6),
        Err(e) if has_no_v6(&e) => None,
        Err(e) => return Err(e),
    };
    let port = |socket: &S| Ok::<_, io::Error>(address(socket)?.port());
    let ports = Ports {
        v4: port(&v4)?,
        v6: v6.as_ref().map(port).transpose()?,
    };
    Ok((v4, v6, ports))
}

/// Whether an error says that the machine has no IPv6.
fn has_no_v6(e: &io::Error) -> bool {
    matches!(
        e.raw_os_error(),
        Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)
    )
}
