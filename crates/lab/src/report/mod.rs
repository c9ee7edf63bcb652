//! Presentation of a run to people: the table on the terminal, the files it leaves
//! behind, and the report. Every number is defined in `docs/report.md`.

#[cfg(feature = "report")]
pub mod cases;
#[cfg(feature = "report")]
mod columns;
pub mod files;
#[cfg(feature = "report")]
pub mod html;
#[cfg(feature = "report")]
mod notes;
#[cfg(feature = "report")]
mod numbers;
#[cfg(feature = "report")]
mod outages;
#[cfg(feature = "report")]
pub mod table;

#[cfg(feature = "report")]
use std::path::{Path, PathBuf};

pub use files::{FilesError, RunDir, RunFiles, RunLog};

/// Makes `report.html` of what a run left in `dir`, anew, and returns its path.
///
/// # Errors
/// `dir` does not hold a run, a file of it does not say what it should, or the
/// report cannot be written.
#[cfg(feature = "report")]
pub fn remake(dir: &Path) -> Result<PathBuf, FilesError> {
    let html = html::render(&RunFiles::read(dir)?);
    files::write_whole(&dir.join(files::REPORT), html.as_bytes())
}
