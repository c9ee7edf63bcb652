//! TCP connections of unchanged programs over a session: the device listens for them,
//! and the proxy connects to where they are meant to go.
//!
//! Each takes one stream of the session. It begins with where to (see [`wire`]), the
//! proxy answers whether it is connected, and from then on the bytes are the program's.
//!
//! A connection ends at one end as it ends at the other: the end of a direction (FIN) as the
//! end of that direction, while the other goes on; anything else (a reset, the loss of the
//! session, the end of either daemon) as a reset of both.

mod egress;
mod port;
mod tcp;
pub mod wire;

pub use egress::{Allowed, Other, serve};
pub use port::Forward;

use std::io;

use tokio::io::copy_bidirectional_with_sizes;

use braid_mpquic::Stream;
use tcp::Tcp;

/// Bytes that are moved at a time, at most.
const PIECE: usize = 256 << 10;
/// Error code of streams whose TCP connection was reset, or failed.
const TCP_FAILED: u64 = 2;

/// Moves bytes both ways until both directions have ended, or either fails: then both are
/// reset, as TCP does.
async fn join(tcp: Tcp, mut stream: Stream) -> io::Result<()> {
    let mut directions = tcp.directions();
    let stopped = stream.stopped();
    let done = tokio::select! {
        biased;
        e = tcp.failed() => Err(e),
        // The connection at the other end was reset, of which one that writes nothing hears no
        // other way.
        e = stopped => Err(e),
        done = copy_bidirectional_with_sizes(&mut directions, &mut stream, PIECE, PIECE) => done,
    };
    match done {
        Ok(_) => tcp.finish(),
        Err(e) => {
            stream.abort(TCP_FAILED);
            Err(e)
        }
    }
}
