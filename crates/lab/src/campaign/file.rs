//! A campaign's file, and the jobs it comes to.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_spanned::Spanned;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use super::job::{Job, What};
use super::{axes, traces};
use crate::run::guest_files;
use crate::scenario::{Overrides, Problem, Source, Text};
use braid_netns::error::LabError;

/// Jobs that one campaign may have: more is a slip of the pen.
const MOST_JOBS: usize = 100_000;

/// The clock that a campaign's jobs run on.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Real time: one job at a time.
    Real,
    /// Simulated time: as many jobs at a time as there are cores.
    #[default]
    Virtual,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Spanned<String>,
    scenario: Spanned<String>,
    #[serde(default)]
    clock: Clock,
    repeat: Option<Spanned<u32>>,
    seed: Option<u64>,
    scale: Option<Spanned<f64>>,
    duration: Option<Spanned<Text<Duration>>>,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    samples: Vec<Spanned<String>>,
    #[serde(default)]
    axes: IndexMap<String, Spanned<Vec<Value>>>,
}

/// A scenario and its axes, expanded.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Its name, also that of its folder.
    pub name: String,
    /// The clock of every job.
    pub clock: Clock,
    /// Names of the axes, in the order of the file.
    pub axes: Vec<String>,
    /// Axes whose values are samples of one thing: table and report take them for repeats.
    pub samples: Vec<String>,
    /// Every combination and repeat; the last axis changes fastest, and all
    /// combinations have their first repeat before any has its second.
    pub jobs: Vec<Job>,
    /// The file's text.
    pub text: String,
}

impl Campaign {
    /// Reads a campaign and checks every job's scenario.
    ///
    /// # Errors
    /// [`LabError::BadInput`]: where in the file, what, and what was expected.
    pub fn load(path: &Path) -> Result<Self, LabError> {
        let text = braid_api::bounded::read_text(path).map_err(|e| {
            LabError::BadInput(format!("{}: cannot read the campaign: {e}", path.display()))
        })?;
        let dir = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, dir)
            .map_err(|p| LabError::BadInput(p.in_file(path.to_owned(), &text).to_string()))
    }

    /// Makes its jobs those of the program `braid`, and on the virtual clock of its guests:
    /// what others measured is not taken for theirs.
    ///
    /// # Errors
    /// [`LabError::Failed`]: one of these files cannot be read.
    pub fn run_by(mut self, braid: &Path) -> Result<Self, LabError> {
        let mut hash = Sha256::new();
        let guests = match self.clock {
            Clock::Real => Vec::new(),
            Clock::Virtual => guest_files(braid),
        };
        for file in guests.into_iter().chain([braid.to_owned()]) {
            let read = std::fs::read(&file)
                .with_context(|| format!("read the program {}", file.display()));
            hash.update(Sha256::digest(read.map_err(LabError::Failed)?));
        }
        let hash = hash.finalize();
        self.jobs.iter_mut().for_each(|job| job.run_by(&hash));
        Ok(self)
    }

    fn parse(text: &str, dir: &Path) -> Result<Self, Problem> {
        let raw: Raw = toml::from_str(text)?;
        let name = raw.name.get_ref().clone();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            return Err(Problem::at(
                raw.name.span(),
                "a campaign's name is that of its folder: expected letters, digits, - and _",
            ));
        }
        if let Some(s) = raw
            .samples
            .iter()
            .find(|s| !raw.axes.contains_key(s.get_ref()))
        {
            let known: Vec<&str> = raw.axes.keys().map(String::as_str).collect();
            let what = format!(
                "\"{}\" is no axis: there are {}",
                s.get_ref(),
                known.join(", ")
            );
            return Err(Problem::at(s.span(), what));
        }
        let source = source(&raw.scenario, dir)?;
        let base: Table =
            toml::from_str(&source.text).map_err(|e| Problem::whole(e.message().to_owned()))?;
        let repeats = raw.repeat.as_ref().map_or(1, |r| *r.get_ref());
        let count = raw
            .axes
            .values()
            .try_fold(repeats as usize, |n, v| n.checked_mul(v.get_ref().len()));
        match count {
            Some(1..=MOST_JOBS) => {}
            Some(0) => {
                let empty = raw.axes.values().find(|v| v.get_ref().is_empty());
                let span = empty.map(Spanned::span).or(raw.repeat.map(|r| r.span()));
                let span = span.unwrap_or_default();
                return Err(Problem::at(span, "this leaves nothing to run"));
            }
            _ => {
                return Err(Problem::whole(format!(
                    "the axes come to more than {MOST_JOBS} jobs"
                )));
            }
        }
        let overrides = Overrides {
            duration: raw.duration.as_ref().map(|t| t.get_ref().0),
            scale: raw.scale.as_ref().map(|s| *s.get_ref()),
            seed: None,
            only: raw.only.clone(),
        };
        if let Some(scale) = &raw.scale
            && !(1e-4..=1e3).contains(scale.get_ref())
        {
            let expected = "expected a factor from 0.0001 to 1000";
            return Err(Problem::at(scale.span(), expected));
        }
        let mut jobs = Vec::with_capacity(count.unwrap_or(0));
        for repeat in 1..=repeats {
            for values in combinations(&raw.axes) {
                let (labels, mut scenario) = combine(&base, &raw.axes, &values)?;
                if repeat == 1 {
                    let duration = raw.duration.as_ref().map(Spanned::span);
                    check(&source, &text_of(&scenario)?, &labels, &overrides, duration)?;
                }
                let traces = traces::gather(&source, &mut scenario);
                let what = What {
                    scenario: text_of(&scenario)?,
                    traces,
                    clock: raw.clock,
                    overrides: Overrides {
                        seed: Some(raw.seed.unwrap_or(1) + u64::from(repeat - 1)),
                        ..overrides.clone()
                    },
                };
                jobs.push(Job::new(labels, repeat, what));
            }
        }
        Ok(Self {
            name,
            clock: raw.clock,
            axes: raw.axes.into_keys().collect(),
            samples: raw.samples.into_iter().map(Spanned::into_inner).collect(),
            jobs,
            text: text.to_owned(),
        })
    }
}

/// A shipped scenario, or a file whose path starts at the campaign's folder.
fn source(named: &Spanned<String>, dir: &Path) -> Result<Source, Problem> {
    let name = named.get_ref();
    let is_path = name.contains('/') || name.ends_with(".toml");
    let found = if is_path {
        Source::open(&dir.join(name).to_string_lossy())
    } else {
        Source::open(name)
    };
    found.map_err(|d| Problem::at(named.span(), d.to_string()))
}

/// Every choice of one value of each axis, by its index.
fn combinations(axes: &IndexMap<String, Spanned<Vec<Value>>>) -> Vec<Vec<usize>> {
    axes.values().fold(vec![Vec::new()], |so_far, values| {
        so_far
            .iter()
            .flat_map(|chosen| {
                (0..values.get_ref().len()).map(move |i| {
                    let mut longer = chosen.clone();
                    longer.push(i);
                    longer
                })
            })
            .collect()
    })
}

/// The scenario of one combination, and the values' names.
fn combine(
    base: &Table,
    axes: &IndexMap<String, Spanned<Vec<Value>>>,
    chosen: &[usize],
) -> Result<(Vec<(String, String)>, Table), Problem> {
    let mut scenario = base.clone();
    let mut labels = Vec::new();
    for ((key, values), &i) in axes.iter().zip(chosen) {
        let value = &values.get_ref()[i];
        axes::apply(&mut scenario, key, value).map_err(|m| Problem::at(values.span(), m))?;
        labels.push((key.clone(), axes::label(value)));
    }
    Ok((labels, scenario))
}

fn text_of(scenario: &Table) -> Result<String, Problem> {
    toml::to_string(scenario)
        .map_err(|e| Problem::whole(format!("cannot write the scenario of a job: {e}")))
}

/// Reads the scenario of one combination. An error that the scenario has without the axes
/// too is told with its place in the scenario's file, and one that it has not with its own
/// duration is at `duration`, the place of the campaign's.
fn check(
    source: &Source,
    scenario: &str,
    labels: &[(String, String)],
    overrides: &Overrides,
    duration: Option<Range<usize>>,
) -> Result<(), Problem> {
    let origin = PathBuf::from("the scenario");
    let Err(d) = source.parse(scenario, &origin, overrides) else {
        return Ok(());
    };
    let longer = Overrides {
        duration: None,
        ..overrides.clone()
    };
    let message = match source.parse(&source.text, &source.origin, overrides) {
        Err(own) if own.message == d.message => own.to_string(),
        _ => format!("with {}: {}", named(labels), d.message),
    };
    Err(
        match duration.filter(|_| source.parse(scenario, &origin, &longer).is_ok()) {
            Some(span) => Problem::at(span, message),
            None => Problem::whole(message),
        },
    )
}

/// `cc=olia, loss=0.001`.
pub(super) fn named(labels: &[(String, String)]) -> String {
    let parts: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    if parts.is_empty() {
        "no axis".to_owned()
    } else {
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const GOOD: &str = r#"
name = "sweep"
scenario = "static"
repeat = 2
seed = 7
duration = "3 s"
only = ["MPTCP cubic"]

[axes]
cc = ["reno", "cubic"]
loss = [0.0, 1e-3]
"access.wifi.down.rate" = ["100 Mbit/s", "200 Mbit/s", "300 Mbit/s"]
"#;

    #[test]
    fn jobs_of_another_program_are_others() {
        let dir = tempfile::tempdir().unwrap();
        let key = |program: &str| {
            let file = dir.path().join("braid");
            std::fs::write(&file, program).unwrap();
            let campaign = parse(&GOOD.replace("seed = 7", "seed = 7\nclock = \"real\""));
            campaign.unwrap().run_by(&file).unwrap().jobs[0].key.clone()
        };
        assert_eq!(key("one"), key("one"));
        assert_ne!(key("one"), key("two"));
        let gone = parse(GOOD).unwrap().run_by(&dir.path().join("gone"));
        assert_eq!(gone.unwrap_err().exit_code(), 1);
    }

    fn parse(text: &str) -> Result<Campaign, String> {
        Campaign::parse(text, Path::new("."))
            .map_err(|p| p.in_file("c.toml".into(), text).to_string())
    }

    #[test]
    fn every_combination_is_a_job_of_its_own() {
        let c = parse(GOOD).unwrap();
        assert_eq!(c.jobs.len(), 2 * 2 * 3 * 2);
        let keys: std::collections::HashSet<_> = c.jobs.iter().map(|j| &j.key).collect();
        assert_eq!(keys.len(), c.jobs.len());
        let last = c.jobs.last().unwrap();
        assert_eq!((last.repeat, last.seed()), (2, 8));
        assert_eq!(
            last.label(),
            "cc=cubic, loss=0.001, access.wifi.down.rate=300 Mbit/s"
        );
        let s = Scenario::parse(
            last.scenario(),
            Path::new("t.toml"),
            Path::new("."),
            &Overrides::default(),
        )
        .unwrap();
        let names: Vec<&str> = s.cases[0]
            .accesses
            .iter()
            .map(|a| a.name.as_str())
            .collect();
        assert_eq!(names, ["nr", "wifi", "lifi"], "the order stays");
    }

    #[test]
    fn the_same_file_gives_the_same_keys_and_another_seed_others() {
        let keys = |t: &str| -> Vec<String> {
            parse(t).unwrap().jobs.into_iter().map(|j| j.key).collect()
        };
        assert_eq!(keys(GOOD), keys(GOOD));
        let other = GOOD.replace("seed = 7", "seed = 70");
        assert!(keys(GOOD).iter().all(|k| !keys(&other).contains(k)));
    }

    #[test]
    fn a_duration_that_drops_events_is_refused_with_both_places() {
        let text = "name = \"short\"\nscenario = \"weights\"\nduration = \"9 s\"\n";
        let e = parse(text).unwrap_err();
        assert!(e.starts_with("c.toml:3:12: weights.toml:"), "{e}");
        assert!(
            e.contains("a duration of 9 s ends before this event"),
            "{e}"
        );
        assert!(parse(&text.replace("9 s", "21 s")).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (from, to, place, what) in [
            (
                "cc = [\"reno\"",
                "ccc = [\"reno\"",
                "c.toml:10:7",
                "did you mean \"cc\"",
            ),
            ("loss = [0.0", "loss = [2.0", "c.toml", "loss=2"),
            ("\"static\"", "\"statics\"", "c.toml:3:12", "static"),
            ("repeat = 2", "repeat = 0", "c.toml:4:10", "nothing to run"),
            ("access.wifi.", "access.wify.", "c.toml:12:", "wify"),
            ("\"sweep\"", "\"../sweep\"", "c.toml:2:8", "folder"),
            ("only = ", "onyl = ", "c.toml:7:1", "did you mean `only`"),
            ("[\"MPTCP cubic\"]", "[\"MPTCP\"]", "c.toml", "MPTCP"),
            (
                "repeat = 2",
                "samples = [\"los\"]",
                "c.toml:4:12",
                "\"los\" is no axis: there are cc, loss",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let e = parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(e.starts_with(place) && e.contains(what), "{e}");
        }
    }
}
