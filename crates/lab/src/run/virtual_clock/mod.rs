//! The virtual clock: every case and repeat in a User-Mode Linux guest of its
//! own, in which time passes only when nothing is left to do. Guests need no
//! rights, share nothing, and so run side by side. See `docs/virtual-clock.md`.

mod boot;
mod console;
mod cpus;
mod find;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::guest::{self, Job};
use super::record::{Outcome, Record, empty_summary, failed};
use super::{Progress, RunOptions, interrupts};
use crate::run::case::Measured;
use crate::scenario::{Case, Scenario, Traffic};
use boot::Guest;
use braid_netns::error::LabError;
use braid_netns::{Registry, Run};
use cpus::Cpus;
use find::Parts;

/// Returns the files that guests are made of; none where a part is not built.
pub(crate) fn guest_files(braid: &Path) -> Vec<PathBuf> {
    let parts = Parts::find(braid).ok();
    let files = parts.map(|p| [p.kernel, p.root.join("braid")]);
    files.into_iter().flatten().collect()
}

/// How often the guests are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How much longer than its case a guest may take, in its own time: traffic
/// has 15 s to start, and 15 s to report.
const GRACE: Duration = Duration::from_secs(60);

/// How to run guests.
#[derive(Clone, Debug)]
pub struct GuestOptions {
    /// How many at a time, at least 1; each keeps one core busy.
    pub jobs: usize,
    /// Memory of each, MiB. Below 256 MPTCP can stall for want of it.
    pub memory_mib: u32,
    /// A guest whose time stands still for so long of the host's is stopped.
    pub stall: Duration,
    /// A guest that takes longer than this, in the host's time, is stopped;
    /// `None`: ten minutes, and a minute for each of its own seconds.
    pub wall_limit: Option<Duration>,
    /// Time that a case may take on the guest's own clock; `None`: its duration and a minute.
    pub virtual_limit: Option<Duration>,
}

impl Default for GuestOptions {
    fn default() -> Self {
        Self {
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: 768,
            stall: Duration::from_secs(120),
            wall_limit: None,
            virtual_limit: None,
        }
    }
}

impl GuestOptions {
    fn wall_limit(&self, simulated: Duration) -> Duration {
        self.wall_limit
            .unwrap_or_else(|| Duration::from_secs(600) + simulated * 60)
    }
}

/// Runs `scenario` on the virtual clock and writes its files. Which cases run
/// side by side changes nothing in them.
///
/// # Errors
/// As [`super::run`]; [`LabError::Missing`] also where kernel or user space of
/// the guests are not built.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    guests: &GuestOptions,
    progress: &mut dyn Progress,
) -> Result<Outcome, LabError> {
    for case in &scenario.cases {
        possible(case)?;
    }
    let parts = Parts::find(&options.braid)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(run_all(scenario, options, guests, &parts, progress))
}

/// The guest holds nothing but Braid, and its kernel no netfilter.
fn possible(case: &Case) -> Result<(), LabError> {
    if case.has_hosts() {
        return Err(LabError::BadInput(format!(
            "case \"{}\" has traffic from = \"lan\", which the daemons divert by netfilter: the \
             kernel of the virtual clock has none. Leave the case out with --only, or run it with \
             --clock real",
            case.name
        )));
    }
    let what = match &case.traffic {
        Traffic::Command(command) => &command.run,
        _ => return Ok(()),
    };
    Err(LabError::BadInput(format!(
        "case \"{}\" runs the command \"{what}\", which is not there on the virtual clock: its \
         guests hold no programs but Braid's own. Use traffic of the lab's own (bulk, \
         request-response, cbr, video, voip), leave the case out with --only, or run it with \
         --clock real",
        case.name
    )))
}

/// A case and a repeat of it, in the order of the results.
struct Task<'a> {
    number: usize,
    case: &'a Case,
    repeat: u32,
}

struct Done<'a> {
    task: Task<'a>,
    result: Result<guest::Answer, LabError>,
}

async fn run_all(
    scenario: &Scenario,
    options: &RunOptions,
    guests: &GuestOptions,
    parts: &Parts,
    progress: &mut dyn Progress,
) -> Result<Outcome, LabError> {
    let mut interrupt = interrupts()?;
    let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(boot::EPOCH_S);
    let summary = empty_summary(scenario, "virtual", epoch);
    let mut record = Record::open(scenario, options, SystemTime::now(), summary)?;
    let run = Registry::open()?.register()?;

    let total = scenario.cases.len() * options.repeat as usize;
    let length = scenario.cases.iter().map(|c| c.duration).sum::<Duration>() * options.repeat;
    progress.start(&scenario.name, total, length);
    let mut todo = (1..=options.repeat)
        .flat_map(|repeat| scenario.cases.iter().map(move |case| (case, repeat)))
        .enumerate()
        .map(|(number, (case, repeat))| Task {
            number,
            case,
            repeat,
        });
    // Simulated time of the guests that run, by number.
    let at = std::cell::RefCell::new(BTreeMap::<usize, Duration>::new());
    let mut over = Duration::ZERO;
    let cpus = Cpus::new();
    let mut running = FuturesUnordered::new();
    // Those that ended before one that comes before them.
    let mut waiting = BTreeMap::<usize, Measured>::new();
    let mut next = 0;
    let result = loop {
        while running.len() < guests.jobs.max(1)
            && let Some(task) = todo.next()
        {
            running.push(one(scenario, task, &run, parts, guests, &cpus, &at));
        }
        let done = tokio::select! {
            biased;
            _ = interrupt.wait_for(|i| *i) => break Err(LabError::Interrupted),
            done = running.next() => match done {
                Some(done) => done,
                None => break Ok(()),
            },
            () = tokio::time::sleep(LOOK * 10) => {
                let now: Duration = at.borrow().values().sum();
                progress.advanced(over + now);
                continue;
            }
        };
        over += done.task.case.duration;
        let Task {
            number,
            case,
            repeat,
        } = done.task;
        at.borrow_mut().remove(&number);
        let measured = match settle(done.result, case, repeat, &mut record) {
            Ok(measured) => measured,
            Err(e) => break Err(e),
        };
        progress.done(&measured.result);
        waiting.insert(number, measured);
        while let Some(measured) = waiting.remove(&next) {
            record.add(measured)?;
            next += 1;
        }
    };
    // Guests that still run go with their futures.
    drop(running);
    if let Err(e) = result {
        record.stopped(progress, total);
        return Err(e);
    }
    progress.finish();
    record.finish()
}

/// From a guest's answer to the row of its case.
fn settle(
    result: Result<guest::Answer, LabError>,
    case: &Case,
    repeat: u32,
    record: &mut Record,
) -> Result<Measured, LabError> {
    let outcome = result.map(|answer| {
        // A full disk is met again, and said, where the results are written.
        let _ = record.log.copy(&answer.log);
        record.summary.kernel = answer.kernel;
        answer.outcome
    });
    let error = match outcome {
        Ok(guest::Outcome::Measured(mut m)) => {
            // In there work takes no time: what is counted means nothing.
            m.result.cpu_seconds = 0.0;
            return Ok(*m);
        }
        // What is missing for one case is missing for all.
        Ok(guest::Outcome::Missing { what, fix }) => return Err(LabError::missing(what, fix)),
        Ok(guest::Outcome::BadInput(e)) => return Err(LabError::BadInput(e)),
        Ok(guest::Outcome::Failed(e)) => LabError::Failed(anyhow::Error::msg(e)),
        Err(e) => e,
    };
    let _ = record.log.line(&format!("{}: {error}", case.name));
    Ok(failed(case, repeat, &error))
}

async fn one<'a>(
    scenario: &Scenario,
    task: Task<'a>,
    run: &Run,
    parts: &Parts,
    guests: &GuestOptions,
    cpus: &Cpus,
    at: &std::cell::RefCell<BTreeMap<usize, Duration>>,
) -> Done<'a> {
    let limit = guests.virtual_limit.unwrap_or(task.case.duration + GRACE);
    let job = Job {
        scenario: Scenario {
            cases: vec![task.case.clone()],
            text: String::new(),
            paper: Vec::new(),
            ..scenario.clone()
        },
        repeat: task.repeat,
        limit_s: limit.as_secs_f64(),
    };
    let name = format!("{}", task.number + 1);
    let result = async {
        let place = cpus.place();
        let mut guest = Guest::start(run, &name, parts, &job, guests)?;
        place.keep(guest.pid());
        loop {
            if let Some(answer) = guest.poll()? {
                return Ok(answer);
            }
            let now = guest.at().min(task.case.duration);
            at.borrow_mut().insert(task.number, now);
            tokio::time::sleep(LOOK).await;
        }
    };
    Done {
        result: result.await,
        task,
    }
}
