//! Answers the probes and checks of devices, at the proxy.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use braid_api::{Engine, Role};
use braid_core::Time;
use braid_mptcp::diag::{Diag, TcpSocket};
use braid_mptcp::manage::packet_size::{self, SizeProbe};
use braid_mptcp::manage::probe::{Kind, Limiter, Probe};
use braid_mptcp::manage::query::Query;
use braid_mptcp::manage::stalls;
use braid_mptcp::socket::never_fragment;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::config::Config;
use super::state::{now, ticked};
use super::{DaemonError, checker};

/// Age of a list of the sockets by which questions are answered.
const LISTED: Duration = Duration::from_millis(100);

/// Answers at each of these addresses until dropped.
#[derive(Default)]
pub(super) struct Answerer(BTreeMap<SocketAddr, JoinSet<()>>);

impl Answerer {
    /// Answers at the proxy's addresses and nowhere else; at the device, nowhere. Where one
    /// of them cannot be had, it answers where it did before.
    pub(super) async fn serve(&mut self, role: Role, config: &Config) -> Result<(), DaemonError> {
        let at = |a| SocketAddr::new(a, config.probe.port);
        let wanted: Vec<_> = match role == Role::Proxy && config.probe.enabled {
            true => config.proxy.iter().copied().map(at).collect(),
            false => vec![],
        };
        let mut new = BTreeMap::new();
        for at in wanted.iter().filter(|at| !self.0.contains_key(at)) {
            new.insert(*at, start(*at, config.engine).await?);
        }
        self.0.retain(|at, _| wanted.contains(at));
        self.0.append(&mut new);
        Ok(())
    }
}

async fn start(at: SocketAddr, engine: Engine) -> Result<JoinSet<()>, DaemonError> {
    let mut tasks = JoinSet::new();
    let socket = UdpSocket::bind(at).await.map_err(|e| {
        DaemonError::Failed(format!(
            "answer probes at {at}: {e}: give this proxy's own address as `proxy`, \
             and a free port as `port` of [probe]"
        ))
    })?;
    if let Err(e) = never_fragment(&socket, at.is_ipv4()) {
        eprintln!(
            "braid: keep what is sent from {at} from being fragmented: {e}: devices find no \
             packet sizes"
        );
    }
    let subflows = match engine {
        Engine::Mptcp => Some(Subflows::open()?),
        Engine::Tcp | Engine::Mpquic => None,
    };
    tasks.spawn(answer(socket, subflows));
    if engine == Engine::Mptcp {
        tasks.spawn(checker::answer(checker::listen(at)?));
    }
    Ok(tasks)
}

async fn answer(socket: UdpSocket, mut subflows: Option<Subflows>) {
    let mut limiter = Limiter::default();
    let mut buffer = vec![0; packet_size::LEN_MAX + 1];
    loop {
        // A peer that has gone meanwhile (ICMP) is no reason to stop.
        let Ok((n, from)) = socket.recv_from(&mut buffer).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let Some(request) = Request::parse(&buffer[..n]) else {
            continue;
        };
        if !limiter.allows(from, Time::from_nanos(now())) {
            continue;
        }
        if let Some(response) = request.response(subflows.as_mut()) {
            let _ = socket.try_send_to(&response, from);
        }
    }
}

/// A request of a device.
enum Request {
    Probe(Probe),
    Size(SizeProbe),
    Subflows(Query),
}

impl Request {
    fn parse(datagram: &[u8]) -> Option<Self> {
        let probe = || Probe::parse(datagram).filter(|p| p.kind == Kind::Request);
        let size = || SizeProbe::parse(datagram).filter(|p| p.kind == Kind::Request);
        let query = || Query::parse(datagram).filter(|q| q.kind == Kind::Request);
        let other = || {
            size()
                .map(Self::Size)
                .or_else(|| query().map(Self::Subflows))
        };
        probe().map(Self::Probe).or_else(other)
    }

    /// Returns the response; `None` where this end has none.
    fn response(&self, subflows: Option<&mut Subflows>) -> Option<Vec<u8>> {
        match self {
            Self::Probe(p) => Some(p.response().emit().to_vec()),
            Self::Size(p) => Some(p.response().emit()),
            Self::Subflows(q) => {
                let (sockets, ago) = subflows?.now()?;
                let response = q.response(|s| stalls::verdict(sockets, s, ago));
                Some(response.emit())
            }
        }
    }
}

/// The sockets of this end, listed when they are asked about.
struct Subflows {
    diag: Diag,
    /// The kernel's tick before the list was made.
    listed: Option<Time>,
    sockets: Vec<TcpSocket>,
}

impl Subflows {
    fn open() -> Result<Self, DaemonError> {
        Ok(Self {
            diag: Diag::open()?,
            listed: None,
            sockets: vec![],
        })
    }

    /// Returns the sockets, and how long ago their times were counted.
    fn now(&mut self) -> Option<(&[TcpSocket], Duration)> {
        let t = Time::from_nanos(now());
        if self.listed.is_none_or(|at| t.since(at) > LISTED) {
            let at = ticked();
            self.sockets = self.diag.tcp().ok()?;
            self.listed = Some(at);
        }
        Some((&self.sockets, t.since(self.listed?)))
    }
}
