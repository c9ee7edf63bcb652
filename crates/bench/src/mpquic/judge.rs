//! Judgement of the runs of Multipath QUIC against its bars.

mod latency;
mod one_path;
mod outages;

use std::collections::BTreeMap;

use anyhow::Result;
use braid_lab::summary::CaseResult;
use braid_mpquic::Lane;

use super::bare::Bare;
use super::plan::{LANES, PUBLISHED, RATIOS, by_capacity, strict};
use crate::figures::Spread;
use crate::mptcp::steps::{Off, bound};
use crate::mptcp::weights_plan::{capacities, named};
use crate::report::{Comparison, Report};
pub(super) use outages::SORTS;

/// Minimum part of what strict weights allow, %.
const OF_BOUND: f64 = 95.0;

/// The cases of each part.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// One path without the lab.
    pub(super) bare: Vec<(Lane, Bare)>,
    /// One path of the lab.
    pub(super) single: Vec<CaseResult>,
    pub(super) real: Vec<CaseResult>,
    pub(super) shares: Vec<CaseResult>,
    pub(super) walk: Vec<CaseResult>,
    pub(super) pairs: Vec<(String, CaseResult)>,
    pub(super) outages: Vec<(&'static str, CaseResult)>,
    /// Whether packets were lost.
    pub(super) latency: Vec<(bool, CaseResult)>,
}

fn of_wire(case: &CaseResult) -> f64 {
    case.efficiency.unwrap_or(0.0) * 100.0
}

fn of_case<'a>(all: &'a [CaseResult], name: &'a str) -> impl Iterator<Item = &'a CaseResult> {
    all.iter().filter(move |c| c.name == name)
}

impl Measured {
    pub(super) fn judge(&self) -> Result<Report> {
        let mut report = Report::default();
        self.one_path(&mut report);
        self.by_capacity(&mut report);
        self.strict(&mut report)?;
        self.pairs(&mut report);
        self.walk(&mut report);
        self.interruptions(&mut report);
        self.latencies(&mut report);
        self.whole(&mut report);
        Ok(report)
    }

    fn by_capacity(&self, report: &mut Report) {
        let clocks = [
            ("real clock", &self.real),
            ("virtual clock, 0.3 of the rates", &self.shares),
        ];
        for (clock, cases) in clocks {
            for (lane, part) in LANES.into_iter().zip([97.0, 95.0]) {
                let name = by_capacity(lane);
                let Some(of) = Spread::of(of_case(cases, &name).map(of_wire)) else {
                    continue;
                };
                report.bar(
                    &format!("{clock}: static, {name}: of the wire"),
                    &format!("median at least {part} %"),
                    format!("{} %", of.text()),
                    of.median >= part,
                );
            }
        }
    }

    fn strict(&self, report: &mut Report) -> Result<()> {
        let rates: BTreeMap<String, f64> = capacities()?.into_iter().collect();
        let all_rates: f64 = rates.values().sum();
        for (lane, weights) in LANES.into_iter().flat_map(|l| RATIOS.map(|w| (l, w))) {
            let name = strict(lane, &weights);
            let weights: BTreeMap<String, f64> = named(&weights).into_iter().collect();
            let part = bound(&rates, &weights) / all_rates;
            let cases = || of_case(&self.shares, &name);
            let off = cases().map(|c| Off::of(&c.share, &weights).map_or(100.0, |o| o.points));
            let most = |c: &CaseResult| c.ceiling_mbps.unwrap_or(f64::INFINITY) * part;
            let of = cases().map(|c| c.goodput_mbps / most(c) * 100.0);
            let (Some(off), Some(of)) = (Spread::of(off), Spread::of(of)) else {
                continue;
            };
            report.bar(
                &format!("virtual clock: static, {name}: shares"),
                "within 0.5 points",
                format!("{} points", off.text()),
                off.most <= 0.5,
            );
            report.bar(
                &format!("virtual clock: static, {name}: of what they allow"),
                &format!("at least {OF_BOUND} %"),
                format!("{} %", of.text()),
                of.least >= OF_BOUND,
            );
        }
        Ok(())
    }

    fn pairs(&self, report: &mut Report) {
        let mut rows = Vec::new();
        let mut variants: Vec<&String> = self.pairs.iter().map(|(v, _)| v).collect();
        variants.sort();
        variants.dedup();
        for (variant, lane) in variants.into_iter().flat_map(|v| LANES.map(|l| (v, l))) {
            let mine = self
                .pairs
                .iter()
                .filter(|(v, c)| v == variant && c.name == lane);
            let cases: Vec<&CaseResult> = mine.map(|(_, c)| c).collect();
            let over = |c: &&CaseResult| c.best_single_mbps.map_or(0.0, |b| c.goodput_mbps / b);
            let (Some(over), Some(of)) = (
                Spread::of(cases.iter().map(over)),
                Spread::of(cases.iter().map(|c| of_wire(c))),
            ) else {
                continue;
            };
            let name = format!("virtual clock: pairs {variant}, {lane} lane");
            report.bar(
                &format!("{name}: over TCP on the better path"),
                "never below 1, within 1 % of noise",
                over.text(),
                over.least >= 0.99,
            );
            if variant == PUBLISHED && lane == "datagram" {
                report.bar(
                    &format!("{name}: of the wire, with one stream"),
                    "median at least 90 %",
                    format!("{} %", of.text()),
                    of.median >= 90.0,
                );
            }
            rows.push(vec![
                variant.clone(),
                lane.to_owned(),
                of.text(),
                over.text(),
            ]);
        }
        if !rows.is_empty() {
            report.comparisons.push(Comparison::new(
                "Pairs: median, least and greatest",
                [
                    "pair",
                    "lane",
                    "of the wire %",
                    "over TCP on the better path",
                ],
                rows,
            ));
        }
    }

    fn walk(&self, report: &mut Report) {
        if let Some(of) = Spread::of(self.walk.iter().map(of_wire)) {
            report.bar(
                "virtual clock, 0.3 of the rates: walk, weights that follow",
                "median at least 95 % of what the links could carry",
                format!("{} %", of.text()),
                of.median >= 95.0,
            );
        }
    }

    /// Adds the bar that holds for all runs.
    fn whole(&self, report: &mut Report) {
        let parts = [&self.single, &self.real, &self.shares, &self.walk];
        let named = self.pairs.iter().map(|(_, c)| c);
        let cut = self.outages.iter().map(|(_, c)| c);
        let messages = self.latency.iter().map(|(_, c)| c);
        let all = parts
            .into_iter()
            .flatten()
            .chain(named)
            .chain(cut)
            .chain(messages);
        report.every_byte(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn case(name: &str) -> CaseResult {
        CaseResult {
            name: name.to_owned(),
            intact: Some(true),
            ..CaseResult::default()
        }
    }

    pub(super) fn verdicts(m: &Measured) -> Vec<bool> {
        m.judge().unwrap().bars.iter().map(|b| b.pass).collect()
    }

    #[test]
    fn nothing_measured_meets_no_bar_but_that_of_bytes() {
        assert_eq!(verdicts(&Measured::default()), [true]);
    }

    #[test]
    fn what_strict_weights_allow_goes_with_the_ceiling() {
        let rates: BTreeMap<String, f64> = capacities().unwrap().into_iter().collect();
        let most = bound(&rates, &named(&RATIOS[0]).into_iter().collect());
        let all: f64 = rates.values().sum();
        let of = |part: f64| CaseResult {
            ceiling_mbps: Some(all * 0.3),
            goodput_mbps: most * 0.3 * part,
            share: named(&[1.0; 3]).into_iter().collect(),
            ..case(&strict("datagram", &RATIOS[0]))
        };
        for (part, met) in [(0.96, true), (0.94, false)] {
            let m = Measured {
                shares: vec![of(part)],
                ..Measured::default()
            };
            assert_eq!(verdicts(&m), [true, met, true]);
        }
    }
}
