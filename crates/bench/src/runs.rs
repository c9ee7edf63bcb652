//! Measurements in pieces: one run of the lab each, by the program itself. What
//! was cut off goes on where it was.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use braid_lab::report::RunFiles;
use braid_netns::error::LabError;
use clap::Args;

use crate::machine;
use crate::report::{Report, write_section};
use crate::starter::Starter;
use crate::text;

/// Where runs are kept, and what is measured.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Folder of the runs; those that it has are not made again
    #[arg(long, default_value = "out/bench")]
    runs: PathBuf,
    /// Make all runs again
    #[arg(long)]
    again: bool,
    /// The program to measure [default: the `braid` beside this program]
    #[arg(long)]
    braid: Option<PathBuf>,
    /// The page that the results go into; fewer runs than the bars ask for are only printed
    #[arg(long, default_value = "docs/performance.md")]
    docs: PathBuf,
}

/// Running tasks of a machine that does other work.
const BUSY: f64 = 0.5;

/// The runs of one measurement.
pub(crate) struct Runs {
    dir: PathBuf,
    again: bool,
    braid: PathBuf,
    starter: Starter,
    docs: PathBuf,
    /// Flags of `braid lab run`.
    flags: Vec<String>,
    done: usize,
    /// Before the first run that was made now.
    load: Option<f64>,
    seen: Seen,
}

/// Conditions under which all runs were made.
#[derive(Debug, Default)]
struct Seen {
    started: Vec<String>,
    kernels: Vec<String>,
    late_wakes: u64,
    max_late_ms: f64,
    /// Runs of a program older than the present one.
    earlier: usize,
    /// Notes of the lab, and on how many cases.
    notes: Vec<(String, usize)>,
}

impl Runs {
    /// Opens the runs of the measurement `what`, in a folder of that name.
    pub(crate) fn new(args: &RunArgs, what: &str) -> Result<Self> {
        let braid = match &args.braid {
            Some(path) => path.clone(),
            None => std::env::current_exe()
                .context("find this program")?
                .with_file_name("braid"),
        };
        if !braid.is_file() {
            let build = "cargo build --release -p braid, or name it with --braid";
            let what = format!("there is no program to measure at {}", braid.display());
            return Err(LabError::missing(what, build).into());
        }
        let dir = args.runs.join(what);
        fs::create_dir_all(&dir).with_context(|| format!("make the folder {}", dir.display()))?;
        Ok(Self {
            dir,
            again: args.again,
            braid,
            starter: Starter::new()?,
            docs: args.docs.clone(),
            flags: Vec::new(),
            done: 0,
            load: None,
            seen: Seen::default(),
        })
    }

    /// Where they are.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Number of runs so far.
    pub(crate) fn done(&self) -> usize {
        self.done
    }

    /// Flags of `braid lab run` from now on; their runs need names of their own.
    pub(crate) fn with(&mut self, flags: &[&str]) {
        self.flags = flags.iter().map(|f| (*f).to_owned()).collect();
    }

    /// Puts a file that scenarios name beside them.
    pub(crate) fn bring(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.dir.join(name);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)
                .with_context(|| format!("make the folder {}", dir.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))
    }

    /// The files of a run of this scenario, each case once: those that there
    /// are, or of a new run.
    pub(crate) fn piece(&mut self, name: &str, scenario: &str, of: usize) -> Result<RunFiles> {
        self.done += 1;
        let cases = text::parse_in(&self.dir, scenario)?.cases.len();
        let dir = self.dir.join(name);
        let whole = |f: &RunFiles| f.scenario == scenario && f.summary.cases.len() == cases;
        let kept = (!self.again)
            .then(|| RunFiles::read(&dir).ok().filter(whole))
            .flatten();
        let place = format!("{} of {of}: {name}", self.done);
        let files = match kept {
            Some(files) => {
                eprintln!("{place}: is there");
                self.seen.earlier += usize::from(older(&dir.join("summary.json"), &self.braid));
                files
            }
            None => {
                eprintln!("{place}");
                self.load.get_or_insert_with(machine::load);
                let file = self.dir.join(format!("{name}.toml"));
                fs::write(&file, scenario)
                    .with_context(|| format!("write the scenario {}", file.display()))?;
                self.starter.run(&self.braid, &file, &dir, &self.flags)?;
                RunFiles::read(&dir).with_context(|| format!("read the run {}", dir.display()))?
            }
        };
        if !whole(&files) {
            bail!(
                "the run in {} is not whole: remove the folder",
                dir.display()
            );
        }
        self.seen.add(&files);
        Ok(files)
    }

    /// Prints the report; writes it into the section of the page if `full`.
    /// False if a bar was missed.
    pub(crate) fn finish(self, mut report: Report, section: &str, full: bool) -> Result<bool> {
        if let Some(load) = self.load.filter(|l| *l > BUSY) {
            report.note(format!(
                "the machine was not idle at the start: {load:.2} running tasks"
            ));
        }
        self.seen.note(&mut report);
        print!("{}", report.terminal());
        if full {
            let text = report.markdown(&self.seen.circumstances());
            write_section(&self.docs, &format!("bench:{section}"), &text)?;
        } else {
            eprintln!(
                "not written to {}: the bars ask for more runs, or for all parts",
                self.docs.display()
            );
        }
        Ok(report.all_met())
    }
}

impl Seen {
    fn add(&mut self, files: &RunFiles) {
        let s = &files.summary;
        let day = s.started.get(..10).unwrap_or_default().to_owned();
        // On the virtual clock every run starts on the same day.
        if s.clock != "virtual" && !self.started.contains(&day) {
            self.started.push(day);
        }
        if !self.kernels.contains(&s.kernel) {
            self.kernels.push(s.kernel.clone());
        }
        self.late_wakes += s.host.late_wakes;
        self.max_late_ms = self.max_late_ms.max(s.host.max_late_ms);
        for note in s.cases.iter().flat_map(|c| &c.notes) {
            let kind = without_numbers(note);
            match self.notes.iter_mut().find(|n| n.0 == kind) {
                Some(n) => n.1 += 1,
                None => self.notes.push((kind, 1)),
            }
        }
    }

    fn note(&self, report: &mut Report) {
        report.note(format!(
            "host pauses above 1 ms in all runs: {}, the longest {:.1} ms; none is left out",
            self.late_wakes, self.max_late_ms
        ));
        if self.earlier > 0 {
            report.note(format!(
                "{} runs were made before the program was last built",
                self.earlier
            ));
        }
        for (note, count) in &self.notes {
            let cases = if *count == 1 { "case" } else { "cases" };
            report.note(format!("in {count} {cases}: {note}"));
        }
    }

    fn circumstances(&self) -> Vec<String> {
        let command = without_places(std::env::args().skip(1));
        let mut days = self.started.clone();
        days.sort();
        vec![
            days.join(", "),
            format!("`braid-bench {command}`"),
            format!(
                "{}, runs on Linux {}",
                machine::describe(),
                self.kernels.join(", ")
            ),
        ]
    }
}

/// A note with `n` for its numbers, which differ from run to run.
fn without_numbers(note: &str) -> String {
    let words = note.split_whitespace();
    let number = |w: &str| w.trim_end_matches(',').parse::<f64>().is_ok();
    let words = words.map(|w| if number(w) { "n" } else { w });
    words.collect::<Vec<_>>().join(" ")
}

/// The arguments, but for where things are on this machine.
fn without_places(mut args: impl Iterator<Item = String>) -> String {
    let mut kept = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--braid" | "--runs" | "--docs" | "--picoquic" => drop(args.next()),
            _ => kept.push(arg),
        }
    }
    kept.join(" ")
}

/// Whether `a` was written before `b`.
fn older(a: &Path, b: &Path) -> bool {
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
    matches!((time(a), time(b)), (Some(a), Some(b)) if a < b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_and_machine_to_machine_is_left_out() {
        assert_eq!(
            without_numbers("overrun 12 times, of 3.5"),
            "overrun n times, of n"
        );
        let args = ["cost", "--braid", "/a/b", "--pairs", "3", "--runs", "r"];
        assert_eq!(
            without_places(args.map(str::to_owned).into_iter()),
            "cost --pairs 3"
        );
    }
}
