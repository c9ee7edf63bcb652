//! Inbound `socks`: a SOCKS 5 server (RFC 1928) for programs that speak it, without authentication.
//! Names are resolved by whoever connects: at the proxy, over Multipath QUIC.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fast_socks5::server::Socks5ServerProtocol;
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{refused, serve_each};
use crate::carrier::{Carrier, Connection};
use crate::relay::relay;
use crate::tcp::Tcp;
use crate::wire::{HostName, Refusal, Target};

/// How long a program may take to say where to.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a program waits for a connection, at most: as long as a kernel tries by itself.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// Address that is told as that of the connection: which one it has at the proxy is not known.
const BOUND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// SOCKS 5 server: command CONNECT.
#[derive(Debug)]
pub struct Socks(TcpListener);

impl Socks {
    /// Listens at `at`, in the namespace of the calling thread.
    ///
    /// # Errors
    /// The socket's.
    pub async fn listen(at: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(at).await.map(Self)
    }

    /// Returns where it listens.
    ///
    /// # Errors
    /// The socket's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves programs for as long as it is polled. Destinations that cannot be connected are told
    /// to `told`, and to the program.
    pub async fn serve(
        self,
        carrier: Arc<dyn Carrier>,
        told: impl Fn(String) + Clone + Send + 'static,
    ) {
        serve_each(self.0, |tcp| {
            let (carrier, told) = (Arc::clone(&carrier), told.clone());
            async move {
                // What is no SOCKS has been answered.
                if let Ok(Some(why)) = one(tcp, &carrier).await {
                    told(why);
                }
            }
        })
        .await;
    }
}

/// Serves one program; says why its destination could not be connected, if so.
async fn one(tcp: TcpStream, carrier: &Arc<dyn Carrier>) -> io::Result<Option<String>> {
    let near = Tcp::new(tcp)?;
    let gone = near.failed();
    let read = async {
        let opened = Socks5ServerProtocol::accept_no_auth(near).await?;
        opened.read_command().await
    };
    let Ok(Ok((program, command, to))) = timeout(PATIENCE, read).await else {
        return Ok(None);
    };
    let refuse = match (&command, target(to)) {
        (Socks5Command::TCPConnect, Some(to)) => Ok(to),
        (Socks5Command::TCPConnect, None) => Err(ReplyError::AddressTypeNotSupported),
        _ => Err(ReplyError::CommandNotSupported),
    };
    let to = match refuse {
        Ok(to) => to,
        Err(reply) => {
            let _ = program.reply_error(&reply).await;
            return Ok(None);
        }
    };
    // The program waits: what it sends comes after the reply.
    let connected = async {
        let mut far = carrier.connect(&to).await?;
        far.connected().await?;
        io::Result::Ok(far)
    };
    let connected = tokio::select! {
        connected = timeout(MAX_WAIT, connected) => connected.unwrap_or_else(|e| Err(e.into())),
        _ = gone => return Ok(None),
    };
    match connected {
        Ok(mut far) => {
            let replied = program.reply_success(BOUND).await;
            let mut near = replied.map_err(io::Error::other)?;
            let _ = relay(&mut near, &mut *far).await;
            Ok(None)
        }
        Err(e) => {
            let _ = program.reply_error(&reply(&e)).await;
            Ok(refused(&to, &e))
        }
    }
}

fn target(to: TargetAddr) -> Option<Target> {
    let target = match to {
        TargetAddr::Ip(to) => to.into(),
        TargetAddr::Domain(name, port) => match name.parse() {
            Ok(ip) => SocketAddr::new(ip, port).into(),
            Err(_) => Target::Name(HostName::new(&name)?, port),
        },
    };
    (target.port() != 0).then_some(target)
}

fn reply(e: &io::Error) -> ReplyError {
    match Refusal::within(e) {
        Some(Refusal::Forbidden) => ReplyError::ConnectionNotAllowed,
        Some(Refusal::Refused) => ReplyError::ConnectionRefused,
        Some(Refusal::Unreachable | Refusal::Unknown) => ReplyError::HostUnreachable,
        None => ReplyError::GeneralFailure,
    }
}
