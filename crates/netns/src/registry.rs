//! Registry of the runs on this machine, so that one that died without
//! cleaning up can be told from one that lives.
//!
//! Every run has a file `<id>.json` that names its owner, and a private
//! directory `<id>` for its sockets and temporary files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, ensure};
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::procfs;
use super::rights;
use super::sweep;
use crate::error::LabError;

/// The owner of a run, as its file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) run: String,
    pub(super) pid: i32,
    /// When that process started, clock ticks since boot.
    pub(super) start_ticks: u64,
    /// The kernel's name for this boot.
    pub(super) boot: String,
    /// Where the process id means something: the PID namespace.
    pub(super) pid_namespace: String,
}

impl Entry {
    fn of_this_process(run: String) -> Result<Self> {
        let pid = i32::try_from(std::process::id())?;
        let start_ticks =
            procfs::start_ticks(pid).context("read /proc/self/stat: is /proc mounted?")?;
        let (boot, pid_namespace) = here()?;
        Ok(Self {
            run,
            pid,
            start_ticks,
            boot,
            pid_namespace,
        })
    }

    /// Whether the owner is known to be dead.
    pub(super) fn is_dead(&self, boot: &str, pid_namespace: &str) -> bool {
        if self.boot != boot {
            return true;
        }
        // From here an owner in another container cannot be seen.
        self.pid_namespace == pid_namespace
            && procfs::start_ticks(self.pid) != Some(self.start_ticks)
    }
}

/// The names of this boot and of this process's PID namespace.
pub(super) fn here() -> Result<(String, String)> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").context("read the boot id")?;
    let namespace = fs::read_link("/proc/self/ns/pid").context("read the PID namespace")?;
    Ok((boot.trim().into(), namespace.to_string_lossy().into_owned()))
}

/// The runs of a user on this machine.
#[derive(Debug)]
pub struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// Opens the user's registry: `$XDG_RUNTIME_DIR/braid`, or for root
    /// `/run/braid`, or `/tmp/braid-UID`, whichever can be had first.
    ///
    /// # Errors
    /// When none can be had, or one is there that others may write to.
    pub fn open() -> Result<Self, LabError> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let own = runtime.filter(|d| d.metadata().is_ok_and(|m| m.uid() == geteuid().as_raw()));
        let system = (rights::real_uid() == 0).then(|| PathBuf::from("/run"));
        for base in own.into_iter().chain(system) {
            if let Ok(registry) = Self::open_in(&base.join("braid")) {
                return Ok(registry);
            }
        }
        Self::open_in(&PathBuf::from(format!("/tmp/braid-{}", rights::real_uid())))
    }

    /// Opens the registry in `dir`, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made, or others may write to it.
    pub fn open_in(dir: &Path) -> Result<Self, LabError> {
        Ok(open_private(dir)
            .with_context(|| format!("open the registry of runs in {}", dir.display()))?)
    }

    /// Registers a run of this process.
    ///
    /// # Errors
    /// When its file or its directory cannot be written.
    pub fn register(&self) -> Result<Run, LabError> {
        let id = new_id();
        let entry = self.dir.join(format!("{id}.json"));
        let _lock = self.lock()?;
        let run = Run {
            dir: self.dir.join(&id),
            entry,
            id,
        };
        // The file first: what a crash leaves is always found by it.
        let written = Entry::of_this_process(run.id.clone()).and_then(|entry| {
            write_new(&run.entry, &serde_json::to_vec(&entry)?)
                .with_context(|| format!("write {}", run.entry.display()))?;
            DirBuilder::new()
                .mode(0o700)
                .create(&run.dir)
                .with_context(|| format!("make {}", run.dir.display()))
        });
        written.context("register the run")?;
        Ok(run)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps others from registering and sweeping.
    pub(super) fn lock(&self) -> Result<Flock<File>> {
        let path = self.dir.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path);
        let file = file.with_context(|| format!("open {}", path.display()))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, e)| anyhow!(e).context(format!("lock {}", path.display())))
    }
}

/// A registered run. Dropping it kills every process that still carries its
/// mark, and removes its directory: do so after everything else of the run.
#[derive(Debug)]
pub struct Run {
    id: String,
    dir: PathBuf,
    entry: PathBuf,
}

impl Run {
    /// Names the run; what [`super::Spawn`] marks processes with.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// For its sockets and temporary files; only the user may enter it, and
    /// its path is short enough for a Unix socket's name.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // What fails here the next sweep does: the file goes last.
        if sweep::kill_marked(&[&self.id]).is_ok_and(|killed| killed.done) {
            let _ = remove(&self.dir, &self.entry);
        }
    }
}

/// Removes what a run leaves in the registry.
pub(super) fn remove(dir: &Path, entry: &Path) -> io::Result<()> {
    for result in [fs::remove_dir_all(dir), fs::remove_file(entry)] {
        match result {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

/// An id that no other run on this machine has.
fn new_id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count:x}", now.as_micros(), std::process::id())
}

/// Whether a file name's stem can be an id of ours: it becomes part of paths.
pub(super) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

fn open_private(dir: &Path) -> Result<Registry> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        result => result?,
    }
    // In a directory that all may write to, someone else may have been first.
    let found = fs::symlink_metadata(dir)?;
    ensure!(
        found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0,
        "it is not a directory that only you may enter: remove it"
    );
    Ok(Registry { dir: dir.into() })
}

/// Writes a file that is there whole or not at all.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let written = File::create(&part)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_run_is_there_until_it_is_dropped() {
        let temp = tempfile::tempdir().unwrap();
        let registry = Registry::open_in(&temp.path().join("braid")).unwrap();
        let runs = [registry.register().unwrap(), registry.register().unwrap()];
        assert_ne!(runs[0].id(), runs[1].id());
        for run in &runs {
            assert!(is_id(run.id()));
            assert_eq!(
                run.dir().metadata().unwrap().permissions().mode() & 0o777,
                0o700
            );
            fs::write(run.dir().join("a socket"), "x").unwrap();
            let entry: Entry = serde_json::from_slice(&fs::read(&run.entry).unwrap()).unwrap();
            let (boot, namespace) = here().unwrap();
            assert!(!entry.is_dead(&boot, &namespace));
        }
        drop(runs);
        let left: Vec<_> = fs::read_dir(registry.dir())
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(left, ["lock"]);
    }

    #[test]
    fn an_owner_is_dead_only_when_that_is_sure() {
        let entry = Entry::of_this_process("a".into()).unwrap();
        let dead = |entry: &Entry| entry.is_dead("this boot", "here");
        let entry = Entry {
            boot: "this boot".into(),
            pid_namespace: "here".into(),
            ..entry
        };
        assert!(!dead(&entry));
        assert!(
            dead(&Entry {
                start_ticks: entry.start_ticks + 1,
                ..entry.clone()
            }),
            "the id is another's now"
        );
        assert!(dead(&Entry {
            pid: i32::MAX,
            ..entry.clone()
        }));
        assert!(!dead(&Entry {
            pid: i32::MAX,
            pid_namespace: "a container".into(),
            ..entry.clone()
        }));
        assert!(dead(&Entry {
            boot: "the last boot".into(),
            ..entry
        }));
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("braid");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Registry::open_in(&dir).unwrap_err();
        assert!(error.to_string().contains("only you may enter"), "{error}");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(Registry::open_in(&link).is_err());
        assert!(Registry::open_in(&temp.path().join("no/such/place")).is_err());
    }
}
