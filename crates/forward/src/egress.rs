//! The proxy's part.

use std::net::SocketAddr;
use std::time::Duration;

use braid_mpquic::{Session, Stream};
use ipnet::IpNet;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::tcp::Tcp;
use crate::wire::{self, Asked, Refusal};

/// How long a device may take to say where to, and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the proxy connects to: to addresses in one of these, on any port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed(pub Vec<IpNet>);

impl Allowed {
    fn includes(&self, to: SocketAddr) -> bool {
        self.0.iter().any(|net| net.contains(&to.ip()))
    }
}

/// Stream whose first byte tells that it asks for no connection, with that byte.
pub struct Other {
    /// First byte, which was read.
    pub first: u8,
    /// Rest of the stream.
    pub stream: Stream,
}

/// Serves the streams of a session until it ends; connections end with it. Streams that ask for
/// something else go to `others`; one that finds it full is reset.
pub async fn serve(session: Session, allowed: Allowed, others: mpsc::Sender<Other>) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            stream = session.accept() => {
                let Ok(stream) = stream else { return };
                running.spawn(one(stream, allowed.clone(), others.clone()));
            }
            Some(_) = running.join_next() => {}
        }
    }
}

async fn one(mut stream: Stream, allowed: Allowed, others: mpsc::Sender<Other>) {
    let to = match timeout(PATIENCE, wire::asked(&mut stream)).await {
        Ok(Ok(Asked::Connection(to))) => to,
        Ok(Ok(Asked::Other(first))) => {
            let _ = others.try_send(Other { first, stream });
            return;
        }
        _ => return,
    };
    let connected = match allowed.includes(to) {
        true => match timeout(PATIENCE, TcpStream::connect(to)).await {
            Ok(tcp) => tcp.and_then(Tcp::new).map_err(|e| Refusal::of(&e)),
            Err(_) => Err(Refusal::Unreachable),
        },
        false => Err(Refusal::Forbidden),
    };
    let outcome = connected.as_ref().map(drop).map_err(|e| *e);
    if wire::answer(&mut stream, outcome).await.is_err() {
        return;
    }
    match connected {
        // How a connection ends is told to its own two ends.
        Ok(tcp) => drop(crate::join(tcp, stream).await),
        // Dropped at once, the stream would be reset, and the reason might not arrive.
        Err(_) => drop(timeout(PATIENCE, stream.shutdown()).await),
    }
}
