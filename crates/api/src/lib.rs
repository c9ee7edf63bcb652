//! Types of what crosses a socket or a file: the control API of a daemon (its JSON, and a client of the
//! Unix socket that it is served on), the configuration of a daemon, and errors that point at the
//! place in a file.

#[cfg(feature = "client")]
pub mod client;
pub mod config;
pub mod control;
pub mod diagnostic;

pub use control::{
    AccessAddress, AccessChange, AccessState, AccessStatus, Acks, ApiError, Connection,
    Connections, Counters, Engine, Event, EventKind, Events, Expected, Ignored, Lane, MptcpFacts,
    PathLimits, Priorities, Role, SchedulerChange, Status, Subflow, SubflowEvent, Weights,
};

/// Where a daemon serves its control API unless it is told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/braid/control.sock";
