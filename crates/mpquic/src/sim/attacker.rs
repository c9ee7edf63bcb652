//! A peer on the QUIC library alone, which does what it likes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, DatagramEvent,
    Endpoint, Event, FourTuple, IdleTimeout, TransportConfig, VarInt,
};

use super::draws::Draws;
use super::null::Null;
use super::stage::{PORT, endpoint, hostile};

const PACKETS: NonZeroUsize = NonZeroUsize::new(10).expect("not zero");

/// A UDP datagram and where it is from.
pub(super) type Sent = (SocketAddr, Vec<u8>);

/// The peer, and its connections.
pub(super) struct Attacker {
    quic: Endpoint,
    config: ClientConfig,
    pub(super) connections: BTreeMap<usize, Connection>,
    address: IpAddr,
    /// Datagrams that connections may send yet, where that is bounded.
    pub(super) budgets: BTreeMap<usize, usize>,
    /// How its connections ended.
    pub(super) ended: Vec<ConnectionError>,
    /// Number of the address that it sends from now, where it moves about.
    pub(super) roaming: Option<u16>,
    /// Whether it ignores all that arrives.
    pub(super) deaf: bool,
}

impl Attacker {
    pub(super) fn new(seed: u64, address: IpAddr) -> Self {
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_multipath_paths(1000)
            .default_path_max_idle_timeout(Some(Duration::from_secs(60)))
            .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(60_000))))
            .initial_mtu(1452)
            .send_window(1 << 40)
            .datagram_send_buffer_size(4 << 20)
            .datagram_receive_buffer_size(Some(4 << 20));
        let mut config = ClientConfig::new(Arc::new(Null::default()));
        config.transport_config(Arc::new(transport));
        let first = Mutex::new(Draws::new(seed, "first cids"));
        config.initial_dst_cid_provider(Arc::new(move || {
            let draw = first.lock().expect("no panic").next();
            ConnectionId::new(&draw.to_be_bytes())
        }));
        Self {
            quic: Endpoint::new(Arc::new(endpoint(seed)), None, false),
            config,
            connections: BTreeMap::new(),
            address,
            budgets: BTreeMap::new(),
            ended: Vec::new(),
            roaming: None,
            deaf: false,
        }
    }

    pub(super) fn connect(&mut self, now: Instant, remote: SocketAddr) -> usize {
        let begun = self.quic.connect(now, self.config.clone(), remote, "proxy");
        let (handle, connection) = begun.expect("a configuration that is sound");
        self.connections.insert(handle.0, connection);
        handle.0
    }

    pub(super) fn connection(&mut self, key: usize) -> &mut Connection {
        self.connections.get_mut(&key).expect("it lasts")
    }

    pub(super) fn receive(&mut self, now: Instant, to: IpAddr, from: SocketAddr, data: &[u8]) {
        if self.deaf {
            return;
        }
        let mut buf = Vec::new();
        // Of its main address, and that it moves, it does not know.
        let local = (to != self.address && self.roaming.is_none()).then_some(to);
        let network = FourTuple::new(from, local);
        let data = BytesMut::from(data);
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) =
            self.quic.handle(now, network, None, data, &mut buf)
            && let Some(c) = self.connections.get_mut(&handle.0)
        {
            c.handle_event(event);
        }
    }

    /// Handles timers and events, and returns the datagrams to send now.
    pub(super) fn pump(&mut self, now: Instant) -> Vec<Sent> {
        let mut sent = Vec::new();
        let mut buf = Vec::new();
        for (key, c) in &mut self.connections {
            if c.poll_timeout().is_some_and(|t| t <= now) {
                c.handle_timeout(now);
            }
            while let Some(event) = c.poll() {
                if let Event::ConnectionLost { reason } = event {
                    self.ended.push(reason);
                }
            }
            while let Some(event) = c.poll_endpoint_events() {
                if let Some(event) = self.quic.handle_event(ConnectionHandle(*key), event) {
                    c.handle_event(event);
                }
            }
            while let Some(t) = c.poll_transmit(now, PACKETS, &mut buf) {
                let from = SocketAddr::new(t.src_ip.unwrap_or(self.address), PORT);
                let size = t.segment_size.unwrap_or(t.size).max(1);
                let datagrams = buf[..t.size].chunks(size);
                let budget = self.budgets.get(key).copied().unwrap_or(usize::MAX);
                let before = sent.len();
                sent.extend(datagrams.map(|d| (from, d.to_vec())).take(budget));
                if let Some(left) = self.budgets.get_mut(key) {
                    *left -= sent.len() - before;
                }
                buf.clear();
            }
        }
        self.connections.retain(|_, c| !c.is_drained());
        if let Some(now) = self.roaming {
            sent.iter_mut()
                .for_each(|(from, _)| from.set_ip(hostile(now)));
        }
        sent
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let all = self.connections.values();
        all.filter_map(Connection::poll_timeout).min()
    }
}
