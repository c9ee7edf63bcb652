//! Settings that tests begin with.

use braid_access::settings::{AccessSpec, Settings};

/// An access that wants nothing but its interface.
pub(super) fn access(name: &str, interface: &str) -> AccessSpec {
    AccessSpec::new(name, interface.parse().expect("a pattern"))
}

/// Accesses of which each interface serves by two addresses at most.
pub(super) fn settings(accesses: Vec<AccessSpec>) -> Settings {
    Settings {
        accesses,
        max_addresses: 2,
        ..Settings::default()
    }
}
