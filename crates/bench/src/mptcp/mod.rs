//! MPTCP on this machine's kernel against its bars, by runs of the lab.

pub(crate) mod cost;
pub(crate) mod fairness;
pub(crate) mod recovery;
mod recovery_service;
pub(crate) mod soak;
pub(crate) mod soak_plan;
pub(crate) mod steps;
pub(crate) mod weights;
mod weights_pairs;
pub(crate) mod weights_plan;
