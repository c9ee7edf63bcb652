//! The bars of the lab's scenarios, from the files of their runs: tables of
//! medians and spreads for `docs/performance.md`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use braid_lab::report::RunFiles;
use braid_lab::report::cases::{Case, Spread, cases};
use braid_lab::summary::{CaseResult, Summary};
use clap::Args;

use crate::{machine, report};

/// From runs to tables.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folders of runs.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Name of the section, between `<!-- bench:NAME -->` comments.
    #[arg(long, default_value = "lab")]
    section: String,
    /// The page it goes into.
    #[arg(long, default_value = "docs/performance.md")]
    page: PathBuf,
}

/// Writes the tables of the runs; false if a case of them failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut text = format!("Measured on {}.\n", machine::describe());
    let mut good = true;
    for dir in &options.runs {
        let files =
            RunFiles::read(dir).with_context(|| format!("read the run in {}", dir.display()))?;
        good &= files.summary.cases.iter().all(|c| c.failed.is_none());
        text.push('\n');
        text.push_str(&table(&files.summary, &command(dir)));
    }
    print!("{text}");
    report::write_section(&options.page, &format!("bench:{}", options.section), &text)?;
    Ok(good)
}

/// The command line of a run, as its log begins.
fn command(dir: &Path) -> String {
    let log = std::fs::read_to_string(dir.join("run.log")).unwrap_or_default();
    let first = log.lines().next().unwrap_or_default();
    let line = first.split_once(": ").map_or(first, |(_, c)| c);
    // The program's own folder says nothing to another reader.
    match line.split_once("braid lab") {
        Some((_, rest)) => format!("braid lab{rest}"),
        None => line.to_owned(),
    }
}

/// A table in Markdown: medians over repeats, least and greatest in brackets.
fn table(summary: &Summary, command: &str) -> String {
    let all = cases(summary);
    let order = &summary.accesses;
    let repeats = all.iter().map(|c| c.runs.len()).max().unwrap_or(0);
    let columns: Vec<(&str, Value)> = COLUMNS
        .iter()
        .filter(|(_, value)| all.iter().any(|c| value(c, order).is_some()))
        .copied()
        .collect();
    let mut out = format!(
        "### `{}`\n\n`{command}` on {}, {repeats} repeat{}; host pauses above 1 ms: {}, {:.1} ms at most.\n\n",
        summary.scenario,
        summary.started.get(..10).unwrap_or_default(),
        if repeats == 1 { "" } else { "s" },
        summary.host.late_wakes,
        summary.host.max_late_ms,
    );
    let head: Vec<&str> = columns.iter().map(|c| c.0).collect();
    out.push_str(&format!(
        "| case | {} |\n|---|{}\n",
        head.join(" | "),
        "---|".repeat(head.len())
    ));
    for case in &all {
        let cells: Vec<String> = columns
            .iter()
            .map(|(_, value)| value(case, order).unwrap_or_default())
            .collect();
        out.push_str(&format!("| {} | {} |\n", case.name, cells.join(" | ")));
    }
    out
}

/// Value of a case; the accesses in the order of the scenario.
type Value = fn(&Case<'_>, &[String]) -> Option<String>;

const COLUMNS: [(&str, Value); 10] = [
    ("goodput Mbit/s", |c, _| {
        bulk(c).then(|| spread(c.spread(|r| Some(r.goodput_mbps)), 1.0))?
    }),
    ("of the wire %", |c, _| {
        spread(c.spread(|r| r.efficiency), 100.0)
    }),
    ("over best single", |c, _| {
        // The best of some is no best single path.
        let all = |r: &CaseResult| r.best_single_mbps.filter(|_| r.measured_alone.is_empty());
        spread(c.spread(|r| Some(r.goodput_mbps / all(r)?)), 1.0)
    }),
    ("share %", |c, order| {
        let share = c.share(false);
        let parts: Vec<String> = order
            .iter()
            .filter_map(|n| Some(format!("{n} {:.1}", share.get(n.as_str())? * 100.0)))
            .collect();
        (bulk(c) && parts.len() > 1).then(|| parts.join(", "))
    }),
    ("one way ms", |c, _| {
        spread(c.spread(|r| r.latency_ms.map(|l| l.mean)), 1.0)
    }),
    ("time s", |c, _| spread(c.spread(|r| r.completion_s), 1.0)),
    ("longest gap ms", |c, _| {
        bulk(c).then(|| spread(c.spread(|r| r.gap_ms), 1.0))?
    }),
    ("after outages: gap ms, used again ms", |c, _| outages(c)),
    ("runs with windows overrun", |c, _| {
        let of = |r: &&CaseResult| r.window_overruns.is_some_and(|n| n > 0);
        let runs = c.good().filter(of).count();
        (runs > 0).then(|| format!("{runs} of {}", c.good().count()))
    }),
    ("medium busy %", |c, _| {
        let busy: Vec<String> = c
            .media()
            .values()
            .map(|m| format!("{:.0}", m.busy * 100.0))
            .collect();
        (!busy.is_empty()).then(|| busy.join(", "))
    }),
];

fn bulk(c: &Case<'_>) -> bool {
    c.first().traffic != "request-response"
}

/// Outages of every access that has some: the longest gap in them, and the median time
/// from link-up until it carried data again.
fn outages(c: &Case<'_>) -> Option<String> {
    let mut names: Vec<&str> = c.recoveries().map(|r| r.access.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let parts: Vec<String> = names
        .into_iter()
        .map(|n| {
            let of = || c.recoveries().filter(move |r| r.access == n);
            let gap = of().filter_map(|r| r.gap_ms).fold(0.0, f64::max);
            let again = Spread::of(of().filter_map(|r| r.reuse_ms));
            format!(
                "{n} {gap:.0}, {}",
                spread(again, 1.0).unwrap_or_else(|| "never".into())
            )
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Median, and the range where there is one.
fn spread(s: Option<Spread>, scale: f64) -> Option<String> {
    let s = s?;
    let show = |v: f64| {
        let v = v * scale;
        if v.abs() >= 100.0 {
            format!("{v:.0}")
        } else if v.abs() >= 10.0 {
            format!("{v:.1}")
        } else {
            format!("{v:.2}")
        }
    };
    let median = show(s.median);
    Some(if show(s.min) == show(s.max) {
        median
    } else {
        format!("{median} ({}-{})", show(s.min), show(s.max))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_medians_and_only_columns_with_values() {
        let case = |goodput| CaseResult {
            name: "MPTCP".into(),
            traffic: "bulk".into(),
            goodput_mbps: goodput,
            efficiency: Some(goodput / 100.0),
            best_single_mbps: Some(50.0),
            window_overruns: Some(u64::from(goodput < 81.0)),
            ..CaseResult::default()
        };
        let summary = Summary {
            scenario: "pairs".into(),
            cases: vec![case(80.0), case(95.0), case(90.0)],
            ..Summary::default()
        };
        let text = table(&summary, "braid lab run pairs");
        assert!(text.contains("3 repeats"), "{text}");
        assert!(
            text.contains("| MPTCP | 90.0 (80.0-95.0) | 90.0 (80.0-95.0) | 1.80 (1.60-1.90) |"),
            "{text}"
        );
        assert!(text.contains("| 1 of 3 |"), "{text}");
        assert!(!text.contains("medium busy"), "{text}");
    }
}
