//! Link and medium models: pure, seeded, time passed in.
//!
//! A [`Train`] of packets enters a link, and each of its packets comes out
//! exactly once through a [`Sink`]: delivered at the far end, or discarded with
//! a cause.

mod medium;
mod spec;
mod train;

pub use medium::{Head, Medium, MediumStats, StationStats, Stations};
pub use spec::{
    DelaySpec, InFlight, JitterSpec, LinkChange, LinkSpec, LossSpec, QueueSpec, RateSpec,
};
pub use train::{DropCause, Sink, Span, Train};
