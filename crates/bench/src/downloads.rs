//! Downloads over path plans: tables like 4 and 5 of paper 003, from campaigns.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use braid_lab::report::RunFiles;
use braid_lab::report::cases::{Case, cases};
use braid_lab::summary::{CaseResult, Summary};
use clap::Args;
use indexmap::IndexMap;

use crate::report;

/// From campaigns to tables of means.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folders of campaigns, each NAME=FOLDER; those of one name make one table.
    #[arg(required = true, value_parser = named)]
    campaigns: Vec<(String, PathBuf)>,
    /// The page that the tables go into, between `<!-- bench:downloads -->` comments.
    #[arg(long, default_value = "docs/downloads.md")]
    page: PathBuf,
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    let (name, folder) = text
        .split_once('=')
        .ok_or_else(|| format!("\"{text}\": expected NAME=FOLDER"))?;
    Ok((name.to_owned(), folder.into()))
}

/// Writes the tables; false if a case of them failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut tables: IndexMap<&str, Vec<Summary>> = IndexMap::new();
    for (name, folder) in &options.campaigns {
        let files = RunFiles::read(&folder.join("result"))
            .with_context(|| format!("read what the campaign in {} came to", folder.display()))?;
        tables.entry(name).or_default().push(files.summary);
    }
    let mut text = String::new();
    let mut good = true;
    for (name, summaries) in &tables {
        let runs = summaries.iter().flat_map(|s| &s.cases);
        good &= runs.clone().all(|c| c.failed.is_none());
        let mut kernels: Vec<&str> = summaries.iter().map(|s| s.kernel.as_str()).collect();
        kernels.dedup();
        text.push_str(&format!("\n{name} (Linux {}):\n\n", kernels.join(", ")));
        let all: Vec<Case<'_>> = summaries.iter().flat_map(cases).collect();
        text.push_str(&table(&all)?);
    }
    print!("{text}");
    report::write_section(&options.page, "bench:downloads", &text)?;
    Ok(good)
}

/// In Markdown: means over the runs of each case.
fn table(all: &[Case<'_>]) -> Result<String> {
    let mut text = String::from(
        "| engine | interfaces | complete | goodput | done, s | ideal single path | all paths | of the single | of all |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let mut rows: Vec<(&str, &str, &Case<'_>)> = Vec::new();
    for case in all {
        let Some((interfaces, engine)) = case.name.split_once(": ") else {
            bail!("case \"{}\": expected INTERFACES: ENGINE", case.name);
        };
        rows.push((engine, interfaces, case));
    }
    // The order of the scenario within an engine; engines as they come first.
    let first = |engine: &str| rows.iter().position(|r| r.0 == engine);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|i| (first(rows[*i].0), *i));
    for i in order {
        let (engine, interfaces, case) = &rows[i];
        let runs: Vec<&CaseResult> = case.good().collect();
        let complete = runs.iter().filter(|r| r.completion_s.is_some()).count();
        let mean = |of: &dyn Fn(&CaseResult) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|r| of(r)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let shown =
            |v: Option<f64>, digits: usize| v.map_or_else(String::new, |v| format!("{v:.digits$}"));
        text.push_str(&format!(
            "| {engine} | {interfaces} | {complete} of {} | {} | {} | {} | {} | {} | {} |\n",
            case.runs.len(),
            shown(mean(&|r| Some(r.goodput_mbps)), 1),
            shown(mean(&|r| r.completion_s), 2),
            shown(mean(&|r| r.ideal_mbps), 1),
            shown(mean(&|r| r.capacity_mbps), 1),
            shown(mean(&|r| Some(r.goodput_mbps / r.ideal_mbps?)), 2),
            shown(mean(&|r| Some(r.goodput_mbps / r.capacity_mbps?)), 2),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_the_runs_of_a_case() {
        let run = |name: &str, repeat, goodput, ideal| CaseResult {
            name: name.into(),
            repeat,
            goodput_mbps: goodput,
            ideal_mbps: Some(ideal),
            capacity_mbps: Some(100.0),
            completion_s: Some(3.0),
            ..CaseResult::default()
        };
        let summary = Summary {
            cases: vec![
                run("sp: QUIC", 1, 40.0, 50.0),
                run("sp: TCP", 1, 30.0, 50.0),
                run("2: QUIC", 1, 70.0, 50.0),
                run("sp: QUIC", 2, 60.0, 60.0),
            ],
            ..Summary::default()
        };
        let text = table(&cases(&summary)).unwrap();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows[0],
            "| QUIC | sp | 2 of 2 | 50.0 | 3.00 | 55.0 | 100.0 | 0.90 | 0.50 |"
        );
        assert_eq!(
            rows[1],
            "| QUIC | 2 | 1 of 1 | 70.0 | 3.00 | 50.0 | 100.0 | 1.40 | 0.70 |"
        );
        assert!(rows[2].starts_with("| TCP | sp | 1 of 1 |"));
    }
}
