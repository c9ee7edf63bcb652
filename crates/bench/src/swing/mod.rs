//! Links whose rate swings: does a bond ever carry less than its better line? Pairs of random
//! links and recorded drives on the virtual clock, each engine beside one path alone, of the
//! same seed.

mod judge;
mod plan;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::runs::{RunArgs, Runs};
use judge::Pair;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Random pairs, by the seeds from --first on
    #[arg(long, default_value_t = FULL, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pairs: u32,
    /// Seed of the first random pair
    #[arg(long, default_value_t = 1)]
    first: u32,
    /// Recorded drives with a column for each of 5G and 4G, format `paired` (docs/traces.md)
    #[arg(long, num_args = 1..)]
    drives: Vec<PathBuf>,
    /// Congestion control of every case, instead of what each engine has by itself
    #[arg(long)]
    cc: Option<String>,
    /// Only these engines: mptcp, datagram, stream
    #[arg(long, value_delimiter = ',', value_parser = plan::ENGINES.map(|e| e.slug))]
    only: Vec<String>,
    #[command(flatten)]
    runs: RunArgs,
}

/// Random pairs that the bars ask for.
const FULL: u32 = 1000;
const VIRTUAL: [&str; 2] = ["--clock", "virtual"];
/// Flags for drives with 1 Gbit/s and more: a guest carries no more in bearable time.
const SCALED: [&str; 4] = ["--clock", "virtual", "--scale", "0.3"];

/// Runs the pairs, or takes the runs that there are; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut runs = Runs::new(&options.runs, "swing")?;
    let cases = plan::Cases {
        cc: options.cc.as_deref(),
        only: &options.only,
    };
    let total = options.pairs as usize + options.drives.len();
    let mut random = Vec::new();
    runs.with(&VIRTUAL);
    for seed in options.first..options.first + options.pairs {
        let pair = plan::Random::draw(seed);
        let name = format!("pair-{seed:04}");
        let files = runs.piece(&cases.name(&name), &pair.scenario(&cases)?, total)?;
        random.push(Pair::new(format!("{name}: {pair}"), files.summary.cases));
    }
    let mut drives = Vec::new();
    runs.with(&SCALED);
    for drive in &options.drives {
        let name = drive.file_name().and_then(|n| n.to_str());
        let name = name.with_context(|| format!("{} names no drive", drive.display()))?;
        let rates = std::fs::read(drive)
            .with_context(|| format!("read the recorded drive {}", drive.display()))?;
        let trace = format!("traces/{name}");
        runs.bring(&trace, &rates)?;
        let files = runs.piece(&cases.name(name), &plan::drive(&trace, &cases)?, total)?;
        drives.push(Pair::new(name.to_owned(), files.summary.cases));
    }
    let full = options.pairs >= FULL && options.first == 1 && cases.are_all();
    runs.finish(judge::judge(&random, &drives), "swing", full)
}
