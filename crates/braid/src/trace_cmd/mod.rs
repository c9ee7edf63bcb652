//! `braid trace`: importing, describing and drawing capacity traces, what
//! received powers say of capacity, and the energy of transfers.

mod capacity;
mod cells;
mod columns;
mod drive;
mod energy;
mod import;
mod info;
mod plan;
mod plot;
mod signals;

use std::fmt::Display;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use braid_api::diagnostic::Diagnostic;
use braid_core::units::parse_duration;
use braid_traces::{Format, LineError, Trace, TraceError, stats};
use clap::{Args, Subcommand};

/// Capacity traces: CSV of seconds and Mbit/s, Mahimahi, and recorded formats
/// (docs/traces.md); received powers of cells (docs/signals.md).
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Convert a recording into a trace that scenarios use.
    Import(import::ImportArgs),
    /// Describe a trace: rates, outages, flaws of the data.
    Info(info::InfoArgs),
    /// Draw a trace as PNG or SVG.
    Plot(plot::PlotArgs),
    /// Generate what a device hears of cells on a drive.
    Drive(drive::DriveArgs),
    /// Available cells and what they carry: statistics and pictures.
    Cells(cells::CellsArgs),
    /// Turn received powers into a capacity trace.
    Capacity(capacity::CapacityArgs),
    /// Schedule which cell is on which interface when.
    Plan(plan::PlanArgs),
    /// Compute the energy that recorded transfers take.
    Energy(energy::EnergyArgs),
}

/// Runs `braid trace ...`: 0 when it is done; 2, with `FILE:LINE: what is
/// wrong` on standard error, when the input cannot be used; 1 when writing
/// failed.
pub fn run(command: TraceCommand) -> ExitCode {
    match execute(&command) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of a pipe went away: nothing is wrong.
        Err(Failure::Write(_, e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(f) => {
            braid_api::note!("braid: {f}");
            ExitCode::from(f.status())
        }
    }
}

fn execute(command: &TraceCommand) -> Result<(), Failure> {
    match command {
        TraceCommand::Import(a) => import::run(a),
        TraceCommand::Info(a) => info::run(a),
        TraceCommand::Plot(a) => plot::run(a),
        TraceCommand::Drive(a) => drive::run(a),
        TraceCommand::Cells(a) => cells::run(a),
        TraceCommand::Capacity(a) => capacity::run(a),
        TraceCommand::Plan(a) => plan::run(a),
        TraceCommand::Energy(a) => energy::run(a),
    }
}

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Scenario(#[from] Diagnostic),
    #[error("{0}")]
    Usage(String),
    #[error("cannot write {0}: {1}")]
    Write(String, io::Error),
}

impl Failure {
    fn status(&self) -> u8 {
        match self {
            Self::Trace(_) | Self::Scenario(_) | Self::Usage(_) => 2,
            Self::Write(..) => 1,
        }
    }
}

/// Which trace to read.
#[derive(Debug, Args)]
struct Source {
    /// The trace or recording.
    file: PathBuf,
    /// Its format: csv, mahimahi, ucc-5g, paired, pensieve, ugr-dynamic or iperf3
    /// [default: what the content shows]
    #[arg(long)]
    format: Option<Format>,
}

impl Source {
    fn read(&self) -> Result<Trace, Failure> {
        Ok(Trace::read(&self.file, self.format)?)
    }

    /// Returns the columns that `NAME[=NEW]` ask for, and their names; all, when none is
    /// asked for.
    fn columns(&self, trace: &Trace, wanted: &[String]) -> Result<Vec<(usize, String)>, Failure> {
        if wanted.is_empty() {
            let all = trace.columns().into_iter().map(str::to_owned);
            return Ok(all.enumerate().collect());
        }
        let mut chosen: Vec<(usize, String)> = Vec::new();
        for w in wanted {
            let (name, new) = w.split_once('=').unwrap_or((w, w));
            let index = trace.column_index(Some(name)).map_err(|e| self.error(e))?;
            if chosen.iter().any(|(_, n)| n == new) {
                return Err(Failure::Usage(format!(
                    "--column: two columns named \"{new}\""
                )));
            }
            chosen.push((index, new.to_owned()));
        }
        Ok(chosen)
    }

    /// An error about this file.
    fn error(&self, e: LineError) -> Failure {
        Failure::Trace(e.in_file(&self.file))
    }

    /// The name of the file without its folder.
    fn name(&self) -> String {
        name(&self.file)
    }
}

/// The name of a file without its folder.
fn name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The name of `file` with `extension` instead of its own, in the current
/// folder. Only known ones are taken off: names such as `2019.12.14_10.16.30`
/// have dots of their own.
fn renamed(file: &Path, extension: &str) -> PathBuf {
    let name = name(file);
    let known = [
        ".csv",
        ".mahimahi",
        ".txt",
        ".trace",
        ".toml",
        ".json",
        ".tsv",
    ];
    let stem = known
        .iter()
        .find_map(|k| name.strip_suffix(k))
        .unwrap_or(&name);
    PathBuf::from(format!("{stem}.{extension}"))
}

/// What counts as an outage, and how opportunities become rates.
#[derive(Debug, Args)]
struct Measures {
    /// An outage is a rate of at most this many Mbit/s ...
    #[arg(long, value_name = "MBPS", default_value_t = 0.1)]
    outage_below: f64,
    /// ... for at least this long
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = parse_duration)]
    outage_min: Duration,
    /// Delivery opportunities become rates over windows of this length
    /// [default: 1 s; in a picture less where the trace is short]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    window: Option<Duration>,
}

impl Measures {
    fn options(&self, window: Duration) -> Result<stats::Options, Failure> {
        if !(self.outage_below >= 0.0 && self.outage_below.is_finite()) {
            return Err(Failure::Usage(format!(
                "--outage-below {}: expected Mbit/s, at least 0",
                self.outage_below
            )));
        }
        Ok(stats::Options {
            outage_mbps: self.outage_below,
            outage_min: self.outage_min,
            window: self.window.unwrap_or(window),
        })
    }
}

/// Where the result goes.
#[derive(Debug, Args)]
struct Destination {
    /// File to write, - for standard output [default: the name of FILE with a
    /// new extension, in the current folder]
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
}

impl Destination {
    /// Where the result of `source` goes by default or by wish.
    fn path(&self, source: &Path, extension: &str) -> PathBuf {
        self.out
            .clone()
            .unwrap_or_else(|| renamed(source, extension))
    }

    /// Writes `content`, made of `source`, to `path`, all or nothing.
    fn write(&self, source: &Path, path: &Path, content: &[u8]) -> Result<(), Failure> {
        write(source, path, content, self.force)
    }
}

/// Writes `content`, made of `source`, to `path`, all or nothing; replaces what is
/// there only by `force`.
fn write(source: &Path, path: &Path, content: &[u8], force: bool) -> Result<(), Failure> {
    let failed = |e| Failure::Write(path.display().to_string(), e);
    if path == Path::new("-") {
        let mut out = io::stdout().lock();
        let done = out.write_all(content).and_then(|()| out.flush());
        return done.map_err(|e| Failure::Write("standard output".to_owned(), e));
    }
    if same_file(path, source) {
        return Err(Failure::Usage(format!(
            "{} is what is read: name another file with --out",
            path.display()
        )));
    }
    let taken = || {
        Failure::Usage(format!(
            "{} exists: name another file with --out, or replace it with --force",
            path.display()
        ))
    };
    let there = path.symlink_metadata().is_ok();
    if there && !force {
        return Err(taken());
    }
    if there && !path.is_file() {
        // A device or a pipe is written to, not replaced.
        let opened = OpenOptions::new().write(true).open(path);
        return opened
            .and_then(|mut f| f.write_all(content))
            .map_err(failed);
    }
    // Half a trace would read like a whole one: it appears when it is whole.
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // Said of the folder: the temporary file has a name of its own.
    if let Err(e) = folder.metadata() {
        return Err(Failure::Write(format!("to {}", folder.display()), e));
    }
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666)) // less what the umask takes
        .tempfile_in(folder)
        .map_err(failed)?;
    file.write_all(content).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    if there {
        // A link stays one; what it points to is replaced.
        let target = path.canonicalize().map_err(failed)?;
        return file.persist(target).map(drop).map_err(|e| failed(e.error));
    }
    let kept = file.persist_noclobber(path);
    kept.map(drop).map_err(|e| match e.error.kind() {
        io::ErrorKind::AlreadyExists => taken(),
        _ => failed(e.error),
    })
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Prints the flaws of a trace as warnings.
fn warn(file: &Path, problems: &[impl Display]) {
    for p in problems {
        braid_api::note!("{}: warning: {p}", file.display());
    }
}

/// A rate with as many decimals as its size deserves.
fn number(v: f64) -> String {
    match v {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod energy_tests;
#[cfg(test)]
mod signal_tests;
#[cfg(test)]
mod tests;
