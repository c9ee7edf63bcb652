//! Runs a scenario on the real clock: every case of it in namespaces of its
//! own, with the product's own programs as children.

mod app;
mod apps;
mod case;
mod child;
mod client;
mod ends;
mod events;
mod progress;
mod radio;
mod result;
mod sampler;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use braid_mptcp::support::Support;
use tokio::sync::watch;

pub use client::Client;
pub use progress::{Progress, for_terminal, silent};

use crate::error::LabError;
use crate::report::RunDir;
use crate::scenario::{Case, Engine, Scenario};
use crate::summary::{CaseResult, Host, Summary};
use crate::topology::{PortChoice, Registry, Run};

/// Name of the device that a scenario is about.
const DEVICE: &str = "cpe";

/// How to run a scenario.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How often each case is run, at least 1.
    pub repeat: u32,
    /// Where the run's files go; `None`: a new folder in `out/`.
    pub out: Option<PathBuf>,
    /// The `braid` program, which the children are started from.
    pub braid: PathBuf,
    /// The command line, for the log.
    pub command: String,
    /// How accesses are joined to the emulator.
    pub ports: PortChoice,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// The results, as in `summary.json`.
    pub summary: Summary,
    /// The folder of the run's files.
    pub dir: PathBuf,
    /// `report.html` in it.
    pub report: PathBuf,
}

/// What every case of a run shares.
struct Context<'a> {
    scenario: &'a Scenario,
    options: &'a RunOptions,
    /// Names the run and holds the control sockets and configurations of its
    /// children.
    run: &'a Run,
    files: &'a RunFilesWriter,
    interrupt: watch::Receiver<bool>,
}

/// The files that grow during a run.
struct RunFilesWriter {
    log: Arc<crate::report::RunLog>,
}

/// Runs `scenario` and writes its files.
///
/// # Errors
/// [`LabError::BadInput`], [`LabError::Missing`] before anything is measured;
/// [`LabError::Interrupted`] after a signal, with the files of what was
/// measured until then kept. A case that fails is noted in its result and the
/// next one runs.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Outcome, LabError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(run_all(scenario, options, progress))
}

async fn run_all(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Outcome, LabError> {
    let interrupt = interrupts()?;
    preflight(scenario)?;
    let started = SystemTime::now();
    let dir = match &options.out {
        Some(path) => RunDir::create(path, &options.command),
        None => RunDir::create_default(Path::new("out"), &scenario.name, started, &options.command),
    }
    .map_err(files_error)?;
    dir.write_scenario(&scenario.text).map_err(files_error)?;
    let files = RunFilesWriter {
        log: Arc::new(dir.log().map_err(files_error)?),
    };
    let mut timeline = dir.timeline().map_err(files_error)?;
    let mut event_rows = dir.events().map_err(files_error)?;
    let run = Registry::open()?.register()?;
    let context = Context {
        scenario,
        options,
        run: &run,
        files: &files,
        interrupt,
    };

    let mut summary = empty_summary(scenario, started);
    let total = scenario.cases.len() * options.repeat as usize;
    let seconds = scenario.cases.iter().map(|c| c.duration).sum::<Duration>() * options.repeat;
    progress.start(&scenario.name, total, seconds);
    let mut interrupted = false;
    'all: for repeat in 1..=options.repeat {
        for case in &scenario.cases {
            progress.case(case, repeat);
            match case::run(&context, case, repeat, progress).await {
                Ok(measured) => {
                    timeline.append(&measured.timeline).map_err(files_error)?;
                    event_rows.append(&measured.events).map_err(files_error)?;
                    progress.done(&measured.result);
                    summary.cases.push(measured.result);
                }
                Err(LabError::Interrupted) => {
                    interrupted = true;
                    break 'all;
                }
                // What is missing for one case is missing for all.
                Err(e @ (LabError::Missing(_) | LabError::BadInput(_))) => {
                    progress.finish();
                    return Err(e);
                }
                Err(e) => {
                    let failed = failed_case(case, repeat, &e);
                    let _ = files.log.line(&format!("{}: {e}", case.name));
                    progress.done(&failed);
                    summary.cases.push(failed);
                }
            }
            summary.host = host(&summary.cases);
            result::add_best_single(&mut summary.cases, &scenario.cases);
            dir.write_summary(&summary).map_err(files_error)?;
        }
    }
    progress.finish();
    if interrupted {
        return Err(LabError::Interrupted);
    }
    let report = remake(dir.path())?;
    Ok(Outcome {
        summary,
        dir: dir.path().to_owned(),
        report,
    })
}

fn files_error(e: crate::report::FilesError) -> LabError {
    match e.exit_status() {
        2 => LabError::BadInput(e.to_string()),
        _ => LabError::Failed(e.into()),
    }
}

/// Fails before anything is built where no case can run.
fn preflight(scenario: &Scenario) -> Result<(), LabError> {
    let support = Support::detect();
    if scenario.cases.iter().any(|c| c.engine == Engine::Mptcp) {
        support.require().map_err(missing)?;
    }
    for case in &scenario.cases {
        if let Some(cc) = &case.cc {
            support.require_congestion_control(cc).map_err(missing)?;
        }
    }
    Ok(())
}

fn missing(e: braid_mptcp::Error) -> LabError {
    match e {
        braid_mptcp::Error::Lacking { what, remedy } => LabError::missing(what, remedy),
        braid_mptcp::Error::CongestionControl { asked, available } => LabError::missing(
            format!("this kernel has no congestion control \"{asked}\" loaded; it has {available}"),
            format!("sudo modprobe tcp_{asked}"),
        ),
        other => LabError::Failed(other.into()),
    }
}

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP.
fn interrupts() -> Result<watch::Receiver<bool>, LabError> {
    use tokio::signal::unix::{SignalKind, signal};
    let (tell, told) = watch::channel(false);
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        let mut signals = signal(kind).context("listen for signals")?;
        let tell = tell.clone();
        tokio::spawn(async move {
            if signals.recv().await.is_some() {
                let _ = tell.send(true);
            }
        });
    }
    Ok(told)
}

fn empty_summary(scenario: &Scenario, started: SystemTime) -> Summary {
    let kernel = nix::sys::utsname::uname()
        .map(|u| u.release().to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut accesses: Vec<String> = Vec::new();
    for a in scenario.cases.iter().flat_map(|c| &c.accesses) {
        if !accesses.contains(&a.name) {
            accesses.push(a.name.clone());
        }
    }
    Summary {
        scenario: scenario.name.clone(),
        clock: "real".into(),
        seed: scenario.seed,
        kernel,
        version: env!("CARGO_PKG_VERSION").into(),
        started: crate::report::files::rfc3339(started),
        accesses,
        paper: scenario.paper.clone(),
        ..Summary::default()
    }
}

fn host(cases: &[CaseResult]) -> Host {
    cases.iter().fold(Host::default(), |h, c| Host {
        late_wakes: h.late_wakes + c.host.late_wakes,
        max_late_ms: h.max_late_ms.max(c.host.max_late_ms),
    })
}

fn failed_case(case: &Case, repeat: u32, error: &LabError) -> CaseResult {
    CaseResult {
        failed: Some(error.to_string()),
        ..result::blank(case, repeat)
    }
}

/// Makes `report.html` again from the files of an earlier run; returns its path.
///
/// # Errors
/// [`LabError::BadInput`] if `dir` does not hold a run, or it cannot be written.
pub fn remake(dir: &Path) -> Result<PathBuf, LabError> {
    crate::report::remake(dir).map_err(files_error)
}
