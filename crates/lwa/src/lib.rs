//! LTE-WLAN aggregation under PDCP, without sockets, clock or threads.
//!
//! A bearer is split above two links: PDCP numbers its packets ([`pdcp`]), steering chooses the
//! link of each ([`steer`]), and the other end puts them in order again, waiting for gaps as long
//! as [`reorder`] says. [`bearer`] joins them. [`wire`] has the formats, [`cipher`] 128-EEA2. docs/internals/lwa.md says
//! which clauses are followed, and what is left out.

pub mod bearer;
pub mod cipher;
mod link;
pub mod pdcp;
pub mod reorder;
#[cfg(test)]
mod sim;
pub mod steer;
pub mod wire;

pub use link::Link;
