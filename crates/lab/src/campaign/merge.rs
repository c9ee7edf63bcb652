//! All jobs' results in one table and one report.

use std::path::{Path, PathBuf};

use super::file::Campaign;
use super::job::Job;
use crate::error::LabError;
use crate::report::{FilesError, RunDir, RunFiles, files};
use crate::summary::{CaseResult, Summary};

/// Cases up to which the report shows every one's course over time; of larger
/// campaigns each job's own folder has it.
const MOST_COURSES: usize = 60;

/// What was collected.
#[derive(Debug)]
pub struct Collected {
    /// Every case of every job; its name starts with the axes' values.
    pub summary: Summary,
    /// The folder of the files.
    pub dir: PathBuf,
    /// `report.html` in it.
    pub report: PathBuf,
    /// Jobs that have not run.
    pub missing: usize,
}

/// Brings what has run so far together in `DIR/result`: `summary.json`,
/// `report.html`, `timeline.csv`, `events.csv` and `results.csv`.
///
/// # Errors
/// No job has run, or a file cannot be read or written.
pub fn collect(campaign: &Campaign, dir: &Path, command: &str) -> Result<Collected, LabError> {
    let results: Vec<(&Job, Option<RunFiles>)> =
        campaign.jobs.iter().map(|j| (j, j.result(dir))).collect();
    let missing = results.iter().filter(|r| r.1.is_none()).count();
    let mut done = results
        .into_iter()
        .filter_map(|(job, files)| Some((job, files?)))
        .collect::<Vec<_>>();
    let Some((_, first)) = done.first() else {
        return Err(LabError::BadInput(format!(
            "no job of the campaign has run in {}",
            dir.display()
        )));
    };
    let mut summary = Summary {
        scenario: campaign.name.clone(),
        cases: Vec::new(),
        paper: Vec::new(),
        ..first.summary.clone()
    };
    // Repeats of one case stand together, in the order of the axes.
    done.sort_by_key(|(job, _)| {
        campaign
            .jobs
            .iter()
            .position(|j| j.labels == job.labels)
            .map(|i| (i, job.repeat))
    });
    let few = done
        .iter()
        .map(|(_, f)| f.summary.cases.len())
        .sum::<usize>()
        <= MOST_COURSES;

    let out = RunDir::create(&dir.join("result"), command).map_err(wrong)?;
    out.write_scenario(&campaign.text).map_err(wrong)?;
    let mut timeline = out.timeline().map_err(wrong)?;
    let mut events = out.events().map_err(wrong)?;
    let mut table = Vec::new();
    for (job, mut files) in done {
        let name = |case: &str| match job.labels.is_empty() {
            true => case.to_owned(),
            false => format!("{}: {case}", job.label()),
        };
        for row in &mut files.timeline {
            (row.case, row.repeat) = (name(&row.case), job.repeat);
        }
        for row in &mut files.events {
            (row.case, row.repeat) = (name(&row.case), job.repeat);
        }
        if few {
            timeline.append(&files.timeline).map_err(wrong)?;
            events.append(&files.events).map_err(wrong)?;
        }
        summary.host.late_wakes += files.summary.host.late_wakes;
        summary.host.max_late_ms = summary.host.max_late_ms.max(files.summary.host.max_late_ms);
        if !summary
            .kernel
            .split(", ")
            .any(|k| k == files.summary.kernel)
        {
            summary.kernel = format!("{}, {}", summary.kernel, files.summary.kernel);
        }
        for mut case in files.summary.cases {
            table.push(row(job, &case));
            (case.name, case.repeat) = (name(&case.name), job.repeat);
            summary.cases.push(case);
        }
    }
    out.write_summary(&summary).map_err(wrong)?;
    write_table(campaign, &table, &dir.join("results.csv"))?;
    let report = crate::report::remake(out.path()).map_err(wrong)?;
    Ok(Collected {
        summary,
        dir: out.path().to_owned(),
        report,
        missing,
    })
}

const COLUMNS: [&str; 16] = [
    "job",
    "repeat",
    "seed",
    "case",
    "engine",
    "goodput_mbps",
    "ceiling_mbps",
    "efficiency",
    "best_single_mbps",
    "completion_s",
    "latency_p50_ms",
    "gap_ms",
    "retransmitted_bytes",
    "reinjected_bytes",
    "intact",
    "failed",
];

/// One line of `results.csv`: [`COLUMNS`], the axes' values after the first three.
fn row(job: &Job, c: &CaseResult) -> Vec<String> {
    fn text<T: ToString>(v: Option<T>) -> String {
        v.map(|v| v.to_string()).unwrap_or_default()
    }
    let mut row = vec![
        job.key.clone(),
        job.repeat.to_string(),
        job.seed().to_string(),
    ];
    row.extend(job.labels.iter().map(|(_, v)| v.clone()));
    row.extend([
        c.name.clone(),
        c.engine.clone(),
        c.goodput_mbps.to_string(),
        text(c.ceiling_mbps),
        text(c.efficiency),
        text(c.best_single_mbps),
        text(c.completion_s),
        text(c.latency_ms.map(|l| l.p50)),
        text(c.gap_ms),
        text(c.retransmitted_bytes),
        text(c.reinjected_bytes),
        text(c.intact),
        c.failed.clone().unwrap_or_default(),
    ]);
    row
}

fn write_table(campaign: &Campaign, rows: &[Vec<String>], path: &Path) -> Result<(), LabError> {
    let head = COLUMNS[..3]
        .iter()
        .copied()
        .chain(campaign.axes.iter().map(String::as_str))
        .chain(COLUMNS[3..].iter().copied());
    let mut out = csv::Writer::from_writer(Vec::new());
    let fail = |e: csv::Error| LabError::Failed(anyhow::Error::new(e).context("write results.csv"));
    out.write_record(head).map_err(fail)?;
    for row in rows {
        out.write_record(row).map_err(fail)?;
    }
    let bytes = out.into_inner().map_err(|e| fail(e.into_error().into()))?;
    files::write_whole(path, &bytes).map(drop).map_err(wrong)
}

fn wrong(e: FilesError) -> LabError {
    match e.exit_status() {
        2 => LabError::BadInput(e.to_string()),
        _ => LabError::Failed(e.into()),
    }
}
