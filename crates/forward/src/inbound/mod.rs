//! Inbounds: how connections of programs come to the device's daemon.
//!
//! An inbound is one file here. It finds out where a connection is to go, and hands it to a
//! [`Carrier`].

mod dns;
mod port;
mod socks;
mod tproxy;
mod transparent;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::carrier::{Carrier, Connection};
use crate::relay::relay;
use crate::tcp::Tcp;
use crate::wire::{Refusal, Target};
pub use dns::Dns;
pub use port::Port;
pub use socks::Socks;
pub use tproxy::{Open, Ports, Tproxy};

/// After an error of accept(2).
const PAUSE: Duration = Duration::from_millis(100);

/// Serves each connection of a listener by a task, for as long as it is polled.
pub(crate) async fn serve_each<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, _)) => {
                    running.spawn(serve(tcp));
                }
                // Of the connection, or for want of descriptors, which come back.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = running.join_next() => {}
        }
    }
}

/// Carries a connection of a program to its destination, for as long as it lasts.
async fn carry(tcp: TcpStream, to: &Target, carrier: &Arc<dyn Carrier>) -> io::Result<()> {
    let mut near = Tcp::new(tcp)?;
    let mut far = tokio::select! {
        far = carrier.connect(to) => far?,
        // The program has gone before there was anything to carry.
        _ = near.failed() => return Ok(()),
    };
    relay(&mut near, &mut *far).await
}

/// Says why no connection to `to` could be made, where it is that.
fn refused(to: &Target, e: &io::Error) -> Option<String> {
    // How a connection ends is told to its own two ends.
    Refusal::within(e).map(|why| format!("forward a connection to {to}: {why}"))
}
