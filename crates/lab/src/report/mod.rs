//! What a run tells people: the table on the terminal, the files it leaves
//! behind, and the report. Every number is defined in `docs/report.md`.

pub mod cases;
pub mod files;
mod numbers;
pub mod table;

pub use files::{FilesError, RunDir, RunFiles, RunLog};
