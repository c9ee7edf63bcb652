//! Sockets that have addresses which are not this machine's.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Socket, Type};

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
