//! What the kernel must have for a scenario to run on it.

use braid_mptcp::support::Support;

use crate::error::LabError;
use crate::scenario::{Case, Engine, Scenario};

/// Congestion controls that only Braid's own kernel has.
const OWN: [&str; 4] = ["lia", "olia", "balia", "wvegas"];

/// Fails before anything is built where no case can run.
pub(super) fn preflight(scenario: &Scenario) -> Result<(), LabError> {
    let support = Support::detect();
    let mptcp = |c: &Case| c.engine == Engine::Mptcp || c.bystanders.iter().any(|b| b.mptcp);
    if scenario.cases.iter().any(mptcp) {
        support.require().map_err(missing)?;
    }
    for case in &scenario.cases {
        if let Some(name) = &case.scheduler {
            support.require_scheduler(name).map_err(missing)?;
        }
        let others = case.bystanders.iter().filter(|b| b.count > 0);
        for cc in case.cc.iter().chain(others.filter_map(|b| b.cc.as_ref())) {
            support.require_congestion_control(cc).map_err(missing)?;
        }
    }
    Ok(())
}

fn missing(e: braid_mptcp::Error) -> LabError {
    match e {
        braid_mptcp::Error::Lacking { what, remedy } => LabError::missing(what, remedy),
        braid_mptcp::Error::CongestionControl { asked, available } => LabError::missing(
            format!("this kernel has no congestion control \"{asked}\" loaded; it has {available}"),
            match OWN.contains(&&*asked) {
                true => {
                    "run it on Braid's own kernel: --clock virtual, after make kernel guest".into()
                }
                false => format!("sudo modprobe tcp_{asked}"),
            },
        ),
        other => LabError::Failed(other.into()),
    }
}
