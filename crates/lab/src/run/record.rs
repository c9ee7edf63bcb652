//! The files of a run, filled case by case.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::case::Measured;
use super::{Progress, RunOptions, best_single, result};
use crate::report::files::Rows;
use crate::report::{FilesError, RunDir, RunLog};
use crate::scenario::{Case, Scenario};
use crate::summary::{CaseResult, EventRow, Host, Summary, TimelineRow};
use braid_netns::error::LabError;

/// Outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The results, as in `summary.json`.
    pub summary: Summary,
    /// The folder of the run's files.
    pub dir: PathBuf,
    /// `report.html` in it.
    pub report: PathBuf,
}

/// Results of a run so far, in memory and on disk.
pub(super) struct Record {
    dir: RunDir,
    pub(super) log: Arc<RunLog>,
    timeline: Rows<TimelineRow>,
    events: Rows<EventRow>,
    pub(super) summary: Summary,
    cases: Vec<Case>,
}

impl Record {
    /// Makes the folder and starts its files. `started` names a new folder.
    pub(super) fn open(
        scenario: &Scenario,
        options: &RunOptions,
        started: SystemTime,
        summary: Summary,
    ) -> Result<Self, LabError> {
        let dir = match &options.out {
            Some(path) => RunDir::create(path, &options.command),
            None => {
                RunDir::create_default(Path::new("out"), &scenario.name, started, &options.command)
            }
        }
        .map_err(files_error)?;
        dir.write_scenario(&scenario.text).map_err(files_error)?;
        Ok(Self {
            log: Arc::new(dir.log().map_err(files_error)?),
            timeline: dir.timeline().map_err(files_error)?,
            events: dir.events().map_err(files_error)?,
            dir,
            summary,
            cases: scenario.cases.clone(),
        })
    }

    /// Adds the next case, in the order of the scenario, and writes it.
    pub(super) fn add(&mut self, measured: Measured) -> Result<(), LabError> {
        self.timeline
            .append(&measured.timeline)
            .map_err(files_error)?;
        self.events.append(&measured.events).map_err(files_error)?;
        let mut result = measured.result;
        let number = self.summary.cases.len() + 1;
        for journal in &measured.journals {
            let written = self.dir.write_journal(number, &journal.end, &journal.text);
            result.journals.push(written.map_err(files_error)?);
        }
        self.summary.cases.push(result);
        self.summary.host = host(&self.summary.cases);
        best_single::add_best_single(&mut self.summary.cases, &self.cases);
        self.dir
            .write_summary(&self.summary)
            .map_err(files_error)
            .map(drop)
    }

    /// Says what is there of a run of `cases` that ends early.
    pub(super) fn stopped(&self, progress: &mut dyn Progress, cases: usize) {
        progress.finish();
        let done = self.summary.cases.len();
        let said = kept(self.dir.path(), done, cases, self.dir.has_earlier());
        braid_api::note!("{said}");
    }

    /// Makes the report.
    pub(super) fn finish(self) -> Result<Outcome, LabError> {
        let report = remake(self.dir.path())?;
        Ok(Outcome {
            summary: self.summary,
            dir: self.dir.path().to_owned(),
            report,
        })
    }
}

/// Line that says where the files of a run are that ended early, after `done` of its cases;
/// `earlier`: those of the run before are there.
fn kept(dir: &Path, done: usize, cases: usize, earlier: bool) -> String {
    let dir = dir.display();
    match (done, earlier) {
        (0, false) => format!("note: no case has ended; {dir} has the log so far"),
        (0, true) => format!("note: no case has ended; {dir} has the files of the run before"),
        (n, _) => format!(
            "note: {n} of {cases} cases had ended; their files are in {dir}, and \
             braid lab report {dir} makes their report"
        ),
    }
}

/// A case of which nothing was measured.
pub(super) fn failed(case: &Case, repeat: u32, error: &LabError) -> Measured {
    Measured {
        result: CaseResult {
            failed: Some(error.to_string()),
            ..result::blank(case, repeat)
        },
        timeline: Vec::new(),
        events: Vec::new(),
        journals: Vec::new(),
    }
}

/// A summary without cases.
pub(super) fn empty_summary(scenario: &Scenario, clock: &str, started: SystemTime) -> Summary {
    let mut accesses: Vec<String> = Vec::new();
    for a in scenario.cases.iter().flat_map(|c| &c.accesses) {
        if !accesses.contains(&a.name) {
            accesses.push(a.name.clone());
        }
    }
    Summary {
        scenario: scenario.name.clone(),
        clock: clock.into(),
        seed: scenario.seed,
        version: env!("CARGO_PKG_VERSION").into(),
        started: crate::report::files::rfc3339(started),
        accesses,
        paper: scenario.paper.clone(),
        ..Summary::default()
    }
}

fn host(cases: &[CaseResult]) -> Host {
    cases.iter().fold(Host::default(), |h, c| Host {
        late_wakes: h.late_wakes + c.host.late_wakes,
        max_late_ms: h.max_late_ms.max(c.host.max_late_ms),
    })
}

fn files_error(e: FilesError) -> LabError {
    match e.exit_status() {
        2 => LabError::BadInput(e.to_string()),
        _ => LabError::Failed(e.into()),
    }
}

/// Makes `report.html` again from the files of an earlier run; returns its path.
///
/// # Errors
/// [`LabError::BadInput`] if `dir` does not hold a run, or it cannot be written.
pub fn remake(dir: &Path) -> Result<PathBuf, LabError> {
    crate::report::remake(dir).map_err(files_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interrupted_run_left_is_named() {
        let dir = Path::new("out/mine-1");
        let said = kept(dir, 2, 13, false);
        assert!(
            said.contains("2 of 13 cases") && said.contains("in out/mine-1"),
            "{said}"
        );
        assert!(said.contains("braid lab report out/mine-1"), "{said}");
        assert!(
            !kept(dir, 0, 13, false).contains("lab report"),
            "there is no summary yet"
        );
        assert!(kept(dir, 0, 13, true).contains("the run before"));
    }
}
