//! Saved state of the path manager: what interfaces had, the endpoints that it made, and the
//! steps that could not be set.

use std::collections::BTreeSet;
use std::net::IpAddr;

use braid_access::memory::Memory as Known;

use super::rejected::Refused;

/// Saved routes and trials, and the endpoints that we made.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Routes that interfaces had, and addresses that lead nowhere.
    pub known: Known,
    /// The addresses of endpoints that we added.
    pub added: BTreeSet<IpAddr>,
    /// The steps that the kernel refused when they were tried last.
    pub refused: Refused,
}
