//! Policies: how the accesses are to be used, from a snapshot of what is known.
//!
//! A policy answers with a complete [`Steering`] when something is to change, and with
//! nothing otherwise. It keeps no socket, no clock and no randomness, so that the same
//! snapshots give the same decisions at a desk. To add one: a file here and a line in
//! [`POLICIES`].

mod capacity;
mod energy;
mod raise;
mod static_weights;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use thiserror::Error;

pub use capacity::Capacity;
pub use energy::Energy;
pub use static_weights::StaticWeights;

use crate::Time;
use crate::control::{AccessRole, AccessSnapshot, Direction, PolicySettings, Snapshot, Steering};

/// Policy with its state.
pub trait Policy: Debug + Send {
    /// Returns its name in configurations and scenarios.
    fn name(&self) -> &'static str;

    /// Returns the steering from now on; `None` where the one before still holds. Called after
    /// all observations of a moment were taken in.
    fn decide(&mut self, now: Time, snapshot: &Snapshot) -> Option<Steering>;
}

/// Makes a policy.
type Make = fn(&PolicySettings) -> Box<dyn Policy>;

/// Every policy, by name.
pub const POLICIES: &[(&str, Make)] = &[
    ("static", |_| Box::new(StaticWeights::default())),
    ("capacity", |settings| {
        Box::new(Capacity::new(settings.capacity))
    }),
    ("energy", |settings| Box::new(Energy::by_demand(settings))),
    ("interface-selection", |settings| {
        Box::new(Energy::by_throughput(settings))
    }),
    ("tuning", |settings| Box::new(Energy::tuned(settings))),
];

/// Error: no policy has this name. [`names`] has those that exist, for a did-you-mean.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no policy is called \"{0}\": expected one of {all}",
    all = names().collect::<Vec<_>>().join(", ")
)]
pub struct UnknownPolicy(pub String);

/// Returns the name of every policy.
pub fn names() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|(name, _)| *name)
}

/// Makes the policy called `name`.
///
/// # Errors
/// No policy has that name.
pub fn by_name(name: &str, settings: &PolicySettings) -> Result<Box<dyn Policy>, UnknownPolicy> {
    let found = POLICIES.iter().find(|(n, _)| *n == name);
    let (_, make) = found.ok_or_else(|| UnknownPolicy(name.to_owned()))?;
    Ok(make(settings))
}

/// Returns the role that an operator wants an access to have.
fn wanted_role(access: &AccessSnapshot) -> AccessRole {
    if !access.enabled {
        AccessRole::Off
    } else if access.backup {
        AccessRole::Backup
    } else {
        AccessRole::Active
    }
}

/// Says in one sentence where roles, or the set of accesses, of `new` differ from those of
/// `old`; `None` where they do not.
fn role_change(old: &Steering, new: &Steering) -> Option<String> {
    let gone = old
        .accesses
        .keys()
        .find(|name| !new.accesses.contains_key(*name));
    if let Some(name) = gone {
        return Some(format!("{name} is configured no more"));
    }
    new.accesses.iter().find_map(|(name, access)| {
        let role = match access.role {
            AccessRole::Active => "active",
            AccessRole::Backup => "a backup",
            AccessRole::Off => "off",
        };
        match old.accesses.get(name) {
            None => Some(format!("{name} is new and {role}")),
            Some(before) if before.role != access.role => Some(format!("{name} is {role} now")),
            Some(_) => None,
        }
    })
}

/// Returns the weight of `name` in `steering`; `None` for an access that it does not know.
fn weight_in(steering: &Steering, name: &str, direction: Direction) -> Option<f64> {
    let access = steering.accesses.get(name)?;
    Some(*access.weight.get(direction))
}
