//! Journal of the control loop in a file of bounded size. When it is full, it takes the name
//! `NAME.old`, and a new one begins with the configuration. What fails is a note for the status
//! and never stops the daemon.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use braid_core::control::{Decision, Observation};
use braid_core::journal::{Header, Writer};

/// Journal that is written.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    limit: u64,
    header: Header,
    /// Absent after a failure, until a new file begins.
    writer: Option<Writer<BufWriter<Counted>>>,
    /// Reason why nothing is written.
    trouble: Option<String>,
}

/// File, and how much was written to it.
#[derive(Debug)]
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = self.file.write(data)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the name of the journal before the one at `path`.
pub(super) fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

impl Journal {
    /// Begins a journal at `path` that takes about `limit` bytes. One that is there becomes the
    /// old one.
    pub(super) fn new(path: &Path, limit: u64, header: Header) -> Self {
        let mut journal = Self {
            path: path.to_owned(),
            limit,
            header,
            writer: None,
            trouble: None,
        };
        journal.begin();
        journal
    }

    /// Returns why nothing is written.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Whether it goes on at this file with this bound.
    pub(super) fn is(&self, path: &Path, limit: u64) -> bool {
        self.path == path && self.limit == limit
    }

    /// Whether the next line is better the first of a new file.
    pub(super) fn is_full(&self) -> bool {
        self.writer
            .as_ref()
            .is_some_and(|w| w.output().get_ref().bytes >= self.limit)
    }

    /// Begins a new file.
    pub(super) fn begin(&mut self) {
        self.writer = None;
        let begun = move_away(&self.path).and_then(|()| {
            let file = File::create(&self.path)?;
            let output = BufWriter::new(Counted { file, bytes: 0 });
            Writer::new(output, self.header.clone())
        });
        match begun {
            Ok(writer) => {
                self.writer = Some(writer);
                self.trouble = None;
            }
            Err(e) => self.failed(&e),
        }
    }

    pub(super) fn observation(&mut self, observation: Observation) {
        self.write(|w| w.observation(observation));
    }

    /// Writes a decision, and all that is buffered.
    pub(super) fn decision(&mut self, decision: Decision) {
        self.write(|w| {
            w.decision(decision)?;
            w.flush()
        });
    }

    fn write(&mut self, line: impl FnOnce(&mut Writer<BufWriter<Counted>>) -> io::Result<()>) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        if let Err(e) = line(writer) {
            self.writer = None;
            self.failed(&e);
        }
    }

    fn failed(&mut self, e: &io::Error) {
        let why = format!(
            "the journal {} is not written: {e}: see [control] journal",
            self.path.display()
        );
        tracing::warn!("{why}");
        self.trouble = Some(why);
    }
}

fn move_away(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match std::fs::rename(path, old(path)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
