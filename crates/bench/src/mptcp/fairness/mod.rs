//! MPTCP beside TCP, on the kernel that runs here and the real clock: the goals of
//! RFC 6356, section 2.

mod judge;
mod plan;

use anyhow::Result;
use clap::Args;

use crate::runs::{RunArgs, Runs};
use judge::Measured;
use plan::{load, share, vegas};

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often each run is made
    #[arg(long, default_value_t = FULL, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Only these parts: share (of one line, beside TCP Reno), vegas (wVegas beside Vegas),
    /// load (two lines, one with more load)
    #[arg(long, value_delimiter = ',', value_parser = PARTS)]
    only: Vec<String>,
    #[command(flatten)]
    runs: RunArgs,
}

const PARTS: [&str; 3] = ["share", "vegas", "load"];
/// Repeats that the bars ask for.
const FULL: u32 = 10;

/// Runs the parts, or takes the runs that there are; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut runs = Runs::new(&options.runs, "fairness")?;
    let wants = |part: &str| options.only.is_empty() || options.only.iter().any(|o| o == part);
    let parts = PARTS.iter().filter(|p| wants(p)).count();
    let total = options.repeat as usize * parts;
    let mut m = Measured::default();
    for n in 1..=options.repeat {
        let mut piece = |part: &str, plan: fn(u32) -> Result<String>| {
            if !wants(part) {
                return Ok(Vec::new());
            }
            let files = runs.piece(&format!("{part}-{n:02}"), &plan(n)?, total)?;
            anyhow::Ok(files.summary.cases)
        };
        m.line.extend(piece("share", share)?);
        m.line.extend(piece("vegas", vegas)?);
        m.lines.extend(piece("load", load)?);
    }
    let full = options.repeat >= FULL && options.only.is_empty();
    runs.finish(m.judge(), "fairness", full)
}
