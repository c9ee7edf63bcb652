//! The `[[event]]` tables.

use std::time::Duration;

use serde_spanned::Spanned;

use super::build::{Builder, no_access};
use super::diagnostic::{Problem, nearest};
use super::raw::{RawEvent, RawLink, Way};
use super::text::Either;
use super::{AccessSetup, Action, Event, backhaul, link};

impl Builder<'_> {
    pub(super) fn events(
        &self,
        all: &[AccessSetup],
        accesses: &[String],
        duration: Duration,
        weighted: bool,
    ) -> Result<Vec<Event>, Problem> {
        let mut out = Vec::new();
        for e in &self.raw.event {
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
            let at = e.at.get_ref().0;
            if at > self.raw.duration.get_ref().0 && e.every.is_none() {
                return Err(Problem::at(e.at.span(), "this is after the end of the run"));
            }
            let every = e.every.as_ref().map(|t| t.get_ref().0);
            let times = e.times.as_ref().map_or(1, |t| *t.get_ref());
            match (&e.every, &e.times) {
                (Some(t), _) if t.get_ref().0.is_zero() => {
                    return Err(Problem::at(t.span(), "expected a time above zero"));
                }
                (None, Some(t)) => return Err(Problem::at(t.span(), "`times` needs `every`")),
                (Some(t), None) => return Err(Problem::at(t.span(), "`every` needs `times`")),
                _ => {}
            }
            if times > 10_000 {
                return Err(Problem::at(
                    e.times.as_ref().map_or(e.at.span(), |t| t.span()),
                    "expected at most 10000 repetitions",
                ));
            }
            // What the case does not have cannot happen to it.
            let concerns = match &action {
                Action::Weights(_) => weighted,
                _ => accesses.iter().any(|a| a == access),
            };
            if !concerns {
                continue;
            }
            for i in 0..times {
                let at = at + every.unwrap_or_default() * i;
                if at < duration {
                    out.push(Event {
                        at,
                        access: access.to_owned(),
                        action: action.clone(),
                        label: label.clone(),
                    });
                }
            }
        }
        out.sort_by_key(|e| e.at);
        Ok(out)
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
