//! The clock that a scenario needs.

use braid_mptcp::offer;

use super::{Case, Scenario};

impl Scenario {
    /// Reason why the scenario runs on the virtual clock alone, whose kernel is Braid's
    /// own; `None`: a stock kernel has all of it.
    pub fn needs_virtual_clock(&self) -> Option<String> {
        if let Some(name) = self.network.module_parameters.keys().next() {
            return Some(format!("it sets {name}, a parameter of the kernel"));
        }
        self.cases.iter().find_map(|case| {
            let what = own_kernel(case)?;
            Some(format!("case \"{}\" has {what}", case.name))
        })
    }
}

/// Setting of an MPTCP case that only Braid's own kernel has.
fn own_kernel(case: &Case) -> Option<String> {
    if !case.engine.get().has_subflows() {
        return None;
    }
    let scheduler = case.scheduler.as_deref();
    if let Some(name) = scheduler.filter(|name| !offer::ON_STOCK_KERNELS.contains(name)) {
        return Some(format!("the scheduler \"{name}\""));
    }
    let own = [
        ("num_segments", case.num_segments.is_some()),
        ("opportunistic", case.opportunistic.is_some()),
        ("penalise", case.penalise.is_some()),
    ];
    let (key, _) = own.into_iter().find(|(_, set)| *set)?;
    Some(format!("`{key}`"))
}
