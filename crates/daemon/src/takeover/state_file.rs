//! A file beside the control socket, for the daemon that follows one that was killed.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use braid_mptcp::support;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::Uid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Bytes; no daemon has as much to keep.
const MOST: u64 = 1 << 20;

/// File of saved state, which is removed when this is dropped, unless it is to stay.
#[derive(Debug)]
pub(crate) struct KeptFile {
    path: PathBuf,
    /// Description, for messages, of what does not outlive a killed daemon where the file cannot
    /// be had.
    about: &'static str,
    /// Boot, and network namespace in it. `None` where the namespace cannot be told from others:
    /// nothing is saved then.
    place: Option<(String, u64)>,
    stays: bool,
    /// Whether it was reported that the file cannot be written.
    said: AtomicBool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept<T> {
    boot: String,
    namespace: u64,
    kept: T,
}

impl KeptFile {
    /// Names the file of the calling thread's network namespace. `ending` tells it from others.
    pub(crate) fn beside(control: &Path, ending: &str, about: &'static str) -> Self {
        Self {
            path: with(control, ending),
            about,
            place: place(),
            stays: false,
            said: AtomicBool::new(false),
        }
    }

    /// Reads the saved state; `None` where there is none, where it is of another place, or not
    /// what we would have written, which is reported.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let text = match self.text() {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => {
                self.complain("read", &e);
                return None;
            }
        };
        match serde_json::from_slice::<Kept<T>>(&text) {
            Ok(k) => (self.place == Some((k.boot, k.namespace))).then_some(k.kept),
            Err(e) => {
                self.complain("understand", &e);
                None
            }
        }
    }

    /// Reads a file of ours; one that anybody else has put there is not even waited for.
    fn text(&self) -> io::Result<Vec<u8>> {
        let mut open = OpenOptions::new();
        let open = open.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
        let file = open.open(&self.path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.uid() != Uid::effective().as_raw() {
            return Err(io::Error::other("it is no file of ours"));
        }
        let mut text = Vec::new();
        file.take(MOST + 1).read_to_end(&mut text)?;
        match text.len() as u64 > MOST {
            true => Err(io::Error::other("it is longer than all that is kept")),
            false => Ok(text),
        }
    }

    /// Keeps `what`; whether that was possible. A daemon that cannot do so serves all the
    /// same, and says it once.
    pub(crate) fn write(&self, what: &impl Serialize) -> bool {
        let Some((boot, namespace)) = self.place.clone() else {
            return false;
        };
        let kept = Kept {
            boot,
            namespace,
            kept: what,
        };
        let written = self.replace(&kept);
        let said = self.said.swap(written.is_err(), Ordering::Relaxed);
        if let (Err(e), false) = (&written, said) {
            self.complain("write", e);
        }
        written.is_ok()
    }

    /// Whole or not at all, whenever this process is killed.
    fn replace(&self, what: &impl Serialize) -> io::Result<()> {
        let new = self.new_file();
        remove(&new)?;
        let mut open = OpenOptions::new();
        let mut file = open.write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(what)?)?;
        std::fs::rename(&new, &self.path)
    }

    /// There is nothing to keep.
    pub(crate) fn forget(&self) {
        for path in [&self.path, &self.new_file()] {
            if let Err(e) = remove(path) {
                self.complain("remove", &e);
            }
        }
    }

    /// Whether it is for the next daemon also where this one ends in order.
    pub(crate) fn stay(&mut self, stays: bool) {
        self.stays = stays;
    }

    /// Path of the new file, which is written before it takes the place of what was there.
    fn new_file(&self) -> PathBuf {
        with(&self.path, ".new")
    }

    fn complain(&self, what: &str, e: &dyn std::fmt::Display) {
        tracing::warn!(
            "cannot {what} {}, and {} does not outlive a killed daemon: {e}",
            self.path.display(),
            self.about
        );
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if !self.stays {
            self.forget();
        }
    }
}

fn place() -> Option<(String, u64)> {
    let boot = support::sysctl("kernel.random.boot_id")?;
    Some((boot, support::namespace_cookie().ok()?))
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn with(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn file(folder: &Path) -> KeptFile {
        KeptFile::beside(&folder.join("c.sock"), ".kept", "what a test keeps")
    }

    #[test]
    fn it_is_read_by_the_next_and_goes_with_the_last() {
        let t = tempfile::tempdir().unwrap();
        let mut first = file(t.path());
        assert!(first.write(&vec![1, 2]));
        let mode = std::fs::metadata(&first.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        first.stay(true);
        drop(first);
        let second = file(t.path());
        assert_eq!(second.read(), Some(vec![1, 2]));
        drop(second);
        assert_eq!(std::fs::read_dir(t.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_others_have_put_there_is_neither_read_nor_followed() {
        let t = tempfile::tempdir().unwrap();
        let ours = file(t.path());
        assert!(ours.write(&1));
        let good = std::fs::read(&ours.path).unwrap();
        let elsewhere = t.path().join("elsewhere");
        std::fs::write(&elsewhere, &good).unwrap();

        ours.forget();
        symlink(&elsewhere, &ours.path).unwrap();
        assert_eq!(ours.read::<i32>(), None);
        ours.forget();
        mkfifo(&ours.path, Mode::S_IRWXU).unwrap();
        assert_eq!(ours.read::<i32>(), None);
        ours.forget();
        let mut long = good.clone();
        long.resize(usize::try_from(MOST).unwrap() + 1, b' ');
        std::fs::write(&ours.path, long).unwrap();
        assert_eq!(ours.read::<i32>(), None);

        symlink(&elsewhere, ours.new_file()).unwrap();
        assert!(ours.write(&2));
        assert_eq!(ours.read(), Some(2));
        assert_eq!(std::fs::read(&elsewhere).unwrap(), good);
    }
}
