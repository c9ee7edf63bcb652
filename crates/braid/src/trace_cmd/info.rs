//! `braid trace info`.

use std::io::{self, Write};
use std::time::Duration;

use braid_traces::Format;
use braid_traces::stats::Summary;
use clap::Args;
use serde::Serialize;

use super::{Failure, Measures, Source, number};
use crate::table::{Column, Output, draw};

#[derive(Debug, Args)]
pub struct InfoArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    measures: Measures,
    /// Print JSON and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    outage_below_mbps: f64,
    outage_min_s: f64,
    #[serde(flatten)]
    summary: &'a Summary,
}

pub(super) fn run(args: &InfoArgs) -> Result<(), Failure> {
    let options = args.measures.options(Duration::from_secs(1))?;
    let trace = args.source.read()?;
    let summary = trace.summary(&options).map_err(|e| args.source.error(e))?;
    let text = if args.json {
        let report = Report {
            file: args.source.file.display().to_string(),
            outage_below_mbps: options.outage_mbps,
            outage_min_s: options.outage_min.as_secs_f64(),
            summary: &summary,
        };
        serde_json::to_string_pretty(&report)
            .map_err(|e| Failure::Write("JSON".to_owned(), e.into()))?
    } else {
        describe(&args.source.file.display().to_string(), &summary, args)
    };
    let failed = |e| Failure::Write("standard output".to_owned(), e);
    writeln!(io::stdout(), "{}", text.trim_end()).map_err(failed)
}

fn describe(file: &str, s: &Summary, args: &InfoArgs) -> String {
    let step = match s.format {
        Format::Mahimahi => format!(
            "{} opportunities of one packet, rates over {} s",
            s.samples, s.step_s
        ),
        _ if s.samples == 1 => "1 sample".to_owned(),
        _ => format!("{} samples, typically every {} s", s.samples, s.step_s),
    };
    let mut text = format!(
        "{file}\nformat   {} ({})\nspan     {:.3} s\nsamples  {step}\n\n{}",
        s.format.describe(),
        s.format,
        s.span_s,
        table(s, Output::detect())
    );
    text += &format!(
        "Rates in Mbit/s at the IP layer. Variation: standard deviation over mean. \
         Outage: at most {} Mbit/s for {} s or more.\n",
        args.measures.outage_below,
        args.measures.outage_min.as_secs_f64()
    );
    if s.problems.is_empty() {
        text += "\nNo flaws found in the data.\n";
    } else {
        text += "\nFlaws found in the data, and how they are handled:\n";
        for p in &s.problems {
            text += &format!("  {p}\n");
        }
    }
    for n in &s.notes {
        text += &format!("Note: {n}\n");
    }
    text
}

fn table(s: &Summary, output: Output) -> String {
    let titles = [
        "link",
        "mean",
        "median",
        "p5",
        "p20",
        "p95",
        "max",
        "variation",
        "outages",
        "total",
        "longest",
    ];
    let rows = s.columns.iter().map(|c| {
        let o = &c.outages;
        vec![
            c.name.clone(),
            number(c.mean_mbps),
            number(c.median_mbps),
            number(c.p5_mbps),
            number(c.p20_mbps),
            number(c.p95_mbps),
            number(c.max_mbps),
            c.variation.map_or("-".to_owned(), |v| format!("{v:.2}")),
            o.count.to_string(),
            format!("{:.1} s", o.total_s),
            format!("{:.1} s", o.longest_s),
        ]
    });
    let rows: Vec<_> = rows.collect();
    draw(&Column::all(&titles.map(str::to_owned), 1, &rows), output)
}
