//! `braid doctor`: what this machine has for Braid, what is missing, what that
//! costs, and the line that enables it. It changes nothing.

mod facts;
mod judge;
mod look;
mod managers;
mod offloads;
mod routes;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use braid_api::output;
use clap::Args;
use serde::Serialize;

use crate::runtime::runtime;
use crate::table::{self, Column, Output, Tone};
use judge::{Row, Verdict};

/// `braid doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON and nothing else
    #[arg(long)]
    json: bool,
    /// Control socket of the daemon
    #[arg(long, value_name = "PATH", default_value = braid_api::DEFAULT_SOCKET)]
    control: PathBuf,
}

/// The exit status of a machine on which Braid cannot work.
const CANNOT: u8 = 3;

/// Looks and tells; the exit status is 0 where Braid can work, with or without
/// weights, and 3 where MPTCP itself is missing.
///
/// # Errors
/// The result cannot be written.
pub fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let runtime = runtime()?;
    let facts = runtime.block_on(look::look(&args.control));
    let (rows, works) = (judge::judge(&facts), judge::can_work(&facts));
    let text = match args.json {
        true => serde_json::to_string_pretty(&Told { works, rows: &rows })? + "\n",
        false => text(&rows, works, Output::detect()),
    };
    output::say(format_args!("{text}"));
    Ok(match works {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(CANNOT),
    })
}

/// Output of `--json`.
#[derive(Serialize)]
struct Told<'a> {
    /// Whether Braid can work.
    works: bool,
    rows: &'a [Row],
}

/// Narrower terminals have no room for what something costs beside it.
const WIDE: usize = 110;

/// The table and, on a terminal, under it what to do: lines that can be copied. In
/// a file that is a column of the table.
fn text(rows: &[Row], works: bool, output: Output) -> String {
    let plain = |f: &dyn Fn(&Row) -> &String| -> Vec<(String, Tone)> {
        rows.iter().map(|r| (f(r).clone(), Tone::Plain)).collect()
    };
    let verdicts = rows.iter().map(|r| {
        let (word, tone) = match r.verdict {
            Verdict::Ok => ("OK", Tone::Good),
            Verdict::Weak => ("weak", Tone::Weak),
            Verdict::Missing => ("missing", Tone::Bad),
        };
        (word.to_owned(), tone)
    });
    let mut columns = vec![
        Column::left("what", plain(&|r| &r.what)),
        Column::left("", verdicts.collect()),
        Column::left("found", plain(&|r| &r.found)),
    ];
    let wide = output.width() >= WIDE;
    if wide {
        columns.push(Column::left("what it costs", plain(&|r| &r.costs)));
    }
    let verdict = match works {
        true => "Braid can work here.",
        false => "Braid cannot work here: MPTCP is missing.",
    };
    if matches!(output, Output::Plain) {
        columns.push(Column::left("to enable it", plain(&|r| &r.remedy)));
        return table::draw(&columns, output) + verdict + "\n";
    }
    let mut text = table::draw(&columns, output);
    for row in rows.iter().filter(|r| r.verdict != Verdict::Ok) {
        let costs = if wide { "" } else { row.costs.as_str() };
        let line = format!("{}: {costs}", row.what);
        text += &textwrap::fill(line.trim_end(), output.width());
        text += "\n";
        if !row.remedy.is_empty() {
            text += &format!("  {}\n", row.remedy);
        }
    }
    text + verdict + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_lab::report::table::Style;

    fn row(verdict: Verdict, remedy: &str) -> Row {
        Row {
            what: "thing".into(),
            verdict,
            found: "it was looked for in every place where such things are kept".into(),
            costs: "so much that one would rather have it than not have it at all".into(),
            remedy: remedy.into(),
        }
    }

    #[test]
    fn a_remedy_can_be_copied_whole_on_any_terminal() {
        let long = "sysctl -w net.ipv4.tcp_rmem=\"4096 4194304 67108864\" and a good deal more";
        let rows = [row(Verdict::Ok, ""), row(Verdict::Weak, long)];
        for width in [40, 80, 140] {
            let style = Style {
                width,
                colour: false,
            };
            let text = text(&rows, true, Output::Terminal(style));
            assert!(text.contains(long), "{text}");
            assert!(text.ends_with("Braid can work here.\n"), "{text}");
        }
        // One row, one line.
        let text = text(&rows, false, Output::Plain);
        let line = text.lines().find(|l| l.contains("weak")).unwrap();
        assert!(line.contains(long), "{text}");
        assert!(text.contains("MPTCP is missing"), "{text}");
    }
}
