//! `capacity`: weights in proportion to estimated capacities (paper 000, sections 5 and 6.5).
//!
//! Weights are capacities in Mbit/s, rounded as the paper does, per direction. Read
//! [`super::raise`] for how an access rises whose weight holds it back.

use std::collections::BTreeMap;
use std::time::Duration;

use super::raise::Raises;
use super::{Policy, role_change, wanted_role, weight_in};
use crate::control::{
    AccessSnapshot, AccessSteering, CapacitySettings, Direction, DirectionSnapshot, Estimate,
    PerDirection, Snapshot, Steering,
};
use crate::{Rate, Time};

/// Policy that follows estimates.
#[derive(Debug)]
pub struct Capacity {
    settings: CapacitySettings,
    applied: Option<Steering>,
    decided: Time,
    raises: PerDirection<Raises>,
}

/// Target of one access and direction, before rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    /// Capacity that is known or assumed.
    Capacity(Rate),
    /// Capacity that is tried.
    Raised(Rate),
    /// Weight as configured.
    Configured(f64),
}

impl Policy for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn decide(&mut self, now: Time, snapshot: &Snapshot) -> Option<Steering> {
        let targets = PerDirection::from_fn(|d| {
            let sharing = sharing(snapshot, d);
            let least = self.least();
            self.raises.get_mut(d).update(now, &sharing, least);
            self.targets(snapshot, d)
        });
        let mut new = self.steering(snapshot, &targets);
        new.why = match &self.applied {
            None => "capacity begins to set the weights".to_owned(),
            Some(old) => match role_change(old, &new) {
                Some(why) => why,
                None if now.since(self.decided) < self.min_interval() => return None,
                None => self.worth_a_decision(old, &new, snapshot, &targets)?,
            },
        };
        self.decided = now;
        self.applied = Some(new.clone());
        Some(new)
    }
}

/// Returns the accesses that share the traffic of `direction` now.
fn sharing(snapshot: &Snapshot, direction: Direction) -> BTreeMap<&str, &DirectionSnapshot> {
    let accesses = snapshot.accesses.iter();
    let sharing = accesses.filter(|(_, a)| a.is_usable() && a.weight() > 0.0);
    sharing
        .map(|(name, a)| (name.as_str(), a.directions.get(direction)))
        .collect()
}

/// Returns the capacity of an access, if more than a lower bound is known.
fn firm(access: &AccessSnapshot, direction: Direction) -> Option<Rate> {
    let estimate = access.directions.get(direction).estimate.as_ref()?;
    (!estimate.at_least).then_some(estimate.capacity)
}

impl Capacity {
    /// Begins with `settings`.
    pub fn new(settings: CapacitySettings) -> Self {
        Self {
            settings,
            applied: None,
            decided: Time::ZERO,
            raises: PerDirection::default(),
        }
    }

    fn min_interval(&self) -> Duration {
        Duration::from_millis(self.settings.min_interval_ms)
    }

    /// Computes the target of every access of `direction`.
    ///
    /// An access without estimate gets its configured share beside those with one: the mean
    /// capacity for a unit of weight, times its weight. Without any estimate all weights are as
    /// configured. A weight of 0 stays: the operator wants it to wait.
    fn targets<'a>(
        &self,
        snapshot: &'a Snapshot,
        direction: Direction,
    ) -> BTreeMap<&'a str, Target> {
        let (mut bps, mut weights) = (0.0, 0.0);
        for access in snapshot.accesses.values().filter(|a| a.is_usable()) {
            if let Some(capacity) = firm(access, direction)
                && access.weight() > 0.0
            {
                bps += capacity.as_bps() as f64;
                weights += access.weight();
            }
        }
        let target = |name: &str, access: &AccessSnapshot| {
            if weights == 0.0 || access.weight() == 0.0 {
                return Target::Configured(access.weight());
            }
            if let Some(raised) = self.raises.get(direction).target(name) {
                return Target::Raised(raised);
            }
            let share = Rate::from_mbps(bps / weights * access.weight() / 1e6);
            Target::Capacity(match &access.directions.get(direction).estimate {
                Some(e) if e.at_least => e.capacity.max(share),
                Some(e) => e.capacity,
                None => share,
            })
        };
        let all = snapshot.accesses.iter();
        all.map(|(name, access)| (name.as_str(), target(name, access)))
            .collect()
    }

    fn steering(
        &self,
        snapshot: &Snapshot,
        targets: &PerDirection<BTreeMap<&str, Target>>,
    ) -> Steering {
        let accesses = snapshot.accesses.iter().map(|(name, access)| {
            let weight = PerDirection::from_fn(|d| {
                let target = targets.get(d)[name.as_str()];
                let before = self.applied.as_ref();
                match before.and_then(|old| weight_in(old, name, d)) {
                    // Nothing is known about an access that is lost; it keeps its weight.
                    Some(before) if !access.is_usable() => before,
                    _ => self.weight(target),
                }
            });
            let role = wanted_role(access);
            (name.clone(), AccessSteering { role, weight })
        });
        Steering {
            accesses: accesses.collect(),
            scheduler: None,
            why: String::new(),
        }
    }

    /// Returns the reason for `new`, if any weight changes by more than the hysteresis.
    fn worth_a_decision(
        &self,
        old: &Steering,
        new: &Steering,
        snapshot: &Snapshot,
        targets: &PerDirection<BTreeMap<&str, Target>>,
    ) -> Option<String> {
        let mut largest: Option<(f64, String)> = None;
        for d in Direction::ALL {
            for (name, target) in targets.get(d) {
                let (before, now) = (weight_in(old, name, d)?, weight_in(new, name, d)?);
                if before == now || !self.beyond_hysteresis(before, *target) {
                    continue;
                }
                let ratio = now.max(before) / now.min(before);
                if largest.as_ref().is_none_or(|(r, _)| ratio > *r) {
                    let estimate = &snapshot.accesses[*name].directions.get(d).estimate;
                    let reason = self.reason(name, d, *target, estimate.as_ref());
                    let why = format!("{reason}: weight {now} instead of {before}");
                    largest = Some((ratio, why));
                }
            }
        }
        largest.map(|(_, why)| why)
    }

    /// Whether `target` is so far from the weight in force that it is worth a decision. Three
    /// quarters of a rounding unit, and not half of one, keep a capacity between two units from
    /// going to and fro.
    fn beyond_hysteresis(&self, weight: f64, target: Target) -> bool {
        match target {
            Target::Configured(configured) => configured != weight,
            Target::Capacity(capacity) | Target::Raised(capacity) => {
                let relative = weight * f64::from(self.settings.hysteresis_percent) / 100.0;
                let unit = Rate::from_bps(self.unit(Rate::from_mbps(weight))).as_mbps();
                (capacity.as_mbps() - weight).abs() > relative.max(0.75 * unit)
            }
        }
    }

    fn reason(&self, name: &str, d: Direction, target: Target, known: Option<&Estimate>) -> String {
        match (target, known) {
            (Target::Raised(_), _) => {
                format!("{name} is held back by its weight {d} and may show more")
            }
            (Target::Configured(_), _) => format!("no capacity {d} is known, {name} as configured"),
            (Target::Capacity(_), Some(e)) if !e.at_least => {
                format!("{name} carries {} {d} by {}", e.capacity, e.source)
            }
            (Target::Capacity(_), _) => format!("{name} has its configured share {d}"),
        }
    }

    fn weight(&self, target: Target) -> f64 {
        match target {
            Target::Configured(weight) => weight,
            Target::Capacity(capacity) => self.rounded(capacity).as_mbps(),
            // Up, or a gain would come to nothing on an access of a few units.
            Target::Raised(capacity) => {
                let unit = self.unit(capacity);
                Rate::from_bps(capacity.as_bps().div_ceil(unit).saturating_mul(unit)).as_mbps()
            }
        }
    }

    /// Rounds to the step from ten steps on, and finer below, so that no weight is off by more
    /// than a twentieth: rounded up by a half, a slow access would hold back a strict scheduler
    /// by a third. A hundredth of the step is the least, because an access of weight 0 would
    /// never be measured again.
    fn rounded(&self, capacity: Rate) -> Rate {
        let unit = self.unit(capacity);
        let rounded = (capacity.as_bps().saturating_add(unit / 2)) / unit * unit;
        Rate::from_bps(rounded).max(self.least())
    }

    /// Returns the capacity as which an access is weighed that seems to carry nothing.
    fn least(&self) -> Rate {
        Rate::from_bps((self.settings.step.as_bps() / 100).max(1))
    }

    /// Returns the rounding unit of a capacity, bit/s: a step, a tenth or a hundredth of one.
    fn unit(&self, capacity: Rate) -> u64 {
        let (step, bps) = (self.settings.step.as_bps(), capacity.as_bps());
        let unit = match bps {
            _ if bps >= step.saturating_mul(10) => step,
            _ if bps >= step => step / 10,
            _ => step / 100,
        };
        unit.max(1)
    }
}
