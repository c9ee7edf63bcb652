//! Reading what a run left behind, also one that was cut off.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::{EVENTS, FilesError, LOG, SCENARIO, SUMMARY, TIMELINE, rows};
use crate::summary::{EventRow, Summary, TimelineRow};

/// Everything that a run left behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFiles {
    /// `summary.json`.
    pub summary: Summary,
    /// `timeline.csv`, in file order.
    pub timeline: Vec<TimelineRow>,
    /// `events.csv`, in file order.
    pub events: Vec<EventRow>,
    /// `scenario.toml`, its text.
    pub scenario: String,
    /// Warnings about files that were missing or cut short, in words.
    pub warnings: Vec<String>,
}

impl RunFiles {
    /// Reads what a run left in `dir`.
    ///
    /// # Errors
    /// There is no summary, or a file does not say what it should.
    pub fn read(dir: &Path) -> Result<Self, FilesError> {
        let not = |why: &str| FilesError::NotARun {
            dir: dir.to_owned(),
            why: why.to_owned(),
        };
        match fs::metadata(dir) {
            Ok(m) if m.is_dir() => {}
            Ok(_) => return Err(not("it is no directory: name the one that it is in")),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(not("there is no such directory"));
            }
            Err(e) => return Err(FilesError::io("reading", dir, 0, e)),
        }
        let path = dir.join(SUMMARY);
        let json = match fs::read(&path) {
            Ok(t) => t,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(not(if dir.join(LOG).exists() {
                    "it ended before its first case was done (no summary.json; run.log says why)"
                } else {
                    "there is no summary.json"
                }));
            }
            Err(e) => return Err(FilesError::io("reading", &path, 0, e)),
        };
        let summary = serde_json::from_slice(&json).map_err(|e| FilesError::Malformed {
            file: path,
            line: Some(e.line() as u64),
            what: e.to_string(),
        })?;
        let mut warnings = Vec::new();
        let mut rows_warn = |name: &str, torn: bool| {
            if !dir.join(name).exists() {
                warnings.push(format!("{name} is missing"));
            } else if torn {
                warnings.push(format!(
                    "the last row of {name} was cut short and is left out"
                ));
            }
        };
        let (timeline, torn) = rows::read(&dir.join(TIMELINE))?;
        rows_warn(TIMELINE, torn);
        let (events, torn) = rows::read(&dir.join(EVENTS))?;
        rows_warn(EVENTS, torn);
        let path = dir.join(SCENARIO);
        let scenario = match fs::read(&path) {
            Ok(t) => String::from_utf8_lossy(&t).into_owned(),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                warnings.push(format!("{SCENARIO} is missing"));
                String::new()
            }
            Err(e) => return Err(FilesError::io("reading", &path, 0, e)),
        };
        Ok(Self {
            summary,
            timeline,
            events,
            scenario,
            warnings,
        })
    }
}
