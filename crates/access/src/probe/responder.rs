//! Answers the probes of devices, at the proxy.

use std::io;
use std::net::SocketAddr;

use braid_core::Time;
use tokio::net::UdpSocket;

use super::packet_size::{self, SizeProbe};
use super::query::Query;
use super::{Kind, Limiter, Probe};
use crate::clock::now;
use crate::socket::never_fragment;

/// Knowledge of subflows at this end.
pub trait Subflows: Send {
    /// Returns the response to a question about some; `None` where this end has none.
    fn response(&mut self, query: &Query) -> Option<Query>;
}

/// No knowledge of any subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSubflows;

impl Subflows for NoSubflows {
    fn response(&mut self, _: &Query) -> Option<Query> {
        None
    }
}

/// Opens a socket to answer probes at, inside a runtime.
///
/// # Errors
/// The address is not here, or the port is taken.
pub async fn listen(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at).await?;
    if let Err(e) = never_fragment(&socket, at.is_ipv4()) {
        tracing::warn!(
            "keep what is sent from {at} from being fragmented: {e}: devices find no \
             packet sizes"
        );
    }
    Ok(socket)
}

/// Answers what arrives, until dropped.
pub async fn answer(socket: UdpSocket, mut subflows: impl Subflows) {
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
        if let Some(response) = request.response(&mut subflows) {
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
    fn response(&self, subflows: &mut impl Subflows) -> Option<Vec<u8>> {
        match self {
            Self::Probe(p) => Some(p.response().emit().to_vec()),
            Self::Size(p) => Some(p.response().emit()),
            Self::Subflows(q) => subflows.response(q).map(|r| r.emit()),
        }
    }
}
