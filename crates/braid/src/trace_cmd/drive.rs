//! `braid trace drive`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use braid_core::units::{format_duration, parse_duration};
use braid_traces::signal::drive::{self, DriveSpec};
use braid_traces::signal::write;
use clap::Args;

use super::{Destination, Failure};

#[derive(Debug, Args)]
pub struct DriveArgs {
    /// Operators, areas and the road as TOML [default: the shipped one]
    file: Option<PathBuf>,
    /// Print the shipped scenario and do nothing else
    #[arg(long)]
    print: bool,
    /// The same seed gives the same drive
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long it takes
    #[arg(long, value_name = "TIME", default_value = "33 h", value_parser = parse_duration)]
    length: Duration,
    #[command(flatten)]
    out: Destination,
}

pub(super) fn run(args: &DriveArgs) -> Result<(), Failure> {
    if args.print {
        let failed = |e| Failure::Write("standard output".to_owned(), e);
        let text = DriveSpec::shipped_text().as_bytes();
        return io::stdout().write_all(text).map_err(failed);
    }
    let (spec, name) = match &args.file {
        None => (DriveSpec::shipped(), "drive".to_owned()),
        Some(file) => {
            let text = braid_traces::read_text(file)?;
            let spec = DriveSpec::parse(&text).map_err(|p| p.in_file(file.clone(), &text))?;
            (spec, super::name(file))
        }
    };
    let seconds = u32::try_from(args.length.as_secs()).unwrap_or(u32::MAX);
    let m = drive::drive(&spec, args.seed, seconds)
        .map_err(|e| Failure::Usage(format!("--length: {e}")))?;
    let source = args.file.clone().unwrap_or_else(|| PathBuf::from("drive"));
    let path = args.out.path(&source, "signal.csv");
    let comments = [format!(
        "generated from {name}, seed {}, {}, by braid {}",
        args.seed,
        format_duration(args.length),
        env!("CARGO_PKG_VERSION")
    )];
    let mut text = Vec::new();
    let invalid = |e: io::Error| Failure::Usage(e.to_string());
    write::csv(&m, &comments, &mut text).map_err(invalid)?;
    args.out.write(&source, &path, &text)?;
    braid_api::note!(
        "{}: {} s, {} cells on {} carriers of {} operators",
        path.display(),
        m.seconds.len(),
        m.cells.len(),
        m.carriers.len(),
        m.operators.len()
    );
    Ok(())
}
