//! `[control.energy]`: parameters of the policies that let radios rest.

use std::time::Duration;

use braid_core::control::{EnergySettings, SelectionSettings};
use serde::{Deserialize, Serialize};

use super::{Policy, text};
use crate::Role;
use crate::diagnostic::Problem;

/// `[control.energy]` at the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Energy {
    /// Part of what all accesses carry together that is kept where traffic takes all it gets,
    /// percent, 1 to 100; policy `energy`.
    pub keep_percent: u32,
    /// Time for which fewer radios must have sufficed before the others rest, 1 s to 10 min; policy
    /// `energy`.
    #[serde(with = "text::duration")]
    pub hold: Duration,
    /// Difference to the highest throughput that counts as slight, percent, 0 to 100; policies
    /// `interface-selection` and `tuning`.
    pub within_percent: u32,
}

impl Default for Energy {
    fn default() -> Self {
        let energy = EnergySettings::default();
        Self {
            keep_percent: energy.keep_percent,
            hold: Duration::from_millis(energy.hold_ms),
            within_percent: SelectionSettings::default().within_percent,
        }
    }
}

impl Energy {
    /// Checks the values, and that the end has radios to let rest.
    pub(super) fn check(&self, policy: Policy, role: Role) -> Result<(), Problem> {
        let at = |key: &str, what: &str| Err(Problem::at_key(&["control", "energy", key], what));
        if policy.rests() && role == Role::Proxy {
            let what = format!(
                "policy \"{}\" lets radios rest, which the device has: set it there, and policy = \
                 \"capacity\" here",
                policy.as_str()
            );
            return Err(Problem::at_key(&["control", "policy"], what));
        }
        if !(1..=100).contains(&self.keep_percent) {
            return at("keep_percent", "expected 1 to 100 percent");
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(600)).contains(&self.hold) {
            return at("hold", "expected 1 s to 10 min");
        }
        match self.within_percent > 100 {
            true => at("within_percent", "expected 0 to 100 percent"),
            false => Ok(()),
        }
    }
}
