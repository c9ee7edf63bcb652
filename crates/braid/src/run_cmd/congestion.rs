//! The congestion control that was asked for: the kernel's, or one of Braid's that
//! is registered for the time of the run.

use anyhow::Result;
use braid_mptcp::socket;
use braid_mptcp::support::Support;

use super::machine;

/// A congestion control that sockets may have, as long as this is kept.
pub(super) struct Congestion {
    name: String,
    #[cfg(feature = "bpf")]
    registered: Option<braid_mptcp::bpf::Registered>,
}

impl Congestion {
    /// What the kernel calls it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it goes when this is dropped.
    pub(super) fn is_ours(&self) -> bool {
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
pub(super) fn resolve(name: &str) -> Result<Congestion> {
    let support = Support::detect();
    let known = support.require_congestion_control(name);
    #[cfg(feature = "bpf")]
    if let (Err(_), Some(coupled)) = (&known, braid_mptcp::bpf::Coupled::named(name)) {
        // Of the run's own, so that runs end without looking at each other.
        let own = format!("{name}_{:x}", std::process::id());
        let registered = braid_mptcp::bpf::register(coupled, &own).map_err(machine)?;
        return Ok(Congestion {
            name: own,
            registered: Some(registered),
        });
    }
    known.map_err(machine)?;
    // Some are for CAP_NET_ADMIN alone.
    let any = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let probe = socket::stream(&any, true).map_err(machine)?;
    socket::set_congestion_control(&probe, name).map_err(machine)?;
    Ok(Congestion {
        name: name.to_owned(),
        #[cfg(feature = "bpf")]
        registered: None,
    })
}
