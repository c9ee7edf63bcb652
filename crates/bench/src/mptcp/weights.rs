//! Weights against their bars: constant, changed, and over unsaturated links; and
//! [over pairs](super::weights_pairs).

use std::collections::BTreeMap;

use anyhow::Result;
use braid_core::overhead::Transport;
use braid_core::stats::median;
use braid_lab::summary::CaseResult;
use clap::Args;

use super::steps::{Kept, Off, Step, bound, evaluate};
use super::weights_pairs;
use super::weights_plan::{
    BY_CAPACITY, MODES, RATIOS, SENT_MBPS, capacities, changed, constant, limited, named, ratio,
    steps, sweep,
};
use crate::figures::show;
use crate::report::{Comparison, Report};
use crate::runs::{RunArgs, Runs};

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

const PARTS: [&str; 5] = ["constant", "limited", "changed", "sweep", PAIRS];
/// Parts over the links of `static`, which have a section of the page of their own.
const OF_STATIC: [(&str, Plan); 4] = [
    (PARTS[0], constant),
    (PARTS[1], limited),
    (PARTS[2], changed),
    (PARTS[3], sweep),
];
const PAIRS: &str = "pairs";
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
    let wants = |part: &str| options.only.is_empty() || options.only.iter().any(|o| o == part);
    let enough = options.repeat >= FULL;
    let parts: Vec<_> = OF_STATIC.into_iter().filter(|p| wants(p.0)).collect();
    let mut met = true;
    if !parts.is_empty() {
        let runs = Runs::new(&options.runs, "weights")?;
        let full = enough && parts.len() == OF_STATIC.len();
        met &= of_static(runs, options.repeat, &parts, full)?;
    }
    if wants(PAIRS) {
        let runs = Runs::new(&options.runs, "weights")?;
        met &= weights_pairs::run(runs, options.repeat, enough)?;
    }
    Ok(met)
}

fn of_static(
    mut runs: Runs,
    repeat: u32,
    parts: &[(&'static str, Plan)],
    full: bool,
) -> Result<bool> {
    let total = repeat as usize * parts.len();
    let mut m = Measured::default();
    for n in 1..=repeat {
        for (part, plan) in parts {
            let scenario = plan(n)?;
            let files = runs.piece(&format!("{part}-{n:02}"), &scenario, total)?;
            match *part {
                "constant" => m.constant.extend(files.summary.cases),
                "limited" => m.limited.extend(files.summary.cases),
                _ => {
                    for step in steps(&scenario)? {
                        let kept = evaluate(&files.timeline, &step);
                        m.steps.push((part, step, kept));
                    }
                    m.changed.extend(files.summary.cases);
                }
            }
        }
    }
    runs.finish(m.judge()?, "weights", full)
}

/// Results of the runs.
#[derive(Debug, Default)]
struct Measured {
    constant: Vec<CaseResult>,
    limited: Vec<CaseResult>,
    changed: Vec<CaseResult>,
    /// Steps of each repeat of `changed` and of the sweep.
    steps: Vec<(&'static str, Step, Option<Kept>)>,
}

/// Median, and the worst of values where `worst` chooses between two.
pub(super) fn median_and(values: &[f64], worst: fn(f64, f64) -> f64) -> Option<(f64, f64)> {
    let last = values.iter().copied().reduce(worst)?;
    Some((median(values), last))
}

impl Measured {
    fn judge(&self) -> Result<Report> {
        let mut report = Report::default();
        let rates: BTreeMap<String, f64> = capacities()?.into_iter().collect();
        self.by_capacity(&mut report);
        self.ratios(&mut report, &rates);
        self.changes(&mut report, &rates);
        self.unsaturated(&mut report);
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

    /// Adds the bars that hold for all runs.
    fn whole(&self, report: &mut Report) {
        let parts = [&self.constant, &self.limited, &self.changed];
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
