//! Multipath QUIC (draft-ietf-quic-multipath) over several accesses, with packet
//! schedulers and congestion control of our own.
//!
//! QUIC itself is the library `noq-proto`, which is driven without sockets or a clock:
//! before every packet a scheduler of [`braid_core::sched`] names the path, and the
//! congestion controllers of all other paths say that they have no room.

pub mod access;
pub mod admission;
pub mod congestion;
pub mod connection;
pub mod dial;
mod error;
pub mod forward;
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
pub use net::{Aborted, Device, Keeper, PathChange, Proxy, Session, Stream};
pub use noq_proto::{ClientConfig, ServerConfig};
pub use steering::{Acks, Lane, Steering};

/// Packet schedulers, and what it takes to write one.
pub mod sched {
    pub use braid_core::Time;
    pub use braid_core::sched::{Decision, Flow, PathView, Paths, Scheduler, Until};
}
