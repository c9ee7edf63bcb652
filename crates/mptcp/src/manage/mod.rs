//! The path manager's decisions: which interfaces serve as accesses, what is to
//! be set for them, how to get there, and which accesses are dead.
//!
//! Nothing here asks the kernel or the clock: what is seen is passed in as a
//! [`View`], times as [`braid_core::Time`]; what is to be done comes back as
//! [`diff::Op`]s.

pub mod diff;
pub mod memory;
pub mod plan;
pub mod rejected;
#[cfg(test)]
mod testing;
pub mod view;

pub use plan::{Plan, plan, plan_once};
pub use view::View;
