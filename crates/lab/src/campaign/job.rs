//! One job: a combination of the axes' values, once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};

use super::file::{Clock, named};
use crate::report::{FilesError, RunFiles};
use crate::scenario::Overrides;
use braid_netns::error::LabError;
use braid_netns::{Interrupt, Run, Spawn};

/// Between two looks at a child, a lock, and whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// For a run that is told to end, to take down what it set up.
const GRACE: Duration = Duration::from_secs(15);

/// A combination of the axes' values, once.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Hash of everything the job depends on, and the name of its files. The same job has
    /// the same key wherever and whenever it runs.
    pub key: String,
    /// Axis and value.
    pub labels: Vec<(String, String)>,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    what: What,
}

/// Everything that a job's result depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct What {
    /// Its scenario.
    pub(super) scenario: String,
    /// The traces that the scenario names, below its folder, and their bytes.
    pub(super) traces: BTreeMap<String, Vec<u8>>,
    pub(super) clock: Clock,
    /// With the seed.
    pub(super) overrides: Overrides,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Completed now, without a failed case.
    Ran,
    /// Completed earlier, here or elsewhere.
    Before,
    /// Completed now, with a failed case.
    Failed,
}

/// Environment that jobs need to run.
pub(super) struct Place<'a> {
    /// The campaign's folder.
    pub(super) dir: &'a Path,
    /// The `braid` program.
    pub(super) braid: &'a Path,
    /// Marks the processes.
    pub(super) run: &'a Run,
    pub(super) interrupt: &'a Interrupt,
}

fn short(hash: Sha256) -> String {
    let all = hash.finalize();
    all[..8].iter().map(|b| format!("{b:02x}")).collect()
}

impl Job {
    pub(super) fn new(labels: Vec<(String, String)>, repeat: u32, what: What) -> Self {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(env!("CARGO_PKG_VERSION").as_bytes());
        part(what.clock.to_string().as_bytes());
        part(format!("{:?}", what.overrides).as_bytes());
        part(what.scenario.as_bytes());
        for (name, bytes) in &what.traces {
            part(name.as_bytes());
            part(bytes);
        }
        Self {
            key: short(hash),
            labels,
            repeat,
            what,
        }
    }

    /// With what it is run by, whose hash is given.
    pub(super) fn run_by(&mut self, programs: &[u8]) {
        self.key = short(Sha256::new().chain_update(&self.key).chain_update(programs));
    }

    /// Seed of its run.
    pub fn seed(&self) -> u64 {
        self.what.overrides.seed.unwrap_or(1)
    }

    /// Its scenario.
    pub fn scenario(&self) -> &str {
        &self.what.scenario
    }

    /// `cc=olia, loss=0.001`.
    pub fn label(&self) -> String {
        named(&self.labels)
    }

    /// Where its run's files are once it has run.
    pub fn dir(&self, campaign: &Path) -> PathBuf {
        campaign.join("jobs").join(&self.key)
    }

    /// Reads the results of the job; `None` if it has not run.
    ///
    /// # Errors
    /// A file of its run cannot be read, or does not say what it should.
    pub fn result(&self, campaign: &Path) -> Result<Option<RunFiles>, FilesError> {
        match RunFiles::read(&self.dir(campaign)) {
            Ok(files) => Ok(Some(files)),
            Err(FilesError::NotARun { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether it has run and no case of it failed. What cannot be read is run again.
    fn has_succeeded(&self, campaign: &Path) -> bool {
        let succeeded = |r: &RunFiles| r.summary.cases.iter().all(|c| c.failed.is_none());
        matches!(&self.result(campaign), Ok(Some(r)) if succeeded(r))
    }

    /// Runs it unless it has run; waits while another process runs it.
    pub(super) fn run(&self, place: &Place<'_>) -> Result<Done, LabError> {
        let jobs = place.dir.join("jobs");
        let _held = self.lock(&jobs, place.interrupt)?;
        if self.has_succeeded(place.dir) {
            return Ok(Done::Before);
        }
        let scenario = self.write_scenario(place.dir)?;
        // Only a run that came to its end gets the job's name.
        let partial = jobs.join(format!("{}.partial", self.key));
        remove(&partial)?;
        let status = self.spawn(&scenario, &partial, place)?;
        let whole = RunFiles::read(&partial).is_ok();
        match status {
            0 | 1 if whole => {}
            2 => return Err(LabError::BadInput(self.told(&partial))),
            3 => {
                let (what, fix) = split(&self.told(&partial));
                return Err(LabError::missing(what, fix));
            }
            130 => return Err(LabError::Interrupted),
            _ => return Err(LabError::Failed(anyhow!(self.told(&partial)))),
        }
        let dir = self.dir(place.dir);
        remove(&dir)?;
        fs::rename(&partial, &dir).with_context(|| format!("rename {}", partial.display()))?;
        let _ = fs::remove_file(said(&partial));
        Ok(if self.has_succeeded(place.dir) {
            Done::Ran
        } else {
            Done::Failed
        })
    }

    /// Keeps other processes from running the same job; over NFS too.
    fn lock(&self, jobs: &Path, interrupt: &Interrupt) -> Result<Flock<fs::File>, LabError> {
        fs::create_dir_all(jobs).with_context(|| format!("make {}", jobs.display()))?;
        let path = jobs.join(format!("{}.lock", self.key));
        let doing = || format!("lock {}", path.display());
        let mut file = fs::File::create(&path).with_context(doing)?;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(held) => return Ok(held),
                Err((back, Errno::EWOULDBLOCK)) => file = back,
                Err((_, e)) => {
                    return Err(LabError::Failed(anyhow::Error::new(e).context(doing())));
                }
            }
            interrupt.sleep(LOOK)?;
        }
    }

    fn write_scenario(&self, campaign: &Path) -> Result<PathBuf, LabError> {
        let dir = campaign.join("scenarios");
        let path = dir.join(format!("{}.toml", self.key));
        let mut files = vec![(path.clone(), self.what.scenario.as_bytes())];
        let traces = self.what.traces.iter();
        files.extend(traces.map(|(name, bytes)| (dir.join(name), bytes.as_slice())));
        for (path, bytes) in files {
            let doing = || format!("write {}", path.display());
            if let Some(dir) = path.parent() {
                fs::create_dir_all(dir).with_context(doing)?;
            }
            // Another job may be reading the same trace.
            if fs::read(&path).is_ok_and(|old| old == bytes) {
                continue;
            }
            let new = path.with_extension(format!("{}.new", self.key));
            fs::write(&new, bytes).with_context(doing)?;
            fs::rename(&new, &path).with_context(doing)?;
        }
        Ok(path)
    }

    fn spawn(&self, scenario: &Path, out: &Path, place: &Place<'_>) -> Result<i32, LabError> {
        let mut args: Vec<String> = ["lab", "run"].map(str::to_owned).into();
        args.push(scenario.to_string_lossy().into_owned());
        args.extend(["--out".into(), out.to_string_lossy().into_owned()]);
        args.extend(["--clock".into(), self.what.clock.to_string()]);
        args.extend(["--seed".into(), self.seed().to_string()]);
        if self.what.clock == Clock::Virtual {
            args.extend(["--jobs".into(), "1".into()]);
        }
        let o = &self.what.overrides;
        if let Some(d) = o.duration {
            args.extend(["--duration".into(), d.as_secs_f64().to_string()]);
        }
        if let Some(s) = o.scale {
            args.extend(["--scale".into(), s.to_string()]);
        }
        for only in &o.only {
            args.extend(["--only".into(), only.clone()]);
        }
        let mut child = Spawn::new(place.run.id(), self.label(), place.braid)
            .args(args)
            .spawn()?;
        loop {
            if let Some(exit) = child.wait_timeout(LOOK)? {
                let _ = fs::write(said(out), child.tail().join("\n"));
                return Ok(exit.status.code().unwrap_or(-1));
            }
            if place.interrupt.came() {
                child.terminate(GRACE)?;
                return Err(LabError::Interrupted);
            }
        }
    }

    /// Returns the last lines that the run printed, after the job's label.
    fn told(&self, partial: &Path) -> String {
        let text = fs::read_to_string(said(partial)).unwrap_or_default();
        format!("{}: {}", self.label(), text.trim())
    }
}

/// The file with a run's last lines.
fn said(partial: &Path) -> PathBuf {
    partial.with_extension("said")
}

/// Splits an error as [`LabError`] prints it into what is missing and the line that helps.
fn split(text: &str) -> (String, String) {
    match text.split_once("\n  to enable it: ") {
        Some((what, fix)) => (what.to_owned(), fix.to_owned()),
        None => (text.to_owned(), "see the message above".to_owned()),
    }
}

fn remove(dir: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(LabError::Failed(
            anyhow::Error::new(e).context(format!("remove {}", dir.display())),
        )),
        _ => Ok(()),
    }
}
