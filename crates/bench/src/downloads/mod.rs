//! Downloads over path plans: tables like 4 and 5 of paper 003, from campaigns, and what
//! they have to come to.

mod judge;
mod set;

use std::path::PathBuf;

use anyhow::{Context, Result};
use braid_lab::report::RunFiles;
use clap::Args;
use indexmap::IndexMap;

use crate::report::{Comparison, Report, write_section};
use set::{Set, Sum};

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

/// Writes the tables; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut sets: IndexMap<&str, Set> = IndexMap::new();
    for (name, folder) in &options.campaigns {
        let files = RunFiles::read(&folder.join("result"))
            .with_context(|| format!("read what the campaign in {} came to", folder.display()))?;
        sets.entry(name).or_default().add(files.summary)?;
    }
    let mut report = Report::default();
    for (name, set) in &sets {
        judge::judge(&mut report, name, set);
    }
    for (name, set) in &sets {
        let title = format!("{name} (Linux {})", set.kernels.join(", "));
        let rows = set.main().map(|(engine, interfaces, sum)| {
            let mut row = vec![engine.to_owned(), interfaces.to_owned()];
            row.extend(cells(&sum));
            row
        });
        let head = [
            "engine",
            "interfaces",
            "complete",
            "goodput",
            "done, s",
            "ideal single path",
            "all paths",
            "of the single",
            "of all",
        ];
        let table = Comparison::new(title, head, rows.collect());
        report.comparisons.push(table);
    }
    report.comparisons.extend(remedies(&sets));
    print!("{}", report.terminal());
    write_section(&options.page, "bench:downloads", &report.markdown(&[]))?;
    Ok(report.all_met())
}

fn cells(sum: &Sum) -> [String; 7] {
    let shown = |v: Option<f64>, digits| v.map_or_else(String::new, |v| format!("{v:.digits$}"));
    [
        format!("{} of {}", sum.complete, sum.runs),
        shown(sum.goodput, 1),
        shown(sum.completion, 2),
        shown(sum.ideal, 1),
        shown(sum.capacity, 1),
        shown(sum.of_ideal, 2),
        shown(sum.of_capacity, 2),
    ]
}

/// Each remedy beside what has them all.
fn remedies(sets: &IndexMap<&str, Set>) -> Option<Comparison> {
    let mut rows: IndexMap<(String, String), Vec<String>> = IndexMap::new();
    let mut head = vec!["engine".to_owned(), "interfaces".to_owned()];
    for (name, set) in sets.iter().filter(|(_, s)| s.remedies().next().is_some()) {
        for (engine, interfaces, sum) in set.remedies() {
            let row = rows.entry((engine.to_owned(), interfaces.to_owned()));
            let row = row.or_insert_with(|| vec![String::new(); head.len() - 2]);
            let [_, goodput, .., of_all] = cells(&sum);
            row.push(format!("{goodput}, {of_all}"));
        }
        head.push((*name).to_owned());
        rows.values_mut()
            .for_each(|row| row.resize(head.len() - 2, String::new()));
    }
    let row = |((engine, interfaces), cells): ((String, String), Vec<String>)| {
        [vec![engine, interfaces], cells].concat()
    };
    (!rows.is_empty()).then(|| Comparison {
        title: "What each remedy is worth: Mbit/s, and part of all paths".into(),
        head,
        rows: rows.into_iter().map(row).collect(),
    })
}
