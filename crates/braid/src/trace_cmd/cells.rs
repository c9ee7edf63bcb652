//! `braid trace cells`.

use std::io::{self, Write};
use std::path::PathBuf;

use braid_traces::plot::{self, PlotError};
use braid_traces::signal::cells::{CellStatistics, by_segment};
use braid_traces::signal::paper::{Comparison, Said, compare};
use braid_traces::signal::picture::{self, PictureOptions};
use braid_traces::signal::{Flaw, Paths};
use clap::Args;
use serde::Serialize;

use super::signals::{Recording, Signals};
use super::{Failure, number, write};
use crate::table::{self, Column, Output};

#[derive(Debug, Args)]
pub struct CellsArgs {
    #[command(flatten)]
    signals: Signals,
    /// Show the paper's statistics beside these
    #[arg(long)]
    paper: bool,
    /// Print JSON and nothing else
    #[arg(long)]
    json: bool,
    /// Draw a picture, PNG or SVG
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Line on top of the picture [default: the name of FILE and its length]
    #[arg(long)]
    title: Option<String>,
    /// Width in pixels; PNG has twice as many
    #[arg(long, default_value_t = PictureOptions::default().width)]
    width: u32,
    /// Height in pixels; PNG has twice as many
    #[arg(long, default_value_t = PictureOptions::default().height)]
    height: u32,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    parts: &'a [CellStatistics],
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<&'a [Comparison]>,
    flaws: &'a [Flaw],
    notes: &'a [String],
}

pub(super) fn run(args: &CellsArgs) -> Result<(), Failure> {
    let recording = args.signals.read()?;
    let parts = by_segment(&recording.paths);
    let rows = compare(&parts);
    if let Some(path) = &args.out {
        draw(args, path, &recording.paths)?;
    }
    let text = if args.json {
        let report = Report {
            file: args.signals.file.display().to_string(),
            parts: &parts,
            paper: args.paper.then_some(&rows[..]),
            flaws: &recording.flaws,
            notes: &recording.notes,
        };
        serde_json::to_string_pretty(&report)
            .map_err(|e| Failure::Write("JSON".to_owned(), e.into()))?
    } else {
        describe(args, &recording, &parts, &rows)
    };
    let failed = |e| Failure::Write("standard output".to_owned(), e);
    writeln!(io::stdout(), "{}", text.trim_end()).map_err(failed)
}

fn draw(args: &CellsArgs, path: &std::path::Path, paths: &Paths) -> Result<(), Failure> {
    let svg_only = super::plot::svg_only(path)?;
    let title = args.title.clone().unwrap_or_else(|| {
        let hours = paths.seconds.len() as f64 / 3600.0;
        format!("{}  ({hours:.2} h)", args.signals.name())
    });
    let options = PictureOptions {
        title,
        width: args.width,
        height: args.height,
    };
    let failed = |e: PlotError| match e {
        e @ PlotError::Size(..) => Failure::Usage(e.to_string()),
        e => Failure::Write(path.display().to_string(), io::Error::other(e)),
    };
    let svg = picture::svg(paths, &options).map_err(failed)?;
    let content = if svg_only {
        svg.into_bytes()
    } else {
        plot::png(&svg, 2.0).map_err(failed)?
    };
    write(&args.signals.file, path, &content, args.force)
}

fn describe(
    args: &CellsArgs,
    recording: &Recording,
    parts: &[CellStatistics],
    rows: &[Comparison],
) -> String {
    let file = args.signals.file.display();
    let mut text = format!(
        "{file}\nformat   {}\nspan     {} s\n\n{}\n{}",
        recording.kind,
        recording.paths.seconds.len(),
        cells(parts),
        capacity(&parts[0])
    );
    text += "Available: heard, at most one cell per carrier. Capacities in Mbit/s; gain: \
             multipath over this, on average; last: of the 20th percentile.\n";
    if args.paper {
        text += &format!("\n{}", beside(rows));
    }
    if recording.flaws.is_empty() && recording.notes.is_empty() {
        text += "\nNo flaws found in the data.\n";
    } else {
        text += "\nFound in the data:\n";
    }
    for f in &recording.flaws {
        text += &format!("  {f}\n");
    }
    for n in &recording.notes {
        text += &format!("  {n}\n");
    }
    text
}

fn cells(parts: &[CellStatistics]) -> String {
    let most = parts.iter().map(|p| p.available.len()).max().unwrap_or(1);
    let mut header = vec![
        "part".to_owned(),
        "seconds".to_owned(),
        "available".to_owned(),
    ];
    header.extend((0..most).map(|n| n.to_string()));
    header.extend(["visible".to_owned(), "over 7".to_owned()]);
    let rows = parts.iter().map(|p| {
        let mut row = vec![
            p.part.clone(),
            p.seconds.to_string(),
            format!("{:.2}", p.available_mean),
        ];
        let share = |n| p.available.get(n).copied().unwrap_or(0.0);
        row.extend((0..most).map(|n| percent(share(n))));
        row.extend([format!("{:.2}", p.visible_mean), percent(p.visible_above_7)]);
        row
    });
    table(header, rows)
}

fn capacity(all: &CellStatistics) -> String {
    let header = [
        "path", "mean", "p5", "p10", "p20", "median", "gain", "at p20",
    ];
    let rows = all.levels.iter().map(|l| {
        let gain = l
            .gain
            .map_or("-".to_owned(), |g| format!("{:+.0} %", g * 100.0));
        let low = l.p20_factor.map_or("-".to_owned(), |f| format!("x{f:.1}"));
        let rates = [
            l.mean_mbps,
            l.p5_mbps,
            l.p10_mbps,
            l.p20_mbps,
            l.median_mbps,
        ];
        let mut row = vec![l.name.clone()];
        row.extend(rates.map(number));
        row.extend([gain, low]);
        row
    });
    table(header.map(str::to_owned).to_vec(), rows)
}

fn beside(rows: &[Comparison]) -> String {
    let header = ["statistic", "here", "paper", "holds"];
    let rows = rows.iter().map(|r| {
        let value = |v: f64| match r.percent {
            true => percent(v),
            false => format!("{v:.2}"),
        };
        let said = match (r.words, r.paper) {
            (Some(words), _) => words.to_owned(),
            (None, Said::About(v)) => value(v),
            (None, Said::MoreThan(v)) => format!("more than {}", value(v)),
            (None, Said::LessThan(v)) => format!("less than {}", value(v)),
        };
        let off = match r.paper {
            Said::About(v) => format!(" ({:+.1} %)", (r.here / v - 1.0) * 100.0),
            _ => String::new(),
        };
        let holds = if r.holds() { "yes" } else { "no" };
        vec![r.what.clone(), value(r.here), said, format!("{holds}{off}")]
    });
    table(header.map(str::to_owned).to_vec(), rows)
}

fn percent(v: f64) -> String {
    format!("{:.1} %", v * 100.0)
}

fn table(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<_> = rows.collect();
    table::draw(&Column::all(&header, 1, &rows), Output::detect())
}
