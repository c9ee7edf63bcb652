//! Observations: what the loop learns from outside, each with its moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Direction, PathMetrics, PerDirection, Settings};
use crate::AccessState;
use crate::{Rate, Time};

/// One observation and its moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Moment of the observation, nanoseconds.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// Content of the observation.
    pub what: What,
}

/// Content of an observation. A new kind (radio, flows) is one variant here and one
/// arm in [`crate::control_loop::ControlLoop::observe`]; an older reader names the line that
/// it cannot read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum What {
    /// The configuration, at the start and whenever it is read again. Requests end with it.
    Configuration(Settings),
    /// An access changed its state.
    AccessState(StateChange),
    /// A path was sampled.
    PathSample(PathMetrics),
    /// A path ended.
    PathGone(PathGone),
    /// A probe ended.
    ProbeResult(ProbeResult),
    /// Probes cost this much before the journal began.
    ProbeSpending(ProbeSpending),
    /// An operator, or a program through the control API, asked for something.
    Request(Request),
    /// A counter of power was read, at the device.
    Power(PowerReading),
    /// The counters of an access's interfaces were read, at the device.
    Carried(CarriedRates),
}

/// Rates of all traffic over an access, bonded or not, since its counters were read before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedRates {
    /// Name of the access.
    pub access: String,
    /// Rates on the wire.
    #[serde(rename = "rate_bps")]
    pub rate: PerDirection<Rate>,
}

/// Power that a counter of the device shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerReading {
    /// Name of the counter: kind and number, as `power_supply/BAT0`.
    pub source: String,
    /// Supply that it measures, by its driver's name; absent: the whole device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail: Option<String>,
    /// Power, mW.
    pub power_mw: f64,
}

/// New state of an access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateChange {
    /// Name of the access.
    pub access: String,
    /// State from now on.
    pub state: AccessState,
}

/// End of a path in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathGone {
    /// Name of the access.
    pub access: String,
    /// Number of the path.
    pub path: u64,
    /// Direction in which the counted data went.
    pub direction: Direction,
    /// Moment at which the path began.
    #[serde(rename = "began_ns")]
    pub began: Time,
    /// Last count of delivered payload, bytes.
    pub delivered_bytes: u64,
}

/// Result of one probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeResult {
    /// Name of the access.
    pub access: String,
    /// Direction of the probe's data.
    pub direction: Direction,
    /// Bytes that the probe moved; they count against its budget.
    pub bytes: u64,
    /// Rate of the probe; absent if it failed.
    #[serde(default, rename = "rate_bps", skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// Bytes that probes of an access moved before this journal began: a daemon restores them
/// after a restart, so that the budgets of a day and a month hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpending {
    /// Name of the access.
    pub access: String,
    /// Bytes of the last 30 days.
    pub bytes: u64,
    /// Part of them that was moved within the last 24 hours.
    #[serde(default)]
    pub day_bytes: u64,
}

/// Request of an operator. It holds until another one or until the configuration is read
/// again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Shares by access, 0 or more, both directions; those not named keep theirs.
    Weights(BTreeMap<String, f64>),
    /// Use an access only while no other is (true), or always (false).
    Backup {
        /// Name of the access.
        access: String,
        /// Whether it is a backup from now on.
        backup: bool,
    },
    /// Use an access (true) or leave it alone (false).
    Enabled {
        /// Name of the access.
        access: String,
        /// Whether it is used from now on.
        enabled: bool,
    },
    /// Rates that an access is expected to carry, both directions anew.
    Expected {
        /// Name of the access.
        access: String,
        /// Rates; absent where unknown.
        #[serde(rename = "expected_bps")]
        expected: PerDirection<Option<Rate>>,
    },
}
