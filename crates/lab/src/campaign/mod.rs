//! Campaigns: one scenario over all combinations of some axes, each a job of
//! its own that can run beside others, on another machine, or later.
//! `docs/campaign.md` is the reference.

mod axes;
mod file;
mod job;
mod merge;
mod pool;
mod progress;
mod traces;

pub use file::{Campaign, Clock};
pub use job::{Done, Job};
pub use merge::{Collected, collect};
pub use pool::{Pool, run_all, run_one};
