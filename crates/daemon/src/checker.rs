//! Finds out, access by access, whether MPTCP passes: a connection from the
//! access's address to the proxy either speaks it or has fallen back to TCP
//! because something on the path removed the options (RFC 8684 3.7).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_mptcp::socket::{self, OnTheWire};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::DaemonError;
use super::dial::dial;

/// How long a check may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// First and longest wait before one that found nothing out is repeated.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(300);
/// How often a path that strips is looked at again: it may lead elsewhere by then.
const AGAIN: Duration = Duration::from_secs(60);
/// Checks that are answered at one time.
const AT_ONCE: usize = 64;

/// Verdict of a check: the address, and whether MPTCP is removed there.
pub(super) type Verdict = (IpAddr, bool);

/// One task per address.
pub(super) struct Checker {
    tasks: BTreeMap<IpAddr, Task>,
    tell: mpsc::Sender<Verdict>,
}

struct Task {
    interface: String,
    to: SocketAddr,
    running: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Checker {
    pub(super) fn new() -> (Self, mpsc::Receiver<Verdict>) {
        let (tell, told) = mpsc::channel(64);
        let tasks = BTreeMap::new();
        (Self { tasks, tell }, told)
    }

    /// Checks these addresses, each with its interface, and no others.
    pub(super) fn serve(&mut self, wanted: &BTreeMap<IpAddr, String>, to: &[IpAddr], port: u16) {
        self.tasks.retain(|a, t| {
            wanted.get(a) == Some(&t.interface) && t.to.port() == port && to.contains(&t.to.ip())
        });
        for (&address, interface) in wanted {
            let Some(&to) = to.iter().find(|t| t.is_ipv4() == address.is_ipv4()) else {
                continue;
            };
            if self.tasks.contains_key(&address) {
                continue;
            }
            let to = SocketAddr::new(to, port);
            let interface = interface.clone();
            let running = tokio::spawn(watch(address, interface.clone(), to, self.tell.clone()));
            let task = Task {
                interface,
                to,
                running,
            };
            self.tasks.insert(address, task);
        }
    }
}

async fn watch(address: IpAddr, interface: String, to: SocketAddr, tell: mpsc::Sender<Verdict>) {
    let mut wait = RETRY;
    loop {
        let checked = tokio::time::timeout(PATIENCE, check(address, &interface, to)).await;
        let pause = match checked {
            Ok(Ok(found)) => {
                let stripped = found == OnTheWire::Fallback;
                if tell.send((address, stripped)).await.is_err() || !stripped {
                    return;
                }
                AGAIN
            }
            // Nobody there, or no way: that says nothing about MPTCP.
            Ok(Err(_)) | Err(_) => {
                let now = wait;
                wait = (wait * 2).min(RETRY_MAX);
                now
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn check(address: IpAddr, interface: &str, to: SocketAddr) -> io::Result<OnTheWire> {
    let mut stream = dial(address, interface, to, true).await?;
    stream.write_all(b"?").await?;
    stream.read_exact(&mut [0]).await?;
    let found = socket::on_the_wire(&stream).map_err(io::Error::other);
    // Nothing is outstanding: no need to linger in TIME-WAIT.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    found
}

/// Listens for checks at the proxy.
pub(super) fn listen(at: SocketAddr) -> Result<TcpListener, DaemonError> {
    let listener = socket::listen(at, true, None)?;
    listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener))
        .map_err(|e| DaemonError::Failed(format!("listen for checks at {at}: {e}")))
}

/// Answers checks.
pub(super) async fn answer(listener: TcpListener) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        while open.len() >= AT_ONCE {
            open.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                open.spawn(tokio::time::timeout(PATIENCE, reply(stream)));
            }
            // Out of descriptors, or a peer that left early.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
        while open.try_join_next().is_some() {}
    }
}

async fn reply(mut stream: TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0]).await?;
    stream.write_all(b"!").await?;
    // Until the other end has closed.
    stream.read_exact(&mut [0]).await?;
    Ok(())
}
