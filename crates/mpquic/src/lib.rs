//! Multipath QUIC (draft-ietf-quic-multipath) over several accesses, with packet
//! schedulers and congestion control of our own.
//!
//! QUIC itself is the library `noq-proto`, which is driven without sockets or a clock:
//! before every packet a scheduler of [`braid_core::sched`] names the path, and the
//! congestion controllers of all other paths say that they have no room.
//!
//! # Example
//!
//! A program connects over two interfaces. Both carry its streams, each as much as it can, and
//! a stream goes on where one of them is lost:
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use braid_mpquic::tls::{self, Trust};
//! use braid_mpquic::{Access, Device, Lane, Options};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! async fn ask(proxy: SocketAddr, pin: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
//!     let trust = Trust::Pins(vec![pin.parse()?]);
//!     let tls = tls::client(&trust, None, tls::alpn(Lane::Datagram))?;
//!     let accesses = vec![Access::on("nr", "wwan0"), Access::on("wifi", "wlan0")];
//!     let (device, session) =
//!         Device::connect(proxy, "proxy", tls, Options::default(), accesses).await?;
//!
//!     let mut stream = session.open().await?;
//!     stream.write_all(b"how much?").await?;
//!     stream.shutdown().await?;
//!     let mut answer = Vec::new();
//!     stream.read_to_end(&mut answer).await?;
//!
//!     session.close();
//!     device.wait_idle().await;
//!     Ok(answer)
//! }
//! ```

pub mod access;
pub mod admission;
mod by_number;
pub mod congestion;
pub mod connection;
pub mod dial;
mod error;
pub mod host;
pub mod lane;
pub mod net;
mod pacer;
mod reordering;
#[cfg(test)]
mod sim;
pub mod steering;
pub mod tls;
mod transport;

pub use access::{Access, AccessChange};
pub use braid_api::Expected;
pub use connection::{Connection, Event, Outgoing, PathInfo};
pub use dial::{Dial, Target};
pub use error::Error;
pub use host::{Host, Options};
pub use lane::Packet;
pub use net::{Aborted, Device, Keeper, Link, PathChange, PathEvent, Proxy, Session, Stream};
pub use noq_proto::{ClientConfig, ServerConfig};
pub use steering::{Acks, Lane, Steering};

/// Packet schedulers, and what it takes to write one.
pub mod sched {
    pub use braid_core::Time;
    pub use braid_core::sched::{Decision, Flow, PathView, Paths, Scheduler, Until};
}
