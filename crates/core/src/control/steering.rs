//! Steering: what a policy wants the engine to do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::PerDirection;
use crate::Time;

/// Wish of a policy. It is complete: an engine that applies it needs none before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steering {
    /// Role and weights of each access, by name.
    pub accesses: BTreeMap<String, AccessSteering>,
    /// Packet scheduler; absent where the policy leaves it as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Reason for the change, one sentence.
    pub why: String,
}

impl Steering {
    /// Whether `other` asks the engine for the same, whatever the reason.
    pub fn same_effect(&self, other: &Self) -> bool {
        self.accesses == other.accesses && self.scheduler == other.scheduler
    }
}

/// Role and weights of one access.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessSteering {
    /// Role.
    pub role: AccessRole,
    /// Share of the traffic, 0 or more; only proportions matter.
    pub weight: PerDirection<f64>,
}

/// Role of an access, wanted whether or not it works now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessRole {
    /// Carries data.
    Active,
    /// Carries data while no active access can.
    Backup,
    /// Carries nothing.
    Off,
}

/// Steering that was decided, with its moment and its policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Moment of the decision, nanoseconds.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// Name of the policy.
    pub policy: String,
    /// Steering from now on.
    pub steering: Steering,
}
