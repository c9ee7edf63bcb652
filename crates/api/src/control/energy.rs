//! Energy of radios by their power models, and what the device's own counters of power show.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Energy of an access's radio since the daemon began, by its power model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccessEnergy {
    /// Parameter set that it is computed by.
    pub set: String,
    /// Energy in all states together, J. It only grows, so that each reader can derive power.
    pub joules: f64,
    /// Energy while data flowed, J.
    pub active_joules: f64,
    /// Energy while the radio connected, J.
    pub promotion_joules: f64,
    /// Energy while it stayed connected after data, J.
    pub tail_joules: f64,
    /// Energy while it slept, J.
    pub idle_joules: f64,
    /// Mean power of the last interval, mW.
    pub power_mw: f64,
}

/// Power that a counter of the device shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PowerCounter {
    /// Counter: kind and number, as `power_supply/BAT0`.
    pub source: String,
    /// Supply that it measures, by its driver's name; absent: the whole device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail: Option<String>,
    /// Power at the last reading, mW; absent while it cannot be known, as on a charger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_mw: Option<f64>,
    /// Attribution of it to accesses; absent while there are too few readings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<PowerAttribution>,
}

/// Attribution of a counter's power to accesses, by regression on what they carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PowerAttribution {
    /// Readings that it is made from.
    pub readings: usize,
    /// Power that goes with no access, mW.
    pub rest_mw: f64,
    /// Share of the variance of power that is explained, at most 1; absent where power does not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r2: Option<f64>,
    /// Power of each access.
    pub accesses: BTreeMap<String, PowerShare>,
}

/// Power that goes with an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PowerShare {
    /// Power while it carries anything, mW.
    pub in_use_mw: f64,
    /// Power for each Mbit/s down, mW.
    pub down_mw_per_mbps: f64,
    /// Power for each Mbit/s up, mW.
    pub up_mw_per_mbps: f64,
}
