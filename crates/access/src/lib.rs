//! Accesses of a device, whatever engine uses them: [`links`] has the interfaces and addresses of
//! this machine, [`rules`] says which of them serve which access, [`plan`] in which order and by
//! which routes ([`routing`]), [`default_route`] where new connections leave that are not bonded, [`exits`]
//! how packets leave by one of them, [`kernel`] sets these in the steps of [`reconcile`], [`probe`] and [`liveness`] tell whether
//! anything comes back.
//!
//! Everything here acts on the network namespace of the thread that opens it.

pub mod arrivals;
pub mod clock;
pub mod default_route;
pub mod dial;
pub mod exits;
pub mod kernel;
pub mod links;
pub mod liveness;
pub mod memory;
pub mod multicast;
pub mod plan;
pub mod power;
pub mod priority;
pub mod probe;
mod ready;
pub mod reconcile;
pub mod route_mtu;
pub mod routing;
pub mod rules;
pub mod settings;
mod socket;
pub mod trial;
pub mod view;

use std::borrow::Cow;

/// Error of an operation: what was attempted, and what went wrong.
#[derive(Debug, thiserror::Error)]
#[error("{attempted}: {source}")]
pub struct Error {
    attempted: Cow<'static, str>,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    fn new(
        attempted: impl Into<Cow<'static, str>>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            attempted: attempted.into(),
            source: source.into(),
        }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
