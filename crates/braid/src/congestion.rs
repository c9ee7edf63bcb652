//! The congestion control that was asked for: the kernel's, or one of Braid's that
//! is registered for the time of this process.

use braid_mptcp::{Result, socket};

/// A congestion control that sockets may have, as long as this is kept.
pub(crate) struct Congestion {
    name: String,
    #[cfg(feature = "bpf")]
    registered: Option<braid_mptcp::bpf::Registered>,
}

impl Congestion {
    /// Name of the congestion control in the kernel.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it goes when this is dropped.
    pub(crate) fn is_ours(&self) -> bool {
        #[cfg(feature = "bpf")]
        return self.registered.is_some();
        #[cfg(not(feature = "bpf"))]
        false
    }
}

/// Looks for `name`.
///
/// # Errors
/// There is none of that name (the error says which there are), it cannot be
/// registered, or this user's sockets may not have it.
pub(crate) fn resolve(name: &str) -> Result<Congestion> {
    #[cfg(feature = "bpf")]
    if let Some(control) = braid_mptcp::bpf::CongestionControl::beside_kernels(name) {
        // Of this process's own, so that they end without looking at each other.
        let own = format!("{name}_{:x}", std::process::id());
        let registered = braid_mptcp::bpf::register(control, &own)?;
        return Ok(Congestion {
            name: own,
            registered: Some(registered),
        });
    }
    socket::may_have_congestion_control(name)?;
    Ok(Congestion {
        name: name.to_owned(),
        #[cfg(feature = "bpf")]
        registered: None,
    })
}
