//! Connecting when any access may be the first that works, and again when a session is lost.
//!
//! As in "Happy Eyeballs" (RFC 8305): an attempt on one access, soon another on the next, and
//! the first that gets through is the connection; the others are closed. On each access another
//! attempt begins every second, and every half in the first five, so that the first access that works
//! again, or a proxy that is back, is found within that; those before it go on to listen, and send
//! nothing any more.
//!
//! Where a connection is to be [kept](Target::keep), it goes on so after it was made. While
//! nothing comes back on any of its paths, attempts begin beside it: the peer that lives and
//! has forgotten the session answers them, authenticated as at first, which no reset token is
//! needed for and nobody else can do. The old session has the time of a few round trips to
//! answer then, too; it ends if it does not.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use noq_proto::{ClientConfig, ConnectionError, ConnectionHandle, TransportErrorCode, VarInt};

use crate::Error;
use crate::access::{self, Access};
use crate::connection::Event;
use crate::host::{Host, Options};

/// Between the first attempts on two accesses (RFC 8305 section 5 recommends 250 ms).
const STAGGER: Duration = Duration::from_millis(250);
/// Between two attempts on one access.
const EVERY: Duration = Duration::from_secs(1);
/// Interval before [`EAGER`] is over: a proxy that was started anew is back within seconds.
const EVERY_SOONER: Duration = Duration::from_millis(500);
/// Interval when nothing has answered for [`LONG`]: an outage that lasts costs less.
const EVERY_LATER: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(15 * 60);
/// Bursts that an attempt sends before it is answered, and later than [`EAGER`] after dialling
/// began: one packet of 1228 bytes, 74 kB a minute on each access.
const BURSTS: u32 = 2;
const BURSTS_LATER: u32 = 1;
const EAGER: Duration = Duration::from_secs(5);
/// An attempt listens for an answer so long.
const LISTEN: Duration = Duration::from_secs(8);
/// After this it is told that nothing answers.
const GIVE_UP: Duration = Duration::from_secs(30);
/// Time without any path after which a session on streams of QUIC is replaced, though its peer
/// still knows it: what waits on a stream may never be sent again then (noq-proto 1.4).
const STREAMS_LAST: Duration = Duration::from_secs(5);
/// Before it is tried again where the other end refused.
const PAUSE: Duration = Duration::from_secs(1);
/// Time that a silent session has beside four round trips to answer, when an attempt was answered.
const GRACE: Duration = Duration::from_millis(200);
const MAX_GRACE: Duration = Duration::from_secs(1);

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
    /// When the connection is lost, or its peer has forgotten it, another one is made.
    pub keep: bool,
}

/// A connection that may become the one.
#[derive(Debug)]
struct Attempt {
    handle: ConnectionHandle,
    access: usize,
    until: Instant,
}

/// Since when it is dialled, and when next.
#[derive(Debug)]
struct Dialling {
    since: Instant,
    /// By the number of the access: its next attempt.
    turns: Vec<Instant>,
    /// When it is told that nothing answers.
    end: Instant,
}

/// A connection that is being made, and then the one that was.
pub struct Dial {
    target: Target,
    accesses: Vec<Access>,
    attempts: Vec<Attempt>,
    dialling: Option<Dialling>,
    /// Since when there is no connection that is heard of.
    lost: Instant,
    /// For how long the connection that there is was silent.
    silent: Duration,
    /// The other end has refused, or is not the one that it should be.
    refused: Option<ConnectionError>,
    won: Option<ConnectionHandle>,
    /// When to look whether that is silent.
    watch: Option<Instant>,
    /// Was answered while the connection that there is was silent, and takes its place then.
    heir: Option<(ConnectionHandle, Instant)>,
    /// Connections that were replaced, or are lost, until that is told.
    replaced: Vec<ConnectionHandle>,
    stopped: bool,
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
            dialling: None,
            lost: now,
            silent: Duration::ZERO,
            refused: None,
            won: None,
            watch: None,
            heir: None,
            replaced: Vec::new(),
            stopped: false,
        };
        dial.dial(now);
        dial.attempt(host, now)?;
        Ok(dial)
    }

    /// The connection, once one got through.
    pub fn connection(&self) -> Option<ConnectionHandle> {
        self.won
    }

    /// For how long there has been no connection, or none that is heard of.
    pub fn lost_for(&self, now: Instant) -> Option<Duration> {
        let since = self.dialling.as_ref().map(|_| self.lost);
        since.map(|s| now.saturating_duration_since(s))
    }

    /// When [`Dial::tick`] is wanted.
    pub fn due(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        let turns = self.dialling.iter().flat_map(|d| {
            let all = d.turns.iter().zip(&self.accesses);
            // Not while an heir waits.
            let usable = all.filter(|(_, a)| a.usable() && self.heir.is_none());
            let usable = usable.map(|(t, _)| *t);
            usable.chain((self.won.is_none()).then_some(d.end))
        });
        let listening = self.attempts.iter().map(|a| a.until);
        let heir = self.heir.map(|(_, at)| at);
        turns.chain(listening).chain(heir).chain(self.watch).min()
    }

    /// Time has passed.
    ///
    /// # Errors
    /// [`Error::NoAnswer`] when it has been tried for long enough; [`Error::Refused`]; as
    /// [`Host::connect`]. A connection that is kept is tried on all the same.
    pub fn tick(&mut self, host: &mut Host, now: Instant) -> Result<(), Error> {
        if self.stopped {
            return Ok(());
        }
        // Before the library gives a handle to another connection.
        self.replaced.retain(|h| host.connection(*h).is_some());
        if self.heir.is_some_and(|(_, at)| at <= now) {
            // It may have answered meanwhile.
            self.watch = Some(now);
        }
        self.watch(host, now);
        self.inherit(host, now);
        let over = |a: &Attempt| a.until <= now;
        for a in self.attempts.extract_if(.., |a| over(a)) {
            close(host, a.handle, now);
        }
        if self.dialling.is_none() {
            return Ok(());
        }
        if let Some(source) = self.refused.take() {
            self.fail(host, now);
            let remote = self.target.remote;
            return Err(Error::Refused { remote, source });
        }
        let ends = self.dialling.as_ref().is_some_and(|d| d.end <= now);
        if ends && self.won.is_none() {
            let error = Error::NoAnswer {
                remote: self.target.remote,
                seconds: now.saturating_duration_since(self.lost).as_secs(),
                accesses: access::names(&self.accesses),
            };
            if self.target.keep {
                self.dialling.iter_mut().for_each(|d| d.end = now + GIVE_UP);
            } else {
                self.fail(host, now);
            }
            return Err(error);
        }
        self.attempt(host, now)
    }

    /// Ends what there is, or begins anew after a while.
    fn fail(&mut self, host: &mut Host, now: Instant) {
        self.close_others(host, now);
        self.stopped = !self.target.keep;
        if let Some(dialling) = &mut self.dialling {
            dialling.turns.fill(now + PAUSE);
        }
    }

    /// Looks whether the connection that there is lives.
    fn watch(&mut self, host: &mut Host, now: Instant) {
        let Some(won) = self.won.filter(|_| self.target.keep) else {
            return;
        };
        if self.watch.is_some_and(|t| t > now) {
            return;
        }
        let open = host.connection(won).filter(|c| !c.is_closed());
        let Some(connection) = open else {
            // Why it has ended may not have been told yet.
            self.replaced.push(won);
            self.lose(now);
            return;
        };
        let left = connection.until_silent(now).unwrap_or(EVERY);
        let since = connection.silent_for(now).unwrap_or_default();
        let streams = connection.lane().is_none();
        let long = streams
            && self
                .dialling
                .as_ref()
                .is_some_and(|_| self.silent >= STREAMS_LAST);
        self.silent = self.silent.max(since);
        let left = if long { Duration::ZERO } else { left };
        match (left.is_zero(), self.dialling.is_some()) {
            (true, false) => {
                self.lost = now - since;
                self.dial(now);
            }
            (false, true) => {
                self.dialling = None;
                self.silent = Duration::ZERO;
                if let Some((heir, _)) = self.heir.take() {
                    close(host, heir, now);
                }
                self.close_others(host, now);
            }
            _ => {}
        }
        self.watch = Some(now + left.clamp(STAGGER / 2, EVERY));
    }

    /// There is no connection any more.
    fn lose(&mut self, now: Instant) {
        (self.won, self.watch) = (None, None);
        if let Some((_, at)) = &mut self.heir {
            *at = now;
        }
        if self.dialling.is_none() {
            self.lost = now;
            self.dial(now);
        }
    }

    /// Replaces a connection that was not answered with the attempt that was.
    fn inherit(&mut self, host: &mut Host, now: Instant) {
        let Some((heir, _)) = self.heir.filter(|(_, at)| *at <= now) else {
            return;
        };
        self.heir = None;
        if let Some(old) = self.won {
            self.replaced.push(old);
            if let Some(c) = host.connection(old) {
                c.give_up(ConnectionError::Reset, now);
            }
        }
        self.take(host, heir, now);
        if let Some(c) = host.connection(heir) {
            c.announce();
        }
    }

    /// Makes `handle` the connection from now on.
    fn take(&mut self, host: &mut Host, handle: ConnectionHandle, now: Instant) {
        self.won = Some(handle);
        self.silent = Duration::ZERO;
        self.watch = self.target.keep.then_some(now + EVERY);
        self.dialling = None;
        self.attempts.retain(|a| a.handle != handle);
        self.close_others(host, now);
    }

    /// Begins to dial: on one access after the other.
    fn dial(&mut self, now: Instant) {
        let n = self.accesses.len().max(1) as u32;
        let apart = STAGGER.min(EVERY / n);
        let usable = |i: &usize| self.accesses[*i].usable();
        let mut turns = vec![now; self.accesses.len()];
        let all = (0..self.accesses.len()).filter(usable);
        for (k, i) in (0..).zip(all) {
            turns[i] = now + apart * k;
        }
        self.dialling = Some(Dialling {
            since: now,
            turns,
            end: now + GIVE_UP,
        });
    }

    /// Begins attempts, on accesses whose turn it is.
    fn attempt(&mut self, host: &mut Host, now: Instant) -> Result<(), Error> {
        let Some(dialling) = &mut self.dialling else {
            return Ok(());
        };
        if self.heir.is_some() {
            return Ok(());
        }
        let long = now.saturating_duration_since(self.lost) >= LONG;
        let eager = now.saturating_duration_since(dialling.since) < EAGER;
        let every = match (long, eager) {
            (true, _) => EVERY_LATER,
            (false, true) => EVERY_SOONER,
            (false, false) => EVERY,
        };
        for (i, turn) in dialling.turns.iter_mut().enumerate() {
            if *turn > now || !self.accesses[i].usable() {
                continue;
            }
            *turn = now + every;
            let handle = host.connect(
                now,
                self.target.config.clone(),
                &self.target.options,
                (self.target.remote, &self.target.name),
                self.accesses.clone(),
                i,
            )?;
            if let Some(c) = host.connection(handle) {
                c.limit_bursts(if eager { BURSTS } else { BURSTS_LATER });
            }
            self.attempts.push(Attempt {
                handle,
                access: i,
                until: now + LISTEN.max(every),
            });
        }
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
        let lost = matches!(event, Event::Lost(_) | Event::Refused(_));
        if self.won == Some(handle) {
            if lost && self.target.keep && !self.stopped {
                self.lose(now);
            }
            return Some(event);
        }
        if let Some(at) = self.replaced.iter().position(|h| *h == handle) {
            if lost {
                self.replaced.swap_remove(at);
            }
            return Some(event);
        }
        if self.heir.is_some_and(|(h, _)| h == handle) {
            self.heir = self.heir.filter(|_| !lost);
            return None;
        }
        let mine = self.attempts.iter().position(|a| a.handle == handle)?;
        match event {
            Event::Connected => {
                self.refused = None;
                let Some(won) = self.won else {
                    self.take(host, handle, now);
                    return Some(event);
                };
                self.attempts.swap_remove(mine);
                if self.heir.is_some() {
                    close(host, handle, now);
                    return None;
                }
                let round = host
                    .connection(won)
                    .map(|c| c.max_rtt())
                    .unwrap_or_default();
                let grace = (GRACE + 4 * round).min(MAX_GRACE);
                self.heir = Some((handle, now + grace));
            }
            Event::Lost(reason) => {
                let access = self.attempts.swap_remove(mine).access;
                let Some(dialling) = &mut self.dialling else {
                    return None;
                };
                let next = &mut dialling.turns[access];
                *next = (*next).min(now + STAGGER);
                if is_final(&reason) {
                    self.refused = Some(reason);
                    *next = now;
                }
            }
            _ => {}
        }
        None
    }

    /// The device goes on after it was stopped: what lives is to be found out soon.
    pub fn woke(&mut self, now: Instant) {
        self.watch = self.watch.map(|_| now);
        if let Some(dialling) = &mut self.dialling {
            dialling.turns.fill(now);
        }
    }

    /// Gives up: what is connected stays, and nothing takes its place.
    pub fn stop(&mut self, host: &mut Host, now: Instant) {
        self.stopped = true;
        if let Some((heir, _)) = self.heir.take() {
            close(host, heir, now);
        }
        self.close_others(host, now);
    }

    fn close_others(&mut self, host: &mut Host, now: Instant) {
        for a in self.attempts.drain(..) {
            close(host, a.handle, now);
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
        // A handshake cannot move to another address (RFC 9000 9).
        for a in self.attempts.extract_if(.., |a| a.access == i) {
            close(host, a.handle, now);
        }
        let made = self.won.into_iter().chain(self.heir.map(|(h, _)| h));
        let attempts = self.attempts.iter().map(|a| a.handle);
        for handle in made.chain(attempts) {
            if let Some(c) = host.connection(handle) {
                c.link(i, up, address, now);
            }
        }
        if let Some(dialling) = self.dialling.as_mut().filter(|_| up) {
            dialling.turns[i] = now;
            dialling.since = now;
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
