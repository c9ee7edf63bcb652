//! Carrier `mpquic`: each connection is a stream of the session with the proxy, over all accesses.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use braid_core::class::DEFAULT_NUMBER;
use braid_mpquic::{Session, Stream};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use super::{Carrier, Connection};
use crate::wire::{self, Refusal, Target};

/// Error code of streams whose TCP connection was reset, or failed.
const TCP_FAILED: u64 = 2;

/// Carrier over the session that there is when a program connects; without one, it waits.
#[derive(Clone, Debug)]
pub struct OverSession {
    sessions: watch::Receiver<Option<Session>>,
    class: u8,
}

impl OverSession {
    /// Makes a carrier of the default class.
    pub fn new(sessions: watch::Receiver<Option<Session>>) -> Self {
        Self {
            sessions,
            class: DEFAULT_NUMBER,
        }
    }
}

/// Waits for a session that is another than `before`; none where no more come.
pub async fn next_session(
    sessions: &mut watch::Receiver<Option<Session>>,
    before: Option<&Session>,
) -> Option<Session> {
    let is_new = |s: &Session| before.is_none_or(|b| !s.is(b));
    let there = sessions.wait_for(|now| now.as_ref().is_some_and(is_new));
    there.await.ok()?.clone()
}

impl Carrier for OverSession {
    fn in_class(&self, class: u8) -> Arc<dyn Carrier> {
        Arc::new(Self {
            sessions: self.sessions.clone(),
            class,
        })
    }

    fn connect(&self, to: &Target) -> BoxFuture<'static, io::Result<Box<dyn Connection>>> {
        let (mut sessions, class, to) = (self.sessions.clone(), self.class, to.clone());
        async move {
            let there = sessions.wait_for(Option::is_some).await;
            let session = there.ok().and_then(|s| s.clone());
            let Some(session) = session else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            let mut stream = session.open().await?;
            if class != DEFAULT_NUMBER {
                stream.set_class(class);
            }
            wire::request(&mut stream, &to, class).await?;
            let connection: Box<dyn Connection> = Box::new(Requested {
                stream,
                reply: None,
            });
            Ok(connection)
        }
        .boxed()
    }
}

/// Stream whose first byte from the proxy is its reply. Bytes of the program do not wait for it.
struct Requested {
    stream: Stream,
    reply: Option<Result<(), Refusal>>,
}

impl Requested {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(reply) = self.reply {
            return Poll::Ready(reply.map_err(Into::into));
        }
        let mut code = [0];
        let mut buf = ReadBuf::new(&mut code);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
        let Some(code) = buf.filled().first() else {
            let what = "the proxy ended the stream without a reply";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, what)));
        };
        let reply = wire::read_reply(*code)?;
        self.reply = Some(reply);
        Poll::Ready(reply.map_err(Into::into))
    }
}

impl Connection for Requested {
    fn connected(&mut self) -> BoxFuture<'_, io::Result<()>> {
        std::future::poll_fn(|cx| self.poll_connected(cx)).boxed()
    }

    fn failed(&self) -> BoxFuture<'static, io::Error> {
        self.stream.failed()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.stream.finish()
    }

    fn reset(&mut self) {
        self.stream.reset();
    }
}

/// A stream whose destination is connected.
impl Connection for Stream {
    fn connected(&mut self) -> BoxFuture<'_, io::Result<()>> {
        std::future::ready(Ok(())).boxed()
    }

    fn failed(&self) -> BoxFuture<'static, io::Error> {
        self.stopped().boxed()
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reset(&mut self) {
        self.abort(TCP_FAILED);
    }
}

impl AsyncRead for Requested {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_connected(cx))?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Requested {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
