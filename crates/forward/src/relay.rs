//! Moving of bytes between a program's connection and its carrier's.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::time::timeout;

use crate::carrier::Connection;

/// Bytes that are moved at a time, at most.
const PIECE: usize = 256 << 10;
/// Pieces that one connection moves before others have their turn.
const TURN: usize = 8;
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
        done = both(near, far) => match done {
            Ok(()) => Ok(()),
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

/// Moves bytes both ways until both directions have ended.
async fn both(near: &mut dyn Connection, far: &mut dyn Connection) -> io::Result<()> {
    let (mut there, mut back) = (Direction::default(), Direction::default());
    poll_fn(|cx| {
        let there = there.poll(cx, near, far)?;
        let back = back.poll(cx, far, near)?;
        match there.is_ready() && back.is_ready() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    })
    .await
}

thread_local! {
    /// Memory that bytes pass through: connections have some of their own only for what the other
    /// side does not take at once.
    static PASSING: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    /// Bytes that were read and not written, from a place on.
    rest: Vec<u8>,
    at: usize,
    /// Whether no more is to be read, and whether the writer was told.
    ended: bool,
    done: bool,
}

impl Direction {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Connection,
        to: &mut dyn Connection,
    ) -> Poll<io::Result<()>> {
        let mut passing = PASSING.take();
        passing.resize(PIECE, 0);
        let polled = self.poll_through(&mut passing, cx, from, to);
        PASSING.set(passing);
        polled
    }

    fn poll_through(
        &mut self,
        passing: &mut [u8],
        cx: &mut Context<'_>,
        from: &mut dyn Connection,
        to: &mut dyn Connection,
    ) -> Poll<io::Result<()>> {
        for _ in 0..TURN {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            while self.at < self.rest.len() {
                self.at += ready!(put(cx, to, &self.rest[self.at..]))?;
            }
            (self.rest, self.at) = (Vec::new(), 0);
            if self.ended {
                ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                self.done = true;
                continue;
            }
            let mut buf = ReadBuf::new(passing);
            if Pin::new(&mut *from).poll_read(cx, &mut buf)?.is_pending() {
                // What was written is to leave while nothing more comes.
                let _ = Pin::new(&mut *to).poll_flush(cx)?;
                return Poll::Pending;
            }
            let read = buf.filled();
            self.ended = read.is_empty();
            let mut at = 0;
            while at < read.len() {
                match put(cx, to, &read[at..])? {
                    Poll::Ready(n) => at += n,
                    Poll::Pending => {
                        self.rest = read[at..].to_vec();
                        return Poll::Pending;
                    }
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Writes some of `data`, which is not empty.
fn put(cx: &mut Context<'_>, to: &mut dyn Connection, data: &[u8]) -> Poll<io::Result<usize>> {
    match ready!(Pin::new(to).poll_write(cx, data))? {
        0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
        n => Poll::Ready(Ok(n)),
    }
}

/// Returns why a connection fails: that it was refused comes before its end, but may be read after.
async fn reason(far: &mut dyn Connection, e: io::Error) -> io::Error {
    match timeout(LATE_REPLY, far.connected()).await {
        Ok(Err(refused)) => refused,
        _ => e,
    }
}
