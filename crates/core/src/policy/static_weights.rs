//! `static`: weights and roles as configured, or as an operator requested since.

use super::{Policy, role_change, wanted_role, weight_in};
use crate::Time;
use crate::control::{AccessSteering, Direction, PerDirection, Snapshot, Steering};

/// Policy that applies what people said.
#[derive(Debug, Default)]
pub struct StaticWeights {
    applied: Option<Steering>,
}

impl Policy for StaticWeights {
    fn name(&self) -> &'static str {
        "static"
    }

    fn decide(&mut self, _now: Time, snapshot: &Snapshot) -> Option<Steering> {
        let accesses = snapshot.accesses.iter().map(|(name, access)| {
            let weight = access.weight();
            let steering = AccessSteering {
                role: wanted_role(access),
                weight: PerDirection {
                    down: weight,
                    up: weight,
                },
            };
            (name.clone(), steering)
        });
        let mut new = Steering {
            accesses: accesses.collect(),
            scheduler: None,
            why: String::new(),
        };
        new.why = match &self.applied {
            None => "the configuration begins to hold".to_owned(),
            Some(old) if old.same_effect(&new) => return None,
            Some(old) => role_change(old, &new).unwrap_or_else(|| weight_change(old, &new)),
        };
        self.applied = Some(new.clone());
        Some(new)
    }
}

/// Says which weight changed first, by name.
fn weight_change(old: &Steering, new: &Steering) -> String {
    let changed = new.accesses.iter().find_map(|(name, access)| {
        let before = weight_in(old, name, Direction::Down)?;
        let now = access.weight.down;
        (before != now).then(|| format!("{name} has weight {now} instead of {before}"))
    });
    changed.unwrap_or_default()
}
