//! The repeats of each case brought together: medians with their range, the
//! paper's numbers beside ours. The table and the report both show these.

use std::collections::BTreeMap;

use braid_core::stats::{Percentiles, median};

use crate::summary::{CaseResult, Host, MediumUse, PaperFigure, Recovery, Summary};

/// Median and range over the repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many repeats have the value.
    pub n: usize,
}

impl Spread {
    /// Returns the spread of the finite ones of `values`; `None` where there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let v: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let min = v.iter().copied().reduce(f64::min)?;
        let max = v.iter().copied().reduce(f64::max)?;
        Some(Self {
            median: median(&v),
            min,
            max,
            n: v.len(),
        })
    }
}

/// One case over all its repeats. Values are of the repeats that did not fail.
#[derive(Clone, Debug, Default)]
pub struct Case<'a> {
    /// Name of the case.
    pub name: &'a str,
    /// Its repeats, failed ones too, in the order in which they ran.
    pub runs: Vec<&'a CaseResult>,
    /// The paper's figures for it.
    pub paper: Vec<&'a PaperFigure>,
}

impl<'a> Case<'a> {
    /// The repeats that did not fail.
    pub fn good(&self) -> impl Iterator<Item = &'a CaseResult> + '_ {
        self.runs.iter().copied().filter(|r| r.failed.is_none())
    }

    /// Spread of a value over the good repeats.
    pub fn spread(&self, value: impl Fn(&CaseResult) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.good().filter_map(value))
    }

    /// Median of a value over the good repeats.
    pub fn median(&self, value: impl Fn(&CaseResult) -> Option<f64>) -> Option<f64> {
        self.spread(value).map(|s| s.median)
    }

    /// Median of one number of the latency.
    pub fn latency(&self, part: impl Fn(&Percentiles) -> f64) -> Option<f64> {
        self.median(|r| r.latency_ms.as_ref().map(&part))
    }

    /// Median share per access, of bytes or of packets.
    pub fn share(&self, packets: bool) -> BTreeMap<&'a str, f64> {
        let of = |r: &'a CaseResult| if packets { &r.packet_share } else { &r.share };
        let mut names: Vec<&str> = self
            .good()
            .flat_map(|r| of(r).keys().map(String::as_str))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .filter_map(|n| {
                // An access that carried nothing in one repeat counts as zero there.
                let v = self.good().filter(|r| !of(r).is_empty());
                let v: Vec<f64> = v.map(|r| of(r).get(n).copied().unwrap_or(0.0)).collect();
                Some((n, Spread::of(v)?.median))
            })
            .collect()
    }

    /// `Some(false)` if any repeat got a wrong byte, `Some(true)` if all that
    /// were verified were right.
    pub fn intact(&self) -> Option<bool> {
        let mut seen = None;
        for ok in self.good().filter_map(|r| r.intact) {
            seen = Some(seen.unwrap_or(true) && ok);
        }
        seen
    }

    /// Why repeats failed, with their number.
    pub fn failures(&self) -> impl Iterator<Item = (u32, &'a str)> + '_ {
        self.runs
            .iter()
            .filter_map(|r| Some((r.repeat, r.failed.as_deref()?)))
    }

    /// Whether no repeat has numbers.
    pub fn failed(&self) -> bool {
        self.good().next().is_none()
    }

    /// Notes of all repeats, each once.
    pub fn notes(&self) -> Vec<&'a str> {
        let mut out: Vec<&str> = Vec::new();
        for n in self.runs.iter().flat_map(|r| &r.notes) {
            if !out.contains(&n.as_str()) {
                out.push(n);
            }
        }
        out
    }

    /// Accesses that the best single path is the best of, where not all were measured alone.
    pub fn measured_alone(&self) -> Vec<&'a str> {
        let mut out: Vec<&str> = Vec::new();
        for a in self.good().flat_map(|r| &r.measured_alone) {
            if !out.contains(&a.as_str()) {
                out.push(a);
            }
        }
        out
    }

    /// Host pauses over all repeats.
    pub fn host(&self) -> Host {
        self.runs.iter().fold(Host::default(), |h, r| Host {
            late_wakes: h.late_wakes + r.host.late_wakes,
            max_late_ms: h.max_late_ms.max(r.host.max_late_ms),
        })
    }

    /// Whether the host paused for more than 1 ms while it ran.
    pub fn paused(&self) -> bool {
        self.host().max_late_ms > PAUSE_MS
    }

    /// Outages of all good repeats.
    pub fn recoveries(&self) -> impl Iterator<Item = &'a Recovery> + '_ {
        self.good().flat_map(|r| &r.recoveries)
    }

    /// Median use of each shared medium.
    pub fn media(&self) -> BTreeMap<&'a str, MediumUse> {
        let mut names: Vec<&str> = self
            .good()
            .flat_map(|r| r.media.keys().map(String::as_str))
            .collect();
        names.sort_unstable();
        names.dedup();
        let of = |name: &str, f: fn(&MediumUse) -> f64| self.median(|r| r.media.get(name).map(f));
        names
            .into_iter()
            .filter_map(|n| {
                let busy = of(n, |m| m.busy)?;
                let collisions = of(n, |m| m.collisions)?;
                Some((n, MediumUse { busy, collisions }))
            })
            .collect()
    }

    /// The paper's number for a field, e.g. `goodput_mbps`, `latency_ms.mean`.
    pub fn paper(&self, field: &str) -> Option<f64> {
        self.paper
            .iter()
            .find(|p| p.field == field)
            .map(|p| p.value)
    }

    /// The first repeat, for what all repeats have in common.
    pub fn first(&self) -> &'a CaseResult {
        self.runs[0]
    }
}

/// A host pause shorter than this is no news, ms.
pub const PAUSE_MS: f64 = 1.0;

/// The cases of a run in the order in which they first ran.
pub fn cases(summary: &Summary) -> Vec<Case<'_>> {
    let mut out: Vec<Case<'_>> = Vec::new();
    for r in &summary.cases {
        match out.iter_mut().find(|c| c.name == r.name) {
            Some(c) => c.runs.push(r),
            None => out.push(Case {
                name: &r.name,
                runs: vec![r],
                paper: summary.paper.iter().filter(|p| p.case == r.name).collect(),
            }),
        }
    }
    out
}

/// The paper's figures for what no case reproduces, by the paper's own names,
/// in order.
pub fn paper_only(summary: &Summary) -> Vec<(&str, Vec<&PaperFigure>)> {
    let mut out: Vec<(&str, Vec<&PaperFigure>)> = Vec::new();
    for p in &summary.paper {
        if summary.cases.iter().any(|c| c.name == p.case) {
            continue;
        }
        match out.iter_mut().find(|(n, _)| *n == p.case) {
            Some((_, v)) => v.push(p),
            None => out.push((&p.case, vec![p])),
        }
    }
    out
}

/// Names of all accesses: in the scenario's order where the summary knows it,
/// then any other by name.
pub fn accesses(summary: &Summary) -> Vec<String> {
    let mut out = summary.accesses.clone();
    let mut others: Vec<&String> = summary
        .cases
        .iter()
        .flat_map(|c| c.share.keys().chain(c.packet_share.keys()).chain(&c.access))
        .collect();
    others.sort();
    for o in others {
        if !out.contains(o) {
            out.push(o.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, repeat: u32, goodput: f64) -> CaseResult {
        CaseResult {
            name: name.to_owned(),
            repeat,
            goodput_mbps: goodput,
            share: BTreeMap::from([("b".to_owned(), 1.0)]),
            intact: Some(true),
            ..CaseResult::default()
        }
    }

    #[test]
    fn a_failed_repeat_is_not_averaged_in() {
        let mut s = Summary {
            cases: vec![
                run("x", 1, 10.0),
                run("y", 1, 1.0),
                run("x", 2, 0.0),
                run("x", 3, 30.0),
            ],
            ..Summary::default()
        };
        s.cases[2].failed = Some("no route".to_owned());
        let c = cases(&s);
        assert_eq!(c.iter().map(|c| c.name).collect::<Vec<_>>(), ["x", "y"]);
        let g = c[0].spread(|r| Some(r.goodput_mbps)).unwrap();
        assert_eq!((g.median, g.min, g.max, g.n), (20.0, 10.0, 30.0, 2));
        assert_eq!(c[0].failures().collect::<Vec<_>>(), [(2, "no route")]);
        assert!(!c[0].failed());
    }

    #[test]
    fn one_bad_byte_in_one_repeat_counts() {
        let mut s = Summary {
            cases: vec![run("x", 1, 1.0), run("x", 2, 1.0)],
            ..Summary::default()
        };
        assert_eq!(cases(&s)[0].intact(), Some(true));
        s.cases[1].intact = Some(false);
        assert_eq!(cases(&s)[0].intact(), Some(false));
    }

    #[test]
    fn order_is_the_scenarios() {
        let s = Summary {
            accesses: vec!["nr".to_owned(), "b".to_owned()],
            cases: vec![CaseResult {
                access: Some("a".to_owned()),
                ..run("x", 1, 1.0)
            }],
            ..Summary::default()
        };
        assert_eq!(accesses(&s), ["nr", "b", "a"]);
    }
}
