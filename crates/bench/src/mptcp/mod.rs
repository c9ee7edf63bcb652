//! MPTCP on this machine's kernel against its bars, by runs of the lab.

pub(crate) mod cost;
mod figures;
pub(crate) mod recovery;
mod runs;
pub(crate) mod soak;
mod soak_plan;
mod steps;
mod text;
pub(crate) mod weights;
mod weights_plan;
