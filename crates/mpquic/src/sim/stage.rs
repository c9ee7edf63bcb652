//! A proxy, a peer that attacks it, and one that it has to go on serving meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use noq_proto::{
    ClientConfig, ConnectionHandle, ConnectionId, EndpointConfig, FourTuple, ServerConfig,
};

use super::attacker::Attacker;
use super::draws::{Cids, Draws};
use super::null::Null;
use crate::{Access, Connection, Dial, Event, Host, Lane, Options, Target};

pub(super) const PORT: u16 = 50_000;
/// One way.
const DELAY: Duration = Duration::from_millis(5);
/// More turns than this at one time are not needed.
const BUSY: u32 = 100_000;

pub(super) fn proxy() -> SocketAddr {
    ([10, 77, 0, 1], 4433).into()
}

fn honest() -> IpAddr {
    [10, 77, 1, 2].into()
}

/// The attacker's addresses: its own, and those that it adds.
pub(super) fn hostile(n: u16) -> IpAddr {
    let [a, b] = n.to_be_bytes();
    [10, 66, a, b].into()
}

pub(super) fn endpoint(seed: u64) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(Null::default()));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    config.rng_seed(Some(bytes));
    config.cid_generator(Arc::new(move || Box::new(Cids(Draws::new(seed, "cids")))));
    config
}

/// A datagram on its way to the proxy or from it.
struct Flying {
    at: Instant,
    to_proxy: bool,
    peer: SocketAddr,
    data: Vec<u8>,
}

pub(super) struct Stage {
    pub(super) now: Instant,
    pub(super) proxy: Host,
    device: Host,
    dial: Dial,
    pub(super) attacker: Attacker,
    flying: VecDeque<Flying>,
    pub(super) capturing: bool,
    /// Datagrams that the proxy was sent while `capturing`, and by whom.
    pub(super) captured: Vec<(SocketAddr, Vec<u8>)>,
    /// Events at the proxy.
    pub(super) events: Vec<(ConnectionHandle, Event)>,
    /// The honest peer's connection at the proxy, once there is one.
    served: Option<ConnectionHandle>,
    /// Bytes of each channel, or stream, that came from the honest peer.
    pub(super) got: BTreeMap<u64, Vec<u8>>,
    rounds: u64,
}

impl Stage {
    pub(super) fn new(lane: Lane) -> Self {
        let now = Instant::now();
        let options = Options {
            lane,
            ..Options::default()
        };
        let accesses = vec![Access::new("nr", honest())];
        let mut host = Host::new(endpoint(1));
        let server = ServerConfig::new(Arc::new(Null::default()), Arc::new(Null::default()));
        host.listen(server, &options, accesses.clone())
            .expect("options");
        let mut device = Host::new(endpoint(2));
        let mut config = ClientConfig::new(Arc::new(Null::default()));
        let first = Mutex::new(Draws::new(3, "first cids"));
        config.initial_dst_cid_provider(Arc::new(move || {
            let draw = first.lock().expect("no panic").next();
            ConnectionId::new(&draw.to_be_bytes())
        }));
        let target = Target {
            remote: proxy(),
            name: "proxy".to_owned(),
            config,
            options,
            keep: false,
        };
        let dial = Dial::begin(&mut device, target, accesses, now).expect("options");
        Self {
            now,
            proxy: host,
            device,
            dial,
            attacker: Attacker::new(4, hostile(0)),
            flying: VecDeque::new(),
            capturing: false,
            captured: Vec::new(),
            events: Vec::new(),
            served: None,
            got: BTreeMap::new(),
            rounds: 0,
        }
    }

    /// With an honest connection, and one of the attacker: its key, and its handle at the
    /// proxy.
    pub(super) fn begun(lane: Lane) -> (Self, usize, ConnectionHandle) {
        let mut stage = Self::new(lane);
        stage.run(1000);
        let before = stage.proxy.handles();
        let key = stage.attacker.connect(stage.now, proxy());
        stage.run(1000);
        let mut handles = stage.proxy.handles();
        handles.retain(|h| !before.contains(h));
        (stage, key, handles[0])
    }

    /// A datagram reaches the proxy soon, whoever sent it.
    pub(super) fn inject(&mut self, peer: SocketAddr, data: Vec<u8>) {
        self.fly(true, peer, data);
    }

    fn fly(&mut self, to_proxy: bool, peer: SocketAddr, data: Vec<u8>) {
        let at = self.now + DELAY;
        self.flying.push_back(Flying {
            at,
            to_proxy,
            peer,
            data,
        });
    }

    /// The connection of the attacker at the proxy, as long as it lasts.
    pub(super) fn victim(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.proxy.connection(handle)
    }

    /// Reason that the proxy gave for a connection that it rejected.
    pub(super) fn refusal(&self, handle: ConnectionHandle) -> Option<String> {
        self.events.iter().find_map(|(h, e)| match e {
            Event::Refused(why) if *h == handle => Some(why.to_string()),
            _ => None,
        })
    }

    /// So many ms pass.
    pub(super) fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        let mut turns = 0;
        loop {
            self.pump();
            let timeouts = [self.device.poll_timeout(), self.proxy.poll_timeout()];
            let timeouts = timeouts.into_iter().chain([
                self.dial.due(),
                self.attacker.poll_timeout(),
                self.flying.front().map(|f| f.at),
            ]);
            let next = timeouts.flatten().min().unwrap_or(end).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            turns = if next == self.now { turns + 1 } else { 0 };
            assert!(turns < BUSY, "it goes round in circles");
            self.now = next;
            self.arrive();
            for host in [&mut self.device, &mut self.proxy] {
                if host.poll_timeout().is_some_and(|t| t <= self.now) {
                    host.handle_timeout(self.now);
                }
            }
            self.dial
                .tick(&mut self.device, self.now)
                .expect("it connects");
            if self.now == end && self.flying.front().is_none_or(|f| f.at > end) {
                self.pump();
                return;
            }
        }
    }

    fn arrive(&mut self) {
        while self.flying.front().is_some_and(|f| f.at <= self.now) {
            let Some(f) = self.flying.pop_front() else {
                return;
            };
            let data = BytesMut::from(&f.data[..]);
            if f.to_proxy {
                let network = FourTuple::new(f.peer, Some(proxy().ip()));
                self.proxy.receive(self.now, network, None, data);
                if self.capturing {
                    self.captured.push((f.peer, f.data));
                }
            } else if f.peer.ip() == honest() {
                self.device.arrive(self.now, 0, proxy(), None, data);
            } else {
                self.attacker
                    .receive(self.now, f.peer.ip(), proxy(), &f.data);
            }
        }
    }

    fn pump(&mut self) {
        let now = self.now;
        let mut buf = Vec::new();
        while let Some((handle, event)) = self.device.poll(now) {
            let kept = self.dial.event(&mut self.device, handle, event, now);
            let lost = matches!(kept, Some(Event::Lost(_)));
            assert!(!lost, "the honest peer was lost: {kept:?}");
        }
        while let Some((handle, event)) = self.proxy.poll(now) {
            if matches!(event, Event::Connected) && self.served.is_none() {
                self.served = Some(handle);
            }
            self.events.push((handle, event));
        }
        self.serve();
        while let Some(out) = self.proxy.poll_transmit(now, &mut buf) {
            let t = &out.transmit;
            let size = t.segment_size.unwrap_or(t.size).max(1);
            for d in buf[..t.size].chunks(size) {
                self.fly(false, t.destination, d.to_vec());
            }
        }
        while let Some(out) = self.device.poll_transmit(now, &mut buf) {
            let size = out.transmit.segment_size.unwrap_or(out.transmit.size);
            for d in buf[..out.transmit.size].chunks(size.max(1)) {
                self.fly(true, (honest(), PORT).into(), d.to_vec());
            }
        }
        for (from, data) in self.attacker.pump(now) {
            self.fly(true, from, data);
        }
    }

    /// The proxy reads what the honest peer sends, and nothing of the attacker.
    fn serve(&mut self) {
        let Some(c) = self.served.and_then(|h| self.proxy.connection(h)) else {
            return;
        };
        let Some(lane) = c.lane() else {
            while let Some(id) = c.quic().streams().accept(noq_proto::Dir::Uni) {
                self.got.entry(u64::from(id)).or_default();
            }
            for (id, got) in &mut self.got {
                let id = noq_proto::StreamId::from(noq_proto::VarInt::from_u64(*id).expect("ids"));
                let mut stream = c.quic().recv_stream(id);
                let Ok(mut chunks) = stream.read(true) else {
                    continue;
                };
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    got.extend_from_slice(&chunk.bytes);
                }
                let _ = chunks.finalize();
            }
            return;
        };
        let channels: Vec<u64> = lane.channels().collect();
        for channel in channels {
            while let Some(data) = lane.read(channel) {
                self.got
                    .entry(channel)
                    .or_default()
                    .extend_from_slice(&data);
            }
            lane.ended(channel);
        }
    }

    /// The honest peer sends, and within a second the proxy has all of it, once.
    pub(super) fn assert_serves(&mut self) {
        self.rounds += 1;
        let data = Bytes::from(vec![self.rounds as u8; 100_000]);
        let won = self.dial.connection().expect("it connected");
        let c = self.device.connection(won).expect("it lasts");
        let id = match c.lane() {
            Some(lane) => {
                assert_eq!(lane.write(self.rounds, data.clone()), data.len());
                lane.finish(self.rounds);
                self.rounds
            }
            None => {
                let id = c.quic().streams().open(noq_proto::Dir::Uni).expect("room");
                let mut stream = c.quic().send_stream(id);
                assert_eq!(stream.write(&data), Ok(data.len()));
                stream.finish().expect("it is ours");
                u64::from(id)
            }
        };
        self.run(1000);
        assert!(self.got.get(&id).is_some_and(|got| *got == data));
    }
}
