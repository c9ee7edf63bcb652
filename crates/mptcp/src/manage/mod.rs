//! The path manager's decisions: which interfaces serve as accesses, what is to
//! be set for them, how to get there, and which accesses are dead.
//!
//! Nothing here asks the kernel or the clock: what is seen is passed in as a
//! [`View`], times as [`braid_core::Time`]; what is to be done comes back as
//! [`diff::Op`]s.

pub mod arrivals;
pub mod demand;
pub mod diff;
pub mod health;
pub mod memory;
pub mod missing;
pub mod packet_size;
pub mod plan;
pub mod priority;
pub mod probe;
pub mod query;
pub mod refused;
pub mod routing;
pub mod rules;
pub mod slow;
pub mod stalls;
pub mod stripping;
pub mod trial;
pub mod unheard;
pub mod view;

pub use plan::{AccessSpec, Condition, Mesh, Plan, Settings, plan, plan_once};
pub use view::View;
