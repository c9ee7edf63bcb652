//! One connection over several accesses: QUIC, its paths and a scheduler. No socket
//! and no clock: what arrives and the time are passed in, what is to be sent and what
//! happened come out.

mod alive;
mod ask;
mod closed;
mod datagrams;
mod expected;
mod identifiers;
mod info;
mod keys;
mod overtaken;
mod own;
mod paths;
mod quiet;
mod status;
mod transmit;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use braid_api::Expected;
use braid_core::Time;
use braid_core::sched::{PathView, Scheduler};
use bytes::Bytes;
use noq_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, EndpointEvent, PathEvent, PathId, Side,
    StreamEvent, VarInt,
};

use crate::Error;
use crate::access::{self, Access, AccessChange};
use crate::congestion::{Saved, Shared};
use crate::host::Options;
use crate::lane::{self, Expectation, LaneError};
use crate::steering::{Lane, Steering};
use alive::Alive;
use datagrams::Outbox;
use identifiers::Identifiers;
pub use info::PathInfo;
use keys::Keys;
use paths::{Opening, Path};
use quiet::Quiet;
pub use transmit::Outgoing;

/// Event on a connection.
#[derive(Debug)]
pub enum Event {
    /// Both ends have finished the handshake: data may be sent.
    Connected,
    /// The connection has ended.
    Lost(ConnectionError),
    /// The connection was closed on a peer that does not keep to the protocol of the datagram lane.
    Refused(LaneError),
    /// Something about a stream.
    Stream(StreamEvent),
    /// An access carries data from now on.
    PathUp {
        /// Its name; none if it is none of those that are known.
        access: Option<String>,
    },
    /// An access has no path any more.
    PathDown {
        /// Its name.
        access: Option<String>,
        /// In words.
        why: String,
    },
}

/// A connection.
pub struct Connection {
    handle: ConnectionHandle,
    quic: noq_proto::Connection,
    shared: Shared,
    /// Datagram lane; none where streams of QUIC itself carry the data.
    lane: Option<Box<lane::Lane>>,
    outbox: Outbox,
    identifiers: Identifiers<ConnectionEvent>,
    scheduler: Box<dyn Scheduler>,
    /// Whether what blocks the receiver is reinjected ([`Steering::reinject`]).
    reinject: bool,
    accesses: Vec<Access>,
    /// The access that the connection began on, whose address QUIC is not told.
    first: Option<usize>,
    paths: Vec<Path>,
    /// Paths that there have been.
    numbers: u32,
    opening: Vec<Opening>,
    /// By the number of the access: what its latest path carried when it ended.
    saved: Vec<Option<Saved>>,
    /// Whether new paths begin with that.
    resumes: bool,
    /// Whether what the peer expects of paths is believed.
    heeds: bool,
    /// Expectations of the peer about paths that are not here yet.
    expected: BTreeMap<PathId, Expectation>,
    /// By the number of the access: its socket has no room.
    full: Vec<bool>,
    /// Shown to the scheduler; kept for its room.
    views: Vec<PathView>,
    /// When all paths are to be pinged.
    ping: Option<Instant>,
    keys: Keys,
    quiet: Quiet,
    /// Liveness clock of the session; none until the handshake is done.
    alive: Option<Alive>,
    /// Bursts that may leave before the peer has answered; none: any.
    quota: Option<u32>,
    /// Data waited when it was looked for last.
    busy: bool,
    /// More is to be sent on a stream of QUIC than its peer has room for.
    blocked: bool,
    /// When a path that has to wait may send.
    paced: Option<Instant>,
    began: Instant,
    connected: bool,
    events: VecDeque<Event>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("accesses", &self.accesses)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

/// Parts that a connection is made of.
pub(crate) struct Parts {
    pub(crate) handle: ConnectionHandle,
    pub(crate) quic: noq_proto::Connection,
    pub(crate) shared: Shared,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) options: Options,
    pub(crate) accesses: Vec<Access>,
    pub(crate) first: Option<usize>,
    pub(crate) now: Instant,
}

impl Connection {
    pub(crate) fn new(p: Parts) -> Self {
        let lane = || {
            let mut lane = Box::new(lane::Lane::new(p.now));
            let window = p.options.send_window;
            window.into_iter().for_each(|w| lane.limit(w));
            lane
        };
        let opening: Vec<_> = p.accesses.iter().map(|_| Opening::default()).collect();
        let mut connection = Self {
            handle: p.handle,
            quic: p.quic,
            shared: p.shared,
            lane: (p.options.lane == Lane::Datagram).then(lane),
            outbox: Outbox::new(p.options.acks),
            identifiers: Identifiers::default(),
            scheduler: p.scheduler,
            reinject: p.options.steering.reinject,
            accesses: p.accesses,
            first: p.first,
            paths: Vec::new(),
            numbers: 0,
            full: vec![false; opening.len()],
            saved: vec![None; opening.len()],
            resumes: p.options.resume,
            heeds: p.options.heed,
            expected: BTreeMap::new(),
            opening,
            views: Vec::new(),
            ping: None,
            keys: Keys::default(),
            quiet: Quiet::default(),
            alive: None,
            quota: None,
            busy: false,
            blocked: false,
            paced: None,
            began: p.now,
            connected: false,
            events: VecDeque::new(),
        };
        connection.begin_first();
        connection
    }

    /// The library's name of it.
    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    /// The streams and everything else that does not depend on paths.
    pub fn quic(&mut self) -> &mut noq_proto::Connection {
        &mut self.quic
    }

    /// The datagram lane, on connections that have it.
    pub fn lane(&mut self) -> Option<&mut lane::Lane> {
        self.lane.as_deref_mut()
    }

    /// The accesses, as they are steered now.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Sets weights by the names of accesses; those that are not named stay. They
    /// count from the next packet on.
    ///
    /// # Errors
    /// [`Error::UnknownAccess`] and [`Error::BadWeights`]; nothing is changed then.
    pub fn set_weights(&mut self, weights: &[(String, f64)]) -> Result<(), Error> {
        access::set_weights(&mut self.accesses, weights)
    }

    /// Changes the scheduler; it counts from the next packet on.
    ///
    /// # Errors
    /// As [`Steering::make`].
    pub fn set_steering(&mut self, steering: &Steering) -> Result<(), Error> {
        let lane = match self.lane {
            Some(_) => Lane::Datagram,
            None => Lane::Stream,
        };
        self.scheduler = steering.make(lane)?;
        self.reinject = steering.reinject;
        Ok(())
    }

    /// Replaces the scheduler, from the next packet on.
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.scheduler = scheduler;
    }

    /// Changes how an access is used.
    ///
    /// # Errors
    /// [`Error::UnknownAccess`].
    pub fn set_access(
        &mut self,
        name: &str,
        change: AccessChange,
        now: Instant,
    ) -> Result<(), Error> {
        let i = access::find(&self.accesses, name)?;
        let access = &mut self.accesses[i];
        access.priority = change.priority.unwrap_or(access.priority);
        access.backup = change.backup.unwrap_or(access.backup);
        if change.priority.is_some() || change.backup.is_some() {
            self.want_access(i, now);
        }
        let new = |e: &Expected| *e != self.accesses[i].expected;
        if let Some(expected) = change.expected.filter(new) {
            let known = self.accesses[i].expected.down.is_some();
            self.accesses[i].expected = expected;
            self.tell_expected(i, known);
            if self.is_client() {
                self.ids_of(i)
                    .into_iter()
                    .for_each(|id| self.expect_anew(id));
            }
            self.outbox.own.stir();
        }
        Ok(())
    }

    /// See [`Host::hold`](crate::Host::hold).
    pub(crate) fn hold(&mut self, access: usize, held: bool) {
        if let Some(full) = self.full.get_mut(access) {
            *full = held;
        }
    }

    /// Whether a stream of QUIC has no room for more.
    pub(crate) fn block(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    /// Lets at most so many bursts leave until the peer answers: an attempt that gets none
    /// costs no more.
    pub(crate) fn limit(&mut self, bursts: u32) {
        self.quota = Some(bursts);
    }

    /// Something of the peer has arrived.
    pub(crate) fn answered(&mut self) {
        self.quota = None;
    }

    /// Whether either end has closed it, or given it up.
    pub(crate) fn is_closed(&self) -> bool {
        self.quic.is_closed()
    }

    /// Tells once more that it is connected.
    pub(crate) fn announce(&mut self) {
        self.events.push_back(Event::Connected);
    }

    /// Ends it with the application's error code.
    pub fn close(&mut self, now: Instant, code: VarInt, reason: &'static [u8]) {
        self.quic.close(now, code, Bytes::from_static(reason));
    }

    /// Whether this is the end that was connected to.
    pub fn is_server(&self) -> bool {
        !self.is_client()
    }

    /// The next event, or none.
    pub fn poll(&mut self, now: Instant) -> Option<Event> {
        self.collect(now);
        self.events.pop_front()
    }

    fn collect(&mut self, now: Instant) {
        while let Some(event) = self.quic.poll() {
            self.take(event, now);
        }
    }

    /// How many paths there are, and slots of controllers.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> (usize, usize) {
        (self.paths.len(), self.shared.lock().len())
    }

    /// Whether the handshake was finished once.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether it has ended and everything has been told.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        self.collect(now);
        self.quic.is_drained() && self.events.is_empty()
    }

    fn take(&mut self, event: noq_proto::Event, now: Instant) {
        use noq_proto::Event as Quic;
        match event {
            Quic::Connected => {
                self.connected = true;
                self.alive = Some(Alive::new(now));
                self.first_keys();
                if !self.is_client() {
                    self.events.push_back(Event::Connected);
                }
                self.begin_others(now);
            }
            // Until the peer has finished the handshake, too, it cannot move to another
            // address, and all would be lost with that.
            Quic::HandshakeConfirmed if self.is_client() => {
                self.events.push_back(Event::Connected);
            }
            Quic::ConnectionLost { reason } => self.events.push_back(Event::Lost(reason)),
            // Once it was refused, nothing of it counts.
            Quic::DatagramReceived if !self.quic.is_closed() => match self.receive_datagrams(now) {
                Ok(()) => {
                    self.hear_expected();
                    self.hear_closed(now);
                }
                Err(e) => self.refuse(&e, now),
            },
            Quic::Stream(e) => self.events.push_back(Event::Stream(e)),
            Quic::Path(PathEvent::Established { id, .. }) => self.establish(id, now),
            // Acknowledgements leave on the first path that is available.
            Quic::Path(PathEvent::RemoteStatus { id, .. }) => self.wanted(id, now),
            Quic::Path(PathEvent::Abandoned { id, reason, .. }) => {
                self.abandoned(id, &reason, now);
            }
            _ => {}
        }
    }

    pub(crate) fn handle_event(&mut self, event: ConnectionEvent) {
        self.outbox.own.arrived();
        self.quic.handle_event(event);
    }

    /// Takes connection identifiers that the endpoint has made for this connection.
    pub(crate) fn take_identifiers(&mut self, event: ConnectionEvent, now: Instant) {
        match self.lane {
            Some(_) => {
                self.identifiers.add(event);
                self.issue_identifiers(now);
            }
            // On streams QUIC finds out itself what each path carries.
            None => self.handle_event(event),
        }
    }

    /// When more identifiers may be issued.
    fn identifiers_due(&self) -> Option<Instant> {
        // Asked for at every packet, when they have long been issued.
        let waits = !self.identifiers.is_empty();
        waits.then(|| self.identifiers.due(self.pace())).flatten()
    }

    fn issue_identifiers(&mut self, now: Instant) {
        if self.identifiers.is_empty() {
            return;
        }
        let rtt = self.pace();
        while let Some(event) = self.identifiers.next(rtt, now) {
            self.outbox.own.stir();
            self.quic.handle_event(event);
        }
    }

    /// Round trip by which identifiers are paced.
    fn pace(&self) -> Duration {
        match self.round() {
            Duration::ZERO => crate::transport::INITIAL_RTT,
            known => known,
        }
    }

    pub(crate) fn poll_endpoint_events(&mut self) -> Option<EndpointEvent> {
        self.quic.poll_endpoint_events()
    }

    /// When [`Connection::handle_timeout`] is wanted.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.quic.is_closed() {
            // Nothing of ours is sent any more, and what never is sent would be due for ever.
            return self.quic.poll_timeout();
        }
        self.due().into_iter().chain(self.paced).min()
    }

    /// When there is more to do than to send what a pacer held back.
    fn due(&self) -> Option<Instant> {
        let opening = self.opening.iter().filter_map(|o| o.retry);
        let lane = self.lane.as_ref().and_then(|l| l.due());
        let own = lane.into_iter().chain(self.ping).chain(self.quiet.due());
        let own = own.chain(self.ask_due()).chain(self.outbox.own.due());
        let own = own.chain(self.alive_due());
        let own = own.chain(self.identifiers_due());
        let own = own.chain(self.overtaken_due());
        own.chain(self.quic.poll_timeout()).chain(opening).min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.quic.is_closed() || self.due().is_some_and(|t| t <= now) {
            self.outbox.own.stir();
        }
        if self.quic.poll_timeout().is_some_and(|t| t <= now) {
            self.quic.handle_timeout(now);
        }
        if self.quic.is_closed() {
            return;
        }
        if self.paced.is_some_and(|t| t <= now) {
            self.paced = None;
        }
        self.send_overtaken_again(now);
        self.outbox.own.passed(now);
        self.quiet.passed(now);
        if self.ask_due().is_some_and(|t| t <= now) {
            self.ask_later(now);
        }
        if let Some(lane) = self
            .lane
            .as_mut()
            .filter(|l| l.due().is_some_and(|t| t <= now))
        {
            let slots = self.shared.lock();
            let path = |number| self.paths.iter().find(|p| p.number == number);
            lane.tick(now, |number| {
                path(number).is_some_and(|p| slots[p.slot].in_flight > 0)
            });
        }
        self.issue_identifiers(now);
        self.ping_paths(now);
        self.open_paths(now);
        if self.alive_due().is_some_and(|t| t <= now) {
            self.look_alive(now);
        }
    }

    /// Closes the connection on a peer that does not keep to the lane's protocol.
    fn refuse(&mut self, why: &LaneError, now: Instant) {
        let reason = why.to_string().into_bytes();
        self.quic.close(now, lane::PROTOCOL_ERROR, reason.into());
        self.events.push_back(Event::Refused(*why));
    }

    /// The time as schedulers are told it.
    fn time(&self, now: Instant) -> Time {
        Time::from(now.duration_since(self.began))
    }

    fn is_client(&self) -> bool {
        self.quic.side() == Side::Client
    }
}
