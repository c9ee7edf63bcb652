//! The downloads of some campaigns, by engine and interfaces.

use anyhow::{Result, bail};
use braid_lab::summary::{CaseResult, Summary};
use indexmap::IndexMap;

/// The engine that is judged, and what its remedies are taken from.
pub(super) const PLAIN: &str = "MP-QUIC cubic";
/// Name of that engine with all that a device can tell.
pub(super) const EXPECTING: &str = "MP-QUIC cubic, expecting";

/// Engines as they come first, then interfaces; each run of theirs.
#[derive(Debug, Default)]
pub(super) struct Set {
    engines: IndexMap<String, IndexMap<String, Vec<CaseResult>>>,
    pub(super) kernels: Vec<String>,
}

/// Means over some runs; `None` where no run has the value.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) runs: usize,
    pub(super) complete: usize,
    /// Failed, or with a wrong byte.
    pub(super) wrong: usize,
    /// Mbit/s.
    pub(super) goodput: Option<f64>,
    /// Seconds, of those that are complete.
    pub(super) completion: Option<f64>,
    /// Rate of the ideal single path, Mbit/s.
    pub(super) ideal: Option<f64>,
    /// Capacity of all paths, Mbit/s.
    pub(super) capacity: Option<f64>,
    pub(super) of_ideal: Option<f64>,
    pub(super) of_capacity: Option<f64>,
}

impl Set {
    /// Adds the runs of a campaign, whose cases are called INTERFACES: ENGINE.
    pub(super) fn add(&mut self, summary: Summary) -> Result<()> {
        if !self.kernels.contains(&summary.kernel) {
            self.kernels.push(summary.kernel);
        }
        for run in summary.cases {
            let Some((interfaces, engine)) = run.name.split_once(": ") else {
                bail!("case \"{}\": expected INTERFACES: ENGINE", run.name);
            };
            let (interfaces, engine) = (interfaces.to_owned(), engine.to_owned());
            let of_engine = self.engines.entry(engine).or_default();
            of_engine.entry(interfaces).or_default().push(run);
        }
        Ok(())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str, Sum)> {
        self.engines.iter().flat_map(|(engine, by_interfaces)| {
            let named = by_interfaces.iter();
            named.map(|(i, runs)| (engine.as_str(), i.as_str(), Sum::of(runs)))
        })
    }

    /// Without what shows remedies alone.
    pub(super) fn main(&self) -> impl Iterator<Item = (&str, &str, Sum)> {
        self.all().filter(|(engine, ..)| !is_remedy(engine))
    }

    /// The remedies, after what they are compared with, of the same interfaces.
    pub(super) fn remedies(&self) -> impl Iterator<Item = (&str, &str, Sum)> {
        let shown = |interfaces: &str| {
            let all = self.engines.iter().filter(|(engine, _)| is_remedy(engine));
            all.into_iter().any(|(_, by)| by.contains_key(interfaces))
        };
        let has = |engine: &str| is_remedy(engine) || [PLAIN, EXPECTING].contains(&engine);
        self.all()
            .filter(move |(engine, interfaces, _)| has(engine) && shown(interfaces))
    }

    pub(super) fn get(&self, engine: &str, interfaces: &str) -> Option<Sum> {
        Some(Sum::of(self.engines.get(engine)?.get(interfaces)?))
    }
}

fn is_remedy(engine: &str) -> bool {
    let more = engine.strip_prefix(PLAIN);
    let of_plain = more.is_some_and(|m| !m.is_empty() && engine != EXPECTING);
    of_plain || engine.starts_with("MP-QUIC streams")
}

impl Sum {
    fn of(runs: &[CaseResult]) -> Self {
        let good: Vec<&CaseResult> = runs.iter().filter(|r| r.failed.is_none()).collect();
        let mean = |of: &dyn Fn(&CaseResult) -> Option<f64>| {
            let values: Vec<f64> = good.iter().filter_map(|r| of(r)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        Self {
            runs: runs.len(),
            complete: good.iter().filter(|r| r.completion_s.is_some()).count(),
            wrong: runs.iter().filter(|r| r.intact != Some(true)).count(),
            goodput: mean(&|r| Some(r.goodput_mbps)),
            completion: mean(&|r| r.completion_s),
            ideal: mean(&|r| r.ideal_mbps),
            capacity: mean(&|r| r.capacity_mbps),
            of_ideal: mean(&|r| Some(r.goodput_mbps / r.ideal_mbps?)),
            of_capacity: mean(&|r| Some(r.goodput_mbps / r.capacity_mbps?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, goodput: f64, ideal: f64) -> CaseResult {
        CaseResult {
            name: name.into(),
            goodput_mbps: goodput,
            ideal_mbps: Some(ideal),
            capacity_mbps: Some(100.0),
            completion_s: Some(3.0),
            intact: Some(true),
            ..CaseResult::default()
        }
    }

    fn summary(cases: Vec<CaseResult>) -> Summary {
        Summary {
            cases,
            kernel: "6.12".into(),
            ..Summary::default()
        }
    }

    #[test]
    fn means_are_over_the_runs_of_all_campaigns() {
        let mut set = Set::default();
        let one = vec![
            run("sp: QUIC", 40.0, 50.0),
            run("sp: TCP", 30.0, 50.0),
            run("2: QUIC", 70.0, 50.0),
        ];
        set.add(summary(one)).unwrap();
        set.add(summary(vec![run("sp: QUIC", 60.0, 60.0)])).unwrap();
        let rows: Vec<_> = set.all().map(|(e, i, s)| (e, i, s.runs)).collect();
        assert_eq!(
            rows,
            [("QUIC", "sp", 2), ("QUIC", "2", 1), ("TCP", "sp", 1)]
        );
        let sum = set.get("QUIC", "sp").unwrap();
        assert_eq!((sum.goodput, sum.ideal), (Some(50.0), Some(55.0)));
        assert_eq!((sum.of_ideal, sum.complete), (Some(0.9), 2));
        assert!(set.add(summary(vec![run("QUIC", 1.0, 1.0)])).is_err());
    }

    #[test]
    fn remedies_stand_beside_what_they_are_taken_from() {
        let mut set = Set::default();
        let names = [
            "3: MP-QUIC cubic",
            "2: MP-QUIC cubic",
            "3: MP-QUIC cubic, expecting",
            "3: MP-QUIC bbr",
            "3: MP-QUIC cubic without resume",
            "3: MP-QUIC cubic, expecting half",
            "3: MP-QUIC streams cubic",
        ];
        let all = names.iter().map(|n| run(n, 1.0, 1.0)).collect();
        set.add(summary(all)).unwrap();
        let of = |rows: Vec<(&str, &str, Sum)>| {
            let name =
                |(engine, interfaces, _): (&str, &str, Sum)| format!("{interfaces}: {engine}");
            rows.into_iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(
            of(set.remedies().collect()),
            [names[0], names[2], names[4], names[5], names[6]]
        );
        assert_eq!(of(set.main().collect()), names[..4]);
    }
}
