//! Asks hosts by TCP whether a path leads to them: a SYN, and the connection closed at once.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use braid_core::Time;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::client::{Answer, Back};
use crate::clock::now;
use crate::dial::dial;

/// An answer that takes longer comes too late.
const PATIENCE: Duration = Duration::from_secs(3);
/// When the kernel asks again (RFC 6298, 2.1).
const SYN_AGAIN: Duration = Duration::from_secs(1);
/// Questions at one time; there are a few, unless something is wrong.
const AT_ONCE: usize = 64;

/// Its questions end with it.
pub struct TcpProber {
    tell: mpsc::Sender<Answer>,
    rtt: Rtt,
    open: JoinSet<()>,
}

/// Returns the round trip of a connection as its socket has measured it, if it has.
pub type Rtt = fn(&TcpStream) -> Option<Duration>;

impl TcpProber {
    /// Tells the answers there; `rtt` asks the sockets.
    pub fn new(tell: mpsc::Sender<Answer>, rtt: Rtt) -> Self {
        Self {
            tell,
            rtt,
            open: JoinSet::new(),
        }
    }

    /// Asks `to` from `address` on `interface`. What cannot be asked is like what was lost.
    pub fn send(&mut self, address: IpAddr, interface: &str, to: SocketAddr, number: u32) {
        while self.open.try_join_next().is_some() {}
        if self.open.len() >= AT_ONCE {
            return;
        }
        let (interface, tell, rtt) = (interface.to_owned(), self.tell.clone(), self.rtt);
        self.open.spawn(async move {
            let asked = tokio::time::timeout(PATIENCE, ask(address, &interface, to, rtt)).await;
            if let Ok(Ok(rtt)) = asked {
                let answer = (address, Back::Tcp(number, rtt), Time::from_nanos(now()));
                // One that finds the queue full is like one that was lost.
                let _ = tell.try_send(answer);
            }
        });
    }
}

/// Succeeds where the host accepts or refuses; with the round trip, if that is known.
async fn ask(
    address: IpAddr,
    interface: &str,
    to: SocketAddr,
    rtt: Rtt,
) -> io::Result<Option<Duration>> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    let begun = Instant::now();
    match dial(socket, address, interface, to).await {
        Ok(stream) => {
            // Nothing was sent: a reset leaves nothing waiting at either end.
            SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            Ok(rtt(&stream))
        }
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            let took = begun.elapsed();
            Ok((took < SYN_AGAIN).then_some(took))
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_accepts_or_refuses_has_answered() {
        let (tell, mut told) = mpsc::channel(8);
        let mut tcp_prober = TcpProber::new(tell, |_| Some(Duration::from_micros(7)));
        let local = IpAddr::from([127, 0, 0, 1]);
        let listener = std::net::TcpListener::bind((local, 0)).unwrap();
        let accepts = listener.local_addr().unwrap();
        tcp_prober.send(local, "lo", accepts, 7);
        let known = |back: &Back, n| matches!(back, Back::Tcp(number, Some(rtt)) if *number == n && *rtt < SYN_AGAIN);
        assert!(matches!(told.recv().await, Some((a, back, _)) if a == local && known(&back, 7)));
        drop(listener);
        tcp_prober.send(local, "lo", accepts, 8);
        assert!(matches!(told.recv().await, Some((a, back, _)) if a == local && known(&back, 8)));
        // No such interface: nothing was asked, and nothing is told.
        tcp_prober.send(local, "none-such", accepts, 9);
        while tcp_prober.open.join_next().await.is_some() {}
        assert!(told.try_recv().is_err());
    }
}
