//! eBPF programs that a change takes. The kernel checks one for a second or more, in the thread
//! that loads it: whoever makes the change has it loaded by another thread before anything is
//! locked, so that the daemon probes, repairs and answers meanwhile.

use braid_api::SchedulerChange;
use braid_mptcp::weights;

use super::schedule::Next;
use super::{Namespace, Wanted};
use crate::ebpf::{CongestionControl, NamespaceDefault, Wrr};
use crate::engine::Result;
use crate::takeover::pins;
use crate::{DaemonError, blocking};

/// Program that is not loaded yet.
pub(crate) struct Missing<T> {
    program: T,
    /// Congestion control that plain TCP gets in its place.
    plain: String,
}

/// Weighted round robin by pacing rates.
pub(crate) struct Weights;

impl Missing<Weights> {
    /// Loads it. Inside a runtime, in the namespace.
    ///
    /// # Errors
    /// What the machine lacks, or the kernel refuses.
    pub(crate) async fn load(self) -> Result<Wrr> {
        blocking::run(move || pins::register(&self.plain)).await
    }
}

impl Missing<CongestionControl> {
    /// Loads it. Inside a runtime, in the namespace.
    ///
    /// # Errors
    /// What the machine lacks, or the kernel refuses.
    pub(crate) async fn load(self) -> Result<NamespaceDefault> {
        blocking::run(move || super::congestion_control::register(self.program, &self.plain)).await
    }
}

impl Namespace {
    /// Returns the weighted round robin that `change` takes, or what comes after it: weights
    /// that count (`weighted`).
    ///
    /// # Errors
    /// What the machine lacks for `change`.
    pub(crate) fn missing_weights(
        &self,
        change: Option<&SchedulerChange>,
        weighted: bool,
    ) -> Result<Option<Missing<Weights>>> {
        let next = change.map_or(Ok(Next::Same), |c| self.next(c))?;
        let stays = self.wrr.is_some() && next != Next::Kernel;
        let wanted = next == Next::StandIn || weighted && !weights::known_to_kernel();
        Ok((wanted && !stays).then(|| Missing {
            program: Weights,
            plain: self.default_before(),
        }))
    }

    /// Returns the congestion control that [`Namespace::set_congestion_control`] takes for `name`.
    pub(crate) fn missing_congestion(
        &self,
        wanted: Wanted<'_>,
    ) -> Option<Missing<CongestionControl>> {
        let name = wanted.name();
        let now = self.cc.as_ref().map(|(asked, _)| asked.as_str());
        // What a killed end has left may be it.
        let name = name.filter(|_| now != name && self.left.is_none())?;
        Some(Missing {
            program: CongestionControl::beside_kernels(name)?,
            plain: self.default_before(),
        })
    }
}

/// Says that a program was not loaded ahead.
pub(super) fn not_loaded() -> DaemonError {
    DaemonError::Failed("weighted round robin is not loaded: this is a bug".into())
}
