//! The end of a stream that writes (RFC 9000 3.1).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use noq_proto::{FinishError, WriteError};
use tokio::io::AsyncWrite;

use super::live::{Live, lane_room};
use super::session::Hold;
use super::stream::stream;
use super::stream_abort::{Aborted, DROPPED, code};
use crate::Connection;

/// Bytes that are taken from a writer at a time, at most.
const PIECE: usize = 256 << 10;

/// The end that writes. Dropped before it was shut down, it resets the stream: the peer does
/// not take what has arrived for all.
pub struct WriteHalf {
    hold: Arc<Hold>,
    id: u64,
    finished: bool,
    /// How it has ended early, which every later write is told too.
    aborted: Option<Aborted>,
}

impl WriteHalf {
    pub(super) fn new(hold: Arc<Hold>, id: u64) -> Self {
        let half = Self {
            hold,
            id,
            finished: false,
            aborted: None,
        };
        // If the session has ended, the first write is told.
        let _ = half.hold.ask(|live, _| live.writing.insert(id, None));
        half
    }

    /// Resets the stream with an error code, which the peer learns: what has not arrived is
    /// not sent any more, and its reads fail once they have come to that (RESET_STREAM, RFC
    /// 9000 19.4). The code is of the program's own, below 2^62. Also after a shutdown that
    /// the peer has not acknowledged; nothing once it has all.
    pub fn reset(&mut self, error: u64) {
        if self.aborted.is_some() {
            return;
        }
        self.aborted = Some(Aborted::Here);
        let (id, error) = (self.id, code(error));
        // If the session has ended, so has the stream.
        let _ = self.hold.with(|live, c| {
            live.leave_writing(id, c);
            match c.lane() {
                Some(lane) => lane.reset(id, error.into_inner()),
                None => drop(c.quic().send_stream(stream(id)).reset(error)),
            }
        });
    }

    /// Puts what is written into a class ([`Steering::classes`](crate::Steering::classes)), from the
    /// next packet on. On the stream lane all is of one class.
    pub fn set_class(&self, class: u8) {
        let id = self.id;
        // If the session has ended, so has the stream.
        let _ = self.hold.ask(|_, c| {
            if let Some(lane) = c.lane() {
                lane.set_class(id, class);
            }
        });
    }

    pub(super) fn stopped(&self) -> impl Future<Output = io::Error> + Send + use<> {
        let (hold, id) = (Arc::clone(&self.hold), self.id);
        std::future::poll_fn(move |cx| {
            let stopped = hold.ask(|live, _| {
                let code = live.writing.get(&id).copied().flatten();
                if code.is_none() {
                    live.watchers.insert(id, cx.waker().clone());
                }
                code
            });
            match stopped {
                Ok(None) => Poll::Pending,
                Ok(Some(code)) => Poll::Ready(Aborted::Stopped(code).into()),
                Err(e) => Poll::Ready(e.into()),
            }
        })
    }

    /// Does something with the stream, unless it has ended early.
    fn poll<T>(
        &mut self,
        f: impl FnOnce(&mut Live, &mut Connection) -> Poll<Result<T, Aborted>>,
    ) -> Poll<io::Result<T>> {
        if let Some(e) = self.aborted {
            return Poll::Ready(Err(e.into()));
        }
        let id = self.id;
        let done = self.hold.ask(|live, c| {
            if let Some(Some(code)) = live.writing.get(&id) {
                let stopped = Aborted::Stopped(*code);
                live.leave_writing(id, c);
                return Poll::Ready(Err(stopped));
            }
            f(live, c)
        })?;
        let Poll::Ready(done) = done else {
            return Poll::Pending;
        };
        self.aborted = done.as_ref().err().copied();
        Poll::Ready(done.map_err(Into::into))
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.finished {
            return Poll::Ready(Err(Aborted::Here.into()));
        }
        let id = self.id;
        self.poll(|live, c| {
            let taken = match c.lane() {
                Some(lane) => {
                    let room = lane_room(lane, id).ok_or(Aborted::Stopped(DROPPED))?;
                    let room = usize::try_from(room).unwrap_or(usize::MAX);
                    match data.len().min(PIECE).min(room) {
                        0 => 0,
                        n => lane.write(id, Bytes::copy_from_slice(&data[..n])),
                    }
                }
                None => {
                    let written = c.quic().send_stream(stream(id)).write(data);
                    c.set_stream_blocked(matches!(written, Err(WriteError::Blocked)));
                    match written {
                        Err(WriteError::Blocked) => 0,
                        Err(WriteError::Stopped(code)) => {
                            // It is this end that says how much of it there was.
                            let _ = c.quic().send_stream(stream(id)).reset(code);
                            live.driver_wanted = true;
                            return Poll::Ready(Err(Aborted::Stopped(code.into_inner())));
                        }
                        Err(WriteError::ClosedStream) => {
                            return Poll::Ready(Err(Aborted::Stopped(DROPPED)));
                        }
                        Ok(n) => n,
                    }
                }
            };
            if taken == 0 && !data.is_empty() {
                live.writers.insert(id, cx.waker().clone());
                return Poll::Pending;
            }
            live.driver_wanted = true;
            Poll::Ready(Ok(taken))
        })
    }

    /// Nothing to do: what is written is sent as soon as a path has room for it.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the direction, and waits until the peer has all of it.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (id, finished) = (self.id, self.finished);
        let done = self.poll(|live, c| {
            live.driver_wanted |= !finished;
            let done = match finished {
                true => is_done(c, id),
                false => finish(c, id)?,
            };
            if !done {
                live.finishers.insert(id, cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        });
        self.finished |= self.aborted.is_none();
        done
    }
}

/// Ends it; whether the peer has all of it.
fn finish(c: &mut Connection, id: u64) -> Result<bool, Aborted> {
    if let Some(lane) = c.lane() {
        lane.writable(id).ok_or(Aborted::Stopped(DROPPED))?;
        lane.finish(id);
        return Ok(lane.is_done(id));
    }
    let mut quic = c.quic().send_stream(stream(id));
    match quic.finish() {
        Ok(()) => Ok(false),
        Err(FinishError::Stopped(code)) => {
            let _ = quic.reset(code);
            Err(Aborted::Stopped(code.into_inner()))
        }
        // By a stop that came before it was accepted: nothing of ours has ended it.
        Err(FinishError::ClosedStream) => Err(Aborted::Stopped(DROPPED)),
    }
}

/// Whether the peer has all of what was ended.
fn is_done(c: &mut Connection, id: u64) -> bool {
    match c.lane() {
        Some(lane) => lane.is_done(id),
        // A stream that is acknowledged is unknown.
        None => c.quic().send_stream(stream(id)).stopped().is_err(),
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        if !self.finished {
            self.reset(DROPPED);
        }
        let (id, whole) = (self.id, self.finished && self.aborted.is_none());
        let _ = self.hold.ask(|live, c| {
            live.leave_writing(id, c);
            // A shutdown that nobody waits for any more goes on.
            if whole && c.lane().is_none() && !is_done(c, id) {
                live.leaving.insert(id);
            }
        });
    }
}
