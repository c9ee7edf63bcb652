//! The directory a run leaves behind: made, filled while the run goes on, and
//! read again. Its contents are defined in `docs/report.md`.

mod earlier;
mod error;
mod json;
mod read;
mod rows;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use nix::fcntl::{Flock, FlockArg};

use earlier::{ASIDE, Earlier, names};
pub use error::FilesError;
pub use json::to_json;
pub use read::RunFiles;
pub use rows::Rows;

use crate::summary::{EventRow, Summary, TimelineRow};

/// The result, with everything the table shows.
pub const SUMMARY: &str = "summary.json";
/// One row per case, access and 100 ms.
pub const TIMELINE: &str = "timeline.csv";
/// One row per thing that happened.
pub const EVENTS: &str = "events.csv";
/// The scenario as it was run.
pub const SCENARIO: &str = "scenario.toml";
/// Log of the lab's actions, line by line.
pub const LOG: &str = "run.log";
/// The report for people.
pub const REPORT: &str = "report.html";

/// Begin and end of the names of journals: the number of the case, and whose it is, stand between.
const JOURNAL: &str = "journal-";
const JOURNAL_END: &str = ".jsonl";
/// Ends that have a journal, and the one before that was full.
const JOURNALED: [&str; 4] = ["device", "device.old", "proxy", "proxy.old"];

const OURS: [&str; 6] = [LOG, SUMMARY, TIMELINE, EVENTS, SCENARIO, REPORT];
/// How temporary files start; a crash may leave one behind.
const TEMPORARY: &str = ".braid-";
/// How the first line of every `run.log` starts: by this a directory is known
/// to be ours.
const LOG_MARK: &str = "braid ";

/// The directory of one run, held for writing.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    earlier: Earlier,
    /// Held until dropped, so that no second run writes here.
    _lock: Flock<File>,
}

impl RunDir {
    /// `<scenario>-<UTC time>`, e.g. `static-20260131T120102Z`.
    pub fn default_name(scenario: &str, started: SystemTime) -> String {
        let safe: String = scenario
            .chars()
            .map(|c| {
                if c.is_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        // A name that starts with a dot would be hidden, or `..`.
        format!(
            "{}-{}",
            safe.trim_start_matches('.'),
            utc(started, "%Y%m%dT%H%M%SZ")
        )
    }

    /// Makes a new directory with its default name in `base` (`out`); two runs
    /// that start in the same second get different ones.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_default(
        base: &Path,
        scenario: &str,
        started: SystemTime,
        command: &str,
    ) -> Result<Self, FilesError> {
        let name = Self::default_name(scenario, started);
        make_dirs(base)?;
        for n in 1u32.. {
            let path = base.join(match n {
                1 => name.clone(),
                n => format!("{name}-{n}"),
            });
            match fs::create_dir(&path) {
                Ok(()) => return Self::create(&path, command),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(FilesError::io("creating", &path, 0, e)),
            }
        }
        unreachable!("some number is free")
    }

    /// Makes `path`, or takes it over from an earlier run, whose files go with the first summary:
    /// they are put back if there is none. `command` (the command line) becomes the first line
    /// of `run.log`.
    ///
    /// # Errors
    /// [`FilesError::Foreign`]: it holds anything that a run did not write;
    /// [`FilesError::Busy`]: another run writes there; it cannot be made.
    pub fn create(path: &Path, command: &str) -> Result<Self, FilesError> {
        make_dirs(path)?;
        let handle = File::open(path).map_err(|e| FilesError::io("opening", path, 0, e))?;
        let lock = Flock::lock(handle, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| {
            if e == nix::errno::Errno::EWOULDBLOCK {
                FilesError::Busy {
                    dir: path.to_owned(),
                }
            } else {
                FilesError::io("locking", path, 0, e.into())
            }
        })?;
        let dir = Self {
            path: path.to_owned(),
            earlier: clear(path)?,
            _lock: lock,
        };
        // Control characters would let a command line pretend to be log lines.
        let command = command.replace(char::is_control, " ");
        let log = path.join(LOG);
        let text = format!("{LOG_MARK}{}: {command}\n", env!("CARGO_PKG_VERSION"));
        fs::write(&log, &text)
            .map_err(|e| FilesError::io("writing", &log, text.len() as u64, e))?;
        Ok(dir)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it keeps the files of an earlier run still.
    pub fn has_earlier(&self) -> bool {
        self.earlier.is_kept()
    }

    /// Writes the scenario as it is run.
    ///
    /// # Errors
    /// No space, or no right to write.
    pub fn write_scenario(&self, toml: &str) -> Result<PathBuf, FilesError> {
        write_whole(&self.path.join(SCENARIO), toml.as_bytes())
    }

    /// Writes the summary. Do it after each case: what was measured so far
    /// then survives a crash.
    ///
    /// # Errors
    /// No space, or no right to write.
    pub fn write_summary(&self, summary: &Summary) -> Result<PathBuf, FilesError> {
        let path = write_whole(&self.path.join(SUMMARY), to_json(summary).as_bytes())?;
        let given_up = self.earlier.give_up();
        given_up.map_err(|e| FilesError::io("removing", &self.path.join(ASIDE), 0, e))?;
        Ok(path)
    }

    /// Writes the journal of an end, such as `proxy`, in case number `case` of the summary, from
    /// 1; returns its name.
    ///
    /// # Errors
    /// No space, or no right to write.
    pub fn write_journal(&self, case: usize, end: &str, text: &str) -> Result<String, FilesError> {
        let name = format!("{JOURNAL}{case}-{end}{JOURNAL_END}");
        write_whole(&self.path.join(&name), text.as_bytes())?;
        Ok(name)
    }

    /// Writes the report.
    ///
    /// # Errors
    /// No space, or no right to write.
    pub fn write_report(&self, html: &str) -> Result<PathBuf, FilesError> {
        write_whole(&self.path.join(REPORT), html.as_bytes())
    }

    /// Starts `timeline.csv`.
    ///
    /// # Errors
    /// No space, or no right to write.
    pub fn timeline(&self) -> Result<Rows<TimelineRow>, FilesError> {
        Rows::create(&self.path.join(TIMELINE))
    }

    /// Starts `events.csv`.
    ///
    /// # Errors
    /// No space, or no right to write.
    pub fn events(&self) -> Result<Rows<EventRow>, FilesError> {
        Rows::create(&self.path.join(EVENTS))
    }

    /// Opens `run.log`; its times count from now.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn log(&self) -> Result<RunLog, FilesError> {
        RunLog::open(&self.path.join(LOG))
    }
}

/// Empties the directory of an earlier run, whose results are kept for now, or refuses.
fn clear(run: &Path) -> Result<Earlier, FilesError> {
    let found = names(run).map_err(|e| FilesError::io("reading", run, 0, e))?;
    let ours = |n: &String| is_named(n) || n.starts_with(TEMPORARY) || is_journal(n);
    let marked = |log: PathBuf| fs::read(log).is_ok_and(|t| t.starts_with(LOG_MARK.as_bytes()));
    let is_run = marked(run.join(LOG)) || marked(run.join(ASIDE).join(LOG));
    let foreign = match found.iter().find(|n| !ours(n)) {
        None if !is_run => found.first(),
        foreign => foreign,
    };
    if let Some(found) = foreign {
        return Err(FilesError::Foreign {
            dir: run.to_owned(),
            found: found.clone(),
        });
    }
    Earlier::set_aside(run).map_err(|e| FilesError::io("emptying", run, 0, e))
}

/// Whether every run names a file so.
fn is_named(name: &str) -> bool {
    OURS.contains(&name)
}

/// Whether a run names a journal so.
fn is_journal(name: &str) -> bool {
    let between = name.strip_prefix(JOURNAL);
    let parts = between.and_then(|n| n.strip_suffix(JOURNAL_END)?.split_once('-'));
    parts.is_some_and(|(case, end)| case.parse::<usize>().is_ok() && JOURNALED.contains(&end))
}

/// `run.log`: a line for each thing the lab did, with the seconds since it was
/// opened. Lines of several threads do not mix.
#[derive(Debug)]
pub struct RunLog {
    file: File,
    path: PathBuf,
    start: Instant,
}

impl RunLog {
    /// Opens or makes the file at `path`; its times count from now.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FilesError> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|e| FilesError::io("opening", path, 0, e))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            start: Instant::now(),
        })
    }

    /// Appends lines of another log, with the times that they have.
    ///
    /// # Errors
    /// No space is left.
    pub fn copy(&self, lines: &str) -> Result<(), FilesError> {
        (&self.file)
            .write_all(lines.as_bytes())
            .map_err(|e| FilesError::io("writing", &self.path, lines.len() as u64, e))
    }

    /// Appends `text`; further lines of it are indented.
    ///
    /// # Errors
    /// No space is left.
    pub fn line(&self, text: &str) -> Result<(), FilesError> {
        let t = self.start.elapsed().as_secs_f64();
        let text = format!(
            "{t:10.3}  {}\n",
            text.trim_end().replace('\n', "\n            ")
        );
        (&self.file)
            .write_all(text.as_bytes())
            .map_err(|e| FilesError::io("writing", &self.path, text.len() as u64, e))
    }
}

/// Now, or another time, as RFC 3339 in UTC to the second: for [`Summary::started`].
pub fn rfc3339(t: SystemTime) -> String {
    utc(t, "%Y-%m-%dT%H:%M:%SZ")
}

fn utc(t: SystemTime, format: &str) -> String {
    let t = jiff::Timestamp::try_from(t).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    t.strftime(format).to_string()
}

/// Replaces `path` by `text`, all of it or not at all.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<PathBuf, FilesError> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |e| FilesError::io("writing", path, text.len() as u64, e);
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut tmp = tempfile::Builder::new()
        .prefix(TEMPORARY)
        // As any file the user makes, less the umask.
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(dir)
        .map_err(failed)?;
    tmp.write_all(text).map_err(failed)?;
    // Some file systems find out that they are full only here.
    tmp.as_file().sync_all().map_err(failed)?;
    tmp.persist(path).map_err(|e| failed(e.error))?;
    Ok(path.to_owned())
}

fn make_dirs(path: &Path) -> Result<(), FilesError> {
    match fs::create_dir_all(path) {
        Ok(()) => Ok(()),
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory
            ) =>
        {
            Err(FilesError::NotADirectory {
                path: path.to_owned(),
            })
        }
        Err(why)
            if matches!(
                why.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Err(FilesError::Unwritable {
                path: path.to_owned(),
                why,
            })
        }
        Err(e) => Err(FilesError::io("creating", path, 0, e)),
    }
}

/// `12 kB`, `3.4 MB`.
pub(crate) fn human_bytes(b: u64) -> String {
    let v = b as f64;
    let (v, unit) = match b {
        0..1_000 => return format!("{b} B"),
        1_000..1_000_000 => (v / 1e3, "kB"),
        1_000_000..1_000_000_000 => (v / 1e6, "MB"),
        _ => (v / 1e9, "GB"),
    };
    if v < 10.0 {
        format!("{v:.1} {unit}")
    } else {
        format!("{v:.0} {unit}")
    }
}
