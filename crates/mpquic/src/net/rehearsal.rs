//! Sessions and programs in simulated time, without sockets: the tasks that drive the two
//! ends and those of programs run when they were woken, and only then. A watchdog fails a
//! test in which they wake one another and nothing comes of it.

mod ends;
mod rest;
mod shares;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use noq_proto::{ClientConfig, EndpointConfig, FourTuple, ServerConfig};

use super::core::{End, Shared};
use super::session::Session;
use crate::sim::null::Null;
use crate::{Access, Dial, Host, Lane, Options, Target};

/// IPv4 and UDP.
const HEADERS: usize = 28;
/// More rounds than this, in which something was woken while time stands, and nothing is
/// sent, received, read or written, are a circle.
const MAX_IDLE_ROUNDS: u32 = 50;

fn proxy() -> SocketAddr {
    ([10, 77, 0, 1], 4433).into()
}

fn device(access: usize) -> SocketAddr {
    ([10, 77, access as u8 + 1, 2], 50_000).into()
}

/// Set by whoever wakes a task.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Flag {
    fn set() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// One direction of an access.
#[derive(Clone, Copy)]
struct Link {
    /// Bytes per second; 0: nothing passes.
    rate: f64,
    delay: Duration,
    /// How long a packet may wait.
    queue: Duration,
    free: Option<Instant>,
}

impl Link {
    fn new(mbps: f64, delay_ms: u64, queue_ms: u64) -> Self {
        Self {
            rate: mbps * 125_000.0,
            delay: Duration::from_millis(delay_ms),
            queue: Duration::from_millis(queue_ms),
            free: None,
        }
    }

    /// When a packet that is sent now arrives; none if it is lost.
    fn carry(&mut self, bytes: usize, now: Instant) -> Option<Instant> {
        let begin = self.free.map_or(now, |t| t.max(now));
        if self.rate == 0.0 || begin - now > self.queue {
            return None;
        }
        let done = begin + Duration::from_secs_f64(bytes as f64 / self.rate);
        self.free = Some(done);
        Some(done + self.delay)
    }
}

struct Flying {
    at: Instant,
    to: usize,
    access: usize,
    data: Vec<u8>,
}

/// Bytes that programs have moved.
#[derive(Clone, Default)]
struct Moved(Arc<AtomicU64>);

impl Moved {
    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

type Program = Pin<Box<dyn Future<Output = ()>>>;

/// A device (0) and a proxy (1), and programs.
struct Rehearsal {
    now: Instant,
    ends: [Shared; 2],
    drivers: [Arc<Flag>; 2],
    /// By access: from the device, and from the proxy.
    links: Vec<[Link; 2]>,
    flying: VecDeque<Flying>,
    programs: Vec<(Program, Arc<Flag>)>,
    moved: Moved,
    /// Datagrams that were sent or have arrived.
    datagrams: u64,
    /// Bytes that the device and the proxy have sent.
    sent: [u64; 2],
    /// Times that any task was run.
    runs: u64,
}

fn endpoint(seed: u8) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(Null::default()));
    config.rng_seed(Some([seed; 32]));
    config
}

impl Rehearsal {
    /// A session over accesses, each with its uplink and its downlink.
    fn new(lane: Lane, links: &[[Link; 2]]) -> (Self, Session, Session) {
        let now = Instant::now();
        let mut options = Options {
            lane,
            ..Options::default()
        };
        options.steering.reinject = lane == Lane::Datagram;
        let access = |i| Access::new(&format!("a{i}"), device(i).ip());
        let accesses: Vec<Access> = (0..links.len()).map(access).collect();
        let mut host = Host::new(endpoint(1));
        let server = ServerConfig::new(Arc::new(Null::default()), Arc::new(Null::default()));
        host.listen(server, &options, accesses.clone()).unwrap();
        let proxy_end = Shared::new(host, End::Proxy, Vec::new());
        let mut host = Host::new(endpoint(2));
        let target = Target {
            remote: proxy(),
            name: "proxy".to_owned(),
            config: ClientConfig::new(Arc::new(Null::default())),
            options,
            keep: false,
        };
        let dial = Box::new(Dial::begin(&mut host, target, accesses, now).unwrap());
        let device_end = Shared::new(host, End::Device { dial: Some(dial) }, Vec::new());
        let mut it = Self {
            now,
            ends: [device_end, proxy_end],
            drivers: [Flag::set(), Flag::set()],
            links: links.to_vec(),
            flying: VecDeque::new(),
            programs: Vec::new(),
            moved: Moved::default(),
            datagrams: 0,
            sent: [0, 0],
            runs: 0,
        };
        for (end, driver) in it.ends.iter().zip(&it.drivers) {
            end.lock().driver = Some(Waker::from(Arc::clone(driver)));
        }
        it.run(1000);
        let made = [0, 1].map(|i| it.session(i));
        let [Some(device), Some(proxy)] = made else {
            panic!("there is no session after a second");
        };
        (it, device, proxy)
    }

    fn session(&self, end: usize) -> Option<Session> {
        let shared = &self.ends[end];
        let id = shared.lock().taken_in.pop_front()?;
        Some(Session::new(shared.clone(), id))
    }

    fn program(&mut self, f: impl Future<Output = ()> + 'static) {
        self.programs.push((Box::pin(f), Flag::set()));
    }

    fn progress(&self) -> u64 {
        self.datagrams + self.moved.0.load(Ordering::Relaxed)
    }

    /// So many ms pass.
    fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        let mut idle = 0;
        loop {
            let before = (self.progress(), self.programs.len());
            if self.round() {
                let done = before != (self.progress(), self.programs.len());
                idle = if done { 0 } else { idle + 1 };
                assert!(idle < MAX_IDLE_ROUNDS, "tasks wake one another for nothing");
                continue;
            }
            idle = 0;
            let due = self.ends.iter().filter_map(|e| e.lock().due());
            let next = due.chain(self.flying.iter().map(|f| f.at)).min();
            let next = next.filter(|t| *t < end).unwrap_or(end);
            if self.now >= end {
                return;
            }
            self.now = next.max(self.now);
            self.arrive();
        }
    }

    /// Runs each task that was woken, once; whether there was one.
    fn round(&mut self) -> bool {
        let mut any = false;
        for end in 0..2 {
            let due = self.ends[end].lock().due().is_some_and(|t| t <= self.now);
            if self.drivers[end].take() || due {
                any = true;
                self.drive(end);
            }
        }
        let mut programs = std::mem::take(&mut self.programs);
        programs.retain_mut(|(program, flag)| {
            if !flag.take() {
                return true;
            }
            any = true;
            self.runs += 1;
            let waker = Waker::from(Arc::clone(flag));
            let mut cx = Context::from_waker(&waker);
            program.as_mut().poll(&mut cx) == Poll::Pending
        });
        self.programs.append(&mut programs);
        any
    }

    /// As the task that drives an end ([`super::driver`]).
    fn drive(&mut self, end: usize) {
        self.runs += 1;
        let shared = self.ends[end].clone();
        let mut core = shared.lock();
        core.tick(self.now);
        core.tell(self.now);
        let mut buf = Vec::new();
        while let Some(out) = core.host.poll_transmit(self.now, &mut buf) {
            let t = &out.transmit;
            let of = |a: &usize| device(*a).ip() == t.destination.ip();
            let access = out.access.or_else(|| (0..self.links.len()).find(of));
            let Some(access) = access else { continue };
            let size = t.segment_size.unwrap_or(t.size).max(1);
            for data in buf[..t.size].chunks(size) {
                self.datagrams += 1;
                self.sent[end] += (data.len() + HEADERS) as u64;
                let link = &mut self.links[access][end];
                if let Some(at) = link.carry(data.len() + HEADERS, self.now) {
                    self.flying.push_back(Flying {
                        at,
                        to: 1 - end,
                        access,
                        data: data.to_vec(),
                    });
                }
            }
        }
        core.tell(self.now);
    }

    fn arrive(&mut self) {
        let (here, later) = std::mem::take(&mut self.flying)
            .into_iter()
            .partition(|f| f.at <= self.now);
        self.flying = later;
        let mut here: VecDeque<Flying> = here;
        here.make_contiguous().sort_by_key(|f| f.at);
        for f in here {
            self.datagrams += 1;
            let mut core = self.ends[f.to].lock();
            let data = BytesMut::from(&f.data[..]);
            match f.to {
                0 => core.host.arrive(self.now, f.access, proxy(), None, data),
                _ => {
                    let network = FourTuple::new(device(f.access), Some(proxy().ip()));
                    core.host.receive(self.now, network, None, data);
                }
            }
            core.wake_driver();
        }
    }
}
