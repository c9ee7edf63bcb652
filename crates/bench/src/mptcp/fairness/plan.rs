//! Runs by which fairness is measured.

use std::time::Duration;

use anyhow::Result;
use toml::Table;

use crate::text;

/// Coupled congestion controls that go by losses, as TCP Reno beside them does.
pub(super) const COUPLED: [&str; 3] = ["lia", "olia", "balia"];
/// Reno on each subflow: what the coupled ones must do better than.
pub(super) const UNCOUPLED: &str = "reno";
/// Coupled, by delay; it competes with its own kind.
pub(super) const BY_DELAY: &str = "wvegas";

/// TCP connections of others on two equal lines.
pub(super) struct Load {
    /// The variant: how many on a and b.
    pub(super) others: &'static str,
    /// The access with fewer of them.
    pub(super) better: &'static str,
    /// Percent of its bytes that an uncoupled connection sends on the better path if it
    /// takes on each what a TCP connection of its own would.
    pub(super) uncoupled: f64,
}

/// On the better path of `2 + 0` a TCP connection has the whole line, on the other a
/// third of it; with `2 + 5` a third and a sixth.
pub(super) const LOADS: [Load; 2] = [
    Load {
        others: "2 + 0",
        better: "b",
        uncoupled: 75.0,
    },
    Load {
        others: "2 + 5",
        better: "a",
        uncoupled: 100.0 * 2.0 / 3.0,
    },
];

impl Load {
    /// The name of a result of a case under this load.
    pub(super) fn case(&self, base: &str) -> String {
        format!("{}: {base}", self.others)
    }

    /// Name of the result of TCP on its best path under this load.
    pub(super) fn tcp(&self) -> String {
        self.case(&format!("TCP on {}", self.better))
    }

    /// Name of the result of MPTCP under this load.
    pub(super) fn mptcp(&self, cc: &str) -> String {
        self.case(&mptcp(cc))
    }
}

/// The name of a case of MPTCP.
pub(super) fn mptcp(cc: &str) -> String {
    format!("MPTCP {cc}")
}

/// One line, beside a TCP Reno connection. A single minute strays by up to 5 points from
/// the median of several, so that less than half of one is too little.
pub(super) fn share(seed: u32) -> Result<String> {
    let controls = |c: &Table| !c.contains_key("scheduler");
    timed("fairness-stock", seed, controls, (10, 30))
}

/// One line, wVegas beside Vegas.
pub(super) fn vegas(seed: u32) -> Result<String> {
    let multipath = |c: &Table| text::is_of(c, "mptcp");
    timed("fairness-stock-vegas", seed, multipath, (10, 30))
}

/// Two lines with unequal load: up to six connections share the 66 packets that a line
/// and its queue hold, so that windows are soon what they tend to.
pub(super) fn load(seed: u32) -> Result<String> {
    timed("fairness-stock-load", seed, |_| true, (6, 20))
}

/// A shipped scenario, each case with `(warmup, measured)` seconds.
fn timed(name: &str, seed: u32, keep: fn(&Table) -> bool, seconds: (u64, u64)) -> Result<String> {
    let mut table = text::shipped_cases(name, seed, keep)?;
    let (warmup, measured) = seconds;
    text::set_length(
        &mut table,
        Duration::from_secs(warmup),
        Duration::from_secs(measured),
    );
    text::to_text(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_plan_has_the_cases_that_are_judged() {
        let names = |plan: Result<String>| {
            let s = text::parse(&plan.unwrap()).unwrap();
            assert_eq!(s.seed, 4);
            let names = s.cases.into_iter().map(|c| c.name);
            names.collect::<BTreeSet<String>>()
        };
        let all = || [UNCOUPLED].into_iter().chain(COUPLED);
        assert_eq!(names(share(4)), all().map(mptcp).collect());
        assert_eq!(names(vegas(4)), BTreeSet::from([mptcp(BY_DELAY)]));
        let under = |l: &'static Load| all().map(move |cc| l.mptcp(cc)).chain([l.tcp()]);
        assert_eq!(names(load(4)), LOADS.iter().flat_map(under).collect());
    }

    /// Nothing but the kernel's own scheduler, and the load that a variant's name says.
    #[test]
    fn the_plans_are_of_the_stock_kernel() {
        for plan in [share(1), vegas(1), load(1)] {
            let s = text::parse(&plan.unwrap()).unwrap();
            for case in &s.cases {
                assert_eq!(case.scheduler, None);
                let counts = case.bystanders.iter().map(|b| b.count.to_string());
                let others: Vec<String> = counts.collect();
                let wanted = case.variant.as_deref().unwrap_or("1");
                assert_eq!(others.join(" + "), wanted, "{}", case.name);
            }
        }
    }
}
