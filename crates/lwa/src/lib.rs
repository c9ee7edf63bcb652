//! LTE-WLAN aggregation under PDCP, without sockets, clock or threads.
//!
//! A bearer is split above two links: PDCP numbers its packets, steering chooses the link of
//! each, and the other end puts them in order again. docs/internals/lwa.md says which clauses are
//! followed, and what is left out.

pub mod cipher;
mod link;
pub mod pdcp;
pub mod reorder;
pub mod steer;
pub mod wire;

pub use link::Link;
