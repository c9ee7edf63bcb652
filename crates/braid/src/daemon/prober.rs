//! Sends probes from the addresses of accesses, and hears the answers.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use braid_core::Time;
use braid_mptcp::manage::probe::{self, Kind, Probe};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::state::now;

/// What came back: to the address that was probed, when.
pub(super) type Answer = (IpAddr, Back, Time);

/// What may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    /// The answer to the probe of this number.
    Answer(u32),
    /// A host accepted or refused the TCP connection of this number. With the round trip, if
    /// that is known.
    Tcp(u32, Option<Duration>),
    /// Nobody listens there (ICMP port unreachable).
    Refused,
}

/// Where answers arrive.
pub(super) type Answers = mpsc::Receiver<Answer>;

/// One socket per address.
pub(super) struct Prober {
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

impl Drop for Path {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Prober {
    pub(super) fn new() -> (Self, Answers) {
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
    pub(super) fn tells(&self) -> mpsc::Sender<Answer> {
        self.tell.clone()
    }

    /// Has sockets for these addresses, each with its interface, and no others.
    pub(super) fn serve(&mut self, wanted: &BTreeMap<IpAddr, String>, to: &[IpAddr], port: u16) {
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

    /// Sends one. A probe that cannot be sent is like one that was lost.
    pub(super) fn send(&self, address: IpAddr, number: u32) {
        if let Some(path) = self.sockets.get(&address) {
            let probe = Probe {
                kind: Kind::Request,
                session: self.session,
                number,
                sent_ns: now(),
            };
            if let Err(e) = path.socket.try_send(&probe.emit()) {
                // What came back earlier is told once, to whoever asks first.
                tell_refusal(&self.tell, address, &e);
            }
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
    UdpSocket::from_std(socket.into())
}

async fn listen(socket: Arc<UdpSocket>, address: IpAddr, session: u64, tell: mpsc::Sender<Answer>) {
    let mut buffer = [0; probe::LEN + 1];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(n) => {
                let answer = Probe::parse(&buffer[..n])
                    .filter(|p| (p.kind, p.session) == (Kind::Response, session));
                if let Some(answer) = answer {
                    // One that finds the queue full is like one that was lost.
                    let back = Back::Answer(answer.number);
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

/// Other errors are those of routers on the way, and of this machine.
fn tell_refusal(tell: &mpsc::Sender<Answer>, address: IpAddr, e: &io::Error) {
    if e.kind() == io::ErrorKind::ConnectionRefused {
        let _ = tell.try_send((address, Back::Refused, Time::from_nanos(now())));
    }
}
