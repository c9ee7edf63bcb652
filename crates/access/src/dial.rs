//! Connects from one address of one interface.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::Socket;
use tokio::net::{TcpSocket, TcpStream};

/// Connects a socket, which is a new one of TCP or MPTCP, to `to`.
///
/// # Errors
/// The interface or the address is not there; what the other end, or the way to it, says.
pub async fn dial(
    socket: Socket,
    address: IpAddr,
    interface: &str,
    to: SocketAddr,
) -> io::Result<TcpStream> {
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    TcpSocket::from_std_stream(socket.into()).connect(to).await
}
