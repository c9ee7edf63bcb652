//! A TCP connection that ends as what it is joined with ends: unless both directions ended
//! well, its close is a reset.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::carrier::Connection;

/// A TCP connection that is closed with a reset (SO_LINGER of 0 s), whoever closes it and
/// why: this program, or the kernel when this program is killed. [`Connection::finish`] changes that.
pub(crate) struct Tcp(Arc<TcpStream>);

impl Tcp {
    /// # Errors
    /// The socket's.
    pub(crate) fn new(tcp: TcpStream) -> io::Result<Self> {
        SockRef::from(&tcp).set_linger(Some(Duration::ZERO))?;
        // What a program writes at once is sent at once.
        tcp.set_nodelay(true)?;
        Ok(Self(Arc::new(tcp)))
    }
}

impl Connection for Tcp {
    fn connected(&mut self) -> BoxFuture<'_, io::Result<()>> {
        std::future::ready(Ok(())).boxed()
    }

    fn failed(&self) -> BoxFuture<'static, io::Error> {
        let tcp = Arc::clone(&self.0);
        async move {
            loop {
                if let Err(e) = tcp.ready(Interest::ERROR).await {
                    return e;
                }
                let error = tcp.try_io(Interest::ERROR, || match tcp.take_error()? {
                    Some(e) => Ok(e),
                    None => Err(io::ErrorKind::WouldBlock.into()),
                });
                match error {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Ok(e) | Err(e) => return e,
                }
            }
        }
        .boxed()
    }

    fn finish(&mut self) -> io::Result<()> {
        SockRef::from(&*self.0).set_linger(None)
    }

    fn reset(&mut self) {}
}

impl AsyncRead for Tcp {
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

impl AsyncWrite for Tcp {
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
        Poll::Ready(SockRef::from(&*self.0).shutdown(Shutdown::Write))
    }
}
