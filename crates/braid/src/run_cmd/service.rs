//! `braid run --cgroup`: MPTCP for the programs of a cgroup that is there already,
//! such as that of a service.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
#[cfg(feature = "bpf")]
use {
    super::By, crate::congestion, anyhow::Context, braid_mptcp::bpf, braid_netns::error::LabError,
};

use super::{RunArgs, machine};

/// Attaches, says so, and waits for SIGINT or SIGTERM.
#[cfg(feature = "bpf")]
pub(super) fn run(group: &Path, args: &RunArgs) -> Result<ExitCode> {
    use nix::sys::signal::{SigSet, Signal};

    if args.by == By::Preload {
        return Err(LabError::BadInput(
            "programs that run already cannot be preloaded: leave out --by, or start the program \
             by braid run -- CMD"
                .into(),
        )
        .into());
    }
    braid_mptcp::cgroup::check(group).map_err(|e| LabError::BadInput(e.to_string()))?;
    let interrupts: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    interrupts.thread_block().context("block signals")?;

    let congestion = args.cc.as_deref().map(congestion::resolve);
    let congestion = congestion.transpose().map_err(machine)?;
    let mut attached = Vec::new();
    match bpf::use_mptcp(group) {
        Ok(a) => {
            attached.push(a);
            braid_api::note!(
                "braid: new TCP sockets of {} are MPTCP sockets",
                group.display()
            );
        }
        // With a congestion control there is something left to do.
        Err(e) if args.by == By::Auto && congestion.is_some() => {
            braid_api::note!("braid: warning: only the congestion control is set: {e}");
        }
        Err(e) => return Err(machine(e)),
    }
    if let Some(cc) = &congestion {
        attached.push(bpf::use_congestion_control(group, cc.name()).map_err(machine)?);
        braid_api::note!(
            "braid: new MPTCP connections of {} have the congestion control {}",
            group.display(),
            cc.name()
        );
    }
    braid_api::note!("braid: until interrupted (Ctrl-C)");
    let got = interrupts.wait().context("wait for an interrupt")?;
    Ok(ExitCode::from(if got == Signal::SIGINT { 130 } else { 0 }))
}

#[cfg(not(feature = "bpf"))]
pub(super) fn run(_: &Path, _: &RunArgs) -> Result<ExitCode> {
    Err(machine(super::by_bpf::without_bpf()))
}
