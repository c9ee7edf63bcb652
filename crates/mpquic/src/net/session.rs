//! A connection that programs hold.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use braid_core::sched::Scheduler;
use bytes::Bytes;
use noq_proto::{ConnectionError, Dir, StreamId};
use rustls::pki_types::CertificateDer;
use tokio::sync::broadcast;

use super::core::{Core, Shared};
use super::live::{Live, PathChange, Waiters};
use super::session_end::Ended;
use super::stream::Stream;
use crate::access::AccessChange;
use crate::connection::PathInfo;
use crate::lane::Packet;
use crate::tls::Pin;
use crate::{Access, Connection, Error, Steering};

/// Its last copy closes the session.
pub(super) struct Hold {
    pub(super) shared: Shared,
    pub(super) id: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.lock().leave(self.id);
    }
}

impl Hold {
    /// Changes something about the connection, if it lasts.
    pub(super) fn with<T>(
        &self,
        f: impl FnOnce(&mut Live, &mut Connection) -> T,
    ) -> Result<T, Ended> {
        self.ask(|live, connection| {
            live.driver_wanted = true;
            f(live, connection)
        })
    }

    /// Does something with the connection, if it lasts; the task that drives it is woken where
    /// that sets [`Live::driver_wanted`]. Who finds nothing to do and waits does not: the task would
    /// look for nothing, and two that wake each other never rest.
    pub(super) fn ask<T>(
        &self,
        f: impl FnOnce(&mut Live, &mut Connection) -> T,
    ) -> Result<T, Ended> {
        let mut core = self.shared.lock();
        let Some((live, connection)) = core.session(self.id) else {
            return Err(ended(&core, self.id));
        };
        let done = f(live, connection);
        if std::mem::take(&mut live.driver_wanted) {
            core.wake_driver();
        }
        Ok(done)
    }
}

fn ended(core: &Core, id: u64) -> Ended {
    let why = core.sessions.get(&id).and_then(|l| l.ended.clone());
    why.unwrap_or_else(|| ConnectionError::LocallyClosed.into())
}

/// A connection over several accesses. Copies are the same session, which is closed when
/// the last of them and of its streams is dropped.
#[derive(Clone)]
pub struct Session(pub(super) Arc<Hold>);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(&self.0.id).finish()
    }
}

impl Session {
    pub(super) fn new(shared: Shared, id: u64) -> Self {
        Self(Arc::new(Hold { shared, id }))
    }

    /// Opens a stream in both directions; the peer sees it once something has been
    /// written. Waits while there are as many as the peer allows.
    ///
    /// # Errors
    /// The session has ended.
    pub async fn open(&self) -> Result<Stream, Ended> {
        poll_fn(|cx| self.poll_stream(cx, open, |live| &mut live.openers)).await
    }

    /// The next stream that the peer has opened.
    ///
    /// # Errors
    /// The session has ended.
    pub async fn accept(&self) -> Result<Stream, Ended> {
        poll_fn(|cx| self.poll_stream(cx, accept, |live| &mut live.acceptors)).await
    }

    fn poll_stream(
        &self,
        cx: &mut Context<'_>,
        take: fn(&mut Live, &mut Connection) -> Option<u64>,
        waiters: fn(&mut Live) -> &mut Waiters,
    ) -> Poll<Result<Stream, Ended>> {
        let taken = self.0.ask(|live, connection| {
            let id = take(live, connection);
            match id {
                Some(_) => live.driver_wanted = true,
                None => waiters(live).add(cx.waker()),
            }
            id
        });
        match taken {
            Ok(Some(id)) => Poll::Ready(Ok(Stream::new(Arc::clone(&self.0), id))),
            Ok(None) => Poll::Pending,
            Err(e) => Poll::Ready(Err(e)),
        }
    }

    /// Sends a message of 1 byte to 64 kB on the datagram lane, once: what is lost of it
    /// is not sent again. Where `ordered`, the peer is given it after those before it,
    /// unless they do not come; else at once. False where there is no room for it now:
    /// it is lost.
    ///
    /// # Errors
    /// [`Error::NoMessages`] on the stream lane, [`Error::Ended`].
    pub fn send_message(&self, data: Bytes, ordered: bool) -> Result<bool, Error> {
        self.0.with(|_, c| match c.lane() {
            Some(lane) => Ok(lane.send_message(data, ordered)),
            None => Err(Error::NoMessages),
        })?
    }

    /// Whether it carries messages: on the datagram lane alone.
    pub fn has_messages(&self) -> bool {
        let is = self.0.ask(|_, c| c.lane().is_some());
        is.unwrap_or(false)
    }

    /// Whether both are copies of one session.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sends packets as messages, each in the queue of its flow, where it may be marked or dropped.
    ///
    /// # Errors
    /// [`Error::NoMessages`] on the stream lane, [`Error::Ended`].
    pub fn send_packets(&self, all: impl Iterator<Item = Packet>) -> Result<(), Error> {
        self.0.with(|_, c| match c.lane() {
            Some(lane) => {
                let now = Instant::now();
                for packet in all {
                    lane.send_packet(packet, now);
                }
                Ok(())
            }
            None => Err(Error::NoMessages),
        })?
    }

    /// Waits for messages, and adds those that have arrived to `into`.
    ///
    /// # Errors
    /// [`Error::NoMessages`] on the stream lane, [`Error::Ended`].
    pub async fn messages(&self, into: &mut Vec<Bytes>) -> Result<(), Error> {
        into.push(self.message().await?);
        let more = self.0.ask(|_, c| {
            if let Some(lane) = c.lane() {
                into.extend(std::iter::from_fn(|| lane.next_message()));
            }
        });
        Ok(more?)
    }

    /// The next message.
    ///
    /// # Errors
    /// [`Error::NoMessages`] on the stream lane, [`Error::Ended`].
    pub async fn message(&self) -> Result<Bytes, Error> {
        poll_fn(|cx| {
            let next = self.0.ask(|live, c| match c.lane() {
                Some(lane) => {
                    let next = lane.next_message();
                    if next.is_none() {
                        live.listeners.add(cx.waker());
                    }
                    Ok(next)
                }
                None => Err(Error::NoMessages),
            });
            match next {
                Ok(Ok(Some(data))) => Poll::Ready(Ok(data)),
                Ok(Ok(None)) => Poll::Pending,
                Ok(Err(e)) => Poll::Ready(Err(e)),
                Err(e) => Poll::Ready(Err(e.into())),
            }
        })
        .await
    }

    /// Sets weights by the names of accesses, from the next packet on; those that are not
    /// named stay.
    ///
    /// # Errors
    /// [`Error::UnknownAccess`], [`Error::BadWeights`] (nothing is changed then),
    /// [`Error::Ended`].
    pub fn set_weights(&self, weights: &[(String, f64)]) -> Result<(), Error> {
        self.0.with(|_, c| c.set_weights(weights))?
    }

    /// Changes the schedulers of all classes, from the next packet on.
    ///
    /// # Errors
    /// As [`Steering::make`], and [`Error::Ended`].
    pub fn set_steering(&self, steering: &Steering) -> Result<(), Error> {
        self.0.with(|_, c| c.set_steering(steering))?
    }

    /// Replaces the scheduler of the default class by one of the caller's own, from the next packet on. It is asked
    /// while others wait: it does not block.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn set_scheduler(&self, scheduler: Box<dyn Scheduler>) -> Result<(), Error> {
        Ok(self.0.with(|_, c| c.set_scheduler(scheduler))?)
    }

    /// Changes how one access is used.
    ///
    /// # Errors
    /// [`Error::UnknownAccess`], [`Error::Ended`].
    pub fn set_access(&self, name: &str, change: AccessChange) -> Result<(), Error> {
        self.0
            .with(|_, c| c.set_access(name, change, Instant::now()))?
    }

    /// Names the accesses of paths by their identifiers ([`PathInfo::id`]), at the proxy. A path on
    /// a configured access keeps it; an access that is not known begins with the weight 1.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn name_paths(&self, names: &BTreeMap<u32, String>) -> Result<(), Error> {
        Ok(self.0.with(|_, c| c.name_paths(names))?)
    }

    /// The accesses, as they are steered now.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn accesses(&self) -> Result<Vec<Access>, Error> {
        Ok(self.0.with(|_, c| c.accesses().to_vec())?)
    }

    /// The paths, as they are now.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn paths(&self) -> Result<Vec<PathInfo>, Error> {
        Ok(self.0.with(|_, c| c.path_infos(Instant::now()))?)
    }

    /// For how long nothing has come back on any path, once that is too long.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn silent_for(&self) -> Result<Option<Duration>, Error> {
        Ok(self.0.with(|_, c| c.silent_for(Instant::now()))?)
    }

    /// Returns the changes of paths from now on.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn events(&self) -> Result<broadcast::Receiver<PathChange>, Error> {
        Ok(self.0.with(|live, _| live.events.subscribe())?)
    }

    /// The key that the peer has proved to have; none where it was not asked for one.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn peer(&self) -> Result<Option<Pin>, Error> {
        let shown = self
            .0
            .with(|_, c| c.quic().crypto_session().peer_identity())?;
        let chain = shown.and_then(|c| c.downcast::<Vec<CertificateDer<'static>>>().ok());
        let first = chain.and_then(|c| c.first().cloned());
        Ok(first.and_then(|c| Pin::of(&c).ok()))
    }

    /// Returns the bytes that have left of each class on each access, with the headers of IP; nothing
    /// without classes.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn class_bytes(&self) -> Result<BTreeMap<(u8, String), u64>, Error> {
        Ok(self.0.ask(|_, c| c.class_bytes())?)
    }

    /// Waits for its end.
    pub async fn ended(&self) -> Ended {
        poll_fn(
            |cx| match self.0.ask(|live, _| live.enders.add(cx.waker())) {
                Ok(()) => Poll::Pending,
                Err(e) => Poll::Ready(e),
            },
        )
        .await
    }

    /// Ends it now; the peer is told that it was on purpose. What was written and has not
    /// arrived is lost.
    pub fn close(&self) {
        self.0.shared.lock().close(self.0.id, Instant::now());
    }
}

fn open(live: &mut Live, connection: &mut Connection) -> Option<u64> {
    let server = connection.is_server();
    if let Some(lane) = connection.lane() {
        return live.open(lane, server);
    }
    connection.quic().streams().open(Dir::Bi).map(u64::from)
}

fn accept(_: &mut Live, connection: &mut Connection) -> Option<u64> {
    let server = connection.is_server();
    let Some(lane) = connection.lane() else {
        let id: Option<StreamId> = connection.quic().streams().accept(Dir::Bi);
        return id.map(u64::from);
    };
    lane.accept(!server)
}
