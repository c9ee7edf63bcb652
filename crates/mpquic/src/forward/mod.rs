//! TCP connections of unchanged programs over a session: the device listens for them,
//! and the proxy connects to where they are meant to go.
//!
//! Each takes one stream of the session. It begins with where to (see [`wire`]), the
//! proxy answers whether it is connected, and from then on the bytes are the program's.

mod device;
mod proxy;
pub mod wire;

pub use device::Forward;
pub use proxy::{Allowed, serve};

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

/// What is moved at a time.
const PIECE: usize = 256 << 10;

/// Moves bytes both ways until both directions have ended.
async fn join(
    tcp: &mut TcpStream,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<()> {
    // What a program writes at once is sent at once.
    tcp.set_nodelay(true)?;
    copy_bidirectional_with_sizes(tcp, stream, PIECE, PIECE).await?;
    Ok(())
}
