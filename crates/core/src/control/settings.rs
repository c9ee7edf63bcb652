//! Configuration of the control loop, as its journal keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::PerDirection;
use crate::energy::Parameters;
use crate::{AccessKind, Rate};

/// Configuration of the loop: its policy and its accesses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Policy and its parameters.
    #[serde(default)]
    pub policy: PolicySettings,
    /// Accesses by name.
    pub accesses: BTreeMap<String, AccessSettings>,
}

/// Policy by name, with the parameters of those that have any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Name of the policy, one of [`crate::policy::POLICIES`].
    pub name: String,
    /// Parameters of `capacity`.
    pub capacity: CapacitySettings,
    /// Parameters of `energy`.
    pub energy: EnergySettings,
    /// Parameters of `interface-selection` and `tuning`.
    pub selection: SelectionSettings,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            name: "static".to_owned(),
            capacity: CapacitySettings::default(),
            energy: EnergySettings::default(),
            selection: SelectionSettings::default(),
        }
    }
}

/// Parameters of the policy `capacity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapacitySettings {
    /// Step to which capacities are rounded, above 0. Below ten steps the rounding is finer.
    #[serde(rename = "step_bps")]
    pub step: Rate,
    /// Change of a capacity that is not worth a decision, percent of the weight in force.
    pub hysteresis_percent: u32,
    /// Least time between two decisions about weights, milliseconds. Roles change at once.
    pub min_interval_ms: u64,
}

impl Default for CapacitySettings {
    fn default() -> Self {
        Self {
            // Paper 000, section 6.5: capacities are rounded to the nearest 10 Mbit/s.
            step: Rate::from_bps(10_000_000),
            // As much as rounding itself may be off by.
            hysteresis_percent: 5,
            // Engines are sampled ten times a second: nothing new is known earlier.
            min_interval_ms: 100,
        }
    }
}

/// Parameters of the policy `energy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergySettings {
    /// Part of what all accesses carry together that is kept where traffic takes all it gets,
    /// percent, 1 to 100.
    pub keep_percent: u32,
    /// Time for which fewer radios must have sufficed before the others rest, milliseconds.
    pub hold_ms: u64,
}

impl Default for EnergySettings {
    fn default() -> Self {
        Self {
            keep_percent: 90,
            // A cellular radio stays connected for as long after its last data (docs/energy.md):
            // what would rest for less saves nothing.
            hold_ms: 10_000,
        }
    }
}

/// Parameters of the policies `interface-selection` and `tuning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectionSettings {
    /// Difference to the highest throughput that counts as slight, percent of it, 0 to 100.
    pub within_percent: u32,
}

impl Default for SelectionSettings {
    fn default() -> Self {
        // Paper 002, section 6.1.
        Self { within_percent: 10 }
    }
}

/// Configuration of one access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessSettings {
    /// Technology.
    pub kind: AccessKind,
    /// Share of the traffic, 0 or more; of 0, the access carries only when no other can.
    pub weight: f64,
    /// Whether it is used only while no other access is.
    #[serde(default)]
    pub backup: bool,
    /// Rates that it is expected to carry, by contract or by the modem's word.
    #[serde(default, rename = "expected_bps")]
    pub expected: PerDirection<Option<Rate>>,
    /// Estimators by name, the preferred first; those of [`crate::estimate::ESTIMATORS`].
    #[serde(default = "default_estimators")]
    pub estimators: Vec<String>,
    /// Probes of `probe`.
    #[serde(default)]
    pub probe: ProbeSettings,
    /// Power model of its radio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Parameters>,
}

fn default_estimators() -> Vec<String> {
    ["passive", "expected"].map(str::to_owned).to_vec()
}

impl AccessSettings {
    /// Configures an access of `kind` with defaults: weight 1, no backup, nothing expected.
    pub fn new(kind: AccessKind) -> Self {
        Self {
            kind,
            weight: 1.0,
            backup: false,
            expected: PerDirection::default(),
            estimators: default_estimators(),
            probe: ProbeSettings::default(),
            power: None,
        }
    }
}

/// Probes of one access: what a probe is and what all of them may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeSettings {
    /// Parallel flows of plain TCP, above 0.
    pub flows: u32,
    /// Length of a probe, milliseconds, above 0.
    pub duration_ms: u64,
    /// Mean time between two probes of one direction, milliseconds.
    pub interval_ms: u64,
    /// Directions that are probed: those in which an end decides by the results.
    pub directions: PerDirection<bool>,
    /// Bytes that one probe may move.
    pub bytes_per_probe: u64,
    /// Bytes that probes may move within any hour, both directions together.
    pub bytes_per_hour: u64,
    /// Bytes that probes may move within any 24 hours, both directions together.
    pub bytes_per_day: u64,
    /// Bytes that probes may move within any 30 days, both directions together.
    pub bytes_per_month: u64,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self {
            // Paper 000, section 6.5, has 10 flows for 5 s every 10 s. That moves 375 MB per
            // probe at 600 Mbit/s; a contract with a volume does not bear it.
            flows: 10,
            duration_ms: 1_000,
            interval_ms: 60_000,
            directions: PerDirection::from_fn(|_| true),
            bytes_per_probe: 100_000_000,
            bytes_per_hour: 1_000_000_000,
            // A tenth of the month: a vehicle that drives for a day, and rests for another.
            bytes_per_day: 2_000_000_000,
            bytes_per_month: 20_000_000_000,
        }
    }
}
