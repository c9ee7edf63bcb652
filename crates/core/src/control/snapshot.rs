//! Snapshot: all that a policy may know, at one moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Direction, LimitedBy, PerDirection};
use crate::AccessState;
use crate::energy::Parameters;
use crate::{AccessKind, Rate, Time};

/// Accesses as they are known at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Moment of the newest observation, nanoseconds.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// Accesses by name.
    pub accesses: BTreeMap<String, AccessSnapshot>,
}

impl Snapshot {
    /// Whether traffic fills an access in some direction, so that it carries all that it can.
    pub fn is_full(&self, access: &str) -> bool {
        let full = |d: Direction| {
            let access = self.accesses.get(access)?;
            let activity = access.directions.get(d).activity?;
            Some(activity.limited_by == LimitedBy::Nothing)
        };
        Direction::ALL.into_iter().any(|d| full(d) == Some(true))
    }
}

/// One access as it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessSnapshot {
    /// Technology.
    pub kind: AccessKind,
    /// State as the access manager tells it.
    pub state: AccessState,
    /// Whether the operator wants it to be used at all.
    pub enabled: bool,
    /// Whether it is to be used only while no other is: as requested, else as configured.
    pub backup: bool,
    /// Share in the configuration, 0 or more.
    pub configured_weight: f64,
    /// Share that an operator asked for; absent without such a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_weight: Option<f64>,
    /// Rates that it is expected to carry: as requested, else as configured.
    #[serde(rename = "expected_bps")]
    pub expected: PerDirection<Option<Rate>>,
    /// Estimate and activity of each direction.
    pub directions: PerDirection<DirectionSnapshot>,
    /// Power model of its radio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Parameters>,
    /// Traffic of its interfaces, bonded or not; absent while nobody reads their counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
}

impl AccessSnapshot {
    /// Whether data can go over it now: enabled, and used.
    pub fn is_usable(&self) -> bool {
        self.enabled && self.state.is_used()
    }

    /// Returns the share as requested, else as configured.
    pub fn weight(&self) -> f64 {
        self.requested_weight.unwrap_or(self.configured_weight)
    }
}

/// Traffic of an access's interfaces in the last interval between readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// End of the interval, nanoseconds.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// Rates on the wire.
    #[serde(rename = "rate_bps")]
    pub rate: PerDirection<Rate>,
}

/// One direction of an access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionSnapshot {
    /// Capacity; absent while nothing is known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Data that it carries now; absent while no path is sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
}

/// Estimate of what an access can carry in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Capacity.
    #[serde(rename = "capacity_bps")]
    pub capacity: Rate,
    /// Whether it is only a lower bound: the access has carried this much and was never full.
    pub at_least: bool,
    /// Moment of the newest evidence, nanoseconds; its age tells how far to trust it.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// Name of the estimator.
    pub source: String,
}

/// Data that an access carried in the last round of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// Delivered payload over the time of the round.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Obstacle that kept it from carrying more.
    pub limited_by: LimitedBy,
}
