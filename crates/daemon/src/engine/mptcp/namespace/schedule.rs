//! Scheduler of the packets that this end sends, and what a kernel lacks for it.

use braid_api::{SchedulerChange, Scheduling};
use braid_core::sched::WrrMode;
use braid_mptcp::support::{self, Support};
use braid_mptcp::{offer, weights};

use super::Namespace;
use crate::ebpf::Wrr;
use crate::{DaemonError, scheduling};

/// Scheduler after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Scheduler as before.
    Same,
    /// One of the kernel's.
    Kernel,
    /// Weights by pacing rates.
    StandIn,
}

impl Namespace {
    /// Returns the scheduler that a change leads to.
    ///
    /// # Errors
    /// What the machine lacks for it.
    pub(super) fn next(&self, change: &SchedulerChange) -> Result<Next, DaemonError> {
        let next = next(change, &Support::detect())?;
        require(change, self.stands_in_then(next))?;
        Ok(next)
    }

    /// Whether weights are pacing rates after a change to `next`.
    fn stands_in_then(&self, next: Next) -> bool {
        next == Next::StandIn || next == Next::Same && self.wrr.is_some()
    }

    /// Changes what schedules the packets that this end sends; `loaded` is weighted round robin
    /// where it was missing, and is taken if the change takes it.
    ///
    /// # Errors
    /// What the machine lacks; nothing has been changed then.
    pub(crate) fn schedule(
        &mut self,
        change: &SchedulerChange,
        loaded: &mut Option<Wrr>,
    ) -> Result<(), DaemonError> {
        let next = self.next(change)?;
        let stands_in = self.stands_in_then(next);
        match (next, &change.name) {
            (Next::StandIn, Some(name)) => self.stand_in(name, loaded)?,
            (Next::Kernel, Some(name)) => {
                self.stand_down()?;
                // Kernels without the setting have the default alone.
                if support::sysctl("net.mptcp.scheduler").is_some() {
                    self.set_sysctl("net.mptcp.scheduler", name)?;
                }
            }
            _ => {}
        }
        if let (Some(wrr), Some(mode)) = (&mut self.wrr, change.wrr_mode) {
            wrr.set_strict(mode == WrrMode::Strict)?;
        }
        for (name, _, value) in settings(change, stands_in) {
            self.set_sysctl(name, &value)?;
        }
        Ok(())
    }

    /// Returns how packets are scheduled now, by the names of the configuration; `default` is
    /// what the kernel calls the congestion control of new sockets.
    pub(crate) fn scheduling(&self, default: &str) -> Scheduling {
        let asked = self.cc.as_ref().map(|(asked, _)| asked.as_str());
        scheduling::of_kernel(self.scheduler(), self.wrr.is_some(), asked, default)
    }

    /// How packets are scheduled now.
    pub(crate) fn scheduler(&self) -> SchedulerChange {
        if let Some(wrr) = &self.wrr {
            return SchedulerChange {
                name: Some(if self.rr { "rr" } else { "wrr" }.into()),
                wrr_mode: Some(match wrr.is_strict() {
                    true => WrrMode::Strict,
                    false => WrrMode::WorkConserving,
                }),
                ..SchedulerChange::default()
            };
        }
        let number = |name| support::sysctl(name).and_then(|s| s.parse::<u8>().ok());
        SchedulerChange {
            name: support::sysctl("net.mptcp.scheduler"),
            wrr_mode: number("net.mptcp.rr_cwnd_limited").map(|n| match n {
                0 => WrrMode::Strict,
                _ => WrrMode::WorkConserving,
            }),
            num_segments: number("net.mptcp.rr_num_segments"),
            opportunistic: number("net.mptcp.minrtt_opportunistic").map(|n| n != 0),
            penalise: number("net.mptcp.minrtt_penalise").map(|n| n != 0),
        }
    }
}

/// Returns the scheduler that a change leads to, where this kernel can have it.
fn next(change: &SchedulerChange, support: &Support) -> Result<Next, DaemonError> {
    let Some(name) = &change.name else {
        return Ok(Next::Same);
    };
    match support.require_scheduler(name) {
        Ok(()) => Ok(Next::Kernel),
        Err(_) if weights::are_pacing(name) => Ok(Next::StandIn),
        Err(_) if name == offer::ACTIVE_STANDBY => Err(DaemonError::Lacking(
            "this kernel has no scheduler \"active-standby\"\n  to enable it: give the \
             accesses an order at the device: braid set priority NAME=1 NAME=2"
                .into(),
        )),
        Err(e) if e.is_lacking() => Err(DaemonError::Lacking(format!(
            "{e}\n  to enable it: choose one of these, or engine = \"mpquic\", which has it"
        ))),
        Err(e) => Err(e.into()),
    }
}

/// The settings of Braid's own kernel that a change asks for: name, what it is, value.
fn settings(
    change: &SchedulerChange,
    stands_in: bool,
) -> Vec<(&'static str, &'static str, String)> {
    let flag = |on: bool| u8::from(on).to_string();
    let mode = change.wrr_mode.filter(|_| !stands_in);
    let all = [
        (
            "net.mptcp.rr_cwnd_limited",
            "a mode of round robin",
            mode.map(|m| flag(m == WrrMode::WorkConserving)),
        ),
        (
            "net.mptcp.rr_num_segments",
            "a quota of round robin",
            change.num_segments.map(|n| n.to_string()),
        ),
        (
            "net.mptcp.minrtt_opportunistic",
            "an option of minrtt",
            change.opportunistic.map(flag),
        ),
        (
            "net.mptcp.minrtt_penalise",
            "an option of minrtt",
            change.penalise.map(flag),
        ),
    ];
    let wanted = all.into_iter();
    wanted
        .filter_map(|(name, what, value)| Some((name, what, value?)))
        .collect()
}

/// Refuses what the running kernel lacks for a change.
fn require(change: &SchedulerChange, stands_in: bool) -> Result<(), DaemonError> {
    if stands_in && change.num_segments.is_some() {
        return Err(DaemonError::Lacking(
            "this kernel gives out 64 kB at a time: the quota of round robin cannot be set\n  \
             to enable it: leave the quota out; Braid's own kernel, that of the lab's virtual \
             clock, has it"
                .into(),
        ));
    }
    for (name, what, _) in settings(change, stands_in) {
        if support::sysctl(name).is_none() {
            return Err(DaemonError::Lacking(format!(
                "this kernel cannot set {what} ({name} is not there)\n  to enable it: leave it out; \
                 Braid's own kernel, that of the lab's virtual clock, has it"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_that_were_asked_for() {
        let change = SchedulerChange {
            wrr_mode: Some(WrrMode::WorkConserving),
            penalise: Some(false),
            ..SchedulerChange::default()
        };
        let of = |stands_in| {
            let all = settings(&change, stands_in);
            all.into_iter().map(|(n, _, v)| (n, v)).collect::<Vec<_>>()
        };
        let penalise = ("net.mptcp.minrtt_penalise", "0".to_owned());
        let mode = ("net.mptcp.rr_cwnd_limited", "1".to_owned());
        assert_eq!(of(false), [mode, penalise.clone()]);
        assert_eq!(of(true), [penalise]);
        assert!(settings(&SchedulerChange::default(), false).is_empty());
    }
}
