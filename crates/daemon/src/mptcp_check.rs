//! Finds out, access by access, whether MPTCP passes: a connection from the
//! access's address to the proxy either speaks it or has fallen back to TCP
//! because something on the path removed the options (RFC 8684 3.7).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_access::dial::dial;
use braid_api::registration;
use braid_mptcp::socket::{self, OnTheWire};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::DaemonError;
use super::control::{Asked, FIRST, LEN};
use super::places::Places;
use super::registration::{Origin, Registering, take};

/// How long a check may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// First and longest wait before one that found nothing out is repeated.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(300);
/// How long a registration may take: weights that are set with it may load programs.
const SETTING: Duration = Duration::from_secs(10);
/// How often a path that strips is looked at again: it may lead elsewhere by then.
const AGAIN: Duration = Duration::from_secs(60);
/// Connections that are listened to at one time. A transfer begins with 33 at most.
const AT_ONCE: usize = 128;

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
    let socket = socket::stream(&to, true).map_err(io::Error::other)?;
    let mut stream = dial(socket, address, interface, to).await?;
    stream.write_all(b"?").await?;
    stream.read_exact(&mut [0]).await?;
    let found = socket::on_the_wire(&stream).map_err(io::Error::other);
    // Nothing is outstanding: no need to linger in TIME-WAIT.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    found
}

/// Listens for checks at the proxy; by plain TCP, for transfers alone.
pub(super) fn listen(at: SocketAddr, mptcp: bool) -> Result<TcpListener, DaemonError> {
    let listener = socket::listen(at, mptcp, None)?;
    listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener))
        .map_err(|e| DaemonError::Failed(format!("listen for checks at {at}: {e}")))
}

/// Places for connections that are no checks.
#[derive(Clone, Debug)]
pub(super) struct Hands {
    /// Place of those that ask for a transfer.
    pub(super) transfers: mpsc::Sender<Asked>,
    /// Place of registrations.
    pub(super) registrations: mpsc::Sender<Registering>,
}

/// Answers checks, and hands other connections over.
pub(super) async fn answer(listener: TcpListener, hands: Hands) {
    let mut open = Places::new(AT_ONCE);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let reply = reply(stream, from.ip(), hands.clone());
                open.take(from.ip(), async move {
                    let _ = reply.await;
                });
            }
            // Out of descriptors, or a peer that left early.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn reply(mut stream: TcpStream, from: IpAddr, hands: Hands) -> io::Result<()> {
    let mut first = [0];
    within(PATIENCE, stream.read_exact(&mut first)).await?;
    match first[0] {
        FIRST => within(PATIENCE, hand_over(stream, from, &hands.transfers)).await,
        registration::FIRST => {
            let from = Origin::Address(from.to_canonical());
            within(SETTING, take(&mut stream, from, &hands.registrations)).await
        }
        _ => within(PATIENCE, passes(stream)).await,
    }
}

async fn within<T>(patience: Duration, done: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(patience, done).await?
}

/// Hands over a connection that asks for a transfer, and whose first byte was read.
async fn hand_over(
    mut stream: TcpStream,
    from: IpAddr,
    to: &mpsc::Sender<Asked>,
) -> io::Result<()> {
    let mut message = [0; LEN];
    message[0] = FIRST;
    stream.read_exact(&mut message[1..]).await?;
    let asked = Asked {
        stream,
        from,
        message,
    };
    // One that finds the queue full is like one that was lost.
    let _ = to.try_send(asked);
    Ok(())
}

/// Answers a check.
async fn passes(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(b"!").await?;
    // Until the other end has closed.
    stream.read_exact(&mut [0]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_that_say_nothing_keep_nobody_out() {
        let (transfers, mut asked) = mpsc::channel(1);
        let hands = Hands {
            transfers,
            registrations: mpsc::channel(1).0,
        };
        let listener = listen(([127, 0, 0, 1], 0).into(), false).unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(answer(listener, hands));
        let mut silent = Vec::new();
        for _ in 0..2 * AT_ONCE {
            silent.push(TcpStream::connect(at).await.unwrap());
        }
        let check = async {
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(b"?").await.unwrap();
            let mut answer = [0];
            stream.read_exact(&mut answer).await.unwrap();
            answer
        };
        let soon = PATIENCE / 3;
        assert_eq!(tokio::time::timeout(soon, check).await, Ok(*b"!"));
        // A message is handed over once it is complete.
        let mut stream = TcpStream::connect(at).await.unwrap();
        let message = [FIRST; LEN];
        stream.write_all(&message[..LEN - 1]).await.unwrap();
        let early = tokio::time::timeout(PATIENCE / 10, asked.recv()).await;
        assert!(early.is_err());
        stream.write_all(&message[LEN - 1..]).await.unwrap();
        let handed = tokio::time::timeout(soon, asked.recv()).await;
        let handed = handed.unwrap().unwrap();
        assert_eq!((handed.message, handed.from), (message, at.ip()));
    }
}
