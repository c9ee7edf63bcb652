//! `braid trace capacity`.

use braid_traces::signal::series::{Per, trace};
use braid_traces::{MAX_COLUMNS, write};
use clap::Args;

use super::signals::Signals;
use super::{Destination, Failure};

#[derive(Debug, Args)]
pub struct CapacityArgs {
    #[command(flatten)]
    signals: Signals,
    /// What becomes a link: cell, carrier, operator (its best cell), rank (the
    /// best cell, the second best, ...) or total (best and multipath)
    #[arg(long, default_value = "carrier")]
    per: Per,
    /// Keep so many links at most: those that carry most
    #[arg(long, value_name = "N", default_value_t = MAX_COLUMNS, value_parser = most)]
    most: usize,
    #[command(flatten)]
    out: Destination,
}

/// Number of links that a trace can have.
fn most(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=MAX_COLUMNS).contains(n));
    number.ok_or_else(|| format!("expected a number, 1 to {MAX_COLUMNS}"))
}

pub(super) fn run(args: &CapacityArgs) -> Result<(), Failure> {
    let signals = &args.signals;
    let recording = signals.read()?;
    let made = trace(&recording.paths, args.per, args.most);
    let (trace, left_out) = made.map_err(|e| signals.whole(e))?;
    let path = args.out.path(&signals.file, "capacity.csv");
    let mut comments = signals.provenance(&recording);
    if left_out > 0 {
        comments.push(format!("{left_out} links that carry least are left out"));
    }
    let mut text = Vec::new();
    let invalid = |e: std::io::Error| Failure::Usage(e.to_string());
    write::csv(&trace, &comments, &mut text).map_err(invalid)?;
    args.out.write(&signals.file, &path, &text)?;
    signals.warn(&recording);
    let left = match left_out {
        0 => String::new(),
        n => format!(", {n} links that carry least left out"),
    };
    let names = trace.columns();
    let links = match names.len() {
        n if n > 8 => format!("{n} links"),
        _ => names.join(", "),
    };
    braid_api::note!("{}: {} s of {links}{left}", path.display(), trace.samples());
    Ok(())
}
