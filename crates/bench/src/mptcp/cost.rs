//! Cost of weights: processor time per gigabyte against stock MPTCP.

use std::time::Duration;

use anyhow::Result;
use braid_core::stats::median;
use braid_lab::summary::{CaseResult, EngineCpu};
use clap::Args;
use toml::{Table, Value};

use super::weights_plan;
use crate::figures::{median_interval, show};
use crate::report::{Comparison, Report};
use crate::runs::{RunArgs, Runs};
use crate::text;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each, in turn
    #[arg(long, default_value_t = FULL, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    #[command(flatten)]
    runs: RunArgs,
}

/// Runs of each in a full measurement, and pairs that have to come of them.
const FULL: u32 = 15;
const PAIRS: usize = 10;
/// Load that is sent, and how weights share it.
struct Load {
    name: &'static str,
    /// Mbit/s; `None`: all that the links take.
    mbps: Option<f64>,
    /// Weight of each access; `None`: by capacity.
    weights: Option<[(&'static str, f64); 3]>,
    /// Stock MPTCP's case that it is held against.
    beside: &'static str,
}

impl Load {
    /// Whether stock MPTCP's case is of this load: both divide it alike, and weights have to
    /// be as cheap.
    fn is_alike(&self) -> bool {
        self.name == self.beside
    }
}

/// Stock MPTCP divides all that the links take by capacity as well. Of less it leaves to each
/// access what the one before it in its order does not take.
const LOADS: [Load; 3] = [
    Load {
        name: "bulk",
        mbps: None,
        weights: None,
        beside: "bulk",
    },
    Load {
        name: "1 Gbit/s",
        mbps: Some(1000.0),
        // As stock MPTCP.
        weights: Some([("nr", 2.0), ("wifi", 97.0), ("lifi", 1.0)]),
        beside: "1 Gbit/s",
    },
    Load {
        name: "1 Gbit/s by capacity",
        mbps: Some(1000.0),
        weights: None,
        beside: "1 Gbit/s",
    },
];
/// Part by which goodputs may differ to be the same.
const SAME: f64 = 0.05;
/// More than stock MPTCP.
const MORE: f64 = 1.05;
/// With weights, and what it is held against.
const WEIGHTS: &str = "wrr";
const STOCK: &str = "cubic";

/// Runs the pairs, or takes those that there are; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut runs = Runs::new(&options.runs, "cost")?;
    let mut rounds = Vec::new();
    for n in 1..=options.pairs {
        let files = runs.piece(&format!("{n:02}"), &scenario(n)?, options.pairs as usize)?;
        rounds.push(files.summary.cases);
    }
    runs.finish(judge(&rounds), "cost", options.pairs >= FULL)
}

/// Each once, in an order that turns from round to round.
fn scenario(round: u32) -> Result<String> {
    let mut table = text::accesses_of("static", "cost")?;
    table.insert("seed".into(), i64::from(round).into());
    text::set_length(&mut table, Duration::from_secs(2), Duration::from_secs(10));
    let mut cases = Vec::new();
    for load in &LOADS {
        cases.push((WEIGHTS, load));
        if load.is_alike() {
            cases.push((STOCK, load));
        }
    }
    let turn = round as usize % cases.len();
    cases.rotate_left(turn);
    for (who, load) in cases {
        let mut keys = match who {
            // With all that a daemon does beside weights: probes, short queues.
            WEIGHTS => {
                let rates = match load.weights {
                    None => weights_plan::capacities()?,
                    Some(all) => all.map(|(name, w)| (name.to_owned(), w)).to_vec(),
                };
                let mut keys = text::wrr("work-conserving", &rates);
                keys.insert("path_manager".into(), "braid".into());
                keys
            }
            // As the kernel has it.
            cc => Table::from_iter([
                ("cc".to_owned(), Value::from(cc)),
                ("short_queues".to_owned(), false.into()),
            ]),
        };
        let mut traffic = Table::new();
        match load.mbps {
            None => drop(traffic.insert("kind".into(), "bulk".into())),
            Some(mbps) => {
                traffic.insert("kind".into(), "cbr".into());
                traffic.insert("rate".into(), format!("{mbps} Mbit/s").into());
                // Large writes, so that the application is a small part of the cost.
                traffic.insert("message_bytes".into(), 60_000.into());
            }
        }
        keys.insert("traffic".into(), traffic.into());
        text::push(&mut table, "case", text::mptcp(&name(who, load.name), keys));
    }
    text::to_text(&table)
}

fn name(who: &str, load: &str) -> String {
    format!("{who}, {load}")
}

/// A run's goodput in Mbit/s, and its processor time, s per GB of payload: of the
/// whole machine, and of the programs at the ends, path managers included. Beside stock MPTCP
/// those only answer the lab's questions, as they do with weights.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PerGb {
    mbps: f64,
    machine: f64,
    ends: f64,
}

/// `None` where the run did not carry what was sent: it is not comparable.
fn per_gb(run: &CaseResult, sent: Option<f64>) -> Option<PerGb> {
    let mbps = run.goodput_mbps;
    if run.failed.is_some() || sent.is_some_and(|s| (mbps / s - 1.0).abs() > 0.01) {
        return None;
    }
    let gb = mbps * run.seconds / 8e3;
    let managers = run.engine_cpu_seconds.map_or(0.0, EngineCpu::sum);
    Some(PerGb {
        mbps,
        machine: run.machine_cpu_seconds? / gb,
        ends: (run.cpu_seconds + managers) / gb,
    })
}

type Part = (&'static str, fn(&PerGb) -> f64);

/// Parts of `PerGb` that are compared.
const PARTS: [Part; 2] = [
    ("whole machine", |c| c.machine),
    ("programs at the ends", |c| c.ends),
];

fn judge(rounds: &[Vec<CaseResult>]) -> Report {
    let mut report = Report::default();
    let mut rows = Vec::new();
    for load in &LOADS {
        let of = |who: &str, load: &str, sent: Option<f64>| -> Vec<Option<PerGb>> {
            let name = name(who, load);
            let case = |r: &Vec<CaseResult>| per_gb(r.iter().find(|c| c.name == name)?, sent);
            rounds.iter().map(case).collect()
        };
        let weights = of(WEIGHTS, load.name, load.mbps);
        let stock = of(STOCK, load.beside, load.mbps);
        let pairs: Vec<_> = weights.iter().zip(&stock).filter_map(same).collect();
        let over = |part: fn(&PerGb) -> f64| -> Vec<f64> {
            pairs.iter().map(|(w, s)| part(w) / part(s)).collect()
        };
        let mut row = |who: &str, load: &str, costs: &[Option<PerGb>], more: [String; 2]| {
            let good: Vec<_> = costs.iter().flatten().collect();
            let mid = |part: fn(&PerGb) -> f64| {
                show(median(&good.iter().map(|c| part(c)).collect::<Vec<_>>()))
            };
            let all = [
                name(who, load),
                format!("{} of {}", good.len(), rounds.len()),
                mid(|c| c.mbps),
                mid(|c| c.machine),
                mid(|c| c.ends),
            ];
            rows.push(all.into_iter().chain(more).collect());
        };
        let more = PARTS.map(|(_, part)| format!("{:.3}", median(&over(part))));
        row(WEIGHTS, load.name, &weights, more);
        if load.is_alike() {
            row(STOCK, load.beside, &stock, [String::new(), String::new()]);
        }
        if let Some(mbps) = load.mbps {
            let carried = weights.iter().flatten().count();
            report.bar(
                &format!("{}: weights carry what is sent", load.name),
                &format!("within 1 % of {mbps} Mbit/s in every run"),
                format!("{carried} of {} runs", rounds.len()),
                carried == rounds.len(),
            );
        }
        for (what, part) in PARTS.into_iter().filter(|_| load.is_alike()) {
            let ratios = over(part);
            let interval = median_interval(&ratios).filter(|_| ratios.len() >= PAIRS);
            report.bar(
                &format!(
                    "{}: CPU time of weights over stock {STOCK}, {what}",
                    load.name
                ),
                &format!("below {MORE} with its interval, {PAIRS} pairs"),
                match interval {
                    None => format!("{} pairs are too few", ratios.len()),
                    Some((low, high)) => format!(
                        "{:.3} ({low:.3} to {high:.3}, 95 %, {} pairs)",
                        median(&ratios),
                        ratios.len()
                    ),
                },
                interval.is_some_and(|(_, high)| high < MORE),
            );
        }
    }
    report.comparisons.push(Comparison::new(
        "Processor time, s per GB of payload, medians of the runs that carried what was sent",
        [
            "case",
            "runs",
            "Mbit/s",
            "whole machine",
            "programs at the ends",
            "machine, over stock",
            "ends, over stock",
        ],
        rows,
    ));
    report
}

/// Both, where both carried the same.
fn same((weights, stock): (&Option<PerGb>, &Option<PerGb>)) -> Option<(PerGb, PerGb)> {
    let (w, s) = ((*weights)?, (*stock)?);
    ((w.mbps / s.mbps - 1.0).abs() <= SAME).then_some((w, s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_lab::scenario::PathManager;

    fn round(factor: f64) -> Vec<CaseResult> {
        let case = |who: &str, load: &str, cpu: f64| CaseResult {
            name: name(who, load),
            goodput_mbps: 1000.0,
            seconds: 10.0,
            machine_cpu_seconds: Some(cpu),
            cpu_seconds: cpu / 2.0,
            ..CaseResult::default()
        };
        let of = |l: &Load| {
            [
                case(WEIGHTS, l.name, 8.0 * factor),
                case(STOCK, l.beside, 8.0),
            ]
        };
        LOADS.iter().flat_map(of).collect()
    }

    #[test]
    fn the_whole_interval_has_to_be_below() {
        let cheap: Vec<_> = (0..12).map(|n| round(1.0 + 0.002 * f64::from(n))).collect();
        let report = judge(&cheap);
        assert!(report.all_met(), "{:?}", report.bars);
        assert_eq!(report.comparisons[0].rows[1][3], "6.40");
        let dear: Vec<_> = (0..12).map(|n| round(1.0 + 0.008 * f64::from(n))).collect();
        assert!(!judge(&dear).all_met());
        assert!(!judge(&cheap[..3]).all_met());
        // One of stock that did not come to its rate is no pair, and no more.
        let mut slow = cheap;
        slow[4][1].goodput_mbps = 900.0;
        slow[5][3].goodput_mbps = 900.0;
        assert!(judge(&slow).all_met());
        slow[5][2].goodput_mbps = 900.0;
        assert!(!judge(&slow).all_met());
    }

    #[test]
    fn each_is_first_in_turn() {
        let first = |n| {
            let s = text::parse(&scenario(n).unwrap()).unwrap();
            assert_eq!(s.cases.len(), 5);
            for c in &s.cases {
                let ours = c.name.starts_with(WEIGHTS);
                let managed = c.path_manager == PathManager::Braid;
                assert_eq!((managed, c.short_queues), (ours, ours), "{}", c.name);
            }
            s.cases[0].name.clone()
        };
        let all = [
            "cubic, bulk",
            "wrr, 1 Gbit/s",
            "cubic, 1 Gbit/s",
            "wrr, 1 Gbit/s by capacity",
            "wrr, bulk",
        ];
        assert_eq!([1, 2, 3, 4, 5].map(first), all);
    }
}
