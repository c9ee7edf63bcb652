//! `braid trace plan`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_core::units::{format_duration, parse_duration};
use braid_traces::signal::delay::DelayModel;
use braid_traces::signal::plan::{self, Case, Handover, NewAddress, summary};
use clap::Args;

use super::signals::Signals;
use super::{Failure, number, write};
use crate::table::{Column, Output, draw};
use crate::twice::twice;

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    signals: Signals,
    /// Interfaces: sp (one, always on the best cell), or 1 to 8 with real
    /// handovers; a file each
    #[arg(long, value_name = "CASE,...", value_delimiter = ',', default_values_t = Case::PAPER)]
    case: Vec<Case>,
    /// A cell must carry this part more than the present one ...
    #[arg(long, value_name = "PART", default_value_t = Handover::default().hysteresis)]
    hysteresis: f64,
    /// ... for this long
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = parse_duration)]
    time_to_trigger: Duration,
    /// How long nothing passes in a handover
    #[arg(long, value_name = "TIME", default_value = "50 ms", value_parser = parse_duration)]
    interruption: Duration,
    /// What brings a new address: cell (each handover), operator, or never
    #[arg(long, default_value_t = Handover::default().new_address)]
    new_address: NewAddress,
    /// One-way delay by capacity: a time, exp:MBPS=MS,MBPS=MS or
    /// points:MBPS=MS,...
    #[arg(long, default_value_t = DelayModel::default())]
    delay: DelayModel,
    /// Folder for the files, made if it is not there, which are called as FILE with
    /// .CASE.plan.csv; for one case the file to write, or - for standard output
    /// [default: here]
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &PlanArgs) -> Result<(), Failure> {
    let signals = &args.signals;
    let handover = Handover {
        hysteresis: args.hysteresis,
        time_to_trigger: args.time_to_trigger,
        interruption: args.interruption,
        new_address: args.new_address,
    };
    handover.check().map_err(Failure::Usage)?;
    if let Some(case) = twice(&args.case) {
        return Err(Failure::Usage(format!("--case: {case} is there twice")));
    }
    if args.case.len() > 1 && args.out.as_deref() == Some(Path::new("-")) {
        return Err(Failure::Usage(
            "--out -: standard output takes one plan, not several: choose it with --case".into(),
        ));
    }
    let recording = signals.read()?;
    if let Some(folder) = args.out.as_ref().filter(|_| args.case.len() > 1) {
        let failed = |e| Failure::Write(folder.display().to_string(), e);
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let titles = [
        "case",
        "file",
        "Mbit/s",
        "handovers",
        "new addresses",
        "disconnected",
    ];
    let mut rows = Vec::new();
    for case in &args.case {
        let made = plan::plan(&recording.paths, *case, &handover, &args.delay);
        let made = made.map_err(|e| signals.whole(e))?;
        let mut comments = signals.provenance(&recording);
        comments.push(format!("case {case}, delay {}", args.delay));
        if *case != Case::SinglePath {
            comments.push(format!(
                "hysteresis {}, time to trigger {}, interruption {}, new address: {}",
                args.hysteresis,
                format_duration(args.time_to_trigger),
                format_duration(args.interruption),
                args.new_address
            ));
        }
        let mut text = Vec::new();
        let invalid = |e: io::Error| Failure::Usage(e.to_string());
        plan::write(&made, &comments, &mut text).map_err(invalid)?;
        let path = path(args, *case);
        write(&signals.file, &path, &text, args.force)?;
        let s = summary(&made);
        rows.push(vec![
            case.to_string(),
            path.display().to_string(),
            number(s.mean_mbps),
            s.handovers.to_string(),
            s.new_addresses.to_string(),
            format!("{:.1} s", s.disconnected_s),
        ]);
    }
    signals.warn(&recording);
    let failed = |e| Failure::Write("standard error".to_owned(), e);
    let columns = Column::all(&titles.map(str::to_owned), 2, &rows);
    write!(
        io::stderr(),
        "{}",
        draw(&columns, Output::of(&io::stderr()))
    )
    .map_err(failed)
}

/// Where the plan of `case` goes.
fn path(args: &PlanArgs, case: Case) -> PathBuf {
    let name = super::renamed(&args.signals.file, &format!("{case}.plan.csv"));
    match &args.out {
        None => name,
        Some(out) if args.case.len() == 1 && !out.is_dir() => out.clone(),
        Some(folder) => folder.join(name),
    }
}
