//! The congestion controls of a run: those that the kernel has, and the coupled
//! ones as eBPF programs where it lacks them.

use std::collections::BTreeMap;

#[cfg(feature = "bpf")]
use braid_mptcp::bpf;
use braid_mptcp::support::Support;

/// What was registered for this run; gone from the kernel with it.
#[derive(Debug, Default)]
pub(super) struct Controls {
    #[cfg(feature = "bpf")]
    ours: BTreeMap<String, bpf::Registered>,
    #[cfg(not(feature = "bpf"))]
    ours: BTreeMap<String, std::convert::Infallible>,
}

impl Controls {
    /// Sees to it that there is a congestion control `name`.
    ///
    /// # Errors
    /// There is none, and none that Braid brings.
    pub(super) fn require(&mut self, name: &str, support: &Support) -> braid_mptcp::Result<()> {
        let missing = support.require_congestion_control(name);
        if missing.is_ok() || self.ours.contains_key(name) {
            return Ok(());
        }
        #[cfg(feature = "bpf")]
        if let Some(coupled) = bpf::Coupled::named(name) {
            // Another run beside this one has its own.
            let unique = format!("{name}_{:x}", std::process::id());
            let registered = bpf::register(coupled, &unique)?;
            self.ours.insert(name.to_owned(), registered);
            return Ok(());
        }
        missing
    }

    /// What the kernel calls the one that a scenario calls `name`.
    pub(super) fn of_kernel<'a>(&'a self, name: &'a str) -> &'a str {
        #[cfg(feature = "bpf")]
        if let Some(registered) = self.ours.get(name) {
            return registered.name();
        }
        name
    }
}
