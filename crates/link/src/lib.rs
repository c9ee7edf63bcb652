//! The interfaces of this machine and their addresses: what there is now
//! ([`Links`]), and that something has changed ([`RouteEvents`]).
//!
//! Everything here acts on the network namespace of the thread that opens it.

pub mod events;
mod links;
pub mod preference;
#[allow(unsafe_code)]
mod ready;

pub use events::{Heard, Hosts, RouteEvents};
pub use links::{Address, Interface, Links, handle};

/// Error of an operation: what was attempted, and what went wrong.
#[derive(Debug, thiserror::Error)]
#[error("{attempted}: {source}")]
pub struct Error {
    attempted: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    fn new(
        attempted: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            attempted,
            source: source.into(),
        }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
