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
pub mod host;
pub mod lane;
mod pacer;
#[cfg(test)]
mod sim;
pub mod steering;
mod transport;

pub use access::Access;
pub use connection::{Connection, Event, Outgoing};
pub use dial::{Dial, Target};
pub use error::Error;
pub use host::{Host, Options};
pub use steering::{Lane, Steering};
