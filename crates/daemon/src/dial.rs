//! Connects from one address of one interface.

use std::io;
use std::net::{IpAddr, SocketAddr};

use braid_mptcp::socket;
use tokio::net::{TcpSocket, TcpStream};

/// Connects to `to`, by MPTCP or plain TCP.
///
/// # Errors
/// The interface or the address is not there; what the other end, or the way to it, says.
pub(super) async fn dial(
    address: IpAddr,
    interface: &str,
    to: SocketAddr,
    mptcp: bool,
) -> io::Result<TcpStream> {
    let socket = socket::stream(&to, mptcp).map_err(io::Error::other)?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    TcpSocket::from_std_stream(socket.into()).connect(to).await
}
