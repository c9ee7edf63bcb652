//! A TCP connection that ends as what it is joined with ends: unless both directions ended
//! well, its close is a reset.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection that is closed with a reset (SO_LINGER of 0 s), whoever closes it and
/// why: this program, or the kernel when this program is killed. [`Tcp::finish`] changes that.
pub(crate) struct Tcp(TcpStream);

impl Tcp {
    /// # Errors
    /// The socket's.
    pub(crate) fn new(tcp: TcpStream) -> io::Result<Self> {
        SockRef::from(&tcp).set_linger(Some(Duration::ZERO))?;
        // What a program writes at once is sent at once.
        tcp.set_nodelay(true)?;
        Ok(Self(tcp))
    }

    /// Both directions have ended well: it is closed without a reset.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn finish(self) -> io::Result<()> {
        SockRef::from(&self.0).set_linger(None)
    }

    /// Waits until the connection is reset or fails, also where nobody reads or writes.
    /// Returns the error.
    pub(crate) async fn failed(&self) -> io::Error {
        loop {
            if let Err(e) = self.0.ready(Interest::ERROR).await {
                return e;
            }
            let error = self
                .0
                .try_io(Interest::ERROR, || match self.0.take_error()? {
                    Some(e) => Ok(e),
                    None => Err(io::ErrorKind::WouldBlock.into()),
                });
            match error {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Ok(e) | Err(e) => return e,
            }
        }
    }

    /// The two directions, while [`Tcp::failed`] is waited for.
    pub(crate) fn directions(&self) -> Directions<'_> {
        Directions(&self.0)
    }
}

/// Reads and writes a connection.
pub(crate) struct Directions<'a>(&'a TcpStream);

impl AsyncRead for Directions<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read(buf.initialize_unfilled()) {
                Ok(n) => {
                    buf.advance(n);
                    return Poll::Ready(Ok(()));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl AsyncWrite for Directions<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(data) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(self.0).shutdown(Shutdown::Write))
    }
}
