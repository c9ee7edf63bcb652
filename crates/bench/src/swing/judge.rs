//! Judgement of engines over links that swing: beside one path alone, and the sum of both.

use braid_core::stats::median;
use braid_lab::summary::CaseResult;

use super::plan::{ACCESSES, ENGINES, Engine};
use crate::report::{Comparison, Report};

/// Part of the better path below which a run counts as below it: more than repeats differ by.
const BELOW: f64 = 0.99;
/// Part of the better path that no run may come to less of.
const LEAST: f64 = 0.95;
/// Part of runs that may be below [`BELOW`].
const MAX_BELOW: f64 = 0.005;
/// Parts that sustained bulk over recorded drives has to come to.
const DRIVE_OF_SUM: f64 = 0.95;
const DRIVE_OF_WIRE: f64 = 0.85;
/// Runs that are shown by name.
const SHOWN: usize = 10;

/// Cases over one pair of links.
#[derive(Debug)]
pub(super) struct Pair {
    what: String,
    cases: Vec<CaseResult>,
}

/// Rates of an engine over a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Outcome {
    mbps: f64,
    /// Rates on the paths alone, Mbit/s.
    alone: [f64; 2],
    /// Part of what the wire carries.
    of_wire: f64,
}

impl Outcome {
    fn of_better(&self) -> f64 {
        part(self.mbps, self.alone[0].max(self.alone[1]))
    }

    fn of_sum(&self) -> f64 {
        part(self.mbps, self.alone[0] + self.alone[1])
    }
}

/// Where nothing is to be had, all of it is.
fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { of / whole } else { 1.0 }
}

impl Pair {
    pub(super) fn new(what: String, cases: Vec<CaseResult>) -> Self {
        Self { what, cases }
    }

    /// Returns the rates of `engine`, if no case is missing.
    fn outcome(&self, engine: &Engine) -> Option<Outcome> {
        let case = |name: &str| self.cases.iter().find(|c| c.name == name);
        let alone = ACCESSES.map(|a| case(&format!("{} on {a}", engine.alone)));
        let both = case(engine.name)?;
        Some(Outcome {
            mbps: both.goodput_mbps,
            alone: [alone[0]?.goodput_mbps, alone[1]?.goodput_mbps],
            of_wire: both.efficiency.unwrap_or(0.0),
        })
    }
}

/// Judges random pairs and recorded drives.
pub(super) fn judge(random: &[Pair], drives: &[Pair]) -> Report {
    let mut report = Report::default();
    for (set, pairs) in [("random pairs", random), ("recorded drives", drives)] {
        if !pairs.is_empty() {
            of_set(&mut report, set, pairs);
        }
    }
    for engine in ENGINES.iter().filter(|_| !drives.is_empty()) {
        let outcomes: Vec<Outcome> = drives.iter().filter_map(|p| p.outcome(engine)).collect();
        if outcomes.is_empty() {
            continue;
        }
        let of_sum: Vec<f64> = outcomes.iter().map(Outcome::of_sum).collect();
        let of_wire: Vec<f64> = outcomes.iter().map(|o| o.of_wire).collect();
        for (of, least, all) in [
            ("the sum of both alone", DRIVE_OF_SUM, of_sum),
            ("the wire", DRIVE_OF_WIRE, of_wire),
        ] {
            let min = all.iter().copied().fold(f64::INFINITY, f64::min);
            report.bar(
                &format!("recorded drives: {}: of {of}", engine.name),
                &format!("at least {least} in every run"),
                format!("{min:.2} at least, median {:.2}", median(&all)),
                min >= least,
            );
        }
    }
    report.every_byte(random.iter().chain(drives).flat_map(|p| &p.cases));
    report
}

fn of_set(report: &mut Report, set: &str, pairs: &[Pair]) {
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for engine in &ENGINES {
        let of = |p: &Pair| Some((p.what.clone(), engine.name, p.outcome(engine)?));
        let outcomes: Vec<_> = pairs.iter().filter_map(of).collect();
        if outcomes.is_empty() {
            continue;
        }
        let better: Vec<f64> = outcomes.iter().map(|(.., o)| o.of_better()).collect();
        let sums: Vec<f64> = outcomes.iter().map(|(.., o)| o.of_sum()).collect();
        let wire: Vec<f64> = outcomes.iter().map(|(.., o)| o.of_wire).collect();
        let under = |least: f64| better.iter().filter(|p| **p < least).count();
        let worst = better.iter().copied().fold(f64::INFINITY, f64::min);
        let n = better.len();
        report.bar(
            &format!("{set}: {}: below the better path alone", engine.name),
            &format!(
                "below {BELOW} in at most {} % of runs, none below {LEAST}",
                MAX_BELOW * 100.0
            ),
            format!(
                "{} of {n} below {BELOW}, {} below {LEAST}, the least {worst:.2}",
                under(BELOW),
                under(LEAST)
            ),
            under(BELOW) as f64 <= MAX_BELOW * n as f64 && worst >= LEAST,
        );
        rows.push(vec![
            engine.name.to_owned(),
            n.to_string(),
            format!("{:.1} %", 100.0 * part(under(BELOW) as f64, n as f64)),
            format!("{worst:.2}"),
            format!("{:.2}", median(&better)),
            format!("{:.2}", median(&sums)),
            format!("{:.2}", median(&wire)),
        ]);
        all.extend(outcomes);
    }
    report.comparisons.push(Comparison::new(
        format!("Bulk over {set}: parts of what one path carries alone, and both"),
        [
            "engine",
            "runs",
            "below the better path",
            "the least",
            "of the better, median",
            "of the sum, median",
            "of the wire, median",
        ],
        rows,
    ));
    all.sort_by(|a, b| a.2.of_better().total_cmp(&b.2.of_better()));
    let worst = all.iter().take(SHOWN).filter(|a| a.2.of_better() < BELOW);
    if worst.clone().next().is_none() {
        return;
    }
    let row = |(what, engine, o): &(String, &str, Outcome)| {
        vec![
            what.clone(),
            (*engine).to_owned(),
            format!("{:.1}", o.mbps),
            format!("{:.1}, {:.1}", o.alone[0], o.alone[1]),
            format!("{:.2}", o.of_better()),
        ]
    };
    report.comparisons.push(Comparison::new(
        format!("The worst over {set}, Mbit/s"),
        ["links", "engine", "both", "one alone", "of the better"],
        worst.map(row).collect(),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(mbps: [f64; 3]) -> Pair {
        let names = ["MPTCP", "TCP on a", "TCP on b"];
        let case = |(name, goodput_mbps): (&str, f64)| CaseResult {
            name: name.to_owned(),
            goodput_mbps,
            efficiency: Some(0.5),
            intact: Some(true),
            ..CaseResult::default()
        };
        Pair::new(
            "x".to_owned(),
            names.into_iter().zip(mbps).map(case).collect(),
        )
    }

    #[test]
    fn a_run_below_its_better_path_is_shown() {
        let mut all: Vec<Pair> = (0..199).map(|_| pair([30.0, 20.0, 10.0])).collect();
        let first = |pairs: &[Pair]| {
            let report = judge(pairs, &[]);
            let worst = report.comparisons.get(1).map(|c| c.rows.clone());
            (report.bars[0].clone(), worst.unwrap_or_default())
        };
        assert!(first(&all).0.pass && first(&all).1.is_empty());
        // One of 200 may be a little below.
        all.push(pair([19.6, 20.0, 10.0]));
        let (bar, worst) = first(&all);
        assert!(bar.pass, "{bar:?}");
        assert_eq!(worst[0][2..], ["19.6", "20.0, 10.0", "0.98"]);
        all.push(pair([19.6, 20.0, 10.0]));
        assert!(!first(&all).0.pass);
        all.truncate(199);
        all.push(pair([18.0, 20.0, 10.0]));
        assert!(!first(&all).0.pass);
    }

    #[test]
    fn drives_are_held_to_the_sum_and_the_wire() {
        let report = judge(&[], &[pair([28.6, 20.0, 10.0])]);
        let bar = |of: &str| report.bars.iter().find(|b| b.what.ends_with(of)).unwrap();
        assert!(bar("MPTCP: of the sum of both alone").pass);
        assert!(!bar("MPTCP: of the wire").pass);
    }
}
