//! Settings of a device's accesses, which do not depend on the kernel, and how its addresses
//! fare.

use std::net::IpAddr;

use braid_core::{Pattern, Time};

/// Subflows that an access opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mesh {
    /// One to every address that the peer announced.
    Full,
    /// One to the address that was connected to.
    #[default]
    Pairs,
}

/// An access as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSpec {
    /// Its name.
    pub name: String,
    /// The interfaces that serve it.
    pub interface: Pattern,
    /// The only address that may be used; all of the interface if absent.
    pub address: Option<IpAddr>,
    /// Use it only when no other access is active.
    pub backup: bool,
    /// Its weight is 0: a backup as well.
    pub excluded: bool,
    /// How many addresses of one of its interfaces are used, if not
    /// [`Settings::max_addresses`].
    pub max_addresses: Option<usize>,
    /// Its place in the order ([`crate::priority`]).
    pub priority: Option<u16>,
    /// Switched off by a request if not.
    pub enabled: bool,
}

impl AccessSpec {
    /// An access that is used as it comes: no backup, no priority, by any address.
    pub fn new(name: impl Into<String>, interface: Pattern) -> Self {
        Self {
            name: name.into(),
            interface,
            address: None,
            backup: false,
            excluded: false,
            max_addresses: None,
            priority: None,
            enabled: true,
        }
    }

    /// Whether it takes no part while any other is active.
    pub fn is_backup(&self) -> bool {
        self.backup || self.excluded
    }
}

/// Settings, which do not depend on the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The accesses, the most wanted first.
    pub accesses: Vec<AccessSpec>,
    /// Interfaces that are never used.
    pub ignore: Vec<Pattern>,
    /// Subflows to open.
    pub mesh: Mesh,
    /// How many addresses of one interface are used, 1 or more, where the access does not
    /// say.
    pub max_addresses: usize,
    /// The proxy's addresses, which may be in an interface's own network.
    pub proxy: Vec<IpAddr>,
    /// Have what is not bonded follow the accesses that work ([`crate::default_route`]).
    pub steers_unbonded: bool,
}

/// How an address fares, from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing comes back on it.
    Silent {
        /// Since when.
        since: Time,
    },
    /// MPTCP does not pass.
    Stripped,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) fn access(name: &str, interface: &str) -> AccessSpec {
        AccessSpec::new(name, interface.parse().expect("a pattern"))
    }

    pub(crate) fn settings(accesses: Vec<AccessSpec>) -> Settings {
        Settings {
            accesses,
            max_addresses: 2,
            ..Settings::default()
        }
    }
}
