//! Errors with the files of a run, and what the user can do about each.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::human_bytes;

/// Why a run's files could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The directory holds something that no run of ours wrote.
    #[error(
        "{} already holds {found:?}, which is not from a run of braid: nothing was touched; \
         name a new or empty directory with `--out DIR`", dir.display()
    )]
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// The first entry that is not ours.
        found: String,
    },
    /// Another lab is writing there now.
    #[error(
        "{} belongs to a run that is still going on: name another directory with `--out DIR`",
        dir.display()
    )]
    Busy {
        /// The directory.
        dir: PathBuf,
    },
    /// There is something at that path, and it is no directory.
    #[error("{} is not a directory: name one with `--out DIR`", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory does not hold a run.
    #[error("{} does not hold a run: {why}", dir.display())]
    NotARun {
        /// The directory.
        dir: PathBuf,
        /// Description of what is missing.
        why: String,
    },
    /// A file of a run that does not say what it should.
    #[error("{}: {what}", place(file, *line))]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Line, from 1, where known.
        line: Option<u64>,
        /// Description of the fault.
        what: String,
    },
    /// The disk, the quota or the file size limit is used up.
    #[error(
        "writing {} to {}: {reason} ({}); what was written before is kept; \
         free some space, or write elsewhere with `--out DIR`",
        human_bytes(*needed), file.display(), free_text(*free, file)
    )]
    Full {
        /// The file.
        file: PathBuf,
        /// Bytes that did not fit.
        needed: u64,
        /// Bytes free on that file system, where it says.
        free: Option<u64>,
        /// Full disk, quota, or file size limit.
        reason: &'static str,
    },
    /// There can be no directory.
    #[error("make the directory {}: {why}; name another with `--out DIR`", path.display())]
    Unwritable {
        /// The directory.
        path: PathBuf,
        /// Error of the operating system.
        why: io::Error,
    },
    /// Anything else the operating system refused.
    #[error("{doing} {}: {why}", path.display())]
    Io {
        /// Operation that was attempted, e.g. `creating`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Error of the operating system.
        why: io::Error,
    },
}

impl FilesError {
    /// Exit status of a program that stops for this: 2 where the user named
    /// the wrong place, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Foreign { .. }
            | Self::Busy { .. }
            | Self::NotADirectory { .. }
            | Self::Unwritable { .. }
            | Self::NotARun { .. }
            | Self::Malformed { .. } => 2,
            Self::Full { .. } | Self::Io { .. } => 1,
        }
    }

    /// Names the attempt, and tells a full disk from other failures.
    pub(crate) fn io(doing: &'static str, path: &Path, needed: u64, why: io::Error) -> Self {
        let reason = match why.kind() {
            ErrorKind::StorageFull => "no space is left on the disk",
            ErrorKind::QuotaExceeded => "the disk quota is used up",
            ErrorKind::FileTooLarge => "the limit on the size of a file is reached (`ulimit -f`)",
            _ => {
                return Self::Io {
                    doing,
                    path: path.to_owned(),
                    why,
                };
            }
        };
        Self::Full {
            file: path.to_owned(),
            needed,
            free: free_bytes(path),
            reason,
        }
    }
}

/// Bytes an unprivileged process may still write to the file system of `path`.
fn free_bytes(path: &Path) -> Option<u64> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty());
    let s = nix::sys::statvfs::statvfs(dir.unwrap_or(Path::new("."))).ok()?;
    Some(s.blocks_available() * s.fragment_size())
}

fn free_text(free: Option<u64>, file: &Path) -> String {
    let dir = file.parent().unwrap_or(file).display();
    match free {
        Some(b) => format!("{} free in {dir}", human_bytes(b)),
        None => format!("free space in {dir} unknown"),
    }
}

fn place(file: &Path, line: Option<u64>) -> String {
    match line {
        Some(l) => format!("{}:{l}", file.display()),
        None => file.display().to_string(),
    }
}
