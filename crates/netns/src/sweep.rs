//! Cleans up after runs whose owner died, and after them only.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, geteuid, getpid};

use super::child_setup::{pidfd_kill, pidfd_open};
use super::process::RUN_VARIABLE;
use super::procfs;
use super::registry::{Entry, Registry, here, is_id, remove};
use super::rights::{self, Rights};
use crate::error::LabError;

/// How long killed processes may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The runs whose owner was dead, and which are gone now.
    pub runs: Vec<String>,
    /// The processes that they had left, and that were killed.
    pub killed: Vec<i32>,
    /// Notes on what could not be cleaned up, or not be read.
    pub notes: Vec<String>,
}

impl Registry {
    /// Kills the processes of runs whose owner is dead, and removes their
    /// files. A process is killed only if it was started with the mark of
    /// such a run.
    ///
    /// # Errors
    /// When the registry or `/proc` cannot be read.
    pub fn sweep(&self) -> Result<Swept, LabError> {
        let what = || format!("sweep the runs in {}", self.dir().display());
        Ok(sweep(self).with_context(what)?)
    }
}

fn sweep(registry: &Registry) -> Result<Swept> {
    let _lock = registry.lock()?;
    let (boot, pid_namespace) = here()?;
    let mut swept = Swept::default();
    let mut dead = Vec::new();
    for file in fs::read_dir(registry.dir())? {
        let path = file?.path();
        let stem = path
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        if path.extension() != Some("json".as_ref()) || !is_id(stem) {
            continue;
        }
        let entry = fs::read(&path)
            .map_err(anyhow::Error::from)
            .and_then(|b| Ok(serde_json::from_slice::<Entry>(&b)?));
        match entry {
            Ok(entry) if entry.run != stem => swept
                .notes
                .push(format!("{} is of another run", path.display())),
            Ok(entry) if entry.is_dead(&boot, &pid_namespace) => dead.push((entry.run, path)),
            Ok(_) => {}
            Err(e) => swept
                .notes
                .push(format!("could not read {}: {e:#}", path.display())),
        }
    }
    if dead.is_empty() {
        return Ok(swept);
    }
    let ids: Vec<&str> = dead.iter().map(|(run, _)| run.as_str()).collect();
    let killed = kill_marked(&ids)?;
    swept.killed = killed.pids;
    for (run, path) in dead {
        if !killed.done || killed.hidden {
            swept.notes.push(format!(
                "run {run} may have processes that cannot be looked at from here"
            ));
        } else if let Err(e) = remove(&registry.dir().join(&run), &path) {
            swept
                .notes
                .push(format!("could not remove the files of run {run}: {e}"));
        } else {
            swept.runs.push(run);
        }
    }
    Ok(swept)
}

/// The processes that were killed.
pub(super) struct Killed {
    pub(super) pids: Vec<i32>,
    /// Whether no process with such a mark is left that can be seen.
    pub(super) done: bool,
    /// Whether there are processes of the user that cannot be looked at.
    pub(super) hidden: bool,
}

/// Kills every process but this one that carries one of these runs' marks.
pub(super) fn kill_marked(runs: &[&str]) -> Result<Killed> {
    let mut killed = HashSet::new();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (marked, hidden) = marked(runs).context("look for the processes of a run")?;
        if marked.is_empty() || Instant::now() >= deadline {
            let mut pids: Vec<i32> = killed.into_iter().collect();
            pids.sort_unstable();
            return Ok(Killed {
                pids,
                done: marked.is_empty(),
                hidden,
            });
        }
        let mut ending = Vec::new();
        for (pid, pidfd) in marked {
            match pidfd_kill(pidfd.as_fd(), nix::sys::signal::Signal::SIGKILL) {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                result => {
                    result.with_context(|| format!("kill process {pid} of a run"))?;
                    killed.insert(pid.as_raw());
                    ending.push(pidfd);
                }
            }
        }
        // Once more then: one of them may just have forked.
        for pidfd in ending {
            let left = deadline
                .saturating_duration_since(Instant::now())
                .as_millis();
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            // An early return only means one more turn.
            let _ = poll(&mut [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)], left);
        }
    }
}

/// The processes with these marks, and whether some of the user's could not be
/// looked at: from inside a user namespace, none outside of it can.
fn marked(runs: &[&str]) -> io::Result<(Vec<(Pid, OwnedFd)>, bool)> {
    let inside = rights::current() == Rights::UserNamespace;
    let (mut found, mut hidden) = (Vec::new(), false);
    for pid in procfs::processes()?
        .into_iter()
        .filter(|pid| *pid != getpid())
    {
        // Opened before its mark is read: what is killed later is this very
        // process, not one that got its number. A zombie has no mark.
        let Ok(pidfd) = pidfd_open(pid) else { continue };
        match procfs::environment(pid, RUN_VARIABLE) {
            Ok(Some(run)) if runs.contains(&run.as_str()) => found.push((pid, pidfd)),
            Err(e) if inside && e.kind() == io::ErrorKind::PermissionDenied => {
                hidden |= fs::metadata(format!("/proc/{pid}"))
                    .is_ok_and(|m| m.uid() == geteuid().as_raw());
            }
            _ => {}
        }
    }
    Ok((found, hidden))
}
