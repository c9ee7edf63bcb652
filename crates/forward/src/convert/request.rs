//! The device's end: a connection to the converter, whose first bytes name the destination.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use braid_mptcp::socket;

use super::cookie::Cookie;
use super::fast_open;
use super::message::{self, Element, Fault, HEADER};
use crate::carrier::Connection;
use crate::tcp::Tcp;

/// How long an address of the converter has to answer, before the next is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// Connects to a converter over Multipath TCP, at the first of these addresses that answers.
///
/// # Errors
/// The kernel has no Multipath TCP; the error of the last address.
pub(crate) async fn connect(at: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for at in at {
        match timeout(PATIENCE, connect_one(*at)).await {
            Ok(Ok(tcp)) => return Ok(tcp),
            Ok(Err(e)) => error = e,
            Err(_) => error = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(error)
}

async fn connect_one(at: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket::stream(&at, true).map_err(io::Error::other)?;
    socket.set_nonblocking(true)?;
    fast_open::connects_with_data(&socket);
    match socket.connect(&at.into()) {
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
        done => done?,
    }
    let tcp = TcpStream::from_std(socket.into())?;
    tcp.writable().await?;
    match tcp.take_error()? {
        Some(e) => Err(e),
        None => Ok(tcp),
    }
}

/// Connection over a converter, whose reply stands in front of what comes back. Bytes of the program
/// do not wait for it.
pub(crate) struct Converted {
    tcp: Tcp,
    /// Bytes of the reply that have come.
    read: Vec<u8>,
    reply: Option<Result<(), Fault>>,
}

impl Converted {
    /// Requests a connection to `to` over one to the converter.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) async fn request(
        tcp: TcpStream,
        to: SocketAddr,
        cookie: &Cookie,
    ) -> io::Result<Self> {
        let mut tcp = Tcp::new(tcp)?;
        let elements = [
            Element::Connect(to, vec![]),
            Element::Cookie(cookie.bytes().to_vec()),
        ];
        let request = message::write(&elements).ok_or(io::ErrorKind::InvalidInput)?;
        tcp.write_all(&request).await?;
        Ok(Self {
            tcp,
            read: Vec::new(),
            reply: None,
        })
    }

    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if let Some(reply) = self.reply {
                return Poll::Ready(reply.map_err(Into::into));
            }
            let wanted = match self.read.first_chunk::<HEADER>() {
                None => HEADER,
                Some(header) => HEADER + message::read_header(*header).map_err(garbled)?,
            };
            if self.read.len() >= wanted.max(HEADER) {
                let elements = message::read_elements(&self.read[HEADER..]).map_err(garbled)?;
                let fault = elements.into_iter().find_map(|e| match e {
                    Element::Error(fault) => Some(fault),
                    _ => None,
                });
                self.reply = Some(fault.map_or(Ok(()), Err));
                continue;
            }
            let mut rest = vec![0; wanted - self.read.len()];
            let mut buf = ReadBuf::new(&mut rest);
            ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                let what = "the converter ended the connection without a reply";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, what)));
            }
            self.read.extend_from_slice(buf.filled());
        }
    }
}

fn garbled(_: Fault) -> io::Error {
    let what = "what answers is no converter (RFC 8803)";
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Connection for Converted {
    fn connected(&mut self) -> BoxFuture<'_, io::Result<()>> {
        std::future::poll_fn(|cx| self.poll_connected(cx)).boxed()
    }

    fn failed(&self) -> BoxFuture<'static, io::Error> {
        self.tcp.failed()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.tcp.finish()
    }

    fn reset(&mut self) {
        self.tcp.reset();
    }
}

impl AsyncRead for Converted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_connected(cx))?;
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Converted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
