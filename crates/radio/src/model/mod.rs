//! Link and medium models: pure, seeded, time passed in.
//!
//! A [`Train`] of packets enters a link, and each of its packets comes out
//! exactly once through a [`Sink`]: delivered at the far end, or discarded with
//! a cause.

mod backhaul;
mod change;
mod check;
mod codel;
mod delay;
mod line;
mod link;
mod loss;
mod medium;
mod network;
mod opportunities;
mod queue;
mod rate;
mod rate_steps;
mod serve;
mod shared;
mod spec;
mod stats;
mod steps;
mod train;
pub mod wifi;

#[cfg(test)]
mod tests;

pub use check::{SpecError, check_rate};
pub use medium::{Head, Medium, MediumStats, ReceiverStats, StationStats, Stations};
pub use network::{LinkId, Network, StationLink};
pub use rate::rate_at;
pub use spec::{
    DelaySpec, InFlight, JitterSpec, LinkChange, LinkSpec, LossSpec, QueueSpec, RateSpec,
};
pub use stats::{Drops, LinkStats};
pub use train::{DropCause, Sink, Span, Train};
