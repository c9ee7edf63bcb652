//! The congestion control of connections that begin, as configured.

use braid_api::Role;
use braid_mptcp::socket;

use crate::DaemonError;
use crate::ebpf::{CongestionControl, NamespaceDefault, Pins};
use crate::takeover::pins::{self, congestion_owner};

/// The kernel's, or one of Braid's.
pub(crate) enum Congestion {
    Kernels(String),
    Ours(NamespaceDefault),
}

impl Congestion {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Kernels(name) => name,
            Self::Ours(ours) => ours.name(),
        }
    }

    /// Makes room for the pins of another.
    pub(crate) fn unpin(&mut self) {
        if let Self::Ours(ours) = self {
            ours.unpin();
        }
    }

    /// One of Braid's is to outlive this process if that is killed.
    pub(crate) fn pin(&mut self, role: Role) -> Result<(), DaemonError> {
        match self {
            Self::Ours(ours) if !ours.is_pinned() => {
                Ok(ours.pin(Pins::make(congestion_owner(role))?)?)
            }
            _ => Ok(()),
        }
    }
}

/// Adopts the congestion control that a killed end has left, if `name` asks for that one.
/// Otherwise it is taken away, and, where it was asked for, the error has the reason.
pub(crate) fn adopt(name: Option<&str>, left: Pins) -> Result<Congestion, Option<String>> {
    let control = name
        .and_then(CongestionControl::beside_kernels)
        .ok_or(None)?;
    let ours = NamespaceDefault::adopt(control, left).map_err(|e| Some(e.to_string()))?;
    Ok(Congestion::Ours(ours))
}

/// Finds the congestion control `name`, or registers it if it is Braid's. Plain TCP gets `plain`.
pub(crate) fn find(name: &str, plain: &str) -> Result<Congestion, DaemonError> {
    let Some(control) = CongestionControl::beside_kernels(name) else {
        socket::may_have_congestion_control(name)?;
        return Ok(Congestion::Kernels(name.to_owned()));
    };
    Ok(Congestion::Ours(register(control, plain)?))
}

/// Registers one of Braid's. Plain TCP gets `plain`.
pub(crate) fn register(
    control: CongestionControl,
    plain: &str,
) -> Result<NamespaceDefault, DaemonError> {
    pins::under_free_name(control.name(), |own| {
        NamespaceDefault::register(control, own, plain)
    })
}
