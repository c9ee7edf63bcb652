//! Types of what crosses a socket or a file.
//!
//! [`control`] is the JSON of a daemon's control API, `client` asks for it over a Unix socket,
//! [`config`] is a daemon's configuration, [`registration`] what a device tells its proxy of its
//! accesses, [`power_set`] the parameters of a radio's power, and [`diagnostic`] points at the place in a file that is wrong.
//!
//! # When changing the API
//!
//! Programs of other people, and of other releases, speak it. So:
//!
//! 1. `/v1` only grows. A new field of an answer has `#[serde(default)]`: the answer of an older
//!    daemon can still be read. A new field of a request can be left out, and then changes
//!    nothing.
//! 2. Nothing under `/v1` goes, is renamed, or gets another unit, type or meaning. That takes a
//!    path under `/v2`, served beside the old one.
//! 3. Programs that are built with older types cannot read a new kind of event or a new state.
//!    A field of its own is better where it can say the same.
//! 4. A new request needs a line in the table of [`control`], its types there, its route in
//!    `crates/daemon/src/http/api.rs`, and an entry in `control/openapi.rs`.
//! 5. `UPDATE_OPENAPI=1 cargo test -p braid-api openapi` writes `docs/openapi.json` anew. It is
//!    checked in with the change; tests hold it against the types here and the routes there.
//! 6. A new key of the configuration has a default: files that are right stay right.

pub mod atsss;
pub mod bounded;
#[cfg(feature = "client")]
pub mod client;
pub mod config;
pub mod control;
pub mod diagnostic;
pub mod output;
pub mod power_set;
pub mod registration;

pub use control::{
    AccessAddress, AccessChange, AccessControl, AccessEnergy, AccessState, AccessStatus, Acks,
    ApiError, CapStatus, ClassStatus, Connection, Connections, ControlStatus, Counters, Engine,
    Event, EventKind, Events, Expected, FallbackAt, Ignored, LanStatus, Lane, Limit, MptcpFacts,
    PathLimits, PowerAttribution, PowerCounter, PowerShare, Priorities, ProbeControl, Role,
    RuleCount, RuleStatus, Rules, SchedulerChange, Scheduling, Status, Subflow, SubflowEvent,
    Weights,
};

/// Where a daemon serves its control API unless it is told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/braid/control.sock";
