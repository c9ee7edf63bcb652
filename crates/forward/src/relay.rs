//! Moving of bytes between a program's connection and its carrier's.

use std::io;
use std::time::Duration;

use tokio::io::copy_bidirectional_with_sizes;
use tokio::time::timeout;

use crate::carrier::Connection;

/// Bytes that are moved at a time, at most.
const PIECE: usize = 256 << 10;
/// How long a reply may take that says why the other end takes no more bytes.
const LATE_REPLY: Duration = Duration::from_secs(1);

/// Moves bytes both ways until both directions have ended, or either fails: then both are
/// reset, as TCP does.
///
/// # Errors
/// Why it ended early: a [`Refusal`](crate::wire::Refusal) where the destination was never
/// connected.
pub(crate) async fn relay(near: &mut dyn Connection, far: &mut dyn Connection) -> io::Result<()> {
    let (near_failed, far_failed) = (near.failed(), far.failed());
    let failed = tokio::select! {
        biased;
        e = near_failed => Err(e),
        done = copy_bidirectional_with_sizes(near, far, PIECE, PIECE) => match done {
            Ok(_) => Ok(()),
            Err(e) => Err(reason(far, e).await),
        },
        // The connection at the other end was reset, of which one that writes nothing hears no
        // other way.
        e = far_failed => Err(reason(far, e).await),
    };
    match failed {
        Ok(()) => {
            near.finish()?;
            far.finish()
        }
        Err(e) => {
            near.reset();
            far.reset();
            Err(e)
        }
    }
}

/// Returns why a connection fails: that it was refused comes before its end, but may be read after.
async fn reason(far: &mut dyn Connection, e: io::Error) -> io::Error {
    match timeout(LATE_REPLY, far.connected()).await {
        Ok(Err(refused)) => refused,
        _ => e,
    }
}
