//! Two ends and the links between them, in simulated time.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use braid_core::Time;
use braid_radio::model::{LinkId, LinkSpec, Network, RateSpec, Train};
use bytes::BytesMut;
use noq_proto::{ClientConfig, ConnectionId, EndpointConfig, FourTuple, ServerConfig, VarInt};

use super::air::{Air, Flying};
use super::app::App;
use super::draws::{Cids, Draws};
use super::null::Null;
use super::script::{What, expected};
use crate::{Access, Dial, Host, Options, PathInfo, Target};

/// IPv4 and UDP.
pub(super) const HEADERS: u32 = 28;
/// More turns than this at one time are not needed.
const BUSY: u32 = 10_000;
/// Nor more than this in which nothing is sent or received.
const MAX_IDLE: u32 = 50;
/// Port of the device, before a NAT takes another.
const PORT: u16 = 50_000;
const PROXY: ([u8; 4], u16) = ([10, 77, 0, 1], 4433);

/// Both directions of an access.
#[derive(Clone, Debug)]
pub(super) struct Radio {
    pub(super) down: LinkSpec,
    pub(super) up: LinkSpec,
    /// Rate that the device expects of the downlink from the start, Mbit/s.
    pub(super) expects: Option<u32>,
}

impl Radio {
    /// Returns the access at `times` the rates, where they are constant.
    pub(super) fn faster(mut self, times: f64) -> Self {
        for link in [&mut self.down, &mut self.up] {
            if let RateSpec::Constant(rate) = &mut link.rate {
                *rate = rate.scaled(times);
            }
        }
        self
    }
}

fn endpoint(seed: u64, key: u64) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(Null::with_key(key)));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    config.rng_seed(Some(bytes));
    config.cid_generator(Arc::new(move || Box::new(Cids(Draws::new(seed, "cids")))));
    config
}

/// Configuration that a proxy starts with.
pub(super) struct Start {
    seed: u64,
    options: Options,
    accesses: Vec<Access>,
}

impl Start {
    /// The proxy's `n`th start; one with another `key` cannot tell devices that it has forgotten
    /// their sessions.
    pub(super) fn host(&self, n: u64, key: u64) -> Host {
        let mut proxy = Host::new(endpoint(self.seed ^ (n << 32), key));
        let server = ServerConfig::new(Arc::new(Null::default()), Arc::new(Null::default()));
        let accesses = self.accesses.clone();
        proxy
            .listen(server, &self.options, accesses)
            .expect("options");
        proxy
    }
}

/// Why a device does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freeze {
    /// Its process is stopped: packets wait, and its clock goes on.
    Stopped,
    /// Suspension since this time: packets are lost, and its clock stands.
    Suspended(Time),
}

/// So many ms after the start.
pub(super) fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// Two ends, several links, one application.
pub(super) struct World {
    epoch: Instant,
    pub(super) now: Time,
    pub(super) network: Network,
    pub(super) links: Vec<[LinkId; 2]>,
    pub(super) air: Air,
    pub(super) device: Host,
    /// Proxy host; none while it is away.
    pub(super) proxy: Option<Host>,
    pub(super) start: Start,
    /// The device does not run.
    pub(super) freeze: Option<Freeze>,
    /// For how long it was suspended, which its clock does not count.
    slept: Duration,
    pub(super) dial: Dial,
    pub(super) addresses: Vec<IpAddr>,
    /// The port that the proxy sees of each access: of the NAT on the way.
    ports: Vec<u16>,
    pub(super) script: VecDeque<(Time, usize, What)>,
    draws: Draws,
    /// How likely a datagram arrives twice.
    pub(super) duplicated: f64,
    /// IP bytes of the longest packet that each access carries.
    pub(super) longest: Vec<u32>,
    /// Hash of everything that was sent: equal for equal seeds.
    pub(super) trace: u64,
    pub(super) sent_bytes: Vec<[u64; 2]>,
    /// Datagrams that have arrived.
    arrivals: u64,
    pub(super) app: App,
}

impl World {
    pub(super) fn new(
        seed: u64,
        radios: &[Radio],
        options: &Options,
        weights: &[f64],
        script: Vec<(Time, usize, What)>,
        app: App,
    ) -> Self {
        Self::made(seed, radios, (options, false), weights, script, app)
    }

    /// One whose device connects again when its session is lost.
    pub(super) fn kept(seed: u64, radios: &[Radio], options: &Options) -> Self {
        Self::made(seed, radios, (options, true), &[], vec![], App::renewed())
    }

    fn made(
        seed: u64,
        radios: &[Radio],
        (options, keep): (&Options, bool),
        weights: &[f64],
        mut script: Vec<(Time, usize, What)>,
        app: App,
    ) -> Self {
        let mut network = Network::new(seed);
        let mut add = |(i, r): (usize, &Radio)| {
            let down = network.add_link(&format!("{i} down"), &r.down);
            [down, network.add_link(&format!("{i} up"), &r.up)]
        };
        let links: Vec<_> = radios.iter().enumerate().map(&mut add).collect();
        let address = |i: usize| IpAddr::from([10, 77, i as u8 + 1, 2]);
        let addresses: Vec<_> = (0..radios.len()).map(address).collect();
        let access = |(i, a): (usize, &IpAddr)| {
            let mut access = Access::new(&format!("a{i}"), *a);
            access.weight = weights.get(i).copied().unwrap_or(1.0);
            access.expected = radios[i].expects.map(expected).unwrap_or_default();
            // Until there is a connection, nothing else can be told.
            let told = |(at, of, what): &(Time, usize, What)| {
                *at == Time::ZERO && *of == i && matches!(what, What::Backup(true))
            };
            access.backup = script.iter().any(told);
            access
        };
        let accesses: Vec<_> = addresses.iter().enumerate().map(access).collect();
        let epoch = Instant::now();
        // What the device wants, the proxy is told by it alone.
        let of_proxy = accesses
            .iter()
            .cloned()
            .map(|a| Access { backup: false, ..a });
        let start = Start {
            seed: seed ^ 1,
            options: options.clone(),
            accesses: of_proxy.collect(),
        };
        let mut device = Host::new(endpoint(seed ^ 2, 0));
        let mut client = ClientConfig::new(Arc::new(Null::default()));
        let first = Mutex::new(Draws::new(seed, "first cids"));
        client.initial_dst_cid_provider(Arc::new(move || {
            let draw = first.lock().expect("no panic").next();
            ConnectionId::new(&draw.to_be_bytes())
        }));
        let target = Target {
            remote: SocketAddr::from(PROXY),
            name: "proxy".to_owned(),
            config: client,
            options: options.clone(),
            keep,
        };
        let dial = Dial::begin(&mut device, target, accesses, epoch).expect("options");
        script.sort_by_key(|(at, ..)| *at);
        Self {
            epoch,
            now: Time::ZERO,
            network,
            links,
            air: Air::default(),
            device,
            proxy: Some(start.host(0, 0)),
            start,
            freeze: None,
            slept: Duration::ZERO,
            dial,
            ports: vec![PORT; radios.len()],
            addresses,
            script: script.into(),
            draws: Draws::new(seed, "world"),
            duplicated: 0.0,
            longest: vec![u32::MAX; radios.len()],
            trace: 0xcbf2_9ce4_8422_2325,
            sent_bytes: vec![[0; 2]; radios.len()],
            arrivals: 0,
            app,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn instant(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.now.as_nanos())
    }

    /// The device's clock.
    pub(super) fn device_instant(&self) -> Instant {
        let sleeps = match self.freeze {
            Some(Freeze::Suspended(since)) => self.now.since(since),
            _ => Duration::ZERO,
        };
        self.instant() - self.slept - sleeps
    }

    /// The NAT of an access forgets the device's binding, and takes another port for what it
    /// sends from now on; nobody is told.
    pub(super) fn rebind(&mut self, access: usize) {
        self.ports[access] = self.ports[access].checked_add(1).unwrap_or(PORT);
    }

    /// Stops or suspends the device.
    pub(super) fn freeze(&mut self, how: Freeze) {
        self.freeze = Some(how);
    }

    /// The device goes on.
    pub(super) fn thaw(&mut self) {
        let slept = match self.freeze.take() {
            Some(Freeze::Suspended(since)) => self.now.since(since),
            _ => Duration::ZERO,
        };
        self.slept += slept;
        let now = self.device_instant();
        self.device.woke(now, slept);
        self.dial.woke(now);
    }

    /// Goes on until `end`, or until the application is done.
    pub(super) fn run(&mut self, end: Time) {
        self.go(end, |w| w.app.done());
    }

    /// Goes on until `end`. Returns the goodput from now until then, Mbit/s.
    pub(super) fn goodput(&mut self, end: Time) -> f64 {
        let (begin, before) = (self.now, self.app.received);
        self.run(end);
        assert_eq!(self.app.wrong, None);
        (self.app.received - before) as f64 * 8.0 / end.since(begin).as_secs_f64() / 1e6
    }

    /// Goes on until `end`, though the application may be done.
    pub(super) fn rest(&mut self, end: Time) {
        self.go(end, |_| false);
    }

    /// Returns what the device and the proxy know of their paths.
    pub(super) fn paths(&mut self) -> [Vec<PathInfo>; 2] {
        let both = [(true, self.device_instant()), (false, self.instant())];
        both.map(|(device, now)| {
            let host = match device {
                true => Some(&mut self.device),
                false => self.proxy.as_mut(),
            };
            let mut all = Vec::new();
            let Some(host) = host else {
                return all;
            };
            for handle in host.handles() {
                let infos = host.connection(handle).map(|c| c.path_infos(now));
                all.extend(infos.into_iter().flatten());
            }
            all
        })
    }

    /// Accesses that device and proxy take for silent.
    pub(super) fn silent(&mut self) -> [Vec<String>; 2] {
        self.paths().map(|paths| {
            let silent = paths.into_iter().filter(|p| p.silent);
            silent.filter_map(|p| p.access).collect()
        })
    }

    /// Packets that the proxy has taken for lost.
    pub(super) fn lost(&mut self) -> u64 {
        let [_, proxy] = self.paths();
        proxy.iter().map(|p| p.lost_packets).sum()
    }

    /// The device closes; both ends forget the connection in the end.
    pub(super) fn close(&mut self) -> Result<(), String> {
        let now = self.instant();
        for handle in self.device.handles() {
            if let Some(c) = self.device.connection(handle) {
                c.close(now, VarInt::from_u32(0), b"");
            }
        }
        let left = |w: &Self| {
            let proxy = w.proxy.as_ref().map_or(0, |p| p.handles().len());
            [w.device.handles().len(), proxy]
        };
        let gone = |w: &Self| left(w) == [0; 2];
        // Where the word of it is lost, the other end waits for its idle timeout.
        let end = self.now + Duration::from_secs(120);
        self.go(end, gone);
        gone(self).then_some(()).ok_or_else(|| {
            let left = left(self);
            format!("{left:?} connections of device and proxy do not end")
        })
    }

    fn go(&mut self, end: Time, until: impl Fn(&Self) -> bool) {
        let (mut since, mut turns) = (self.now, 0);
        let (mut idle, mut before) = (0, (self.now, 0, 0));
        loop {
            self.pump();
            turns = if self.now == since { turns + 1 } else { 0 };
            since = self.now;
            assert!(turns < BUSY, "it goes round in circles at {since:?}");
            let progress = (self.now, self.trace, self.arrivals);
            idle = if progress == before { idle + 1 } else { 0 };
            before = progress;
            assert!(
                idle < MAX_IDLE,
                "time stands and nothing happens at {since:?}"
            );
            if until(self) {
                return;
            }
            let runs = self.freeze.is_none();
            let device = [self.device.poll_timeout(), self.dial.due()];
            let device = device.into_iter().flatten().filter(|_| runs);
            let device = device.map(|t| t + self.slept);
            let proxy = self.proxy.as_ref().and_then(Host::poll_timeout);
            let timeouts = device.chain(proxy);
            let timeouts = timeouts.map(|t| Time::from(t.duration_since(self.epoch)));
            let script = self.script.front().map(|(at, ..)| *at);
            let next = self
                .network
                .next_event()
                .into_iter()
                .chain(timeouts)
                .chain(script)
                .min();
            let next = next.unwrap_or(Time::MAX).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            self.network.advance(self.now, &mut self.air);
            self.arrive();
            self.act();
            let now = self.instant();
            let mine = self.device_instant();
            let all = [(self.proxy.as_mut(), now)];
            let device = Some(&mut self.device).filter(|_| runs);
            for (host, now) in all.into_iter().chain([(device, mine)]) {
                if let Some(host) = host
                    && host.poll_timeout().is_some_and(|t| t <= now)
                {
                    host.handle_timeout(now);
                }
            }
            if runs && let Err(e) = self.dial.tick(&mut self.device, mine) {
                self.app.not_connected(e.to_string());
            }
        }
    }

    fn arrive(&mut self) {
        let now = self.instant();
        let mut waiting = VecDeque::new();
        while let Some(f) = self.air.arrived.pop_front() {
            match self.freeze.filter(|_| f.to_device) {
                Some(Freeze::Stopped) => {
                    waiting.push_back(f);
                    continue;
                }
                Some(Freeze::Suspended(_)) => continue,
                None => {}
            }
            self.arrivals += 1;
            let times = 1 + usize::from(self.draws.unit() < self.duplicated);
            let proxy = SocketAddr::from(PROXY);
            for _ in 0..times {
                let data = BytesMut::from(&f.data[..]);
                if f.to_device {
                    // To an address that the device no longer has.
                    if self.addresses[f.access] == f.device {
                        let now = self.device_instant();
                        self.device.arrive(now, f.access, proxy, None, data);
                    }
                } else if let Some(host) = &mut self.proxy {
                    let network = FourTuple::new((f.device, f.port).into(), Some(proxy.ip()));
                    host.receive(now, network, None, data);
                }
            }
        }
        // A socket has room for so many.
        waiting.truncate(1000);
        self.air.arrived = waiting;
    }

    fn pump(&mut self) {
        let now = self.instant();
        let mut buf = Vec::new();
        let mut turns = 0;
        loop {
            turns += 1;
            assert!(turns < BUSY, "it sends in circles at {:?}", self.now);
            let mut again = false;
            let (runs, mine) = (self.freeze.is_none(), self.device_instant());
            while let Some((handle, event)) = runs.then(|| self.device.poll(mine)).flatten() {
                let device = &mut self.device;
                if let Some(event) = self.dial.event(device, handle, event, mine) {
                    self.app.at_device(&event);
                }
                again = true;
            }
            while let Some((handle, event)) = self.proxy.as_mut().and_then(|p| p.poll(now)) {
                self.app.at_proxy(handle, &event);
                again = true;
            }
            let time = self.now;
            let won = self.dial.connection();
            if let Some(c) = won.and_then(|h| self.device.connection(h)) {
                again |= self.app.device(c, time);
            }
            if let Some(host) = &mut self.proxy {
                for handle in host.handles() {
                    if let Some(c) = host.connection(handle) {
                        again |= self.app.proxy(handle, c);
                    }
                }
            }
            for to_device in [false, true] {
                let (host, now) = match to_device {
                    true => (self.proxy.as_mut(), now),
                    false => (Some(&mut self.device).filter(|_| runs), mine),
                };
                let Some(host) = host else {
                    continue;
                };
                while let Some(out) = host.poll_transmit(now, &mut buf) {
                    again = true;
                    let t = &out.transmit;
                    let ports = &self.ports;
                    let device = match to_device {
                        true => Some((t.destination.ip(), t.destination.port())),
                        false => out.access.map(|i| (self.addresses[i], ports[i])),
                    };
                    let size = t.segment_size.unwrap_or(t.size).max(1);
                    let at = device.map(|(d, port)| (d, port, access_of(d)));
                    // A NAT lets nothing pass to a binding that it has forgotten.
                    let at = at.filter(|(_, port, i)| ports.get(*i) == Some(port));
                    for segment in buf[..t.size].chunks(size) {
                        Self::send(
                            (&mut self.network, &mut self.air, &mut self.trace),
                            (&self.links, &self.longest, &mut self.sent_bytes),
                            (self.now, to_device, at),
                            segment,
                        );
                    }
                }
            }
            if !again {
                return;
            }
        }
    }

    fn send(
        (network, air, trace): (&mut Network, &mut Air, &mut u64),
        (links, longest, counts): (&[[LinkId; 2]], &[u32], &mut [[u64; 2]]),
        (now, to_device, at): (Time, bool, Option<(IpAddr, u16, usize)>),
        data: &[u8],
    ) {
        let Some((device, port, access)) = at.filter(|(.., i)| *i < links.len()) else {
            return;
        };
        let direction = usize::from(!to_device);
        let bytes = data.len() as u32 + HEADERS;
        counts[access][direction] += u64::from(bytes);
        let parts = [
            now.as_nanos(),
            u64::from(bytes),
            access as u64,
            direction as u64,
        ];
        for part in parts {
            *trace = (*trace ^ part).wrapping_mul(0x0100_0000_01b3);
        }
        if bytes > longest[access] {
            return;
        }
        let id = air.put(Flying {
            to_device,
            access,
            device,
            port,
            data: data.to_vec(),
        });
        let link = links[access][direction];
        network.enqueue(link, now, Train::single(id, bytes), air);
        network.advance(now, air);
    }
}

/// The number of the access that an address of the device belongs to.
fn access_of(device: IpAddr) -> usize {
    match device {
        IpAddr::V4(v4) => usize::from(v4.octets()[2]).saturating_sub(1),
        IpAddr::V6(_) => usize::MAX,
    }
}
