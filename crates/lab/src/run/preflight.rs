//! Requirements on the kernel for a scenario to run on it.

use braid_mptcp::offer;
use braid_mptcp::support::Support;

use super::kernel_features::Controls;
use crate::scenario::{Case, Place, Scenario, Traffic};
use braid_netns::error::LabError;

/// Options that run a scenario on Braid's own kernel.
const BRAIDS_KERNEL: &str = "--clock virtual, after make kernel guest";

/// Fails before anything is built where no case can run; brings the congestion
/// controls that the kernel lacks.
pub(super) fn preflight(scenario: &Scenario) -> Result<Controls, LabError> {
    let support = Support::detect();
    let mut controls = Controls::new(support.clone());
    let mptcp = |c: &Case| c.engine.get().has_subflows() || c.bystanders.iter().any(|b| b.mptcp);
    if scenario.cases.iter().any(mptcp) {
        support.require().map_err(missing)?;
    }
    let packets = |c: &Case| {
        let of_hosts = |(t, from): (&Traffic, Place)| from == Place::Lan && t.is_udp();
        !c.engine.get().in_kernel() && c.traffics().any(of_hosts)
    };
    if scenario.cases.iter().any(packets) {
        // Connections of hosts go without; their packets go through a tunnel.
        braid_netns::tun_usable()?;
    }
    for case in &scenario.cases {
        if !case.engine.get().in_kernel() {
            // Checked as the scenario was read: nothing of it is the kernel's.
            continue;
        }
        if let Some(name) = &case.scheduler {
            controls.require_scheduler(name).map_err(missing)?;
        }
        let others = case.bystanders.iter().filter(|b| b.count > 0);
        let unused = case.cc.is_some() && controls.of_case(case).is_none();
        let own = case.cc.iter().filter(|_| !unused);
        for cc in own.chain(others.filter_map(|b| b.cc.as_ref())) {
            controls.require(cc).map_err(missing)?;
        }
        controls.bring_usual_cc(case);
    }
    Ok(controls)
}

fn missing(e: braid_mptcp::Error) -> LabError {
    match e {
        braid_mptcp::Error::Lacking { what, remedy } => LabError::missing(what, remedy),
        e if e.is_misnamed() => LabError::BadInput(match e {
            braid_mptcp::Error::Scheduler { .. } => {
                format!("{e}\n  one of your own is in Braid's kernel: {BRAIDS_KERNEL}")
            }
            e => e.to_string(),
        }),
        e @ braid_mptcp::Error::Scheduler { .. } => {
            LabError::missing(e.to_string(), format!("run it there: {BRAIDS_KERNEL}"))
        }
        braid_mptcp::Error::CongestionControl {
            asked,
            offer,
            module,
            ..
        } => LabError::missing(
            format!("this kernel has no congestion control \"{asked}\" loaded; it has {offer}"),
            match module {
                _ if offer::CONGESTION_CONTROLS.contains(&&*asked) => format!(
                    "this braid was built without eBPF (feature bpf); or run it on Braid's own \
                     kernel: {BRAIDS_KERNEL}"
                ),
                Some(module) => format!("sudo modprobe {module}"),
                None => "name one of those, or install a kernel that has it".into(),
            },
        ),
        other => LabError::Failed(other.into()),
    }
}
