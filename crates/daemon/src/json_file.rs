//! Files of JSON that outlive the daemon and the machine's restarts.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a file.
///
/// # Errors
/// The file's, or that it is not what was written.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::from)
}

/// Writes all of a file or nothing.
///
/// # Errors
/// The file's.
pub(crate) fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    serde_json::to_writer(&mut file, content)?;
    file.persist(path).map(drop).map_err(|e| e.error)
}
