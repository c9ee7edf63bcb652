//! `[scheduler]`: how an end shares its sending among the accesses.

use braid_core::sched::WrrMode;
use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;
use crate::{Engine, SchedulerChange};

/// Congestion control of Multipath TCP where none is named and Braid can bring it: that for links
/// whose rate swings, as radio does.
pub const MPTCP_CC: &str = "swing";
/// Name for the congestion control that the namespace has itself.
pub const NAMESPACES_CC: &str = "default";

/// `[scheduler]`: the values of [`SchedulerChange`], and what is this end's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scheduler {
    /// Packet scheduler, as the kernel or Multipath QUIC calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How round robin treats full windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrr_mode: Option<WrrMode>,
    /// Segments of a turn of round robin, 1 to 255.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_segments: Option<u8>,
    /// Opportunistic retransmission of `minrtt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opportunistic: Option<bool>,
    /// Penalisation of `minrtt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalise: Option<bool>,
    /// Have weights by eBPF outlive a daemon that is killed; absent: yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<bool>,
    /// Congestion control of connections that begin afterwards; absent: [`MPTCP_CC`];
    /// [`NAMESPACES_CC`]: the namespace's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
}

impl Scheduler {
    /// Returns the part of it that a request can change as well.
    pub fn change(&self) -> SchedulerChange {
        SchedulerChange {
            name: self.name.clone(),
            wrr_mode: self.wrr_mode,
            num_segments: self.num_segments,
            opportunistic: self.opportunistic,
            penalise: self.penalise,
        }
    }

    /// Whether it says how to schedule; an empty section asks for the defaults.
    pub fn schedules(&self) -> bool {
        let of_others = self.pin.is_some() || self.cc.is_some();
        !of_others || self.change() != SchedulerChange::default()
    }

    pub(super) fn check(&self, engines: &[Engine]) -> Result<(), Problem> {
        if self.cc.is_none() || engines.contains(&Engine::Mptcp) {
            return Ok(());
        }
        let what = "only the engine \"mptcp\" has this; that of Multipath QUIC is [mpquic] cc";
        Err(Problem::at_key(&["scheduler", "cc"], what))
    }
}
