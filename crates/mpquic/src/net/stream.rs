//! A stream of bytes in both directions, on either lane.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use noq_proto::{StreamId, VarInt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::read::ReadHalf;
use super::session::Hold;
use super::write::WriteHalf;

pub(super) fn stream(id: u64) -> StreamId {
    StreamId::from(VarInt::try_from(id).unwrap_or(VarInt::MAX))
}

/// A stream in both directions, each of which ends by itself: what is written by a shutdown
/// or by [`WriteHalf::reset`], what is read when the peer ends it or by [`ReadHalf::stop`].
/// Dropped, it is reset and stopped, but for what has ended before.
pub struct Stream {
    read: ReadHalf,
    write: WriteHalf,
}

impl Stream {
    pub(super) fn new(hold: Arc<Hold>, id: u64) -> Self {
        Self {
            read: ReadHalf::new(Arc::clone(&hold), id),
            write: WriteHalf::new(hold, id),
        }
    }

    /// The two ends of it, to be used apart.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        (self.read, self.write)
    }

    /// Puts what is written into a class ([`WriteHalf::set_class`]).
    pub fn set_class(&self, class: u8) {
        self.write.set_class(class);
    }

    /// Waits until the peer stops what is written, or the session ends, also where nothing is
    /// written now. Returns the error that a write would have; not again to another who waits.
    pub fn stopped(&self) -> impl Future<Output = io::Error> + Send + use<> {
        self.write.stopped()
    }

    /// Resets what is written and stops what is read, with the same error code
    /// ([`WriteHalf::reset`], [`ReadHalf::stop`]).
    pub fn abort(&mut self, error: u64) {
        self.write.reset(error);
        self.read.stop(error);
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}
