//! The `[[event]]` tables.

use std::time::Duration;

use super::build::{Builder, no_access};
use super::diagnostic::{Problem, nearest};
use super::raw::{RawEvent, Way};
use super::text::Either;
use super::{Action, Event, link};

impl Builder<'_> {
    pub(super) fn events(
        &self,
        accesses: &[String],
        duration: Duration,
    ) -> Result<Vec<Event>, Problem> {
        let mut out = Vec::new();
        for e in &self.raw.event {
            let name = e.access.get_ref();
            if !self.raw.access.get_ref().contains_key(name) {
                return Err(Problem::at(
                    e.access.span(),
                    no_access(name, self.raw.access.get_ref().keys()),
                ));
            }
            let (action, label) = self.action(e)?;
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
                    e.access.span(),
                    "expected at most 10000 repetitions",
                ));
            }
            if !accesses.contains(name) {
                continue;
            }
            for i in 0..times {
                let at = at + every.unwrap_or_default() * i;
                if at < duration {
                    out.push(Event {
                        at,
                        access: name.clone(),
                        action: action.clone(),
                        label: label.clone(),
                    });
                }
            }
        }
        out.sort_by_key(|e| e.at);
        Ok(out)
    }

    fn action(&self, e: &RawEvent) -> Result<(Action, String), Problem> {
        let change = match e.set.get_ref() {
            Either::Short(word) => {
                if let Some(d) = e.direction
                    && d != Way::Both
                {
                    return Err(Problem::at(
                        e.set.span(),
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
                        return Err(Problem::at(e.set.span(), m));
                    }
                };
                return Ok((action, word.clone()));
            }
            Either::Long(table) => table,
        };
        let mut changes = link::changes(change, self.files).map_err(|mut p| {
            p.span.get_or_insert(e.set.span());
            p
        })?;
        if changes.is_empty() {
            return Err(Problem::at(e.set.span(), "this event changes nothing"));
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
