//! The proxy's part: connections to where devices request them.

mod allowed;

use std::sync::Arc;
use std::time::Duration;

use braid_core::class::DEFAULT_NUMBER;
use braid_mpquic::{Session, Stream};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::dial;
use crate::reach::Reach;
use crate::relay::relay;
use crate::tcp::Tcp;
use crate::tunnel::gateway::Gateway;
use crate::wire::{self, Refusal, Request, Target};
pub use allowed::Allowed;
pub(crate) use allowed::special;

/// How long a device may take to say where to, and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stream whose first byte tells that it asks for no connection, with that byte.
pub struct Other {
    /// First byte, which was read.
    pub first: u8,
    /// Rest of the stream.
    pub stream: Stream,
}

/// Services of a proxy for devices.
#[derive(Clone, Default)]
pub struct Egress {
    /// Where it connects to, and where packets go.
    pub allowed: Arc<Allowed>,
    /// End of the tunnels; absent: it carries no packets.
    pub gateway: Option<Arc<Gateway>>,
}

/// Serves the streams of a session until it ends; connections end with it. Streams that ask for
/// something else go to `others`; one that finds it full is reset.
pub async fn serve(session: Session, egress: Egress, others: mpsc::Sender<Other>) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            stream = session.accept() => {
                let Ok(stream) = stream else { return };
                let (session, egress) = (session.clone(), egress.clone());
                running.spawn(one(session, stream, egress, others.clone()));
            }
            Some(_) = running.join_next() => {}
        }
    }
}

async fn one(session: Session, mut stream: Stream, egress: Egress, others: mpsc::Sender<Other>) {
    let to = match timeout(PATIENCE, wire::read_request(&mut stream)).await {
        Ok(Ok(Request::Connection(to, class))) => {
            if class != DEFAULT_NUMBER {
                stream.set_class(class);
            }
            to
        }
        Ok(Ok(Request::Reach)) => {
            let answer = Reach::of(&egress.allowed).answer(&mut stream);
            drop(timeout(PATIENCE, answer).await);
            return;
        }
        Ok(Ok(Request::Tunnel)) => {
            match &egress.gateway {
                Some(gateway) => gateway.serve(&session, stream).await,
                None => {
                    let _ = wire::reply(&mut stream, Err(Refusal::Forbidden)).await;
                    drop(timeout(PATIENCE, stream.shutdown()).await);
                }
            }
            return;
        }
        Ok(Ok(Request::Other(first))) => {
            let _ = others.try_send(Other { first, stream });
            return;
        }
        _ => return,
    };
    let connected = match timeout(PATIENCE, connect(&to, &egress.allowed)).await {
        Ok(connected) => connected,
        Err(_) => Err(Refusal::Unreachable),
    };
    let outcome = connected.as_ref().map(drop).map_err(|e| *e);
    if wire::reply(&mut stream, outcome).await.is_err() {
        return;
    }
    match connected {
        // How a connection ends is told to its own two ends.
        Ok(mut tcp) => drop(relay(&mut tcp, &mut stream).await),
        // Dropped at once, the stream would be reset, and the reason might not arrive.
        Err(_) => drop(timeout(PATIENCE, stream.shutdown()).await),
    }
}

async fn connect(to: &Target, allowed: &Allowed) -> Result<Tcp, Refusal> {
    let addresses = allowed.only(dial::resolve(to).await?)?;
    let tcp = dial::connect(&addresses).await;
    tcp.and_then(Tcp::new).map_err(|e| Refusal::of(&e))
}
