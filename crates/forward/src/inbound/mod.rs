//! Inbounds: how connections of programs come to the device's daemon.
//!
//! An inbound is one file here. It finds out where a connection is to go, and hands it to a
//! [`Carrier`](crate::Carrier).

mod port;
mod socks;

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::wire::{Refusal, Target};
pub use port::Port;
pub use socks::Socks;

/// After an error of accept(2).
const PAUSE: Duration = Duration::from_millis(100);

/// Serves each connection of a listener by a task, for as long as it is polled.
async fn serve_each<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
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

/// Says why no connection to `to` could be made, where it is that.
fn refused(to: &Target, e: &io::Error) -> Option<String> {
    // How a connection ends is told to its own two ends.
    Refusal::within(e).map(|why| format!("forward a connection to {to}: {why}"))
}
