//! One end of connections: QUIC's endpoint with ours on top, without sockets or a
//! clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_api::config::MPQUIC_CC;
use braid_core::Pattern;
use bytes::BytesMut;
use noq_proto::{
    ClientConfig, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    FourTuple, Incoming, ServerConfig, Transmit,
};

use crate::access::{self, Access};
use crate::admission::{Verdict, admit};
use crate::congestion::{self, Inner, Shared};
use crate::connection::{Connection, Event, Outgoing, Parts};
use crate::steering::{Acks, Lane, Steering};
use crate::{Error, transport};

/// Answers that wait to be sent, at most; whoever is answered so asks again.
const MAX_ANSWERS: usize = 1024;

/// Options that connections are made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Carrier of the data: streams of QUIC, or the datagram lane.
    pub lane: Lane,
    /// The scheduler.
    pub steering: Steering,
    /// One of [`congestion::names`].
    pub congestion_control: String,
    /// A path that takes the place of another one of its access begins with half of what
    /// that carried (careful resume), and not with ten packets.
    pub resume: bool,
    /// Where acknowledgements of the datagram lane leave.
    pub acks: Acks,
    /// Bytes of one stream of the datagram lane that are sent beyond the first that is not
    /// acknowledged, at most; none: as many as the peer has room for (16 MiB).
    pub send_window: Option<u64>,
    /// Whether the proxy applies the rates that a device expects of its accesses
    /// ([`Access::expected`]), which may fill a queue for a round trip: for devices that are
    /// known.
    pub trust_peer_expectations: bool,
    /// At the proxy: by what devices learn at once that it has started anew and knows
    /// nothing of their sessions (stateless reset, RFC 9000 10.3). Known to it alone and
    /// the same after each start; none: they find out after a while.
    pub reset_key: Option<[u8; 32]>,
    /// At the device: interfaces that are never used, whatever access names them.
    pub ignore: Vec<Pattern>,
}

impl Options {
    /// The least [`Options::send_window`] that makes sense, bytes: with less a fast access
    /// waits for its own acknowledgements.
    pub const MIN_SEND_WINDOW: u64 = 64 * 1024;
}

impl Default for Options {
    /// The datagram lane, `minrtt`, `swing`, careful resume.
    fn default() -> Self {
        Self {
            lane: Lane::default(),
            steering: Steering::default(),
            congestion_control: MPQUIC_CC.to_owned(),
            resume: true,
            acks: Acks::default(),
            send_window: None,
            trust_peer_expectations: true,
            reset_key: None,
            ignore: Vec::new(),
        }
    }
}

/// Takes connections in.
struct Listening {
    config: ServerConfig,
    options: Options,
    inner: Inner,
    /// The accesses of every peer, by the peer's addresses.
    accesses: Vec<Access>,
}

/// One end.
pub struct Host {
    quic: Endpoint,
    listening: Option<Listening>,
    connections: BTreeMap<usize, Connection>,
    /// Connections that were taken in and had not finished the handshake when it was looked.
    half_open: BTreeSet<usize>,
    /// Number of the connection that sent last: the next one has its turn.
    turn: usize,
    /// Answers that belong to no connection.
    answers: VecDeque<(Transmit, Vec<u8>)>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// An end that connects.
    pub fn new(config: EndpointConfig) -> Self {
        Self {
            quic: Endpoint::new(Arc::new(config), None, true),
            listening: None,
            connections: BTreeMap::new(),
            half_open: BTreeSet::new(),
            turn: 0,
            answers: VecDeque::new(),
        }
    }

    /// Takes connections in from now on. `accesses` are those of the peers, by the
    /// peers' addresses. While many handshakes are under way, peers have to prove their
    /// addresses, or are refused ([`crate::admission`]).
    ///
    /// # Errors
    /// As [`Steering::make`], and [`Error::UnknownCongestionControl`].
    pub fn listen(
        &mut self,
        config: ServerConfig,
        options: &Options,
        accesses: Vec<Access>,
    ) -> Result<(), Error> {
        options.steering.make(options.lane)?;
        let inner = congestion::inner(&options.congestion_control)?;
        self.quic.set_server_config(Some(Arc::new(config.clone())));
        self.listening = Some(Listening {
            config,
            options: options.clone(),
            inner,
            accesses,
        });
        Ok(())
    }

    /// Changes what later connections are taken in with.
    ///
    /// # Errors
    /// As [`Host::listen`].
    pub fn set_options(&mut self, options: &Options, accesses: Vec<Access>) -> Result<(), Error> {
        options.steering.make(options.lane)?;
        let inner = congestion::inner(&options.congestion_control)?;
        if let Some(l) = &mut self.listening {
            (l.options, l.inner, l.accesses) = (options.clone(), inner, accesses);
        }
        Ok(())
    }

    /// The socket of access number `access` has no room (or does again): what is sent
    /// there would wait, and is better sent elsewhere.
    pub fn hold(&mut self, access: usize, held: bool) {
        for c in self.connections.values_mut() {
            c.set_socket_full(access, held);
        }
    }

    /// Begins a connection on the access number `first`.
    ///
    /// # Errors
    /// [`Error::NoAccess`] where that cannot be used; as [`Host::listen`];
    /// [`Error::Connect`].
    pub fn connect(
        &mut self,
        now: Instant,
        mut config: ClientConfig,
        options: &Options,
        (remote, name): (SocketAddr, &str),
        accesses: Vec<Access>,
        first: usize,
    ) -> Result<ConnectionHandle, Error> {
        if !accesses.get(first).is_some_and(Access::usable) {
            return Err(Error::NoAccess {
                remote,
                accesses: access::names(&accesses),
            });
        }
        let schedulers = options.steering.make(options.lane)?;
        let shared = Shared::default();
        let inner = congestion::inner(&options.congestion_control)?;
        config.transport_config(transport::config(options.lane, inner, &shared));
        let begun = self.quic.connect(now, config, remote, name);
        let (handle, quic) = begun.map_err(|source| Error::Connect { remote, source })?;
        let connection = Connection::new(Parts {
            handle,
            quic,
            shared,
            schedulers,
            options: options.clone(),
            accesses,
            initial_access: Some(first),
            now,
        });
        self.connections.insert(handle.0, connection);
        Ok(handle)
    }

    /// A connection, as long as it lasts.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle.0)
    }

    /// The connections that there are.
    pub fn handles(&self) -> Vec<ConnectionHandle> {
        self.connections
            .keys()
            .map(|k| ConnectionHandle(*k))
            .collect()
    }

    /// A UDP datagram has arrived at the device, on access number `access`.
    pub fn arrive(
        &mut self,
        now: Instant,
        access: usize,
        remote: SocketAddr,
        ecn: Option<EcnCodepoint>,
        data: BytesMut,
    ) {
        let network = FourTuple::new(remote, Some(access::label(access)));
        self.receive(now, network, ecn, data);
    }

    /// A UDP datagram has arrived. `data` is best a buffer of its own: what is kept of it,
    /// until it is read, keeps all of the buffer.
    pub fn receive(
        &mut self,
        now: Instant,
        network: FourTuple,
        ecn: Option<EcnCodepoint>,
        data: BytesMut,
    ) {
        let mut buf = Vec::new();
        match self.quic.handle(now, network, ecn, data, &mut buf) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(c) = self.connections.get_mut(&handle.0) {
                    c.answered();
                    c.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(transmit)) => self.answer(transmit, buf),
            None => {}
        }
    }

    /// Takes no more connections in. Whoever asks for one gets no answer, so that an end that
    /// takes this one's place is found by the next attempt.
    pub fn stop_listening(&mut self) {
        self.listening = None;
    }

    /// Whether connections are taken in.
    pub fn is_listening(&self) -> bool {
        self.listening.is_some()
    }

    fn answer(&mut self, transmit: Transmit, buf: Vec<u8>) {
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back((transmit, buf));
        }
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        let connections = &self.connections;
        let is_half_open = |k: &usize| connections.get(k).is_some_and(|c| !c.is_connected());
        self.half_open.retain(is_half_open);
        let mut buf = Vec::new();
        match admit(self.half_open.len(), incoming.remote_address_validated()) {
            Verdict::Accept => {}
            Verdict::Retry => {
                match self.quic.retry(incoming, &mut buf) {
                    Ok(transmit) => self.answer(transmit, buf),
                    Err(e) => self.quic.ignore(e.into_incoming()),
                }
                return;
            }
            Verdict::Refuse => {
                let transmit = self.quic.refuse(incoming, &mut buf);
                self.answer(transmit, buf);
                return;
            }
        }
        let Some(l) = &self.listening else {
            self.quic.ignore(incoming);
            return;
        };
        let shared = Shared::default();
        let mut config = l.config.clone();
        config.transport_config(transport::config(l.options.lane, l.inner.clone(), &shared));
        // It was made once before, when listening began.
        let Ok(schedulers) = l.options.steering.make(l.options.lane) else {
            self.quic.ignore(incoming);
            return;
        };
        let accepted = self
            .quic
            .accept(incoming, now, &mut buf, Some(Arc::new(config)));
        match accepted {
            Ok((handle, quic)) => {
                let connection = Connection::new(Parts {
                    handle,
                    quic,
                    shared,
                    schedulers,
                    options: l.options.clone(),
                    accesses: l.accesses.clone(),
                    initial_access: None,
                    now,
                });
                self.connections.insert(handle.0, connection);
                self.half_open.insert(handle.0);
            }
            Err(refused) => {
                if let Some(transmit) = refused.response {
                    self.answer(transmit, buf);
                }
            }
        }
    }

    /// The next event of any connection, and whose it is.
    pub fn poll(&mut self, now: Instant) -> Option<(ConnectionHandle, Event)> {
        self.exchange(now);
        let mut all = self.connections.iter_mut();
        all.find_map(|(k, c)| Some((ConnectionHandle(*k), c.poll(now)?)))
    }

    /// Passes on what connections and the endpoint have for each other, and forgets
    /// connections that are over.
    fn exchange(&mut self, now: Instant) {
        for c in self.connections.values_mut() {
            // Once it hears of this the endpoint gives the handle to the next connection, which
            // would take the place of one that has not told all yet.
            if c.is_drained() && !c.is_over(now) {
                continue;
            }
            while let Some(event) = c.poll_endpoint_events() {
                // All that it answers are identifiers.
                if let Some(event) = self.quic.handle_event(c.handle(), event) {
                    c.take_identifiers(event, now);
                }
            }
        }
        // Not before what happened to them has been told.
        self.connections.retain(|_, c| !c.is_over(now));
    }

    /// Writes what is to be sent next into `buf`, which is emptied; none if nothing is.
    /// Connections take turns.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Outgoing> {
        buf.clear();
        if let Some((transmit, answer)) = self.answers.pop_front() {
            buf.extend_from_slice(&answer);
            return Some(Outgoing {
                transmit,
                access: None,
            });
        }
        let keys: Vec<usize> = self.connections.keys().copied().collect();
        let (before, after): (Vec<_>, Vec<_>) = keys.into_iter().partition(|k| *k <= self.turn);
        for key in after.into_iter().chain(before) {
            let sent = self.connections.get_mut(&key)?.poll_transmit(now, buf);
            if sent.is_some() {
                self.turn = key;
                return sent;
            }
        }
        None
    }

    /// This end goes on after it was stopped, or its machine suspended for `slept`, which the
    /// clock does not count: sessions check at once whether their peers still know them.
    pub fn woke(&mut self, now: Instant, slept: Duration) {
        for c in self.connections.values_mut() {
            c.woke(now, slept);
        }
    }

    /// When [`Host::handle_timeout`] is wanted.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connections
            .values()
            .filter_map(Connection::poll_timeout)
            .min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        for c in self.connections.values_mut() {
            if c.poll_timeout().is_some_and(|t| t <= now) {
                c.handle_timeout(now);
            }
        }
        self.exchange(now);
    }
}
