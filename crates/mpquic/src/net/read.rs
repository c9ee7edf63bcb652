//! The end of a stream that reads (RFC 9000 3.2).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use noq_proto::{ReadError, ReadableError};
use tokio::io::{AsyncRead, ReadBuf};

use super::live::Live;
use super::session::Hold;
use super::stream::stream;
use super::stream_abort::{Aborted, DROPPED, code};
use crate::Connection;
use crate::lane::End;

/// The end that reads. Dropped before its end, it stops the peer.
pub struct ReadHalf {
    hold: Arc<Hold>,
    id: u64,
    /// Data that has been taken from the connection and not been read.
    rest: Bytes,
    /// How it has ended, which every later read is told too.
    ended: Option<Result<(), Aborted>>,
}

enum Read {
    Data(Bytes),
    End(Result<(), Aborted>),
    Nothing,
}

fn read(live: &mut Live, c: &mut Connection, id: u64, cx: &Context<'_>) -> Read {
    let got = match c.lane() {
        Some(lane) => match lane.read(id) {
            Some(data) => Read::Data(data),
            None => match lane.end(id) {
                Some(End::Finished) => Read::End(Ok(())),
                Some(End::Reset(code)) => Read::End(Err(Aborted::Reset(code))),
                Some(End::Forgotten) => Read::End(Err(Aborted::Here)),
                None => Read::Nothing,
            },
        },
        None => read_quic(c, id),
    };
    match got {
        Read::Nothing => drop(live.readers.insert(id, cx.waker().clone())),
        _ => live.driver_wanted = true,
    }
    got
}

fn read_quic(c: &mut Connection, id: u64) -> Read {
    let mut quic = c.quic().recv_stream(stream(id));
    let mut chunks = match quic.read(true) {
        Ok(chunks) => chunks,
        Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => {
            return Read::End(Err(Aborted::Here));
        }
    };
    let got = match chunks.next(usize::MAX) {
        Ok(Some(chunk)) => Read::Data(chunk.bytes),
        Ok(None) => Read::End(Ok(())),
        Err(ReadError::Blocked) => Read::Nothing,
        Err(ReadError::Reset(code)) => Read::End(Err(Aborted::Reset(code.into_inner()))),
    };
    // The task is woken where anything was read, and sends what there is to send.
    let _ = chunks.finalize();
    got
}

impl ReadHalf {
    pub(super) fn new(hold: Arc<Hold>, id: u64) -> Self {
        Self {
            hold,
            id,
            rest: Bytes::new(),
            ended: None,
        }
    }

    /// The next bytes, as they arrived, without copying them; empty at the end.
    ///
    /// # Errors
    /// The session has ended, the peer has reset the stream ([`Aborted::Reset`]: what was
    /// read is not all of it), or this end has stopped it.
    pub async fn chunk(&mut self) -> io::Result<Bytes> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Stops the peer, which learns of the error code: what has arrived and was not read, and
    /// what is under way, is thrown away (STOP_SENDING, RFC 9000 19.5). The code is of the
    /// program's own, below 2^62. Nothing where all has been read.
    pub fn stop(&mut self, error: u64) {
        if self.ended.is_some() {
            return;
        }
        self.ended = Some(Err(Aborted::Here));
        self.rest = Bytes::new();
        let (id, error) = (self.id, code(error));
        // If the session has ended, so has the stream.
        let _ = self.hold.with(|live, c| {
            live.readers.remove(&id);
            match c.lane() {
                Some(lane) => lane.stop(id, error.into_inner()),
                None => drop(c.quic().recv_stream(stream(id)).stop(error)),
            }
        });
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(std::mem::take(&mut self.rest)));
        }
        if self.ended.is_none() {
            let id = self.id;
            match self.hold.ask(|live, c| read(live, c, id, cx))? {
                Read::Data(data) => return Poll::Ready(Ok(data)),
                Read::Nothing => return Poll::Pending,
                Read::End(end) => self.ended = Some(end),
            }
        }
        let end = self.ended.unwrap_or(Ok(()));
        Poll::Ready(end.map(|()| Bytes::new()).map_err(Into::into))
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut any = false;
        while buf.remaining() > 0 {
            match self.poll_chunk(cx) {
                Poll::Ready(Ok(mut data)) if !data.is_empty() => {
                    let n = data.len().min(buf.remaining());
                    buf.put_slice(&data[..n]);
                    data.advance(n);
                    self.rest = data;
                    any = true;
                }
                Poll::Ready(Err(e)) if !any => return Poll::Ready(Err(e)),
                Poll::Pending if !any => return Poll::Pending,
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for ReadHalf {
    fn drop(&mut self) {
        self.stop(DROPPED);
    }
}
