//! The congestion controls and schedulers of a run: those that the kernel has,
//! and what stands in for them as eBPF programs where it lacks them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use braid_api::config::MPTCP_CC;
#[cfg(feature = "bpf")]
use braid_mptcp::bpf;
use braid_mptcp::offer::ACTIVE_STANDBY;
use braid_mptcp::socket;
use braid_mptcp::support::Support;
use braid_mptcp::weights;

use crate::scenario::Case;

/// Congestion controls registered for this run; gone from the kernel with it.
#[derive(Debug)]
pub(super) struct Controls {
    support: Support,
    #[cfg(feature = "bpf")]
    ours: BTreeMap<String, bpf::Registered>,
    #[cfg(not(feature = "bpf"))]
    ours: BTreeMap<String, std::convert::Infallible>,
    /// Why what waits on subflows is not bounded here, once it has been asked.
    unbounded: OnceLock<Option<String>>,
}

impl Controls {
    pub(super) fn new(support: Support) -> Self {
        Self {
            support,
            ours: BTreeMap::new(),
            unbounded: OnceLock::new(),
        }
    }

    /// Why the subflows of `case` take as much as their send buffers hold, although it is
    /// to have short queues.
    pub(super) fn long_queues(&self, case: &Case) -> Option<&str> {
        let wanted = case.engine.get().has_subflows() && case.short_queues && !self.stands_in(case);
        wanted.then(|| self.unbounded.get_or_init(unbounded).as_deref())?
    }

    /// Sees to it that there is a congestion control `name`.
    ///
    /// # Errors
    /// There is none, and none that Braid brings.
    pub(super) fn require(&mut self, name: &str) -> braid_mptcp::Result<()> {
        let missing = self.support.require_congestion_control(name);
        if missing.is_ok() || self.ours.contains_key(name) {
            return Ok(());
        }
        #[cfg(feature = "bpf")]
        if let Some(control) = bpf::CongestionControl::named(name) {
            // Another run beside this one has its own.
            let unique = format!("{name}_{:x}", std::process::id());
            let registered = bpf::register(control, &unique)?;
            self.ours.insert(name.to_owned(), registered);
            return Ok(());
        }
        if socket::may_have_congestion_control(name).is_ok() {
            self.support = Support::detect();
            return Ok(());
        }
        missing
    }

    /// Whether there is a scheduler `name`; the engine's ends bring weighted
    /// round robin themselves.
    ///
    /// # Errors
    /// There is none, and none that Braid brings.
    pub(super) fn require_scheduler(&self, name: &str) -> braid_mptcp::Result<()> {
        match self.support.require_scheduler(name) {
            #[cfg(feature = "bpf")]
            Err(_) if stands_in_for(name) => bpf::require(),
            Err(_) if name == ACTIVE_STANDBY => Ok(()),
            own => own,
        }
    }

    /// Whether a congestion control of ours stands in for the scheduler of `case`.
    pub(super) fn stands_in(&self, case: &Case) -> bool {
        let scheduler = case.scheduler.as_deref().unwrap_or("default");
        case.engine.get().in_kernel()
            && self.support.require_scheduler(scheduler).is_err()
            && stands_in_for(scheduler)
    }

    /// Whether the order of accesses, by MP_PRIO, stands in for the scheduler of
    /// `case`.
    pub(super) fn orders(&self, case: &Case) -> bool {
        let standby = case.scheduler.as_deref() == Some(ACTIVE_STANDBY);
        case.engine.get().in_kernel()
            && standby
            && self.support.require_scheduler(ACTIVE_STANDBY).is_err()
    }

    /// Returns the kernel's name for the congestion control of `case`'s sockets; `None`:
    /// that of their namespace, which is used in place of the scheduler.
    pub(super) fn of_case<'a>(&'a self, case: &'a Case) -> Option<&'a str> {
        if self.stands_in(case) || !case.engine.get().in_kernel() {
            return None;
        }
        let cc = case.cc.as_deref().or_else(|| self.usual_cc(case));
        cc.map(|cc| self.of_kernel(cc))
    }

    /// Sees to it that MPTCP has what the daemon brings where a case names no congestion control,
    /// if this machine can have it.
    pub(super) fn bring_usual_cc(&mut self, case: &Case) {
        if self.wants_usual_cc(case) {
            // Without it the kernel's own carries the case, which its row says.
            let _ = self.require(MPTCP_CC);
        }
    }

    /// Returns the congestion control of `case` where it names none; `None`: the kernel's.
    pub(super) fn usual_cc(&self, case: &Case) -> Option<&'static str> {
        let is_there = self.ours.contains_key(MPTCP_CC)
            || self.support.require_congestion_control(MPTCP_CC).is_ok();
        (self.wants_usual_cc(case) && is_there).then_some(MPTCP_CC)
    }

    fn wants_usual_cc(&self, case: &Case) -> bool {
        case.cc.is_none() && case.engine.get().has_subflows() && !self.stands_in(case)
    }

    /// Returns the kernel's name for the congestion control that a scenario calls `name`.
    pub(super) fn of_kernel<'a>(&'a self, name: &'a str) -> &'a str {
        #[cfg(feature = "bpf")]
        if let Some(registered) = self.ours.get(name) {
            return registered.name();
        }
        name
    }
}

/// Braid's kernel has schedulers that give out a segment at a time.
fn unbounded() -> Option<String> {
    if weights::known_to_kernel() {
        return None;
    }
    #[cfg(feature = "bpf")]
    return bpf::can_bound_queues().err().map(|e| match e {
        braid_mptcp::Error::Lacking { what, .. } => what,
        other => other.to_string(),
    });
    #[cfg(not(feature = "bpf"))]
    Some("this braid was built without eBPF".into())
}

/// Whether Braid has this scheduler by eBPF.
fn stands_in_for(scheduler: &str) -> bool {
    cfg!(feature = "bpf") && weights::are_pacing(scheduler)
}
