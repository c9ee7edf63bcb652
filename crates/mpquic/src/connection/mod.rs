//! One connection over several accesses: QUIC, its paths and a scheduler. No socket
//! and no clock: what arrives and the time are passed in, what is to be sent and what
//! happened come out.
//!
//! A [`Connection`] owns parts, each a file with fields and methods of its own, and has itself
//! only what joins several: in this file its events, timeouts and end, in `paths` the life of
//! its paths, in `transmit` what is sent next.

mod access_set;
mod ack_blackhole;
mod class_set;
mod dead_paths;
mod expectations;
mod identifiers;
mod info;
mod keys;
mod liveness;
mod load;
mod outbox;
mod path_heard;
mod path_names;
mod path_ping;
mod path_scheduler;
mod path_set;
mod path_status;
mod path_watch;
mod paths;
mod quic_control;
mod rate_limit;
mod rest;
mod stream_losses;
mod transmit;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use braid_api::Expected;
use braid_core::sched::Scheduler;
use bytes::Bytes;
use noq_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, EndpointEvent, PathEvent, Side,
    StreamEvent, VarInt,
};

use crate::Error;
use crate::access::{self, Access, AccessChange};
use crate::congestion::{CongestionSet, Shared};
use crate::host::Options;
use crate::lane::{self, LaneError};
use crate::steering::{Lane, Schedulers, Steering};
use access_set::AccessSet;
use ack_blackhole::AckBlackhole;
use class_set::ClassSet;
use expectations::PeerExpectations;
use identifiers::Identifiers;
pub use info::PathInfo;
use keys::Keys;
use liveness::SessionLiveness;
use outbox::Outbox;
use path_names::PathNames;
use path_scheduler::PathScheduler;
use path_set::PathSet;
use quic_control::QuicControl;
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
    /// Nothing comes back on the path of an access, or something does again.
    PathSilent {
        /// Its name.
        access: Option<String>,
        /// Whether nothing does.
        silent: bool,
    },
    /// An access has no path any more.
    PathDown {
        /// Its name.
        access: Option<String>,
        /// In words.
        why: String,
    },
}

/// The application's error code of a session whose peer was silent.
const NOTHING_HEARD: VarInt = VarInt::from_u32(0x11);

/// A connection: owner of QUIC and of the parts around it. Methods that need one part alone
/// are that part's.
pub struct Connection {
    handle: ConnectionHandle,
    quic: noq_proto::Connection,
    accesses: AccessSet,
    paths: PathSet,
    congestion: CongestionSet,
    scheduler: PathScheduler,
    /// Steering in force; none where the caller's own scheduler is.
    steering: Option<Steering>,
    /// Datagram lane; none where streams of QUIC itself carry the data.
    lane: Option<Box<lane::Lane>>,
    outbox: Outbox,
    control: QuicControl,
    identifiers: Identifiers<ConnectionEvent>,
    expectations: PeerExpectations,
    names: PathNames,
    keys: Keys,
    blackhole: AckBlackhole,
    /// Liveness clock of the session; none until the handshake is done.
    liveness: Option<SessionLiveness>,
    /// When all paths are to be pinged.
    ping_at: Option<Instant>,
    /// When their answers are late.
    answers_due: Option<Instant>,
    /// Bursts that may leave before the peer has answered; none: any.
    burst_quota: Option<u32>,
    /// Whether more is to be sent on a stream of QUIC than its peer has room for.
    stream_blocked: bool,
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
    pub(crate) schedulers: Schedulers,
    pub(crate) options: Options,
    pub(crate) accesses: Vec<Access>,
    pub(crate) initial_access: Option<usize>,
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
        let classes = ClassSet::new(&p.options.steering, p.schedulers);
        let mut connection = Self {
            handle: p.handle,
            quic: p.quic,
            congestion: CongestionSet::new(p.shared, p.accesses.len(), p.options.resume),
            accesses: AccessSet::new(p.accesses, p.initial_access),
            paths: PathSet::default(),
            scheduler: PathScheduler::new(classes),
            steering: Some(p.options.steering.clone()),
            lane: (p.options.lane == Lane::Datagram).then(lane),
            outbox: Outbox::new(p.options.acks),
            control: QuicControl::default(),
            identifiers: Identifiers::default(),
            expectations: PeerExpectations::new(p.options.trust_peer_expectations),
            names: PathNames::default(),
            keys: Keys::default(),
            blackhole: AckBlackhole::default(),
            liveness: None,
            ping_at: None,
            answers_due: None,
            burst_quota: None,
            stream_blocked: false,
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

    /// Changes the schedulers of all classes; they count from the next packet on.
    ///
    /// # Errors
    /// As [`Steering::make`].
    pub fn set_steering(&mut self, steering: &Steering) -> Result<(), Error> {
        let lane = match self.lane {
            Some(_) => Lane::Datagram,
            None => Lane::Stream,
        };
        let made = steering.make(lane)?;
        // The accounts of schedulers go on where nothing changes for them.
        if self.steering.as_ref() == Some(steering) {
            return Ok(());
        }
        self.steering = Some(steering.clone());
        self.scheduler.classes().set(steering, made);
        Ok(())
    }

    /// Returns the bytes that have left of each class on each access, with the headers of IP; nothing
    /// without classes.
    pub fn class_bytes(&self) -> BTreeMap<(u8, String), u64> {
        let sent = self.scheduler.sent().iter();
        sent.map(|((class, i), n)| ((*class, self.accesses[*i].name.clone()), *n))
            .collect()
    }

    /// Replaces the scheduler of the default class, from the next packet on.
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.steering = None;
        self.scheduler.classes().default_mut().scheduler = scheduler;
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
        let was_backup = access.backup;
        access.priority = change.priority.unwrap_or(access.priority);
        access.backup = change.backup.unwrap_or(access.backup);
        access.limit = change.limit.unwrap_or(access.limit);
        // A policy applies all of it with every change of a weight, which says nothing anew of a backup.
        if access.backup != was_backup {
            let (quic, accesses) = (&mut self.quic, &self.accesses);
            if self.paths.change_access_status(i, quic, accesses, now) {
                self.control.mark_pending();
            }
        }
        let new = |e: &Expected| *e != self.accesses[i].expected;
        if let Some(expected) = change.expected.filter(new) {
            let known = self.accesses[i].expected.down.is_some();
            self.accesses[i].expected = expected;
            self.send_expectation(i, known);
            if self.is_client() {
                for id in self.paths.ids_of(i) {
                    self.apply_expectation(id);
                }
            }
            self.control.mark_pending();
        }
        Ok(())
    }

    /// Notes that the socket of an access is full, as [`Host::hold`](crate::Host::hold).
    pub(crate) fn set_socket_full(&mut self, access: usize, full: bool) {
        self.accesses.set_socket_full(access, full);
    }

    /// Whether a stream of QUIC has no room for more.
    pub(crate) fn set_stream_blocked(&mut self, blocked: bool) {
        self.stream_blocked = blocked;
    }

    /// Lets at most so many bursts leave until the peer answers: an attempt that gets none
    /// costs no more.
    pub(crate) fn limit_bursts(&mut self, bursts: u32) {
        self.burst_quota = Some(bursts);
    }

    /// Something of the peer has arrived.
    pub(crate) fn answered(&mut self) {
        self.burst_quota = None;
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
            self.on_quic_event(event, now);
        }
    }

    /// How many paths there are, and slots of controllers.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> (usize, usize) {
        (self.paths.len(), self.congestion.lock().len())
    }

    /// Whether the handshake was finished once.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether it has ended, at both ends as far as this one knows.
    pub(crate) fn is_drained(&self) -> bool {
        self.quic.is_drained()
    }

    /// Whether it has ended and everything has been told.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        self.collect(now);
        self.quic.is_drained() && self.events.is_empty()
    }

    fn on_quic_event(&mut self, event: noq_proto::Event, now: Instant) {
        use noq_proto::Event as Quic;
        match event {
            Quic::Connected => {
                self.connected = true;
                self.liveness = Some(SessionLiveness::new(self.ping_interval(), now));
                // It is confirmed at the proxy, and of the paths there is but one.
                if !self.is_client() {
                    self.keys.update(&mut self.quic);
                }
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
                    self.apply_peer_expectations();
                    self.apply_peer_closed_paths(now);
                }
                Err(e) => self.refuse(&e, now),
            },
            Quic::Stream(e) => self.events.push_back(Event::Stream(e)),
            Quic::Path(PathEvent::Established { id, .. }) => self.establish(id, now),
            // Acknowledgements leave on the first path that is available.
            Quic::Path(PathEvent::RemoteStatus { id, .. }) => self.on_remote_status(id, now),
            Quic::Path(PathEvent::Abandoned { id, reason, .. }) => {
                self.abandoned(id, &reason, now);
            }
            _ => {}
        }
    }

    fn receive_datagrams(&mut self, now: Instant) -> Result<(), LaneError> {
        while let Some(data) = self.quic.datagrams().recv() {
            if let Some(lane) = &mut self.lane {
                if lane::is_unnumbered(&data) {
                    self.control.lane_ack_arrived(now);
                }
                lane.receive(data, now)?;
            }
        }
        Ok(())
    }

    pub(crate) fn handle_event(&mut self, event: ConnectionEvent) {
        self.control.event_arrived();
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
            self.control.mark_pending();
            self.quic.handle_event(event);
        }
    }

    /// Round trip by which identifiers are paced.
    fn pace(&self) -> Duration {
        match self.max_rtt() {
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
        let paced = self.scheduler.paced_until();
        self.due().into_iter().chain(paced).min()
    }

    /// When there is more to do than to send what a pacer held back.
    fn due(&self) -> Option<Instant> {
        let overtaken = match self.lane {
            Some(_) => None,
            None => stream_losses::due(&self.paths, &self.congestion),
        };
        let all = [
            self.lane.as_ref().and_then(|l| l.due()),
            self.ping_at,
            self.answers_due,
            self.blackhole.due(),
            self.paths.ping_due(),
            self.control.due(),
            self.liveness_due(),
            self.identifiers_due(),
            overtaken,
            self.quic.poll_timeout(),
            self.accesses.opening_due(),
        ];
        all.into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.quic.is_closed() || self.due().is_some_and(|t| t <= now) {
            self.control.mark_pending();
        }
        if self.quic.poll_timeout().is_some_and(|t| t <= now) {
            self.quic.handle_timeout(now);
        }
        if self.quic.is_closed() {
            return;
        }
        self.scheduler.on_timeout(now);
        if self.lane.is_none() {
            stream_losses::retransmit(&self.paths, &self.congestion, &mut self.quic, now);
        }
        self.control.on_timeout(now);
        self.blackhole.on_timeout(now);
        if self.paths.ping_due().is_some_and(|t| t <= now) {
            let interval = path_ping::interval(self.silent_for(now));
            let pings = self.paths.iter_mut().map(|p| &mut p.ping);
            pings.for_each(|ping| ping.on_timeout(interval, now));
        }
        if let Some(lane) = self
            .lane
            .as_mut()
            .filter(|l| l.due().is_some_and(|t| t <= now))
        {
            let slots = self.congestion.lock();
            lane.tick(now, |number| {
                let path = self.paths.by_number(number);
                path.is_some_and(|p| slots[p.slot].in_flight > 0)
            });
        }
        self.issue_identifiers(now);
        self.ping_paths(now);
        if self.answers_due.is_some_and(|t| t <= now) {
            self.answers_due = None;
            self.wake_backups(now);
        }
        self.open_paths(now);
        if self.liveness_due().is_some_and(|t| t <= now) {
            self.check_liveness(now);
        }
    }

    /// Closes the connection on a peer that does not keep to the lane's protocol.
    fn refuse(&mut self, why: &LaneError, now: Instant) {
        let reason = why.to_string().into_bytes();
        self.quic.close(now, lane::PROTOCOL_ERROR, reason.into());
        self.events.push_back(Event::Refused(*why));
    }

    /// Returns the state of the paths.
    pub fn path_infos(&mut self, now: Instant) -> Vec<PathInfo> {
        info::path_infos(
            &self.paths,
            &self.accesses,
            &self.congestion,
            self.lane.as_deref(),
            &mut self.quic,
            now,
        )
    }

    /// Returns the longest round trip of a path that was validated.
    pub(crate) fn max_rtt(&self) -> Duration {
        self.paths.max_rtt(&self.congestion)
    }

    /// Returns when liveness is checked next.
    fn liveness_due(&self) -> Option<Instant> {
        self.liveness.map(|l| l.due())
    }

    /// Returns when the session is silent, by the newest acknowledgement; none before the
    /// handshake is done.
    fn silent_at(&mut self, now: Instant) -> Option<Instant> {
        let liveness = self.liveness.as_mut()?;
        if let Some((sent, acked)) = self.paths.newest_acked(&self.congestion) {
            liveness.acknowledged(sent, acked);
        }
        // The peer acknowledges on its first path, which may be dead while others live.
        if self.lane.is_none() {
            let rx = self.quic.stats().frame_rx;
            liveness.count_frames(rx.stream + rx.ping + rx.acks + rx.path_acks, now);
        }
        let mut established = self.paths.iter().filter(|p| p.established);
        let held = established.all(|p| p.held);
        let max_rtt = self.paths.max_rtt(&self.congestion);
        Some(liveness.silent_at(held, max_rtt))
    }

    /// Checks the session, after time has passed or a path has changed.
    fn check_liveness(&mut self, now: Instant) {
        let silent_at = self.silent_at(now);
        let ends = (self.is_client(), self.lane.is_some());
        let Some((liveness, silent_at)) = self.liveness.as_mut().zip(silent_at) else {
            return;
        };
        let check = liveness.check(silent_at, ends, now);
        if let Some(ping) = check.ping {
            let pinged = self.paths.iter_mut().filter(|p| p.established && !p.held);
            pinged.for_each(|p| p.ping.set(ping, now));
        }
        if check.ended {
            self.give_up(ConnectionError::TimedOut, now);
        }
    }

    /// How long it takes until the session is silent; zero once it is, none before the
    /// handshake is done.
    pub(crate) fn until_silent(&mut self, now: Instant) -> Option<Duration> {
        let at = self.silent_at(now)?;
        Some(at.saturating_duration_since(now))
    }

    /// For how long nothing has come back on any path, once that is too long.
    pub fn silent_for(&mut self, now: Instant) -> Option<Duration> {
        let silent = self.until_silent(now)?.is_zero();
        let since = self.liveness?.heard_at();
        silent.then(|| now.saturating_duration_since(since))
    }

    /// This end goes on after it was stopped, or suspended for `slept`: what it knows of the
    /// peer is old.
    pub(crate) fn woke(&mut self, now: Instant, slept: Duration) {
        if self.silent_at(now).is_none() {
            return;
        }
        if let Some(liveness) = &mut self.liveness {
            liveness.woke(now, slept);
        }
        if self.is_client() {
            let established = self.paths.iter_mut().filter(|p| p.established);
            established.for_each(|p| p.ping.ping_now(now));
        }
    }

    /// A stateless reset of the peer has arrived (RFC 9000 10.3), or another sign that it does
    /// not know the session: it ends.
    pub(crate) fn give_up(&mut self, why: ConnectionError, now: Instant) {
        if self.quic.is_closed() {
            return;
        }
        self.close(now, NOTHING_HEARD, b"nothing was heard of the peer");
        self.events.push_back(Event::Lost(why));
    }

    fn is_client(&self) -> bool {
        self.quic.side() == Side::Client
    }
}
