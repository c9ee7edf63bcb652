//! The real clock: one case after the other, on this machine.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use super::preflight::preflight;
use super::record::{Outcome, Record, empty_summary, failed};
use super::{Context, Progress, RunOptions, case, interrupts};
use crate::scenario::Scenario;
use braid_netns::Registry;
use braid_netns::error::LabError;

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
    if let Some(name) = scenario.network.module_parameters.keys().next() {
        return Err(LabError::BadInput(format!(
            "`module_parameters` sets {name}, which belongs to the whole machine: \
             run this scenario with --clock virtual, where the kernel is its own"
        )));
    }
    let controls = preflight(scenario)?;
    let started = SystemTime::now();
    let mut summary = empty_summary(scenario, "real", started);
    summary.kernel = super::kernel_release();
    let mut record = Record::open(scenario, options, started, summary)?;
    let run = Registry::open()?.register()?;
    let context = Context {
        scenario,
        options,
        run: &run,
        controls: &controls,
        log: Arc::clone(&record.log),
        interrupt,
        simulated: false,
    };

    let total = scenario.cases.len() * options.repeat as usize;
    let seconds = scenario.cases.iter().map(|c| c.duration).sum::<Duration>() * options.repeat;
    progress.start(&scenario.name, total, seconds);
    for repeat in 1..=options.repeat {
        for case in &scenario.cases {
            progress.case(case, repeat);
            let measured = match case::run(&context, case, repeat, progress).await {
                Ok(measured) => measured,
                // What is missing for one case is missing for all.
                Err(e @ (LabError::Missing(_) | LabError::BadInput(_) | LabError::Interrupted)) => {
                    record.stopped(progress, total);
                    return Err(e);
                }
                Err(e) => {
                    let _ = record.log.line(&format!("{}: {e}", case.name));
                    failed(case, repeat, &e)
                }
            };
            progress.done(&measured.result);
            record.add(measured)?;
        }
    }
    progress.finish();
    record.finish()
}
