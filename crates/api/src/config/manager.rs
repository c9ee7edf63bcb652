//! `[manager]`: the path manager.

use std::ops::RangeInclusive;

use braid_core::Pattern;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;

/// Addresses of one interface: the kernel takes 8 endpoints.
pub(super) const ADDRESSES: RangeInclusive<usize> = 1..=8;

/// `[manager]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Manager {
    /// Follow interfaces and repair; else set up once and only report.
    pub recover: bool,
    /// Mesh of subflows to open.
    pub mesh: Mesh,
    /// Addresses of one interface in use at most, 1 to 8.
    pub max_addresses_per_interface: usize,
    /// Interfaces that are never used.
    pub ignore: Vec<Pattern>,
}

/// Subflows that an access opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mesh {
    /// One to every address that the peer announced.
    Full,
    /// One.
    #[default]
    Pairs,
}

impl Default for Manager {
    fn default() -> Self {
        Self {
            recover: true,
            mesh: Mesh::default(),
            max_addresses_per_interface: 2,
            ignore: Vec::new(),
        }
    }
}

impl Manager {
    pub(super) fn check(&self) -> Result<(), Problem> {
        if ADDRESSES.contains(&self.max_addresses_per_interface) {
            return Ok(());
        }
        let key = ["manager", "max_addresses_per_interface"];
        Err(Problem::at_key(
            &key,
            "an interface has 1 to 8 addresses in use",
        ))
    }
}
