//! `interface-selection` and `tuning`: the two algorithms of paper 002, section 6, for one device.
//!
//! Interface Selection takes the access of the highest throughput, and with it those whose
//! throughput is little less. Tuning then tries that access alone, and keeps what takes less energy.
//! The paper has a network of many nodes, probes, and a neural network that predicts energy; here
//! the estimates of an access (`probe` for what the paper does) and its power model take their places.

use std::collections::BTreeSet;
use std::time::Duration;

use super::cost::Cost;
use super::load::{FLOOR, carried, newest};
use super::selection::may_rest;
use crate::control::{Direction, PerDirection, SelectionSettings, Snapshot};
use crate::{Rate, Time};

/// Time over which throughput is measured before it is compared, and that goes by before it.
const MEASURED: Duration = Duration::from_secs(5);
const SETTLED: Duration = Duration::from_secs(3);

/// Interface Selection, with Tuning after it or without.
#[derive(Debug)]
pub(super) struct PaperSelection {
    settings: SelectionSettings,
    tunes: bool,
    /// Outcome of Interface Selection.
    selected: BTreeSet<String>,
    /// Accesses that carry.
    carries: BTreeSet<String>,
    tuning: Tuning,
}

/// Where Tuning stands.
#[derive(Debug, Default)]
enum Tuning {
    /// The selection of several accesses carries, and is measured.
    #[default]
    Selected,
    SelectedSince(Measured),
    /// The fastest alone carries, and is measured; the selection took so much for each Mbit, mJ.
    Alone(f64, Measured),
    /// The lesser of both carries.
    Done,
}

/// Power and throughput since a moment.
#[derive(Clone, Copy, Debug)]
struct Measured {
    since: Time,
    seen: Time,
    mj: f64,
    mbit: f64,
}

impl Measured {
    fn new(now: Time) -> Self {
        Self {
            since: now,
            seen: now,
            mj: 0.0,
            mbit: 0.0,
        }
    }

    /// Takes in the newest rates; returns the energy for each Mbit once they are enough.
    fn update(&mut self, now: Time, snapshot: &Snapshot) -> Option<f64> {
        let at = newest(snapshot)?;
        let passed = now.since(self.since);
        if at <= self.seen || passed < SETTLED {
            self.seen = self.seen.max(at.min(now));
            return None;
        }
        let seconds = at.since(self.seen).as_secs_f64();
        self.seen = at;
        let demand = carried(snapshot);
        if demand.down.max(demand.up) < FLOOR {
            // Without traffic there is nothing to measure.
            *self = Self::new(now);
            return None;
        }
        for (name, power) in may_rest(snapshot) {
            let own = snapshot.accesses[name].carried.map(|c| c.rate);
            self.mj += Cost::of(power).steady_mw(own.unwrap_or_default()) * seconds;
        }
        self.mbit += (demand.down.as_mbps() + demand.up.as_mbps()) * seconds;
        (passed >= SETTLED + MEASURED).then(|| self.mj / self.mbit)
    }
}

impl PaperSelection {
    pub(super) fn new(settings: SelectionSettings, tunes: bool) -> Self {
        Self {
            settings,
            tunes,
            selected: BTreeSet::new(),
            carries: BTreeSet::new(),
            tuning: Tuning::default(),
        }
    }

    /// Returns the name of the policy that it is.
    pub(super) fn name(&self) -> &'static str {
        match self.tunes {
            true => "tuning",
            false => "interface-selection",
        }
    }

    /// Whether an access carries, of those that may rest. Before a selection, all do.
    pub(super) fn carries(&self, access: &str) -> bool {
        self.carries.is_empty() || self.carries.contains(access)
    }

    /// Takes in what was observed; returns the reason where the set is another one now.
    pub(super) fn update(&mut self, now: Time, snapshot: &Snapshot) -> Option<String> {
        let rates = throughputs(snapshot);
        let selected = select(&rates, self.settings.within_percent);
        if selected.is_empty() {
            return None;
        }
        let before = self.carries.clone();
        let mut why = None;
        if selected != self.selected {
            self.selected.clone_from(&selected);
            self.carries = selected;
            self.tuning = Tuning::default();
            let all: Vec<_> = rates.iter().map(|(n, r)| said(n, *r)).collect();
            why = Some(format!("selected by throughput of {}", all.join(", ")));
        }
        if self.tunes && self.selected.len() > 1 {
            why = self.tune(now, snapshot, &rates).or(why);
        }
        why.filter(|_| self.carries != before)
    }

    fn tune(
        &mut self,
        now: Time,
        snapshot: &Snapshot,
        rates: &[(&str, Option<Rate>)],
    ) -> Option<String> {
        match &mut self.tuning {
            Tuning::Selected => {
                self.tuning = Tuning::SelectedSince(Measured::new(now));
                None
            }
            Tuning::SelectedSince(measured) => {
                let selected = measured.update(now, snapshot)?;
                let fastest = rates.iter().filter(|(_, r)| r.is_some());
                let (fastest, _) = fastest.max_by_key(|(_, r)| *r)?;
                self.carries = BTreeSet::from([(*fastest).to_owned()]);
                self.tuning = Tuning::Alone(selected, Measured::new(now));
                Some(format!("{fastest} alone is tried, for its energy"))
            }
            Tuning::Alone(selected, measured) => {
                let alone = measured.update(now, snapshot)?;
                let selected = *selected;
                self.tuning = Tuning::Done;
                if alone <= selected {
                    return None;
                }
                self.carries.clone_from(&self.selected);
                Some(format!(
                    "one access alone takes {alone:.0} mJ for each Mbit, all selected {selected:.0}"
                ))
            }
            Tuning::Done => None,
        }
    }
}

fn said(name: &str, rate: Option<Rate>) -> String {
    match rate {
        Some(rate) => format!("{name} {:.1} Mbit/s", rate.as_mbps()),
        None => format!("{name} unknown"),
    }
}

/// Returns what each access that may rest achieves: towards the device where that is known, as the
/// paper's receivers, else from it.
fn throughputs(snapshot: &Snapshot) -> Vec<(&str, Option<Rate>)> {
    let all: Vec<(&str, PerDirection<Option<Rate>>)> = may_rest(snapshot)
        .map(|(name, _)| {
            let of = |d| {
                let estimate = snapshot.accesses[name].directions.get(d).estimate.as_ref();
                estimate.filter(|e| !e.at_least).map(|e| e.capacity)
            };
            (name, PerDirection::from_fn(of))
        })
        .collect();
    let d = match all.iter().any(|(_, r)| r.down.is_some()) {
        true => Direction::Down,
        false => Direction::Up,
    };
    all.into_iter().map(|(n, r)| (n, *r.get(d))).collect()
}

/// Selects the accesses whose throughput is at most so many percent below the highest. One of
/// unknown throughput has not been probed yet: all carry, as without the algorithm.
fn select(rates: &[(&str, Option<Rate>)], within_percent: u32) -> BTreeSet<String> {
    let best = rates.iter().filter_map(|(_, r)| *r).max();
    let all_known = rates.iter().all(|(_, r)| r.is_some());
    let best = best.filter(|_| all_known).unwrap_or_default();
    let least = best.scaled(1.0 - f64::from(within_percent) / 100.0);
    let near = |r: Option<Rate>| !all_known || r.is_some_and(|r| r >= least);
    let selected = rates.iter().filter(|(_, r)| near(*r));
    selected.map(|(name, _)| (*name).to_owned()).collect()
}
