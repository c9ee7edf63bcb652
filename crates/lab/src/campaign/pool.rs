//! Runs jobs side by side.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, anyhow};

use super::file::{Campaign, Clock};
use super::job::{Done, Job, Place};
use super::progress::Progress;
use braid_netns::error::LabError;
use braid_netns::{Interrupt, Registry};

/// Where and with what jobs run.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The campaign's folder; it may be shared with other machines.
    pub dir: PathBuf,
    /// The `braid` program.
    pub braid: PathBuf,
    /// Jobs at a time; `None`: one for each core on the virtual clock, and one
    /// on the real clock, where jobs would disturb each other.
    pub workers: Option<usize>,
}

impl Pool {
    fn workers(&self, clock: Clock) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.workers.unwrap_or_else(|| match clock {
            Clock::Virtual => cores(),
            Clock::Real => 1,
        })
    }
}

/// Runs one job of `campaign`, in this process's name.
///
/// # Errors
/// [`LabError::Failed`] too where a case of it failed.
pub fn run_one(campaign: &Campaign, job: &Job, pool: &Pool) -> Result<Done, LabError> {
    let interrupt = Interrupt::install()?;
    let run = Registry::open()?.register()?;
    prepare(campaign, &pool.dir)?;
    job.run(&Place {
        dir: &pool.dir,
        braid: &pool.braid,
        run: &run,
        interrupt: &interrupt,
    })
}

/// Runs every job of `campaign` that has not run yet; `quiet` shows nothing.
/// Returns how many had a case that failed.
///
/// # Errors
/// What keeps all jobs from running, after those under way were ended;
/// [`LabError::Interrupted`]. Jobs that have run stay.
pub fn run_all(campaign: &Campaign, pool: &Pool, quiet: bool) -> Result<usize, LabError> {
    let interrupt = Interrupt::install()?;
    let run = Registry::open()?.register()?;
    prepare(campaign, &pool.dir)?;
    let place = Place {
        dir: &pool.dir,
        braid: &pool.braid,
        run: &run,
        interrupt: &interrupt,
    };
    let workers = pool.workers(campaign.clock);
    let progress = Progress::new(&campaign.name, campaign.jobs.len(), quiet);
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong: Mutex<Option<LabError>> = Mutex::new(None);
    let stopped = || {
        wrong
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    };
    std::thread::scope(|s| {
        for _ in 0..workers.min(campaign.jobs.len()) {
            s.spawn(|| {
                while !stopped()
                    && let Some(job) = campaign.jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    match job.run(&place) {
                        Ok(done) => {
                            if done == Done::Failed {
                                failed.fetch_add(1, Ordering::Relaxed);
                            }
                            progress.done(job, done);
                        }
                        // A job that died says nothing of the next one.
                        Err(LabError::Failed(e)) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            progress.died(job, &e);
                        }
                        Err(e) => {
                            let mut first = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                            first.get_or_insert(e);
                        }
                    }
                }
            });
        }
    });
    progress.finish();
    match wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None => Ok(failed.into_inner()),
    }
}

/// Makes the folder, or checks that it is one of this campaign.
fn prepare(campaign: &Campaign, dir: &Path) -> Result<(), LabError> {
    let file = dir.join("campaign.toml");
    if !file.exists() && dir.read_dir().is_ok_and(|mut d| d.next().is_some()) {
        return Err(LabError::BadInput(format!(
            "{} holds something else: name another folder with --out",
            dir.display()
        )));
    }
    std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    // Several processes may begin at once.
    let new = dir.join(format!(".campaign.toml.{}", std::process::id()));
    std::fs::write(&new, &campaign.text)
        .and_then(|()| std::fs::rename(&new, &file))
        .map_err(|e| LabError::Failed(anyhow!(e).context(format!("write {}", file.display()))))
}
