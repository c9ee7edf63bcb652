//! The congestion control of connections that begin, as configured.

use braid_core::api::Role;
use braid_mptcp::socket;

use super::super::DaemonError;
use super::super::keep::{self, coupled_owner};
use super::super::stock::{Coupled, CoupledDefault, Pins};

/// The kernel's, or one of Braid's.
pub(super) enum Congestion {
    Kernels(String),
    Ours(CoupledDefault),
}

impl Congestion {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Kernels(name) => name,
            Self::Ours(ours) => ours.name(),
        }
    }

    /// Makes room for the pins of another.
    pub(super) fn unpin(&mut self) {
        if let Self::Ours(ours) = self {
            ours.unpin();
        }
    }

    /// One of Braid's is to outlive this process if that is killed.
    pub(super) fn pin(&mut self, role: Role) -> Result<(), DaemonError> {
        match self {
            Self::Ours(ours) if !ours.is_pinned() => {
                Ok(ours.pin(Pins::make(coupled_owner(role))?)?)
            }
            _ => Ok(()),
        }
    }
}

/// What was asked for by `name`: what a killed end has left, if it is that, or another.
/// Plain TCP gets `plain`. Says what is not as it should be, and is not needed.
pub(super) fn find(
    name: &str,
    plain: &str,
    left: Option<Pins>,
) -> Result<(Congestion, Option<String>), DaemonError> {
    let Some(coupled) = Coupled::beside_kernels(name) else {
        socket::may_have_congestion_control(name)?;
        return Ok((Congestion::Kernels(name.to_owned()), None));
    };
    let mut note = None;
    if let Some(pins) = left {
        match CoupledDefault::adopt(coupled, pins) {
            Ok(ours) => return Ok((Congestion::Ours(ours), None)),
            Err(e) => {
                note = Some(format!(
                    "what a killed daemon left is not used, connections keep what they have: {e}"
                ));
            }
        }
    }
    let ours = keep::under_free_name(name, |own| CoupledDefault::register(coupled, own, plain))?;
    Ok((Congestion::Ours(ours), note))
}
