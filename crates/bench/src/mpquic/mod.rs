//! Multipath QUIC against its bars, by runs of the lab: what needs two cores on the real
//! clock, all else on the virtual one, where what the machine does beside does not count.

mod bare;
mod judge;
mod plan;

use std::time::Duration;

use anyhow::{Context, Result};
use braid_lab::scenario::shipped_trace;
use braid_mpquic::Lane;
use clap::Args;

use crate::mptcp::soak_plan;
use crate::runs::{RunArgs, Runs};
use crate::text;
use judge::Measured;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often each run is made
    #[arg(long, default_value_t = FULL, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// Only these parts: on the real clock single (an access without limit), static; on the
    /// virtual one shares, pairs, walk, outages, latency
    #[arg(long, value_delimiter = ',', value_parser = PARTS)]
    only: Vec<String>,
    #[command(flatten)]
    runs: RunArgs,
}

const PARTS: [&str; 7] = [
    "single", "static", "shares", "pairs", "walk", "outages", "latency",
];
/// Repeats that the bars ask for.
const FULL: u32 = 5;
/// How long one path without the lab is measured.
const BARE: Duration = Duration::from_secs(5);
/// Flags of scaled rates on the virtual clock: a guest carries no more in bearable time.
const SCALED: [&str; 4] = ["--clock", "virtual", "--scale", "0.3"];
const VIRTUAL: [&str; 2] = ["--clock", "virtual"];

/// Runs the parts, or takes the runs that there are; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut runs = Runs::new(&options.runs, "mpquic")?;
    let wants = |part: &str| options.only.is_empty() || options.only.iter().any(|o| o == part);
    let pairs = soak_plan::pairs()?;
    let pieces = |part: &str| match part {
        "pairs" => pairs.len(),
        "outages" | "latency" => 2,
        _ => 1,
    };
    let wanted = PARTS.iter().filter(|p| wants(p));
    let total = options.repeat as usize * wanted.map(|p| pieces(p)).sum::<usize>();
    let trace = shipped_trace(plan::WALK_TRACE).context("find the trace of the walk")?;
    runs.bring(plan::WALK_TRACE, trace)?;
    let mut m = Measured::default();
    for n in 1..=options.repeat {
        let mut piece = |flags: &[&str], name: &str, scenario: Result<String>| {
            runs.with(flags);
            let files = runs.piece(&format!("{name}-{n:02}"), &scenario?, total)?;
            anyhow::Ok(files.summary.cases)
        };
        if wants("single") {
            for lane in Lane::ALL {
                eprintln!(
                    "{n} of {}: one path without the lab, {} lane",
                    options.repeat,
                    lane.as_str()
                );
                m.bare.push((lane, bare::measure(lane, BARE)?));
            }
            m.single.extend(piece(&[], "single", plan::single(n))?);
        }
        if wants("static") {
            m.real.extend(piece(&[], "static", plan::capacity(n))?);
        }
        if wants("shares") {
            m.shares.extend(piece(&SCALED, "shares", plan::shares(n))?);
        }
        for variant in pairs.iter().filter(|_| wants("pairs")) {
            let name = format!("pair-{}", text::slug(variant));
            let cases = piece(&VIRTUAL, &name, plan::pair(variant, n))?;
            m.pairs
                .extend(cases.into_iter().map(|c| (variant.clone(), c)));
        }
        if wants("walk") {
            m.walk.extend(piece(&SCALED, "walk", plan::walk(n))?);
        }
        for sort in judge::SORTS.iter().filter(|_| wants("outages")) {
            let name = format!("outages-{}", sort.set);
            let cases = piece(&SCALED, &name, plan::interruption(sort.set, n))?;
            m.outages.extend(cases.into_iter().map(|c| (sort.set, c)));
        }
        for lossy in [false, true].into_iter().filter(|_| wants("latency")) {
            let name = if lossy { "latency-lossy" } else { "latency" };
            let cases = piece(&VIRTUAL, name, plan::latency(n, lossy))?;
            m.latency.extend(cases.into_iter().map(|c| (lossy, c)));
        }
    }
    let full = options.repeat >= FULL && options.only.is_empty();
    runs.finish(m.judge()?, "mpquic", full)
}
