//! The device's part.

use std::io;
use std::net::SocketAddr;

use braid_mpquic::{Session, Stream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::tcp::Tcp;
use crate::wire;

/// A port of the device whose connections go on at the proxy.
#[derive(Debug)]
pub struct Forward {
    listener: TcpListener,
    to: SocketAddr,
}

impl Forward {
    /// Listens at `at`, in the namespace of the calling thread. `to` is where the proxy
    /// connects to.
    ///
    /// # Errors
    /// The socket's.
    pub async fn listen(at: SocketAddr, to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        Ok(Self { listener, to })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The socket's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves programs for as long as it is polled, over whatever session there is when
    /// they connect: without one, they wait. What goes wrong is told to `told`.
    pub async fn serve(
        self,
        session: watch::Receiver<Option<Session>>,
        told: impl Fn(String) + Clone + Send + 'static,
    ) {
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((tcp, _)) => {
                        let (to, session, told) = (self.to, session.clone(), told.clone());
                        running.spawn(async move {
                            if let Err(e) = one(tcp, to, session).await {
                                told(format!("forward a connection to {to}: {e}"));
                            }
                        });
                    }
                    // Of the connection, or for want of descriptors, which come back.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
                Some(_) = running.join_next() => {}
            }
        }
    }
}

/// After an error of accept(2).
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

async fn one(
    tcp: TcpStream,
    to: SocketAddr,
    sessions: watch::Receiver<Option<Session>>,
) -> io::Result<()> {
    let tcp = Tcp::new(tcp)?;
    let stream = tokio::select! {
        stream = connected(to, sessions) => stream?,
        // The program has gone before there was anything to carry.
        _ = tcp.failed() => return Ok(()),
    };
    // How a connection ends is told to its own two ends.
    let _ = crate::join(tcp, stream).await;
    Ok(())
}

/// A stream that goes on at the proxy to `to`. What is given up before is reset: no byte of
/// the program has left.
async fn connected(
    to: SocketAddr,
    mut sessions: watch::Receiver<Option<Session>>,
) -> io::Result<Stream> {
    let there = sessions.wait_for(Option::is_some).await;
    let session = there.ok().and_then(|s| s.clone());
    let Some(session) = session else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    let mut stream = session.open().await?;
    wire::ask(&mut stream, to).await?;
    wire::answered(&mut stream)
        .await?
        .map_err(io::Error::other)?;
    Ok(stream)
}
