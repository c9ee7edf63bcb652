//! Inbound `tproxy`: connections to any destination, which rules divert to a listener of the loopback
//! ([`crate::divert`]). The program, or the host of the LAN, need not know.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use socket2::Type;
use tokio::net::{TcpListener, TcpStream};

use super::transparent;
use super::{carry, refused, serve_each};
use crate::carrier::Carrier;
use crate::wire::Target;

/// Connections that wait to be accepted, at most. The kernel bounds it by `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Transparent listeners of IPv4 and IPv6.
#[derive(Debug)]
pub struct Tproxy {
    v4: TcpListener,
    /// Absent where the machine has no IPv6.
    v6: Option<TcpListener>,
    ports: Ports,
    open: Open,
}

/// Count of connections that are open.
#[derive(Clone, Debug, Default)]
pub struct Open(Arc<()>);

impl Open {
    /// Returns it.
    pub fn count(&self) -> usize {
        // Each connection holds one, and so do the inbound and whoever asks.
        Arc::strong_count(&self.0).saturating_sub(2)
    }
}

/// Ports of the loopback at which transparent listeners are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// At 127.0.0.1.
    pub v4: u16,
    /// At ::1.
    pub v6: Option<u16>,
}

impl Tproxy {
    /// Listens at free ports of the loopback, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The socket's; it takes the capability CAP_NET_ADMIN.
    pub fn listen() -> io::Result<Self> {
        let (v4, v6, ports) = transparent::of_both_families(listener, TcpListener::local_addr)?;
        let open = Open::default();
        Ok(Self {
            v4,
            v6,
            ports,
            open,
        })
    }

    /// Returns where it listens.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Returns the count of its connections, for one who asks.
    pub fn open(&self) -> Open {
        self.open.clone()
    }

    /// Serves connections for as long as it is polled. Destinations that cannot be connected are
    /// told to `told`.
    pub async fn serve(
        self,
        carrier: Arc<dyn Carrier>,
        told: impl Fn(String) + Clone + Send + 'static,
    ) {
        let serve = |tcp: TcpStream| {
            let (carrier, told) = (Arc::clone(&carrier), told.clone());
            let open = self.open.clone();
            async move {
                let _open = open;
                let Ok(to) = tcp.local_addr() else { return };
                // A program that was not diverted asks for the listener itself.
                if to.ip().to_canonical().is_loopback() {
                    return;
                }
                let to = Target::from(to);
                if let Err(e) = carry(tcp, &to, &carrier).await
                    && let Some(why) = refused(&to, &e)
                {
                    told(why);
                }
            }
        };
        match self.v6 {
            Some(v6) => {
                tokio::join!(serve_each(self.v4, serve), serve_each(v6, serve));
            }
            None => serve_each(self.v4, serve).await,
        }
    }
}

fn listener(at: IpAddr) -> io::Result<TcpListener> {
    // It accepts connections to addresses that are not this machine's, and answers from these.
    let socket = transparent::open(SocketAddr::new(at, 0), Type::STREAM)?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}
