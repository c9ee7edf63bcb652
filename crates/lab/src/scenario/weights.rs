//! Weights of accesses: given, or those of a path plan.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use braid_core::weight;
use serde_spanned::Spanned;

use super::build::{Builder, Setting, no_access};
use super::diagnostic::Problem;
use super::plan::Planned;
use super::raw::{RawCase, RawWeights};
use super::text::Either;
use super::{AccessSetup, Action, Event};

/// The weights of a case that are those of the plan.
const PLAN: &str = "plan";

impl Builder<'_> {
    /// Weights by access, of those that the scenario has.
    pub(super) fn weights(
        &self,
        given: &RawWeights,
        span: Range<usize>,
        accesses: &[AccessSetup],
    ) -> Result<BTreeMap<String, f64>, Problem> {
        let known = || accesses.iter().map(|a| &a.name);
        for (name, v) in given {
            if !known().any(|k| k == name) {
                return Err(Problem::at(span, no_access(name, known())));
            }
            weight::check(name, v.0).map_err(|m| Problem::at(span.clone(), m))?;
        }
        Ok(given.iter().map(|(k, v)| (k.clone(), v.0)).collect())
    }

    /// The weights that a case begins with.
    pub(super) fn case_weights(
        &self,
        raw: &Spanned<Either<String, RawWeights>>,
        setting: &Setting<'_>,
    ) -> Result<BTreeMap<String, f64>, Problem> {
        let word = match raw.get_ref() {
            Either::Long(given) => return self.weights(given, raw.span(), &setting.accesses),
            Either::Short(word) => word,
        };
        if word != PLAN {
            let m = format!("unknown weights \"{word}\": expected \"plan\" or a table");
            return Err(Problem::at(raw.span(), m));
        }
        if self.raw.plan.is_none() {
            let m = "this scenario has no [plan] whose rates could be weights";
            return Err(Problem::at(raw.span(), m));
        }
        let mut first = BTreeMap::new();
        for (_, access, weight) in &setting.planned.weights {
            first.entry(access.clone()).or_insert(*weight);
        }
        Ok(first)
    }
}

/// How the weights of a case that are the plan's change.
pub(super) fn changes(
    raw: &RawCase,
    planned: &Planned,
    mine: &[String],
    duration: Duration,
) -> Vec<Event> {
    let follows = raw.weights.as_ref();
    if !follows.is_some_and(|w| matches!(w.get_ref(), Either::Short(_))) {
        return Vec::new();
    }
    let all = planned.weights.iter();
    all.filter(|(at, access, _)| *at > Duration::ZERO && *at < duration && mine.contains(access))
        .map(|(at, access, weight)| Event {
            at: *at,
            access: String::new(),
            action: Action::Weights(BTreeMap::from([(access.clone(), *weight)])),
            label: format!("weights {access}={weight}"),
        })
        .collect()
}

/// When all accesses would have a weight of 0, in words: those that are not named begin with 1.
pub(super) fn nobody_carries(
    mine: &[String],
    given: &BTreeMap<String, f64>,
    events: &[Event],
) -> Option<String> {
    let begin = |a: &String| (a.clone(), given.get(a).copied().unwrap_or(1.0));
    let mut weights: BTreeMap<String, f64> = mine.iter().map(begin).collect();
    let nobody =
        |weights: &BTreeMap<String, f64>| weight::check_all(weights.values().copied()).is_err();
    if nobody(&weights) {
        return Some("with these weights".to_owned());
    }
    events.iter().find_map(|e| {
        let Action::Weights(new) = &e.action else {
            return None;
        };
        let named = weights
            .iter_mut()
            .filter_map(|(a, w)| Some((w, new.get(a)?)));
        named.for_each(|(w, new)| *w = *new);
        nobody(&weights).then(|| format!("from {:?} on", e.at))
    })
}
