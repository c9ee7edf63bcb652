//! One guest: its folder, its command line, its process, and its end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use braid_core::seed;
use rand::RngExt;

use super::GuestOptions;
use super::console::Console;
use super::find::Parts;
use crate::run::guest::{ANSWER, Answer, JOB, Job};
use braid_netns::{Child, Run, Spawn};

/// The guest's clock starts at 2000-01-01T00:00:00Z, s: it only has to be the
/// same every time.
pub(super) const EPOCH_S: u64 = 946_684_800;
/// Where the host keeps the common folder, in the guest's own.
const COMMON: &str = "io";

/// A guest that runs, in a folder of its own.
pub(super) struct Guest {
    child: Child,
    dir: PathBuf,
    console: Arc<Console>,
    started: Instant,
    wall_limit: Duration,
    stall: Duration,
    memory_mib: u32,
}

impl Guest {
    /// Boots a guest for `job` in the folder `name` of `run`.
    pub(super) fn start(
        run: &Run,
        name: &str,
        parts: &Parts,
        job: &Job,
        options: &GuestOptions,
    ) -> Result<Self> {
        let dir = run.dir().join(name);
        let common = dir.join(COMMON);
        fs::create_dir_all(&common).with_context(|| format!("make {}", common.display()))?;
        // By relative paths the kernel's command line, from which it draws
        // entropy, is the same wherever the folders are.
        symlink(&parts.root, dir.join("root")).context("link the guest's root")?;
        let text = serde_json::to_vec(job).context("write the guest's job")?;
        fs::write(common.join(JOB), text).context("write the guest's job")?;
        let console = Arc::new(Console::new());
        let told = Arc::clone(&console);
        let child = Spawn::new(run.id(), format!("guest {name}"), &parts.kernel)
            .args(arguments(options, entropy(job)))
            .no_env()
            .current_dir(&dir)
            .fixed_addresses()
            .log(Arc::new(move |_, _, text| told.line(text)))
            .spawn()?;
        Ok(Self {
            child,
            dir,
            console,
            started: Instant::now(),
            wall_limit: options.wall_limit(Duration::from_secs_f64(job.limit_s)),
            stall: options.stall,
            memory_mib: options.memory_mib,
        })
    }

    /// Its process.
    pub(super) fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Simulated time of the case.
    pub(super) fn at(&self) -> Duration {
        self.console.progress().0
    }

    /// The answer, once there is one.
    ///
    /// # Errors
    /// The guest is stuck, or ended without an answer; it is killed then.
    pub(super) fn poll(&mut self) -> Result<Option<Answer>> {
        if let Some(exit) = self.child.try_wait()? {
            return match read(&self.dir.join(COMMON).join(ANSWER)) {
                Ok(answer) => Ok(Some(answer)),
                Err(e) => match self.console.cause(self.memory_mib) {
                    Some(cause) => bail!("{cause}{}", self.console.tail()),
                    None => bail!(
                        "the guest ended without an answer ({}, {e:#}){}",
                        exit.status,
                        self.console.tail()
                    ),
                },
            };
        }
        let (at, stood) = self.console.progress();
        let what = if stood > self.stall {
            format!(
                "wall-clock watchdog: simulated time stood at {:.1} s for {} s",
                at.as_secs_f64(),
                self.stall.as_secs_f64()
            )
        } else if self.started.elapsed() > self.wall_limit {
            format!(
                "wall-clock watchdog: the guest was only at {:.1} simulated seconds after {} s",
                at.as_secs_f64(),
                self.wall_limit.as_secs()
            )
        } else {
            return Ok(None);
        };
        let cause = self.console.cause(self.memory_mib);
        let cause = cause.map(|c| format!("; {c}")).unwrap_or_default();
        self.child.kill()?;
        bail!(
            "{what}; the guest was stopped{cause}{}",
            self.console.tail()
        );
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Before its folder goes; dropping the child would come later.
        let _ = self.child.kill();
        // The run's folder goes as a whole in the end: this one may stay until then.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn read(path: &Path) -> Result<Answer> {
    let text = fs::read(path).context("it wrote none")?;
    serde_json::from_slice(&text).context("it cannot be understood")
}

/// Draws the value that the guest's kernel takes instead of random numbers, from the seed,
/// the case and the repeat.
fn entropy(job: &Job) -> u64 {
    let case = job.scenario.cases.first().map_or("", |c| &c.name);
    let label = format!("guest {} {case}", job.repeat);
    seed::stream(job.scenario.seed, &label).random()
}

/// The kernel's command line: nothing in it may depend on the host.
fn arguments(options: &GuestOptions, entropy: u64) -> Vec<String> {
    let mut all: Vec<String> = [
        "hostfs=/proc/self/cwd",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=root",
        "ro",
        "init=/braid",
        "uml_dir=./",
        "umid=guest",
        // Given, so that it is not appended to what the first process gets.
        "console=tty0",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        "stderr=1",
        "quiet",
        "loglevel=4",
        "printk.devkmsg=on",
        "norandmaps",
        "random.trust_cpu=off",
        "time-travel=inf-cpu",
    ]
    .map(str::to_owned)
    .into();
    all.push(format!("time-travel-start={EPOCH_S}000000000"));
    all.push(format!("mem={}M", options.memory_mib));
    all.push(format!("random-seed={entropy}"));
    all.extend(["--".to_owned(), "__guest".to_owned()]);
    all
}
