//! Policies that choose accesses by the energy of their radios (docs/energy.md): `energy`, and the
//! two algorithms of paper 002.
//!
//! An access that is not chosen rests: it is a backup, and carries where all others are lost. Those
//! that carry share by capacity ([`super::Capacity`]). An access without power model never rests, for
//! nobody knows what that would save.

mod choice;
mod cost;
mod interface_selection;
mod load;
mod selection;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use interface_selection::PaperSelection;
use selection::Selection;

use super::{Capacity, Policy, wanted_role};
use crate::Time;
use crate::control::{AccessRole, PolicySettings, Snapshot, Steering};

/// Choice of the accesses that carry.
#[derive(Debug)]
enum Chooser {
    /// `energy`: the cheapest that carry what is wanted, while it comes and goes.
    Demand(Selection),
    /// `interface-selection`, and `tuning` after it.
    Throughput(PaperSelection),
}

/// Policy that lets radios rest.
#[derive(Debug)]
pub struct Energy {
    chooser: Chooser,
    shares: Capacity,
    /// Weights of the last decision about them.
    weights: Option<Steering>,
}

impl Energy {
    /// Makes the policy `energy`.
    pub fn by_demand(settings: &PolicySettings) -> Self {
        Self::with(Chooser::Demand(Selection::new(settings.energy)), settings)
    }

    /// Makes the policy `interface-selection` (paper 002, section 6.1).
    pub fn by_throughput(settings: &PolicySettings) -> Self {
        let paper = PaperSelection::new(settings.selection, false);
        Self::with(Chooser::Throughput(paper), settings)
    }

    /// Makes the policy `tuning` (paper 002, section 6.2).
    pub fn tuned(settings: &PolicySettings) -> Self {
        let paper = PaperSelection::new(settings.selection, true);
        Self::with(Chooser::Throughput(paper), settings)
    }

    fn with(chooser: Chooser, settings: &PolicySettings) -> Self {
        Self {
            chooser,
            shares: Capacity::new(settings.capacity),
            weights: None,
        }
    }

    fn carries(&self, access: &str) -> bool {
        match &self.chooser {
            Chooser::Demand(c) => c.carries(access),
            Chooser::Throughput(c) => c.carries(access),
        }
    }
}

impl Policy for Energy {
    fn name(&self) -> &'static str {
        match &self.chooser {
            Chooser::Demand(_) => "energy",
            Chooser::Throughput(c) => c.name(),
        }
    }

    fn decide(&mut self, now: Time, snapshot: &Snapshot) -> Option<Steering> {
        let chosen = match &mut self.chooser {
            Chooser::Demand(c) => c.update(now, snapshot),
            Chooser::Throughput(c) => c.update(now, snapshot),
        };
        let shares = self.shares.decide(now, snapshot);
        let changed = shares.is_some() || chosen.is_some();
        if shares.is_some() {
            self.weights = shares;
        }
        let mut steering = self.weights.clone().filter(|_| changed)?;
        for (name, access) in &mut steering.accesses {
            let Some(known) = snapshot.accesses.get(name) else {
                continue;
            };
            access.role = match wanted_role(known) {
                AccessRole::Active if known.power.is_some() && !self.carries(name) => {
                    AccessRole::Backup
                }
                wanted => wanted,
            };
        }
        steering.why = chosen.unwrap_or(steering.why);
        Some(steering)
    }
}
