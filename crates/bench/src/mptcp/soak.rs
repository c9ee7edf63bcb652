//! The soak on the real clock: does any run collapse?

use anyhow::Result;
use braid_core::stats::median;
use braid_lab::summary::CaseResult;
use braid_netns::error::LabError;
use clap::Args;

use super::soak_plan::{
    CLASSES, CONGESTION_CONTROLS, Class, PER_CLASS, classes, congestion_controls, pairs,
};
use crate::figures::show;
use crate::report::{Comparison, Report};
use crate::runs::{RunArgs, Runs};
use crate::text;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each of the 20 classes
    #[arg(long, default_value_t = PER_CLASS, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Only the classes of these congestion controls; `wrr`: weights
    #[arg(long, value_delimiter = ',', value_parser = CONGESTION_CONTROLS)]
    only: Vec<String>,
    #[command(flatten)]
    runs: RunArgs,
}

/// Minimum goodput of a run, as part of the median of its class.
const LEAST: f64 = 0.85;

/// Runs the soak, or takes the runs that there are; false if one collapsed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let ccs = congestion_controls()?;
    let mut classes = classes(&ccs, &pairs()?);
    let wanted = |c: &Class| options.only.is_empty() || options.only.contains(&c.cc);
    classes.retain(wanted);
    if classes.is_empty() {
        // The others are always there.
        return Err(LabError::missing("this kernel has no bbr", "modprobe tcp_bbr").into());
    }
    let mut runs = Runs::new(&options.runs, "soak")?;
    let total = classes.len() * options.repeat as usize;
    let mut results: Vec<Vec<CaseResult>> = vec![Vec::new(); classes.len()];
    // One run of each class, then the next: what is cut short is even.
    for n in 1..=options.repeat {
        for (class, into) in classes.iter().zip(&mut results) {
            let name = format!("{}-{n:02}", text::slug(&class.name()));
            let files = runs.piece(&name, &class.scenario(n)?, total)?;
            into.extend(files.summary.cases);
        }
    }
    let mut report = judge(&classes, &results);
    if !ccs.contains(&"bbr") {
        report.note("this kernel has no bbr (modprobe tcp_bbr)".to_owned());
    }
    let full = options.repeat >= PER_CLASS && classes.len() >= CLASSES;
    runs.finish(report, "soak", full)
}

/// The goodput of a run; a failed one carried nothing.
fn goodput(run: &CaseResult) -> f64 {
    match run.failed {
        None => run.goodput_mbps,
        Some(_) => 0.0,
    }
}

fn judge(classes: &[Class], results: &[Vec<CaseResult>]) -> Report {
    let mut report = Report::default();
    let mut rows = Vec::new();
    let (mut runs, mut below, mut least) = (0, Vec::new(), f64::INFINITY);
    for (class, of) in classes.iter().zip(results) {
        let rates: Vec<f64> = of.iter().map(goodput).collect();
        let middle = median(&rates);
        let worst = rates.iter().copied().fold(f64::INFINITY, f64::min);
        // Where nothing came at all, nothing is as it should be.
        let ratio = |rate: f64| if middle > 0.0 { rate / middle } else { 0.0 };
        runs += rates.len();
        least = least.min(ratio(worst));
        let fallen = rates.iter().filter(|r| ratio(**r) < LEAST).count();
        if fallen > 0 {
            below.push(format!("{} ({fallen})", class.name()));
        }
        let sum = |f: fn(&CaseResult) -> Option<u64>| of.iter().filter_map(f).sum::<u64>();
        let late = of.iter().map(|r| r.host.late_wakes).sum::<u64>();
        let latest = of.iter().map(|r| r.host.max_late_ms).fold(0.0, f64::max);
        rows.push(vec![
            class.name(),
            rates.len().to_string(),
            show(middle),
            show(worst),
            format!("{:.3}", ratio(worst)),
            sum(|r| r.window_overruns).to_string(),
            sum(|r| r.reinjections).to_string(),
            format!("{late}, {latest:.1} ms"),
        ]);
        for why in of.iter().filter_map(|r| r.failed.as_ref()) {
            report.note(format!("{}: a run failed: {why}", class.name()));
        }
    }
    report.bar(
        &format!("{runs} runs of 20 s, each against the median of its class"),
        &format!("none below {:.0} %", LEAST * 100.0),
        if below.is_empty() {
            format!("the least is {:.1} %", least * 100.0)
        } else {
            format!("below: {}", below.join(", "))
        },
        runs > 0 && below.is_empty(),
    );
    let wrong = results
        .iter()
        .flatten()
        .filter(|r| r.intact != Some(true))
        .count();
    report.bar(
        "every byte of the application",
        "right in every run",
        format!("{wrong} of {runs} runs not verified or wrong"),
        wrong == 0,
    );
    report.comparisons.push(Comparison::new(
        "Goodput per class, Mbit/s",
        [
            "class",
            "runs",
            "median",
            "worst",
            "worst / median",
            "NoDSSInWindow",
            "MPTCPRetrans",
            "host pauses",
        ],
        rows,
    ));
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class() -> Class {
        Class {
            pair: None,
            cc: "reno".to_owned(),
        }
    }

    fn result(goodput: f64) -> CaseResult {
        CaseResult {
            goodput_mbps: goodput,
            intact: Some(true),
            window_overruns: Some(2),
            ..CaseResult::default()
        }
    }

    #[test]
    fn one_run_below_its_class_fails() {
        let even = [1000.0, 990.0, 1010.0, 870.0, 1000.0].map(result).to_vec();
        let report = judge(&[class()], std::slice::from_ref(&even));
        assert!(report.all_met());
        let row = &report.comparisons[0].rows[0];
        assert_eq!(
            &row[..6],
            ["static, reno", "5", "1000", "870", "0.870", "10"]
        );
        let mut fallen = even;
        fallen[1].goodput_mbps = 840.0;
        let report = judge(&[class()], &[fallen]);
        assert!(!report.all_met());
        assert!(report.bars[0].measured.contains("static, reno (1)"));
    }

    #[test]
    fn runs_that_failed_are_not_left_out() {
        let mut runs = [1000.0, 1000.0, 1000.0].map(result).to_vec();
        runs[2].failed = Some("nothing was received".to_owned());
        assert!(!judge(&[class()], std::slice::from_ref(&runs)).all_met());
        for r in &mut runs {
            r.failed = Some("nothing was received".to_owned());
        }
        assert!(!judge(&[class()], &[runs]).all_met());
        let mut runs = [1000.0, 1000.0].map(result).to_vec();
        runs[0].intact = Some(false);
        assert!(!judge(&[class()], &[runs]).all_met());
        assert!(!judge(&[class()], &[Vec::new()]).all_met());
    }
}
