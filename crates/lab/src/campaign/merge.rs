//! All jobs' results in one table and one report.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::file::{Campaign, named};
use super::job::Job;
use crate::report::{FilesError, RunDir, RunFiles, files};
use crate::summary::{CaseResult, EnergyUse, Summary};
use braid_netns::error::LabError;

/// Cases up to which the report shows every one's course over time; of larger
/// campaigns each job's own folder has it.
const MOST_COURSES: usize = 60;

/// Collected results of a campaign.
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
    let results = campaign.jobs.iter().map(|j| Ok((j, j.result(dir)?)));
    let results: Vec<(&Job, Option<RunFiles>)> =
        results.collect::<Result<_, _>>().map_err(wrong)?;
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
    let places = places(campaign);
    done.sort_by_key(|(job, _)| places[job.key.as_str()]);
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
        let labels = told(campaign, job);
        let repeat = places[job.key.as_str()].1;
        let name = |case: &str| match labels.is_empty() {
            true => case.to_owned(),
            false => format!("{}: {case}", named(&labels)),
        };
        for row in &mut files.timeline {
            (row.case, row.repeat) = (name(&row.case), repeat);
        }
        for row in &mut files.events {
            (row.case, row.repeat) = (name(&row.case), repeat);
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
            (case.name, case.repeat) = (name(&case.name), repeat);
            // They stay in the job's folder.
            case.journals.clear();
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

/// The axes' values that tell a job's cases from those of others.
fn told(campaign: &Campaign, job: &Job) -> Vec<(String, String)> {
    let all = job.labels.iter();
    all.filter(|(axis, _)| !campaign.samples.contains(axis))
        .cloned()
        .collect()
}

/// By the job's key: where its cases stand, and which repeat of them it is.
fn places(campaign: &Campaign) -> HashMap<&str, (usize, u32)> {
    let mut alike: HashMap<Vec<(String, String)>, (usize, u32)> = HashMap::new();
    let jobs = campaign.jobs.iter().enumerate();
    let place = |(i, job): (usize, &'_ Job)| {
        let (first, repeats) = alike.entry(told(campaign, job)).or_insert((i, 0));
        *repeats += 1;
        (*first, *repeats)
    };
    let found: Vec<(usize, u32)> = jobs.map(place).collect();
    let keys = campaign.jobs.iter().map(|j| j.key.as_str());
    keys.zip(found).collect()
}

const COLUMNS: [&str; 20] = [
    "job",
    "repeat",
    "seed",
    "case",
    "engine",
    "goodput_mbps",
    "ceiling_mbps",
    "efficiency",
    "best_single_mbps",
    "capacity_mbps",
    "ideal_mbps",
    "completion_s",
    "energy_joules",
    "tail_after_joules",
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
    let joules = |part: fn(&EnergyUse) -> f64| {
        let all: f64 = c.energy.values().map(part).sum();
        text((!c.energy.is_empty()).then_some(all))
    };
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
        text(c.capacity_mbps),
        text(c.ideal_mbps),
        text(c.completion_s),
        joules(|e| e.spent.total_joules()),
        joules(|e| e.tail_after_joules),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_repeats_of_what_the_other_axes_say() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let text = "name = \"c\"\nscenario = \"static\"\nrepeat = 2\nsamples = [\"loss\"]\n\
                    [axes]\nloss = [0.0, 1e-3]\ncc = [\"reno\", \"cubic\"]\n";
        std::fs::write(&file, text).unwrap();
        let campaign = Campaign::load(&file).unwrap();
        let places = places(&campaign);
        let of = |j: &Job| (named(&told(&campaign, j)), places[j.key.as_str()]);
        let all: Vec<_> = campaign.jobs.iter().map(of).collect();
        let expected = [
            ("cc=reno", (0, 1)),
            ("cc=cubic", (1, 1)),
            ("cc=reno", (0, 2)),
            ("cc=cubic", (1, 2)),
            ("cc=reno", (0, 3)),
            ("cc=cubic", (1, 3)),
            ("cc=reno", (0, 4)),
            ("cc=cubic", (1, 4)),
        ];
        assert_eq!(all, expected.map(|(n, p)| (n.to_owned(), p)));
    }

    #[test]
    fn a_job_whose_files_are_broken_is_not_taken_for_one_that_has_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let text = "name = \"c\"\nscenario = \"static\"\n[axes]\nloss = [0.0]\n";
        std::fs::write(&file, text).unwrap();
        let campaign = Campaign::load(&file).unwrap();
        let collected = || collect(&campaign, dir.path(), "").unwrap_err().to_string();
        assert!(collected().contains("no job of the campaign has run"));
        let job = campaign.jobs[0].dir(dir.path());
        std::fs::create_dir_all(&job).unwrap();
        std::fs::write(job.join("summary.json"), "{").unwrap();
        let e = collected();
        assert!(e.contains("summary.json:1"), "{e}");
    }
}
