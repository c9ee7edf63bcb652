//! Results of an earlier run in the same directory: kept until there are new ones.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{LOG, SUMMARY, TEMPORARY, is_journal, is_named};

/// Directory in that of the run where its files are meanwhile.
pub(super) const ASIDE: &str = ".braid-earlier";

/// Results that are set aside.
#[derive(Debug)]
pub(super) struct Earlier {
    run: PathBuf,
}

impl Earlier {
    /// Empties `run`, whose files all are of a run; its results are set aside. Where a run that
    /// was killed left earlier ones aside and has none itself, these stay.
    ///
    /// # Errors
    /// A file can be neither moved nor removed.
    pub(super) fn set_aside(run: &Path) -> io::Result<Self> {
        let aside = run.join(ASIDE);
        let mut names = names(run)?;
        names.retain(|n| n != ASIDE);
        let keep = names.iter().any(|n| n == SUMMARY);
        if keep {
            // An older one is of no use beside them, unless moving was cut short.
            if aside.join(SUMMARY).exists() {
                fs::remove_dir_all(&aside)?;
            }
            fs::create_dir_all(&aside)?;
        }
        // Until the log goes the directory is known as ours, and until the summary goes, what
        // is still here as results.
        names.sort_by_key(|n| (n == LOG, n == SUMMARY));
        for name in names {
            let from = run.join(&name);
            match keep && !name.starts_with(TEMPORARY) {
                true => fs::rename(from, aside.join(name))?,
                false => fs::remove_file(from)?,
            }
        }
        Ok(Self {
            run: run.to_owned(),
        })
    }

    /// Whether there are any.
    pub(super) fn is_kept(&self) -> bool {
        self.run.join(ASIDE).join(SUMMARY).exists()
    }

    /// Removes them: there are new ones.
    ///
    /// # Errors
    /// They cannot be removed.
    pub(super) fn give_up(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.run.join(ASIDE)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Puts them back in the place of a run that has none.
    fn put_back(&self) -> io::Result<()> {
        let aside = self.run.join(ASIDE);
        if self.run.join(SUMMARY).exists() || !self.is_kept() {
            return Ok(());
        }
        let ours = |n: &String| is_named(n) || is_journal(n);
        for name in names(&self.run)?.iter().filter(|n| ours(n)) {
            fs::remove_file(self.run.join(name))?;
        }
        for name in names(&aside)? {
            fs::rename(aside.join(&name), self.run.join(name))?;
        }
        fs::remove_dir(aside)
    }
}

impl Drop for Earlier {
    fn drop(&mut self) {
        // What cannot be put back is there still, and the next run finds it.
        let _ = self.put_back();
    }
}

/// Names in a directory, in order.
pub(super) fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(dir)?;
    let name = |e: io::Result<fs::DirEntry>| Ok(e?.file_name().to_string_lossy().into_owned());
    let mut names = entries.map(name).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
