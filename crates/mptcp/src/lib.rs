//! Kernel MPTCP (RFC 8684) on a mainline kernel, without patches and without
//! calling other programs: the in-kernel path manager, events, sockets, facts
//! about connections, counters, and a way to make unchanged programs use it.
//!
//! Everything here acts on the network namespace of the calling thread.

#[cfg(feature = "bpf")]
pub mod bpf;
pub mod buffers;
pub mod capabilities;
pub mod cgroup;
pub mod diag;
mod error;
pub mod events;
pub mod manage;
pub mod mib;
mod nl;
pub mod offer;
pub mod pm;
pub mod preload;
pub mod repair;
pub mod socket;
mod sockopt;
pub mod support;
mod tcp_info;
pub mod weights;

pub use error::{Error, Result};
