//! Content of the page outside its charts, ready for the template.

use crate::report::cases::Case;
use crate::report::columns::{Align, Column, Tone};
use crate::report::numbers::{of_wire, percent, plain, short};
use crate::summary::Summary;

/// One headline number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) value: String,
    pub(super) unit: &'static str,
    pub(super) label: String,
}

/// A table, column heads and rows.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) heads: Vec<Head>,
    pub(super) rows: Vec<Vec<CellView>>,
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) lines: Vec<String>,
    pub(super) right: bool,
}

#[derive(Debug)]
pub(super) struct CellView {
    pub(super) lines: Vec<String>,
    pub(super) paper: Option<String>,
    pub(super) range: Option<String>,
    /// Access, its place in the order of colours, per cent.
    pub(super) share: Vec<(String, usize, String, String)>,
    pub(super) class: &'static str,
    pub(super) right: bool,
}

/// Colours there are for accesses.
const COLOURS: usize = 8;

impl Table {
    pub(super) fn of(columns: &[Column], order: &[String]) -> Self {
        let head = |c: &Column| Head {
            // A title broken inside a word for the terminal is whole here.
            lines: c
                .title
                .replace("-\n", "")
                .lines()
                .map(str::to_owned)
                .collect(),
            right: c.align == Align::Right,
        };
        let count = columns.first().map_or(0, |c| c.cells.len());
        let cell = |c: &Column, row: usize| {
            let t = &c.cells[row];
            let colour = |a: &String| order.iter().position(|o| o == a).unwrap_or(0) % COLOURS;
            CellView {
                lines: t.main.lines().map(str::to_owned).collect(),
                paper: t.paper.clone(),
                range: t.range.clone(),
                share: t
                    .share
                    .iter()
                    .map(|(a, f)| {
                        let exact = format!("{:.3}", f * 100.0);
                        (plain(a), colour(a), exact, percent(*f, true))
                    })
                    .collect(),
                class: match t.tone {
                    Tone::Plain => "",
                    Tone::Good => "good",
                    Tone::Bad => "bad",
                },
                right: c.align == Align::Right,
            }
        };
        Self {
            heads: columns.iter().map(head).collect(),
            rows: (0..count)
                .map(|row| columns.iter().map(|c| cell(c, row)).collect())
                .collect(),
        }
    }
}

/// The comment at the head of a scenario: its paragraphs, each in parts, of which every second
/// one was between backticks.
pub(super) fn description(scenario: &str) -> Vec<Vec<String>> {
    let parts = |p: String| p.split('`').map(str::to_owned).collect();
    paragraphs(scenario).into_iter().map(parts).collect()
}

fn paragraphs(scenario: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for line in scenario.lines() {
        let Some(text) = line.trim_start().strip_prefix('#') else {
            break;
        };
        let last = out.last_mut().expect("never empty");
        match (text.trim(), last.is_empty()) {
            ("", true) => {}
            ("", false) => out.push(String::new()),
            (t, true) => last.push_str(t),
            (t, false) => {
                last.push(' ');
                last.push_str(t);
            }
        }
    }
    out.retain(|p| !p.is_empty());
    out
}

/// The conditions of the run.
pub(super) fn facts(s: &Summary) -> Vec<(&'static str, String)> {
    let repeats = s.cases.iter().map(|c| c.repeat).max().unwrap_or(0);
    let host = match s.host.late_wakes {
        0 => "none above 1 ms".to_owned(),
        n => format!("{n}, at most {} ms", short(s.host.max_late_ms)),
    };
    let mut out = vec![
        ("Started", s.started.replace('T', " ").replace('Z', " UTC")),
        ("Clock", s.clock.clone()),
        ("Seed", s.seed.to_string()),
    ];
    if repeats > 1 {
        out.push(("Repeats", format!("{repeats} (medians shown)")));
    }
    out.extend([
        ("Host pauses", host),
        ("Kernel", s.kernel.clone()),
        ("Braid", s.version.clone()),
    ]);
    out
}

/// The headline numbers: of the best case over several accesses, or, where
/// there is none, of the best case.
pub(super) fn cards(cases: &[Case<'_>]) -> Vec<Card> {
    let mut out = Vec::new();
    let several: Vec<&Case<'_>> = cases.iter().filter(|c| c.share(false).len() > 1).collect();
    let candidates: Vec<&Case<'_>> = if several.is_empty() {
        cases.iter().collect()
    } else {
        several
    };
    let requests = |c: &Case<'_>| c.first().traffic == "request-response";
    let goodput = |c: &Case<'_>| c.median(|r| Some(r.goodput_mbps)).unwrap_or(0.0);
    let bulk = candidates.iter().filter(|c| !requests(c) && !c.failed());
    if let Some(c) = bulk.max_by(|a, b| goodput(a).total_cmp(&goodput(b))) {
        let g = goodput(c);
        out.push(Card {
            value: short(g),
            unit: "Mbit/s",
            label: format!("goodput of {}", c.name),
        });
        if let Some(e) = c.median(|r| r.efficiency) {
            out.push(Card {
                value: of_wire(e).replace(" %", ""),
                unit: "%",
                label: "of what the wire allows".to_owned(),
            });
        }
        if let Some(b) = c.median(|r| r.best_single_mbps).filter(|b| *b > 0.0) {
            out.push(Card {
                value: format!("{:.2}", g / b),
                unit: "×",
                label: match &c.measured_alone()[..] {
                    [] => "the best single access".to_owned(),
                    some => format!("the best of those measured alone: {}", some.join(", ")),
                },
            });
        }
    }
    let quick = candidates
        .iter()
        .filter_map(|c| Some((c, c.latency(|l| l.mean)?)));
    if let Some((c, ms)) = quick.min_by(|a, b| a.1.total_cmp(&b.1)) {
        out.push(Card {
            value: short(ms),
            unit: "ms",
            label: match c.name.to_lowercase().contains("latency") {
                true => format!("mean, one way: {}", c.name),
                false => format!("mean one-way latency of {}", c.name),
            },
        });
    }
    let gaps = cases
        .iter()
        .flat_map(Case::recoveries)
        .filter_map(|r| r.gap_ms);
    if let Some(ms) = gaps.reduce(f64::max) {
        out.push(Card {
            value: short(ms),
            unit: "ms",
            label: "longest gap seen in an outage".to_owned(),
        });
    }
    let whole = cases.iter().filter_map(Case::intact);
    if let Some(ok) = whole.reduce(|a, b| a && b) {
        out.push(Card {
            value: if ok { "intact" } else { "CORRUPT" }.to_owned(),
            unit: "",
            label: "every byte received was compared".to_owned(),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use braid_core::stats::Percentiles;

    use super::*;
    use crate::report::cases::cases;
    use crate::summary::CaseResult;

    #[test]
    fn a_latency_is_named_once() {
        let label = |name: &str| {
            let mut summary = Summary::default();
            summary.cases.push(CaseResult {
                name: name.into(),
                traffic: "request-response".into(),
                latency_ms: Some(Percentiles::default()),
                ..CaseResult::default()
            });
            let all = cards(&cases(&summary));
            all.into_iter().find(|c| c.unit == "ms").unwrap().label
        };
        assert_eq!(label("latency on lifi"), "mean, one way: latency on lifi");
        assert_eq!(label("MPTCP"), "mean one-way latency of MPTCP");
    }

    #[test]
    fn the_best_of_some_accesses_is_not_called_the_best() {
        let mut summary = Summary::default();
        summary.cases.push(CaseResult {
            name: "MPTCP".into(),
            goodput_mbps: 851.0,
            best_single_mbps: Some(281.0),
            measured_alone: vec!["nr".into()],
            share: [("nr".to_owned(), 0.3), ("wifi".to_owned(), 0.7)].into(),
            ..CaseResult::default()
        });
        let label = |s: &Summary| {
            let all = cards(&cases(s));
            let times = all.into_iter().find(|c| c.unit == "×").unwrap();
            (times.value, times.label)
        };
        let some = "the best of those measured alone: nr";
        assert_eq!(label(&summary), ("3.03".into(), some.into()));
        summary.cases[0].measured_alone.clear();
        assert_eq!(label(&summary).1, "the best single access");
    }

    #[test]
    fn the_description_is_the_head_comment() {
        let text = "# One `long\n# line`.\n#\n# Two.\n\nname = \"x\"\n# not this\n";
        assert_eq!(
            description(text),
            [vec!["One ", "long line", "."], vec!["Two."]]
        );
        assert!(description("name = 1\n# no").is_empty());
    }
}
