//! Weights against their bars: constant, changed, over unsaturated links, and
//! never below the best single path.

use std::collections::BTreeMap;

use anyhow::Result;
use braid_core::overhead::Transport;
use braid_core::stats::median;
use braid_lab::summary::CaseResult;
use clap::Args;

use super::soak_plan;
use super::steps::{Kept, Off, Step, bound, evaluate};
use super::weights_plan::{
    BY_CAPACITY, MODES, RATIOS, SENT_MBPS, capacities, changed, constant, limited, named, pair,
    ratio, steps, sweep,
};
use crate::figures::show;
use crate::report::{Comparison, Report};
use crate::runs::{RunArgs, Runs};
use crate::text;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often each run is made
    #[arg(long, default_value_t = FULL, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Only these parts: constant, limited, changed, sweep (Figure 6 of paper 000), pairs
    #[arg(long, value_delimiter = ',', value_parser = PARTS)]
    only: Vec<String>,
    #[command(flatten)]
    runs: RunArgs,
}

const PARTS: [&str; 5] = ["constant", "limited", "changed", "sweep", "pairs"];
/// Repeats that the bars ask for.
const FULL: u32 = 10;
/// Goodput over what strict weights allow.
const OF_BOUND: f64 = 0.93;
/// A wait for the kernel's least retransmission timeout is a stall, ms.
const STALL_MS: f64 = 200.0;

/// The text of a scenario for a seed.
type Plan = fn(u32) -> Result<String>;

/// Runs the parts, or takes the runs that there are; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut runs = Runs::new(&options.runs, "weights")?;
    let wants = |part: &str| options.only.is_empty() || options.only.iter().any(|o| o == part);
    let pairs = soak_plan::pairs()?;
    let each = |part| usize::from(wants(part));
    let total = options.repeat as usize
        * (PARTS[..4].iter().copied().map(each).sum::<usize>() + pairs.len() * each("pairs"));
    let mut m = Measured::default();
    for n in 1..=options.repeat {
        if wants("constant") {
            let files = runs.piece(&format!("constant-{n:02}"), &constant(n)?, total)?;
            m.constant.extend(files.summary.cases);
        }
        if wants("limited") {
            let files = runs.piece(&format!("limited-{n:02}"), &limited(n)?, total)?;
            m.limited.extend(files.summary.cases);
        }
        for (part, plan) in [("changed", changed as Plan), ("sweep", sweep)] {
            if !wants(part) {
                continue;
            }
            let scenario = plan(n)?;
            let files = runs.piece(&format!("{part}-{n:02}"), &scenario, total)?;
            for step in steps(&scenario)? {
                let kept = evaluate(&files.timeline, &step);
                m.steps.push((part, step, kept));
            }
            m.changed.extend(files.summary.cases);
        }
        for variant in pairs.iter().filter(|_| wants("pairs")) {
            let name = format!("pair-{}-{n:02}", text::slug(variant));
            let files = runs.piece(&name, &pair(variant, n)?, total)?;
            for mut case in files.summary.cases {
                case.name = format!("{variant}: {}", case.name);
                m.pairs.push(case);
            }
        }
    }
    let full = options.repeat >= FULL && options.only.is_empty();
    runs.finish(m.judge(&pairs)?, "weights", full)
}

/// What the runs came to.
#[derive(Debug, Default)]
struct Measured {
    constant: Vec<CaseResult>,
    limited: Vec<CaseResult>,
    changed: Vec<CaseResult>,
    pairs: Vec<CaseResult>,
    /// Of each repeat of `changed` and of the sweep: each step.
    steps: Vec<(&'static str, Step, Option<Kept>)>,
}

/// Median, and the worst of values where `worst` chooses between two.
fn median_and(values: &[f64], worst: fn(f64, f64) -> f64) -> Option<(f64, f64)> {
    let last = values.iter().copied().reduce(worst)?;
    Some((median(values), last))
}

impl Measured {
    fn judge(&self, pairs: &[String]) -> Result<Report> {
        let mut report = Report::default();
        let rates: BTreeMap<String, f64> = capacities()?.into_iter().collect();
        self.by_capacity(&mut report);
        self.ratios(&mut report, &rates);
        self.changes(&mut report, &rates);
        self.unsaturated(&mut report);
        self.never_below(&mut report, pairs);
        self.whole(&mut report);
        Ok(report)
    }

    fn by_capacity(&self, report: &mut Report) {
        for mode in MODES {
            let name = format!("{mode}, {BY_CAPACITY}");
            let of = |c: &&CaseResult| c.name == name;
            let runs = self.constant.iter().filter(of);
            let values: Vec<f64> = runs.map(|c| c.efficiency.unwrap_or(0.0) * 100.0).collect();
            if let Some((median, least)) = median_and(&values, f64::min) {
                report.bar(
                    &format!("static, {name}: of the wire"),
                    "median at least 97 %, worst at least 93 %",
                    format!("{median:.1} %, {least:.1} %, {} runs", values.len()),
                    median >= 97.0 && least >= 93.0,
                );
            }
        }
    }

    fn ratios(&self, report: &mut Report, rates: &BTreeMap<String, f64>) {
        for weights in &RATIOS {
            let name = format!("strict, {}", ratio(weights));
            let runs: Vec<&CaseResult> = self.constant.iter().filter(|c| c.name == name).collect();
            let weights: BTreeMap<String, f64> = named(weights).into_iter().collect();
            let most = bound(rates, &weights) * payload();
            let off: Vec<Option<Off>> = runs.iter().map(|c| Off::of(&c.share, &weights)).collect();
            let rates: Vec<f64> = runs.iter().map(|c| c.goodput_mbps).collect();
            split(report, &format!("static, {name}"), &off, &rates, most);
        }
    }

    fn changes(&self, report: &mut Report, rates: &BTreeMap<String, f64>) {
        let mut rows = Vec::new();
        let mut kinds: Vec<(&str, &Step)> = Vec::new();
        for (part, step, _) in &self.steps {
            if !kinds.contains(&(*part, step)) {
                kinds.push((*part, step));
            }
        }
        for (part, step) in kinds {
            let weights: Vec<String> = named(&[0.0; 3])
                .iter()
                .filter_map(|(a, _)| Some(step.weights.get(a)?.to_string()))
                .collect();
            let name = format!("{part}, {} s: {}", step.from_s, weights.join(":"));
            let same = |s: &&(&str, Step, Option<Kept>)| s.0 == part && s.1 == *step;
            let same = self.steps.iter().filter(same);
            let all: Vec<Option<&Kept>> = same.map(|s| s.2.as_ref()).collect();
            let off: Vec<Option<Off>> = all.iter().map(|s| s.map(|s| s.off)).collect();
            let goodput: Vec<f64> = all
                .iter()
                .map(|s| s.map_or(0.0, |s| s.mbps * payload()))
                .collect();
            let most = bound(rates, &step.weights) * payload();
            split(report, &name, &off, &goodput, most);
            let settled: Vec<f64> = all
                .iter()
                .map(|s| s.map_or(f64::INFINITY, |s| s.settled_s))
                .collect();
            if let Some((median, worst)) = median_and(&settled, f64::max) {
                report.bar(
                    &format!("{name}: settled"),
                    "within 1 s, every repeat",
                    format!("{} s, worst {} s", show(median), show(worst)),
                    worst <= 1.0,
                );
            }
            let share = |access: &String| {
                let of = |s: &&Kept| s.shares.get(access).copied().unwrap_or(0.0) * 100.0;
                let shares: Vec<f64> = all.iter().flatten().map(of).collect();
                format!("{:.2}", median(&shares))
            };
            let shares: Vec<String> = named(&[0.0; 3]).iter().map(|(a, _)| share(a)).collect();
            let slowest = goodput.iter().copied().fold(f64::INFINITY, f64::min);
            rows.push(vec![
                name,
                shares.join(" "),
                show(settled.iter().copied().fold(0.0, f64::max)),
                format!("{:.1} ({slowest:.1})", median(&goodput)),
                format!("{most:.1}"),
            ]);
        }
        if !rows.is_empty() {
            report.comparisons.push(Comparison::new(
                "Weights changed within one connection, from the second second of a step on",
                [
                    "step",
                    "shares 5G, Wi-Fi, LiFi %, medians",
                    "settled after s, worst",
                    "Mbit/s on the links less headers, median (worst)",
                    "at most",
                ],
                rows,
            ));
        }
    }

    fn unsaturated(&self, report: &mut Report) {
        let weights: BTreeMap<String, f64> = named(&RATIOS[2]).into_iter().collect();
        for mode in MODES {
            let runs: Vec<&CaseResult> = self.limited.iter().filter(|c| c.name == mode).collect();
            let off: Vec<f64> = runs
                .iter()
                .map(|c| Off::of(&c.share, &weights).map_or(100.0, |o| o.points))
                .collect();
            let rates: Vec<f64> = runs.iter().map(|c| c.goodput_mbps).collect();
            let (Some((median, worst)), Some((_, least))) =
                (median_and(&off, f64::max), median_and(&rates, f64::min))
            else {
                continue;
            };
            report.bar(
                &format!("{SENT_MBPS} Mbit/s sent, {mode}, {}", ratio(&RATIOS[2])),
                "shares within 3 points, all that was sent",
                format!("{median:.2}, worst {worst:.2} points; least {least:.1} Mbit/s"),
                worst <= 3.0 && least >= 0.99 * SENT_MBPS,
            );
        }
    }

    fn never_below(&self, report: &mut Report, pairs: &[String]) {
        let mut rows = Vec::new();
        for (variant, case) in pairs.iter().flat_map(|p| [(p, "stock"), (p, "wrr")]) {
            let name = format!("{variant}: {case}");
            let runs: Vec<&CaseResult> = self.pairs.iter().filter(|c| c.name == name).collect();
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
    }

    /// What holds for all runs.
    fn whole(&self, report: &mut Report) {
        let parts = [&self.constant, &self.limited, &self.changed, &self.pairs];
        report.every_byte(parts.into_iter().flatten());
        let weighted = self.constant.iter().chain(&self.changed);
        let gaps: Vec<f64> = weighted.filter_map(|c| c.gap_ms).collect();
        if let Some((median, worst)) = median_and(&gaps, f64::max) {
            report.bar(
                "static, constant and changed weights: the application's longest gap",
                &format!("no stall: below {STALL_MS} ms"),
                format!("{} ms, worst {} ms", show(median), show(worst)),
                worst < STALL_MS,
            );
        }
    }
}

/// Payload of an IP packet.
fn payload() -> f64 {
    Transport::Mptcp.payload_fraction(1500, 20)
}

/// The bars of strict weights: the split, and what it costs.
fn split(report: &mut Report, name: &str, off: &[Option<Off>], mbps: &[f64], most: f64) {
    let of = |part: fn(&Off) -> f64| -> Vec<f64> {
        let part = |o: &Option<Off>| o.as_ref().map_or(f64::INFINITY, part);
        off.iter().map(part).collect()
    };
    let (points, least) = (of(|o| o.points), of(|o| o.least * 100.0));
    let (Some((middle, worst)), Some((_, itself)), Some((rate, slowest))) = (
        median_and(&points, f64::max),
        median_and(&least, f64::max),
        median_and(mbps, f64::min),
    ) else {
        return;
    };
    report.bar(
        &format!("{name}: shares"),
        "within 0.5 points, the least weight's within 10 % of itself",
        format!("{middle:.2}, worst {worst:.2} points; worst {itself:.1} % of itself"),
        off.iter().all(|o| o.is_some_and(Off::kept)),
    );
    report.bar(
        &format!("{name}: goodput"),
        &format!("at least {:.0} % of {most:.1} Mbit/s", OF_BOUND * 100.0),
        format!(
            "{rate:.1}, worst {slowest:.1} Mbit/s ({:.1} %)",
            slowest / most * 100.0
        ),
        slowest >= OF_BOUND * most,
    );
}
