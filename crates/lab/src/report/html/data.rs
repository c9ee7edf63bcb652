//! Data of the charts, as JSON inside the page: columns of rounded numbers, so that a
//! long run stays a small file.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::ser::Serializer;

use crate::report::RunFiles;
use crate::report::cases::{Case, Spread, paper_only};
use crate::report::numbers::{of_wire, short};
use crate::summary::CaseResult;
use crate::timeline::measure::{Interval, Measure};
use crate::timeline::{MEASURES, TimelineRow};

/// Rows of the timeline that a page may carry; with more, neighbouring
/// intervals are brought together.
const MAX_ROWS: usize = 60_000;
/// Events that a page may carry per case.
const MAX_EVENTS: usize = 400;

/// Everything for `report.js`.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    accesses: &'a [String],
    /// In the order of their buttons.
    measures: Vec<&'static Measure>,
    cases: Vec<CaseData<'a>>,
    paper_only: Vec<(&'a str, Num)>,
    runs: Vec<Run<'a>>,
    recoveries: Vec<(usize, &'a str, Num, Num)>,
    /// The paper's time until an access was used again.
    paper_reuse: Vec<(&'a str, Num)>,
    /// Length of the intervals of the charts, ms, where they were brought together.
    #[serde(skip)]
    pub(super) thinned_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct CaseData<'a> {
    name: &'a str,
    failed: bool,
    /// The access of a single-path case.
    access: Option<&'a str>,
    /// Policy that decided its weights.
    policy: Option<&'a str>,
    /// Whether it had weights to begin with.
    weighted: bool,
    /// Payload / IP packet.
    payload: Option<f64>,
    /// Whether goodput is what it is about.
    bulk: bool,
    goodput: Option<[f64; 3]>,
    each: Vec<Num>,
    ceiling: Option<f64>,
    best: Option<f64>,
    /// Accesses that `best` is the best of, where not all were measured alone.
    alone: Vec<&'a str>,
    paper: Option<f64>,
    share: BTreeMap<&'a str, Num>,
    /// Mean, ms, if latency was measured.
    latency: Option<f64>,
    /// Goodput, that over what the wire allows, and mean latency, as the table has them.
    texts: Texts,
    cdf: Vec<(Num, Num)>,
}

/// Numbers of a case as the table has them: a chart that rounded them once more would
/// differ.
#[derive(Debug, Serialize)]
struct Texts {
    goodput: Option<String>,
    of_wire: Option<String>,
    latency: Option<String>,
}

/// Name of a measure: its values over time.
type Measures = BTreeMap<&'static str, Vec<Option<Num>>>;

/// The timeline of one repeat of a case.
#[derive(Debug, Serialize)]
struct Run<'a> {
    case: usize,
    repeat: u32,
    t: Vec<Num>,
    /// Per access, per measure: a value for each of `t`.
    series: Vec<(&'a str, Measures)>,
    /// Access, from, to, state: when an access was not up.
    states: Vec<(&'a str, Num, Num, &'a str)>,
    events: Vec<(Num, &'a str, &'a str)>,
}

/// A number with at most four significant digits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Num(f64);

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let v = self.0;
        if !v.is_finite() {
            return s.serialize_none();
        }
        if v == 0.0 {
            return s.serialize_i8(0);
        }
        let digits = 3 - v.abs().log10().floor() as i32;
        let rounded = if digits <= 0 {
            v.round()
        } else {
            let p = 10f64.powi(digits.min(12));
            (v * p).round() / p
        };
        // Whole numbers without `.0`.
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            s.serialize_i64(rounded as i64)
        } else {
            s.serialize_f64(rounded)
        }
    }
}

impl<'a> Data<'a> {
    pub(super) fn of(files: &'a RunFiles, cases: &[Case<'a>], order: &'a [String]) -> Self {
        let rows = files.timeline.len();
        let merge = rows.div_ceil(MAX_ROWS).max(1);
        let mut runs = Vec::new();
        for (i, c) in cases.iter().enumerate() {
            for r in &c.runs {
                runs.extend(run(files, i, r, order, merge));
            }
        }
        let recoveries = cases.iter().enumerate().flat_map(|(i, c)| {
            c.recoveries().map(move |r| {
                let or_nan = |v: Option<f64>| Num(v.unwrap_or(f64::NAN));
                (i, r.access.as_str(), or_nan(r.reuse_ms), or_nan(r.gap_ms))
            })
        });
        let mut measures: Vec<_> = MEASURES.iter().collect();
        measures.sort_by_key(|m| m.place);
        Self {
            accesses: order,
            measures,
            cases: cases.iter().map(case).collect(),
            paper_only: paper_only(&files.summary)
                .into_iter()
                .filter_map(|(n, p)| {
                    let p = p.iter().find(|p| p.field == "goodput_mbps")?;
                    Some((n, Num(p.value)))
                })
                .collect(),
            runs,
            recoveries: recoveries.collect(),
            paper_reuse: paper_reuse(cases),
            thinned_ms: (merge > 1).then_some(100 * merge as u64),
        }
    }

    /// Whether there is anything to draw over time.
    pub(super) fn has_time(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether there is a case whose weights a policy decided.
    pub(super) fn has_policy(&self) -> bool {
        self.runs
            .iter()
            .any(|r| self.cases[r.case].policy.is_some())
    }

    /// Whether there is a latency distribution.
    pub(super) fn has_cdf(&self) -> bool {
        self.cases.iter().any(|c| !c.cdf.is_empty())
    }

    /// Whether goodput is what the run is about.
    pub(super) fn has_goodput(&self) -> bool {
        self.cases.iter().any(|c| c.bulk && c.goodput.is_some())
    }

    /// As JSON that can stand inside a `script` element of a page: nothing in
    /// it can end that element or start another.
    pub(super) fn to_script(&self) -> String {
        let json = serde_json::to_string(self).expect("keys are strings");
        let mut out = String::with_capacity(json.len());
        for c in json.chars() {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => out.push(c),
            }
        }
        out
    }
}

/// Returns `recoveries.ACCESS.reuse_ms` of the paper for accesses that had outages.
fn paper_reuse<'a>(cases: &[Case<'a>]) -> Vec<(&'a str, Num)> {
    let mut out: Vec<(&str, Num)> = Vec::new();
    for p in cases.iter().flat_map(|c| &c.paper) {
        let access = p.field.strip_prefix("recoveries.");
        let Some(access) = access.and_then(|a| a.strip_suffix(".reuse_ms")) else {
            continue;
        };
        let had = cases
            .iter()
            .any(|c| c.recoveries().any(|r| r.access == access));
        if had && !out.iter().any(|o| o.0 == access) {
            out.push((access, Num(p.value)));
        }
    }
    out
}

fn case<'a>(c: &Case<'a>) -> CaseData<'a> {
    let first = c.first();
    let bulk = first.traffic != "request-response";
    let goodput = c.spread(|r| Some(r.goodput_mbps));
    CaseData {
        name: c.name,
        failed: c.failed(),
        access: first.access.as_deref(),
        policy: first.policy.as_deref(),
        weighted: first.weights.is_some(),
        payload: c.median(|r| r.payload_fraction),
        bulk,
        goodput: goodput.map(
            |Spread {
                 median, min, max, ..
             }| [median, min, max],
        ),
        each: c.good().map(|r| Num(r.goodput_mbps)).collect(),
        ceiling: c.median(|r| r.ceiling_mbps),
        best: c.median(|r| r.best_single_mbps),
        alone: c.measured_alone(),
        paper: c.paper("goodput_mbps"),
        share: c
            .share(!bulk)
            .into_iter()
            .map(|(a, v)| (a, Num(v)))
            .collect(),
        latency: c.latency(|l| l.mean),
        texts: Texts {
            goodput: goodput.map(|s| short(s.median)),
            of_wire: c.median(|r| r.efficiency).map(of_wire),
            latency: c.latency(|l| l.mean).map(short),
        },
        // Of the first good repeat: distributions have no median.
        cdf: c
            .good()
            .find(|r| !r.latency_cdf.is_empty())
            .map(|r| r.latency_cdf.iter().map(|p| (Num(p.0), Num(p.1))).collect())
            .unwrap_or_default(),
    }
}

/// Milliseconds, so that rows of the same time meet.
fn millis(t_s: f64) -> i64 {
    (t_s * 1e3).round() as i64
}

fn run<'a>(
    files: &'a RunFiles,
    case: usize,
    r: &'a CaseResult,
    order: &'a [String],
    merge: usize,
) -> Option<Run<'a>> {
    let mine = |row: &&TimelineRow| row.case == r.name && row.repeat == r.repeat;
    let rows: Vec<&TimelineRow> = files.timeline.iter().filter(mine).collect();
    let times: BTreeSet<i64> = rows.iter().map(|r| millis(r.t_s)).collect();
    let times: Vec<i64> = times.into_iter().collect();
    if times.is_empty() {
        return None;
    }
    let ends: Vec<i64> = times.chunks(merge).map(|c| c[c.len() - 1]).collect();
    let mut series = Vec::new();
    let mut states = Vec::new();
    for a in order {
        let mut slots: Vec<Vec<&TimelineRow>> = vec![Vec::new(); ends.len()];
        for row in rows.iter().filter(|r| r.access == *a) {
            let i = ends.partition_point(|&e| e < millis(row.t_s));
            slots[i].push(row);
        }
        if slots.iter().all(Vec::is_empty) {
            continue;
        }
        states.extend(outages(a, &slots, &ends));
        series.push((a.as_str(), measures(&slots, &ends)));
    }
    let events = files
        .events
        .iter()
        .filter(|e| e.case == r.name && e.repeat == r.repeat)
        .take(MAX_EVENTS)
        .map(|e| (Num(e.t_s), e.access.as_str(), e.what.as_str()));
    Some(Run {
        case,
        repeat: r.repeat,
        t: ends.iter().map(|&t| Num(t as f64 / 1e3)).collect(),
        series,
        states,
        events: events.collect(),
    })
}

/// The start of interval `i`, ms.
fn start(ends: &[i64], i: usize) -> i64 {
    match i {
        0 => (ends[0] - (ends.get(1).copied().unwrap_or(ends[0] + 100) - ends[0])).max(0),
        i => ends[i - 1],
    }
}

fn measures(slots: &[Vec<&TimelineRow>], ends: &[i64]) -> Measures {
    let value = |m: &Measure, i: usize| {
        let ms = (ends[i] - start(ends, i)).max(1);
        let interval = Interval {
            rows: &slots[i],
            ms,
        };
        if interval.rows.is_empty() {
            None
        } else {
            (m.value)(&interval).map(Num)
        }
    };
    MEASURES
        .iter()
        .map(|m| (m.key, (0..slots.len()).map(|i| value(m, i)).collect()))
        .filter(|(_, v): &(_, Vec<Option<Num>>)| v.iter().flatten().any(|n| n.0 != 0.0))
        .collect()
}

/// The spans in which the link of an access was not up.
fn outages<'a>(
    access: &'a str,
    slots: &[Vec<&'a TimelineRow>],
    ends: &[i64],
) -> Vec<(&'a str, Num, Num, &'a str)> {
    let mut out: Vec<(&str, Num, Num, &str)> = Vec::new();
    let mut open: Option<(i64, &str)> = None;
    for (i, rows) in slots.iter().enumerate() {
        let state = rows.last().map(|r| r.state.as_str());
        let state = state.filter(|s| matches!(*s, "down" | "blackhole"));
        if open.map(|o| o.1) == state {
            continue;
        }
        let at = start(ends, i);
        if let Some((from, s)) = open.take() {
            out.push((access, Num(from as f64 / 1e3), Num(at as f64 / 1e3), s));
        }
        open = state.map(|s| (at, s));
    }
    if let (Some((from, s)), Some(&end)) = (open, ends.last()) {
        out.push((access, Num(from as f64 / 1e3), Num(end as f64 / 1e3), s));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(v: f64) -> String {
        serde_json::to_string(&Num(v)).unwrap()
    }

    #[test]
    fn numbers_are_short() {
        for (v, s) in [
            (0.0, "0"),
            (1234.567, "1235"),
            (123_456.0, "123456"),
            (0.012_345_6, "0.01235"),
            (12.0, "12"),
            (f64::NAN, "null"),
            (-2.345_67, "-2.346"),
            (1e-300, "0"),
        ] {
            assert_eq!(json(v), s);
        }
    }

    #[test]
    fn charts_round_as_the_table_does() {
        // Rounded to four digits first, this would be 97.4 and 97.25.
        let result = CaseResult {
            goodput_mbps: 97.345_01,
            ceiling_mbps: Some(100.1),
            efficiency: Some(0.972_478),
            ..CaseResult::default()
        };
        let all = [Case {
            name: "x",
            runs: vec![&result],
            paper: Vec::new(),
        }];
        let data = serde_json::to_value(case(&all[0])).unwrap();
        assert_eq!(data["texts"]["goodput"], "97.3");
        assert_eq!(data["texts"]["of_wire"], "97.2 %");
        assert_eq!(data["goodput"][0], 97.345_01);
    }

    #[test]
    fn outages_are_spans() {
        let row = |state: &str| TimelineRow {
            state: state.to_owned(),
            ..TimelineRow::default()
        };
        let rows: Vec<TimelineRow> = ["up", "down", "down", "stale", "blackhole"].map(row).into();
        let slots: Vec<Vec<&TimelineRow>> = rows.iter().map(|r| vec![r]).collect();
        let got = outages("a", &slots, &[100, 200, 300, 400, 500]);
        let want = [
            ("a", Num(0.1), Num(0.3), "down"),
            ("a", Num(0.4), Num(0.5), "blackhole"),
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn bytes_become_rates_also_when_brought_together() {
        let rows: Vec<TimelineRow> = (1..=4)
            .map(|i| TimelineRow {
                t_s: f64::from(i) / 10.0,
                bytes: 125_000,
                ..TimelineRow::default()
            })
            .collect();
        let each: Vec<Vec<&TimelineRow>> = rows.iter().map(|r| vec![r]).collect();
        let pairs: Vec<Vec<&TimelineRow>> = rows.chunks(2).map(|c| c.iter().collect()).collect();
        assert_eq!(
            measures(&each, &[100, 200, 300, 400])["mbps"],
            [Some(Num(10.0)); 4]
        );
        assert_eq!(measures(&pairs, &[200, 400])["mbps"], [Some(Num(10.0)); 2]);
    }
}
