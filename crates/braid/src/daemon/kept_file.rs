//! A file beside the control socket, for the daemon that follows one that was killed.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// It goes when this is dropped.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    /// What does not outlive a killed daemon where the file cannot be had.
    about: &'static str,
}

impl KeptFile {
    /// `ending` tells it from others.
    pub(super) fn beside(control: &Path, ending: &str, about: &'static str) -> Self {
        Self {
            path: with(control, ending),
            about,
        }
    }

    /// What stands in it; `None` where there is none, or not what we would have written,
    /// which is said.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return self.complain("read", &e),
        };
        match serde_json::from_slice(&text) {
            Ok(kept) => Some(kept),
            Err(e) => self.complain("understand", &e),
        }
    }

    /// Keeps `what`. A daemon that cannot do so serves all the same, and says it.
    pub(super) fn write(&self, what: &impl Serialize) {
        if let Err(e) = self.replace(what) {
            self.complain::<()>("write", &e);
        }
    }

    /// Whole or not at all, whenever this process is killed.
    fn replace(&self, what: &impl Serialize) -> io::Result<()> {
        let new = with(&self.path, ".new");
        std::fs::write(&new, serde_json::to_vec(what)?)?;
        std::fs::rename(&new, &self.path)
    }

    /// There is nothing to keep.
    pub(super) fn forget(&self) {
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                self.complain::<()>("remove", &e);
            }
            _ => {}
        }
    }

    fn complain<T>(&self, what: &str, e: &dyn std::fmt::Display) -> Option<T> {
        eprintln!(
            "braid: cannot {what} {}, and {} does not outlive a killed daemon: {e}",
            self.path.display(),
            self.about
        );
        None
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        self.forget();
    }
}

fn with(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}
