//! Both ends of aggregated bearers: PDCP, steering, LWAAP and Xw-U flow control in one object.
//!
//! An [`End`] is passive. The caller pushes IP packets and received frames with the time, takes
//! out delivered packets, and sends what [`End::offer`] names over the link it names. Node and UE
//! are the same object with other settings ([`EndConfig::node`], [`EndConfig::ue`]).

mod arrivals;
mod config;
mod end;
mod flow;
mod offer;
mod one;
mod outgoing;
mod probes;
mod report;
#[cfg(test)]
mod tests;

pub use config::{BearerConfig, ConfigError, EndConfig, Framing, OVERHEAD_BYTES};
pub use end::{BearerKeys, End, EndError, EndStats};
pub use offer::Offer;
