//! Weights over pairs of accesses: never below the best single path.

use anyhow::Result;
use braid_lab::summary::CaseResult;

use super::soak_plan;
use super::weights::median_and;
use super::weights_plan::pair;
use crate::figures::show;
use crate::report::{Comparison, Report};
use crate::runs::Runs;
use crate::text;

/// Runs each pair so often, or takes the runs that there are; false if a bar was missed.
pub(super) fn run(mut runs: Runs, repeat: u32, full: bool) -> Result<bool> {
    let pairs = soak_plan::pairs()?;
    let total = repeat as usize * pairs.len();
    let mut cases = Vec::new();
    for n in 1..=repeat {
        for variant in &pairs {
            let name = format!("pair-{}-{n:02}", text::slug(variant));
            let files = runs.piece(&name, &pair(variant, n)?, total)?;
            cases.extend(files.summary.cases.into_iter().map(|mut case| {
                case.name = format!("{variant}: {}", case.name);
                case
            }));
        }
    }
    runs.finish(judge(&cases, &pairs), "weights-pairs", full)
}

fn judge(cases: &[CaseResult], pairs: &[String]) -> Report {
    let mut report = Report::default();
    let mut rows = Vec::new();
    for (variant, case) in pairs.iter().flat_map(|p| [(p, "stock"), (p, "wrr")]) {
        let name = format!("{variant}: {case}");
        let runs: Vec<&CaseResult> = cases.iter().filter(|c| c.name == name).collect();
        let over: Vec<f64> = runs
            .iter()
            .map(|c| c.best_single_mbps.map_or(0.0, |b| c.goodput_mbps / b))
            .collect();
        let rates: Vec<f64> = runs.iter().map(|c| c.goodput_mbps).collect();
        let (Some((median, worst)), Some((rate, least))) =
            (median_and(&over, f64::min), median_and(&rates, f64::min))
        else {
            continue;
        };
        rows.push(vec![
            name.clone(),
            format!("{} ({})", show(rate), show(least)),
            format!("{median:.3} ({worst:.3})"),
        ]);
        report.bar(
            &format!("pairs {name}: over the best single path"),
            "never below 1, within 1 % of noise",
            format!("{median:.3}, worst {worst:.3}, {} runs", runs.len()),
            worst >= 0.99,
        );
    }
    if !rows.is_empty() {
        report.comparisons.push(Comparison::new(
            "Pairs: median and worst",
            ["case", "goodput Mbit/s", "over the best single path"],
            rows,
        ));
    }
    report.every_byte(cases.iter());
    report
}
