//! The `[[event]]` tables.

use std::time::Duration;

use braid_core::units::format_duration;
use serde_spanned::Spanned;

use super::build::{Builder, no_access, unknown};
use super::diagnostic::{Problem, nearest};
use super::raw::{RawEvent, RawLink, Way};
use super::text::Either;
use super::{AccessSetup, Action, Case, Event, backhaul, link};

impl Builder<'_> {
    /// Events of the case that the file calls `case`.
    pub(super) fn events(
        &self,
        case: &str,
        all: &[AccessSetup],
        accesses: &[String],
        duration: Duration,
        weighted: bool,
    ) -> Result<Vec<Event>, Problem> {
        let mut out = Vec::new();
        for e in &self.raw.event {
            self.check_cases(e)?;
            let (access, action, label) = match (&e.access, &e.set, &e.weights) {
                (Some(access), Some(set), None) => {
                    let name = access.get_ref();
                    let Some(setup) = all.iter().find(|a| a.name == *name) else {
                        let known = all.iter().map(|a| &a.name);
                        return Err(Problem::at(access.span(), no_access(name, known)));
                    };
                    let (action, label) = self.action(e, set)?;
                    if setup.backhaul.is_some()
                        && let Either::Long(table) = set.get_ref()
                        && let Some(key) = backhaul::not_its_own(table)
                    {
                        return Err(Problem::at(
                            set.span(),
                            format!(
                                "access \"{name}\" goes through a backhaul, which sets `{key}`"
                            ),
                        ));
                    }
                    (name.as_str(), action, label)
                }
                (None, None, Some(weights)) => {
                    let new = self.weights(weights.get_ref(), weights.span(), all)?;
                    if new.is_empty() {
                        return Err(Problem::at(weights.span(), "this event changes nothing"));
                    }
                    let list: Vec<_> = new.iter().map(|(a, w)| format!("{a}={w}")).collect();
                    let label = format!("weights {}", list.join(" "));
                    ("", Action::Weights(new), label)
                }
                _ => {
                    return Err(Problem::at(
                        e.at.span(),
                        "an event has `access` and `set`, or `weights` alone",
                    ));
                }
            };
            check_times(e, self.raw.duration.get_ref().0)?;
            // What the case does not have cannot happen to it.
            if !concerns(e, case, accesses, weighted) {
                continue;
            }
            for at in occurrences(e).filter(|at| *at < duration) {
                out.push(Event {
                    at,
                    access: access.to_owned(),
                    action: action.clone(),
                    label: label.clone(),
                });
            }
        }
        out.sort_by_key(|e| e.at);
        Ok(out)
    }

    /// Refuses an event of cases that there are not.
    fn check_cases(&self, e: &RawEvent) -> Result<(), Problem> {
        let known = || {
            self.raw
                .case
                .get_ref()
                .iter()
                .map(|c| c.name.get_ref().as_str())
        };
        let mut named = e.cases.iter().flatten();
        match named.find(|n| !known().any(|k| k == n.get_ref())) {
            Some(bad) => Err(unknown(bad, "case", known())),
            None => Ok(()),
        }
    }

    /// Refuses a duration from the command line or a campaign that ends before events of
    /// `cases` which the file's own duration has room for.
    pub(super) fn all_events_fit(&self, cases: &[Case]) -> Result<(), Problem> {
        let Some(given) = self.overrides.duration else {
            return Ok(());
        };
        for case in cases {
            let own = self.own_duration(case);
            let accesses: Vec<_> = case.accesses.iter().map(|a| a.name.clone()).collect();
            let weighted = case.weights.is_some();
            let mine = |e: &&RawEvent| concerns(e, &case.base_name, &accesses, weighted);
            for e in self.raw.event.iter().filter(mine) {
                let Some(last) = occurrences(e).filter(|at| *at < own).last() else {
                    continue;
                };
                if last >= given {
                    return Err(Problem::at(e.at.span(), too_short(e, last, given)));
                }
            }
        }
        Ok(())
    }

    /// Duration of `case` in the file.
    fn own_duration(&self, case: &Case) -> Duration {
        let mut cases = self.raw.case.get_ref().iter();
        let raw = cases.find(|c| *c.name.get_ref() == case.base_name);
        let mut variants = self.raw.variant.iter();
        let variant = variants.find(|v| Some(v.name.get_ref()) == case.variant.as_ref());
        self.duration(raw, variant).get_ref().0
    }

    fn action(
        &self,
        e: &RawEvent,
        set: &Spanned<Either<String, RawLink>>,
    ) -> Result<(Action, String), Problem> {
        let change = match set.get_ref() {
            Either::Short(word) => {
                if let Some(d) = e.direction
                    && d != Way::Both
                {
                    return Err(Problem::at(
                        set.span(),
                        "`direction` goes with link properties: an access is up or down as a whole",
                    ));
                }
                let action = match word.as_str() {
                    "down" => Action::Down,
                    "blackhole" => Action::Blackhole,
                    "up" => Action::Up,
                    other => {
                        let words = ["down", "blackhole", "up"];
                        let mut m = format!(
                            "unknown state \"{other}\": expected \"down\", \"blackhole\", \"up\" or a table of link properties"
                        );
                        if let Some(n) = nearest(other, words) {
                            m.push_str(&format!("; did you mean \"{n}\"?"));
                        }
                        return Err(Problem::at(set.span(), m));
                    }
                };
                return Ok((action, word.clone()));
            }
            Either::Long(table) => table,
        };
        let mut changes = link::changes(change, self.files).map_err(|p| p.or_at(set.span()))?;
        if changes.is_empty() {
            return Err(Problem::at(set.span(), "this event changes nothing"));
        }
        if let Some(f) = self.overrides.scale {
            changes.iter_mut().for_each(|c| link::scale_change(c, f));
        }
        let way = e.direction.unwrap_or_default();
        let label = changes
            .iter()
            .map(link::describe)
            .collect::<Vec<_>>()
            .join(", ");
        let pick = |d: Way| {
            if way == Way::Both || way == d {
                changes.clone()
            } else {
                Vec::new()
            }
        };
        Ok((
            Action::Change {
                down: pick(Way::Down),
                up: pick(Way::Up),
            },
            label,
        ))
    }
}

/// Refuses an event after the end of the run, and repetitions that are not whole.
fn check_times(e: &RawEvent, duration: Duration) -> Result<(), Problem> {
    if e.at.get_ref().0 >= duration {
        return Err(Problem::at(e.at.span(), "this is after the end of the run"));
    }
    match (&e.every, &e.times) {
        (Some(t), _) if t.get_ref().0.is_zero() => {
            Err(Problem::at(t.span(), "expected a time above zero"))
        }
        (None, Some(t)) => Err(Problem::at(t.span(), "`times` needs `every`")),
        (Some(t), None) => Err(Problem::at(t.span(), "`every` needs `times`")),
        (_, Some(t)) if *t.get_ref() > 10_000 => {
            Err(Problem::at(t.span(), "expected at most 10000 repetitions"))
        }
        _ => Ok(()),
    }
}

/// Points in time of an event whose times are right, since the start of the case.
fn occurrences(e: &RawEvent) -> impl Iterator<Item = Duration> {
    let first = e.at.get_ref().0;
    let every = e.every.as_ref().map_or(Duration::ZERO, |t| t.get_ref().0);
    let times = e.times.as_ref().map_or(1, |t| *t.get_ref());
    (0..times).map(move |i| first.saturating_add(every.saturating_mul(i)))
}

/// Whether an event happens to something that a case has: one of its accesses, or weights. One
/// that names cases concerns no others.
fn concerns(e: &RawEvent, case: &str, accesses: &[String], weighted: bool) -> bool {
    let others = |cases: &Vec<Spanned<String>>| !cases.iter().any(|c| c.get_ref() == case);
    if e.cases.as_ref().is_some_and(others) {
        return false;
    }
    match &e.access {
        Some(access) => accesses.contains(access.get_ref()),
        None => weighted,
    }
}

fn too_short(e: &RawEvent, last: Duration, given: Duration) -> String {
    let which = match &e.every {
        Some(_) => "the last repetition of this event",
        None => "this event",
    };
    format!(
        "a duration of {} ends before {which}, at {}: give more than that, or take the event \
         out of a copy (braid lab run --print prints shipped scenarios)",
        format_duration(given),
        format_duration(last),
    )
}
