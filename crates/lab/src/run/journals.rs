//! Journals of the control loops of a case: where its daemons write them, and what they leave.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use braid_api::Role;
use serde::{Deserialize, Serialize};

/// Size at which a daemon begins a new file, bytes; it keeps the one before. Both of both ends
/// fit into the memory of a guest beside everything else.
pub(crate) const LIMIT: u64 = 16 << 20;

/// Journal that one end has left.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// End of its name among the files of the run, such as `proxy`.
    pub(crate) end: String,
    /// Text of the file.
    pub(crate) text: String,
}

/// Returns the file in `dir` that the daemon of `role` writes.
pub(crate) fn path(dir: &Path, role: Role) -> PathBuf {
    dir.join(format!("{}.jsonl", name(role)))
}

/// Removes what the case before has left in `dir`.
///
/// # Errors
/// A file is there and cannot be removed.
pub(super) fn clear(dir: &Path) -> Result<()> {
    for (path, _) in files(dir) {
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("remove {}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the journals that daemons have left in `dir`.
///
/// # Errors
/// A file is there and cannot be read.
pub(super) fn read(dir: &Path) -> Result<Vec<Journal>> {
    let mut all = Vec::new();
    for (path, end) in files(dir) {
        match fs::read_to_string(&path) {
            Ok(text) => all.push(Journal { end, text }),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| format!("read {}", path.display())),
        }
    }
    Ok(all)
}

/// Returns the files that daemons may write in `dir`, and their ends of names: of each role the
/// journal, and the one before that was full.
fn files(dir: &Path) -> Vec<(PathBuf, String)> {
    let of = |role: Role| {
        let newest = path(dir, role);
        let mut full = newest.clone().into_os_string();
        full.push(".old");
        [
            (full.into(), format!("{}.old", name(role))),
            (newest, name(role).to_owned()),
        ]
    };
    [Role::Device, Role::Proxy]
        .into_iter()
        .flat_map(of)
        .collect()
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Device => "device",
        Role::Proxy => "proxy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_ends_have_left_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let ends = || -> Vec<(String, String)> {
            let all = read(dir.path()).unwrap();
            all.into_iter().map(|j| (j.end, j.text)).collect()
        };
        assert_eq!(ends(), []);
        let proxy = path(dir.path(), Role::Proxy);
        fs::write(&proxy, "new").unwrap();
        fs::write(proxy.with_extension("jsonl.old"), "full").unwrap();
        fs::write(path(dir.path(), Role::Device), "up").unwrap();
        let all = [("device", "up"), ("proxy.old", "full"), ("proxy", "new")];
        assert_eq!(ends(), all.map(|(e, t)| (e.to_owned(), t.to_owned())));
        clear(dir.path()).unwrap();
        assert_eq!(ends(), []);
    }
}
