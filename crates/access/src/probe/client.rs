//! Sends probes from the addresses of accesses, and hears the answers.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use braid_core::Time;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::packet_size::{self, Ask, SizeProbe};
use super::query::{Query, Subject, Verdict};
use super::{Kind, Probe};
use crate::clock::now;
use crate::socket::never_fragment;

/// Response to a probe: the address that was probed, what came back, and when.
pub type Answer = (IpAddr, Back, Time);

/// Response that may come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Back {
    /// The answer to the probe of this number.
    Answer(u32),
    /// A host accepted or refused the TCP connection of this number. With the round trip, if
    /// that is known.
    Tcp(u32, Option<Duration>),
    /// The answer to the size probe of this number, and its length.
    Size(u32, usize),
    /// The answer to the question of this number about subflows.
    Subflows(u32, Vec<(Subject, Verdict)>),
    /// Nobody listens there (ICMP port unreachable).
    Refused,
}

/// Where answers arrive.
pub type Answers = mpsc::Receiver<Answer>;

/// One socket per address.
pub struct Prober {
    session: u64,
    sockets: BTreeMap<IpAddr, Path>,
    tell: mpsc::Sender<Answer>,
}

struct Path {
    interface: String,
    to: SocketAddr,
    socket: Arc<UdpSocket>,
    listener: JoinHandle<()>,
}

impl Path {
    /// Sends a datagram. What came back earlier, as ICMP, is told once, to whoever sends or
    /// receives first: then it is sent again.
    fn send(&self, datagram: &[u8], address: IpAddr, tell: &mpsc::Sender<Answer>) {
        if let Err(e) = self.socket.try_send(datagram) {
            tell_refusal(tell, address, &e);
            let _ = self.socket.try_send(datagram);
        }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Prober {
    /// Makes one without any socket; answers arrive at the receiver.
    pub fn new() -> (Self, Answers) {
        let (tell, told) = mpsc::channel(256);
        let mut bytes = [0; 8];
        // Only what distinguishes our probes from another daemon's; without the
        // file, the process and the time do.
        let read = std::fs::File::open("/dev/urandom")
            .and_then(|mut f| io::Read::read_exact(&mut f, &mut bytes));
        let session = match read {
            Ok(()) => u64::from_ne_bytes(bytes),
            Err(_) => now() ^ (u64::from(std::process::id()) << 32),
        };
        let prober = Self {
            session,
            sockets: BTreeMap::new(),
            tell,
        };
        (prober, told)
    }

    /// Where answers of other kinds go.
    pub fn tells(&self) -> mpsc::Sender<Answer> {
        self.tell.clone()
    }

    /// Opens sockets for these addresses, each with its interface, and drops all others.
    pub fn serve(&mut self, wanted: &BTreeMap<IpAddr, String>, to: &[IpAddr], port: u16) {
        self.sockets.retain(|a, p| {
            wanted.get(a) == Some(&p.interface) && p.to.port() == port && to.contains(&p.to.ip())
        });
        for (&address, interface) in wanted {
            let Some(&to) = to.iter().find(|t| t.is_ipv4() == address.is_ipv4()) else {
                continue;
            };
            if self.sockets.contains_key(&address) {
                continue;
            }
            // An address that goes just now will be heard of.
            let to = SocketAddr::new(to, port);
            let Ok(socket) = open(address, interface, to) else {
                continue;
            };
            let socket = Arc::new(socket);
            let listener = tokio::spawn(listen(
                Arc::clone(&socket),
                address,
                self.session,
                self.tell.clone(),
            ));
            let interface = interface.clone();
            self.sockets.insert(
                address,
                Path {
                    interface,
                    to,
                    socket,
                    listener,
                },
            );
        }
    }

    /// Sends one, if there is a socket for the address; returns whether there is. A probe that
    /// cannot be sent is like one that was lost.
    pub fn send(&self, address: IpAddr, number: u32) -> bool {
        let Some(path) = self.sockets.get(&address) else {
            return false;
        };
        let probe = Probe {
            kind: Kind::Request,
            session: self.session,
            number,
            sent_ns: now(),
        };
        path.send(&probe.emit(), address, &self.tell);
        true
    }

    /// Sends a size probe.
    pub fn ask_size(&self, ask: &Ask) {
        let probe = SizeProbe {
            kind: Kind::Request,
            session: self.session,
            number: ask.number,
            length: ask.length,
        };
        if let Some(path) = self.sockets.get(&ask.address) {
            path.send(&probe.emit(), ask.address, &self.tell);
        }
    }

    /// Sends a question about subflows.
    pub fn ask_subflows(&self, address: IpAddr, number: u32, subjects: Vec<Subject>) {
        let subjects = subjects.into_iter();
        let query = Query {
            kind: Kind::Request,
            session: self.session,
            number,
            subjects: subjects.map(|s| (s, Verdict::Unknown)).collect(),
        };
        if let Some(path) = self.sockets.get(&address) {
            path.send(&query.emit(), address, &self.tell);
        }
    }
}

fn open(address: IpAddr, interface: &str, to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(to),
        Type::DGRAM.nonblocking(),
        Some(Protocol::UDP),
    )?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddr::new(address, 0).into())?;
    socket.connect(&to.into())?;
    never_fragment(&socket, to.is_ipv4())?;
    UdpSocket::from_std(socket.into())
}

async fn listen(socket: Arc<UdpSocket>, address: IpAddr, session: u64, tell: mpsc::Sender<Answer>) {
    let mut buffer = vec![0; packet_size::LEN_MAX + 1];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(n) => {
                if let Some(back) = read(&buffer[..n], session) {
                    // One that finds the queue full is like one that was lost.
                    let _ = tell.try_send((address, back, Time::from_nanos(now())));
                }
            }
            // No answer. Give others their turn.
            Err(e) => {
                tell_refusal(&tell, address, &e);
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Reads an answer; `None` for whatever is none of this session's.
fn read(datagram: &[u8], session: u64) -> Option<Back> {
    let ours = |kind, of| (kind, of) == (Kind::Response, session);
    if let Some(p) = Probe::parse(datagram) {
        return ours(p.kind, p.session).then_some(Back::Answer(p.number));
    }
    if let Some(q) = Query::parse(datagram) {
        return ours(q.kind, q.session).then_some(Back::Subflows(q.number, q.subjects));
    }
    let p = SizeProbe::parse(datagram)?;
    ours(p.kind, p.session).then_some(Back::Size(p.number, p.length))
}

/// Other errors are those of routers on the way, and of this machine.
fn tell_refusal(tell: &mpsc::Sender<Answer>, address: IpAddr, e: &io::Error) {
    if e.kind() == io::ErrorKind::ConnectionRefused {
        let _ = tell.try_send((address, Back::Refused, Time::from_nanos(now())));
    }
}
