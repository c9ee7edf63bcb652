//! Presentation of a run to people: the table on the terminal, the files it leaves
//! behind, and the report. Every number is defined in `docs/report.md`.

pub mod cases;
mod columns;
pub mod files;
pub mod html;
mod notes;
mod numbers;
mod outages;
pub mod table;

use std::path::{Path, PathBuf};

pub use files::{FilesError, RunDir, RunFiles, RunLog};

/// Makes `report.html` of what a run left in `dir`, anew, and returns its path.
///
/// # Errors
/// `dir` does not hold a run, a file of it does not say what it should, or the
/// report cannot be written.
pub fn remake(dir: &Path) -> Result<PathBuf, FilesError> {
    let html = html::render(&RunFiles::read(dir)?);
    files::write_whole(&dir.join(files::REPORT), html.as_bytes())
}
