//! A stream of bytes in both directions, on either lane.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use noq_proto::{ReadError, ReadableError, StreamId, VarInt, WriteError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::live::Live;
use super::session::Hold;
use crate::Connection;

/// What is taken from a writer at a time.
const PIECE: usize = 256 << 10;
/// The application's error code of streams that are given up.
const GIVEN_UP: VarInt = VarInt::from_u32(1);

fn stream(id: u64) -> StreamId {
    StreamId::from(VarInt::try_from(id).unwrap_or(VarInt::MAX))
}

/// The end that reads.
pub struct ReadHalf {
    hold: Arc<Hold>,
    id: u64,
    /// Has been taken from the connection and not been read.
    rest: Bytes,
    ended: bool,
}

/// The end that writes.
pub struct WriteHalf {
    hold: Arc<Hold>,
    id: u64,
    finished: bool,
}

/// A stream in both directions.
pub struct Stream {
    read: ReadHalf,
    write: WriteHalf,
}

impl Stream {
    pub(super) fn new(hold: Arc<Hold>, id: u64) -> Self {
        Self {
            read: ReadHalf {
                hold: Arc::clone(&hold),
                id,
                rest: Bytes::new(),
                ended: false,
            },
            write: WriteHalf {
                hold,
                id,
                finished: false,
            },
        }
    }

    /// The two ends of it, to be used apart.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        (self.read, self.write)
    }
}

enum Read {
    Data(Bytes),
    End,
    Nothing,
}

fn read(live: &mut Live, c: &mut Connection, id: u64, cx: &Context<'_>) -> io::Result<Read> {
    let got = match c.lane() {
        Some(lane) => match lane.read(id) {
            Some(data) => Read::Data(data),
            None if lane.ended(id) => Read::End,
            None => Read::Nothing,
        },
        None => read_quic(c, id)?,
    };
    if matches!(got, Read::Nothing) {
        live.readers.insert(id, cx.waker().clone());
    }
    Ok(got)
}

fn read_quic(c: &mut Connection, id: u64) -> io::Result<Read> {
    let closed = || io::Error::from(io::ErrorKind::NotConnected);
    let mut quic = c.quic().recv_stream(stream(id));
    let mut chunks = match quic.read(true) {
        Ok(chunks) => chunks,
        Err(ReadableError::ClosedStream) => return Ok(Read::End),
        Err(_) => return Err(closed()),
    };
    let got = match chunks.next(usize::MAX) {
        Ok(Some(chunk)) => Ok(Read::Data(chunk.bytes)),
        Ok(None) => Ok(Read::End),
        Err(ReadError::Blocked) => Ok(Read::Nothing),
        Err(ReadError::Reset(_)) => Err(io::ErrorKind::ConnectionReset.into()),
    };
    // The task is woken after this anyway, and sends what there is to send.
    let _ = chunks.finalize();
    got
}

impl ReadHalf {
    /// The next bytes, as they arrived, without copying them; empty at the end.
    ///
    /// # Errors
    /// The session has ended, or the peer has given the stream up.
    pub async fn chunk(&mut self) -> io::Result<Bytes> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if !self.rest.is_empty() || self.ended {
            return Poll::Ready(Ok(std::mem::take(&mut self.rest)));
        }
        let id = self.id;
        match self.hold.with(|live, c| read(live, c, id, cx))?? {
            Read::Data(data) => Poll::Ready(Ok(data)),
            Read::End => {
                self.ended = true;
                Poll::Ready(Ok(Bytes::new()))
            }
            Read::Nothing => Poll::Pending,
        }
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
        if self.ended {
            return;
        }
        let id = self.id;
        // If the session has ended, so has the stream.
        let _ = self.hold.with(|live, c| {
            live.readers.remove(&id);
            match c.lane() {
                Some(lane) => lane.abandon(id),
                None => drop(c.quic().recv_stream(stream(id)).stop(GIVEN_UP)),
            }
        });
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let id = self.id;
        let written = self.hold.with(|live, c| {
            let full = Live::is_full(c);
            let taken = match c.lane() {
                Some(_) if full => Ok(0),
                Some(lane) => {
                    let piece = Bytes::copy_from_slice(&data[..data.len().min(PIECE)]);
                    Ok(lane.write(id, piece))
                }
                None => {
                    let written = c.quic().send_stream(stream(id)).write(data);
                    c.block(matches!(written, Err(WriteError::Blocked)));
                    match written {
                        Err(WriteError::Blocked) => Ok(0),
                        other => other.map_err(refused),
                    }
                }
            };
            if matches!(taken, Ok(0)) && !data.is_empty() {
                live.writers.insert(id, cx.waker().clone());
            }
            taken
        })?;
        match written {
            Ok(0) if !data.is_empty() => Poll::Pending,
            done => Poll::Ready(done),
        }
    }

    /// What is written is sent as soon as a path has room for it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the direction, and waits until the peer has all of it.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (id, finished) = (self.id, self.finished);
        let done = self.hold.with(|live, c| {
            let done = finish(c, id, finished);
            if !done {
                live.finishers.insert(id, cx.waker().clone());
            }
            done
        });
        self.finished = true;
        match done {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(e) => Poll::Ready(Err(e.into())),
        }
    }
}

/// Whether the peer has all of it.
fn finish(c: &mut Connection, id: u64, finished: bool) -> bool {
    match c.lane() {
        Some(lane) => {
            if !finished {
                lane.finish(id);
            }
            lane.is_done(id)
        }
        None => {
            let mut quic = c.quic().send_stream(stream(id));
            let begun = finished || quic.finish().is_ok();
            // A stream that is acknowledged is unknown.
            !begun || quic.stopped().is_err()
        }
    }
}

fn refused(e: WriteError) -> io::Error {
    match e {
        WriteError::Stopped(_) => io::ErrorKind::BrokenPipe.into(),
        e => io::Error::other(e),
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        let (id, finished) = (self.id, self.finished);
        let _ = self.hold.with(|live, c| {
            if live.writers.remove(&id).is_some() {
                c.block(false);
            }
            live.finishers.remove(&id);
            match c.lane() {
                _ if finished => {}
                Some(lane) => lane.finish(id),
                None => drop(c.quic().send_stream(stream(id)).finish()),
            }
        });
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
