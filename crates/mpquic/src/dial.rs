//! Connecting when any access may be the first that works.
//!
//! As in "Happy Eyeballs" (RFC 8305): an attempt on one access, soon another on the
//! next, and the first that gets through is the connection; the others are closed.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use noq_proto::{ClientConfig, ConnectionError, ConnectionHandle, TransportErrorCode, VarInt};

use crate::Error;
use crate::access::{self, Access};
use crate::connection::Event;
use crate::host::{Host, Options};

/// Between two attempts (RFC 8305 section 5 recommends 250 ms).
const STAGGER: Duration = Duration::from_millis(250);
/// So long it is tried.
const GIVE_UP: Duration = Duration::from_secs(30);
/// More attempts than this are not under way at a time.
const MOST: usize = 8;

/// Where to, and how.
pub struct Target {
    /// Address and port.
    pub remote: SocketAddr,
    /// The name in its certificate.
    pub name: String,
    /// TLS.
    pub config: ClientConfig,
    /// Scheduler and congestion control.
    pub options: Options,
}

/// A connection that is being made, and then the one that was.
pub struct Dial {
    target: Target,
    accesses: Vec<Access>,
    attempts: Vec<(ConnectionHandle, usize)>,
    /// The access of the next attempt, if it can be used.
    turn: usize,
    next: Option<Instant>,
    end: Instant,
    /// The other end has refused, or is not the one that it should be.
    refused: Option<ConnectionError>,
    won: Option<ConnectionHandle>,
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dial")
            .field("remote", &self.target.remote)
            .field("attempts", &self.attempts)
            .field("won", &self.won)
            .finish_non_exhaustive()
    }
}

impl Dial {
    /// Begins with the first access that is up.
    ///
    /// # Errors
    /// As [`Host::connect`], but for accesses that are down: they may come.
    pub fn begin(
        host: &mut Host,
        target: Target,
        accesses: Vec<Access>,
        now: Instant,
    ) -> Result<Self, Error> {
        let mut dial = Self {
            target,
            accesses,
            attempts: Vec::new(),
            turn: 0,
            next: Some(now),
            end: now + GIVE_UP,
            refused: None,
            won: None,
        };
        dial.attempt(host, now)?;
        Ok(dial)
    }

    /// The connection, once one got through.
    pub fn connection(&self) -> Option<ConnectionHandle> {
        self.won
    }

    /// When [`Dial::tick`] is wanted.
    pub fn due(&self) -> Option<Instant> {
        match self.won {
            Some(_) => None,
            None if self.refused.is_some() => self.next,
            None => self.next.into_iter().chain([self.end]).min(),
        }
    }

    /// Time has passed.
    ///
    /// # Errors
    /// [`Error::NoAnswer`] when it has been tried for long enough; as [`Host::connect`].
    pub fn tick(&mut self, host: &mut Host, now: Instant) -> Result<(), Error> {
        if self.won.is_some() {
            return Ok(());
        }
        if let Some(source) = self.refused.take() {
            self.close_others(host, now);
            return Err(Error::Refused {
                remote: self.target.remote,
                source,
            });
        }
        if now >= self.end {
            self.close_others(host, now);
            return Err(Error::NoAnswer {
                remote: self.target.remote,
                seconds: GIVE_UP.as_secs(),
                accesses: access::names(&self.accesses),
            });
        }
        if self.next.is_some_and(|t| t <= now) {
            self.attempt(host, now)?;
        }
        Ok(())
    }

    /// Begins another attempt, on the next access that is up.
    fn attempt(&mut self, host: &mut Host, now: Instant) -> Result<(), Error> {
        let n = self.accesses.len();
        let order = (0..n).map(|k| (self.turn + k) % n.max(1));
        let usable = order.into_iter().find(|i| self.accesses[*i].usable());
        self.next = Some(now + STAGGER);
        let Some(i) = usable.filter(|_| self.attempts.len() < MOST) else {
            return Ok(());
        };
        self.turn = i + 1;
        let handle = host.connect(
            now,
            self.target.config.clone(),
            &self.target.options,
            (self.target.remote, &self.target.name),
            self.accesses.clone(),
            i,
        )?;
        self.attempts.push((handle, i));
        Ok(())
    }

    /// Takes an event of the host; returns it if it is one of the connection that was
    /// made.
    pub fn event(
        &mut self,
        host: &mut Host,
        handle: ConnectionHandle,
        event: Event,
        now: Instant,
    ) -> Option<Event> {
        match (&event, self.won) {
            (_, Some(won)) => return (won == handle).then_some(event),
            (Event::Connected, None) => {
                self.won = Some(handle);
                self.attempts.retain(|(h, _)| *h != handle);
                self.close_others(host, now);
                return Some(event);
            }
            (Event::Lost(reason), None) => {
                self.attempts.retain(|(h, _)| *h != handle);
                if is_final(reason) {
                    self.refused = Some(reason.clone());
                    self.next = Some(now);
                    return None;
                }
                self.next = Some(self.next.map_or(now, |t| t.min(now + STAGGER)));
            }
            _ => {}
        }
        None
    }

    /// Gives up.
    pub fn stop(&mut self, host: &mut Host, now: Instant) {
        self.close_others(host, now);
    }

    fn close_others(&mut self, host: &mut Host, now: Instant) {
        for (handle, _) in self.attempts.drain(..) {
            close(host, handle, now);
        }
    }

    /// The device's link of access number `i` has changed.
    pub fn link(
        &mut self,
        host: &mut Host,
        i: usize,
        up: bool,
        address: Option<IpAddr>,
        now: Instant,
    ) {
        let access = &mut self.accesses[i];
        let after = address.map(Into::into);
        if (access.up, access.address) == (up, after) {
            return;
        }
        (access.up, access.address) = (up, after);
        if let Some(won) = self.won {
            if let Some(c) = host.connection(won) {
                c.link(i, up, address, now);
            }
            return;
        }
        // A handshake cannot move to another address (RFC 9000 9).
        let (lost, kept) = self.attempts.drain(..).partition(|(_, on)| *on == i);
        self.attempts = kept;
        let lost: Vec<(ConnectionHandle, usize)> = lost;
        for (handle, _) in lost {
            close(host, handle, now);
        }
        for (handle, _) in &self.attempts {
            if let Some(c) = host.connection(*handle) {
                c.link(i, up, address, now);
            }
        }
        if up {
            self.turn = i;
            self.next = Some(now);
        }
    }
}

/// Whether another access would not help.
fn is_final(reason: &ConnectionError) -> bool {
    match reason {
        ConnectionError::TimedOut | ConnectionError::Reset | ConnectionError::LocallyClosed => {
            false
        }
        // A proxy that is busy is asked again.
        ConnectionError::ConnectionClosed(c) => {
            c.error_code != TransportErrorCode::CONNECTION_REFUSED
        }
        _ => true,
    }
}

fn close(host: &mut Host, handle: ConnectionHandle, now: Instant) {
    if let Some(c) = host.connection(handle) {
        c.quic().close(now, VarInt::from_u32(0), Bytes::new());
    }
}
