//! Asks hosts by TCP whether a path leads to them: a SYN, and the connection closed at once.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use braid_core::Time;
use braid_mptcp::socket;
use socket2::SockRef;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::dial::dial;
use super::prober::{Answer, Back};
use super::state::now;

/// An answer that takes longer comes too late.
const PATIENCE: Duration = Duration::from_secs(3);
/// When the kernel asks again (RFC 6298, 2.1).
const SYN_AGAIN: Duration = Duration::from_secs(1);
/// Questions at one time; there are a few, unless something is wrong.
const AT_ONCE: usize = 64;

/// Its questions end with it.
pub(super) struct Knocker {
    tell: mpsc::Sender<Answer>,
    open: JoinSet<()>,
}

impl Knocker {
    pub(super) fn new(tell: mpsc::Sender<Answer>) -> Self {
        Self {
            tell,
            open: JoinSet::new(),
        }
    }

    /// Asks `to` from `address` on `interface`. What cannot be asked is like what was lost.
    pub(super) fn send(&mut self, address: IpAddr, interface: &str, to: SocketAddr, number: u32) {
        while self.open.try_join_next().is_some() {}
        if self.open.len() >= AT_ONCE {
            return;
        }
        let (interface, tell) = (interface.to_owned(), self.tell.clone());
        self.open.spawn(async move {
            let asked = tokio::time::timeout(PATIENCE, ask(address, &interface, to)).await;
            if let Ok(Ok(rtt)) = asked {
                let answer = (address, Back::Tcp(number, rtt), Time::from_nanos(now()));
                // One that finds the queue full is like one that was lost.
                let _ = tell.try_send(answer);
            }
        });
    }
}

/// Succeeds where the host accepts or refuses; with the round trip, if that is known.
async fn ask(address: IpAddr, interface: &str, to: SocketAddr) -> io::Result<Option<Duration>> {
    let begun = Instant::now();
    match dial(address, interface, to, false).await {
        Ok(stream) => {
            // Nothing was sent: a reset leaves nothing waiting at either end.
            SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            let rtt = socket::tcp_info(&stream).map_or(0, |i| i.rtt_us);
            Ok((rtt > 0).then(|| Duration::from_micros(rtt.into())))
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
        let mut knocker = Knocker::new(tell);
        let local = IpAddr::from([127, 0, 0, 1]);
        let listener = std::net::TcpListener::bind((local, 0)).unwrap();
        let accepts = listener.local_addr().unwrap();
        knocker.send(local, "lo", accepts, 7);
        let known = |back: &Back, n| matches!(back, Back::Tcp(number, Some(rtt)) if *number == n && *rtt < SYN_AGAIN);
        assert!(matches!(told.recv().await, Some((a, back, _)) if a == local && known(&back, 7)));
        drop(listener);
        knocker.send(local, "lo", accepts, 8);
        assert!(matches!(told.recv().await, Some((a, back, _)) if a == local && known(&back, 8)));
        // No such interface: nothing was asked, and nothing is told.
        knocker.send(local, "none-such", accepts, 9);
        while knocker.open.join_next().await.is_some() {}
        assert!(told.try_recv().is_err());
    }
}
