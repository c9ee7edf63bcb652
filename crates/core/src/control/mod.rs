//! Data of the control loop: what is observed, what follows from it, what is decided.
//!
//! ```text
//! Observation -> Snapshot -> Policy::decide -> Steering -> the engine
//! ```
//!
//! Each stage is plain data that is written to a journal and read back unchanged. Nothing
//! here computes: estimators are in [`crate::estimate`], policies in [`crate::policy`], and
//! [`crate::control_loop`] joins them. `docs/internals/control.md` explains the loop.

mod direction;
mod metrics;
mod observation;
mod settings;
mod snapshot;
mod steering;
#[cfg(test)]
pub(crate) mod tests;

pub use direction::{Direction, PerDirection};
pub use metrics::{LimitedBy, PathMetrics};
pub use observation::{
    CarriedRates, Observation, PathGone, PowerReading, ProbeResult, ProbeSpending, Request,
    StateChange, What,
};
pub use settings::{
    AccessSettings, CapacitySettings, EnergySettings, PolicySettings, ProbeSettings,
    SelectionSettings, Settings,
};
pub use snapshot::{AccessSnapshot, Activity, Carried, DirectionSnapshot, Estimate, Snapshot};
pub use steering::{AccessRole, AccessSteering, Decision, Steering};
