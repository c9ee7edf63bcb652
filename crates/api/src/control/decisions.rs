//! Decisions of an end about its weights, and the estimates behind them.

use serde::{Deserialize, Serialize};

/// `GET /v1/control`: the policy of this end, and what it has decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ControlStatus {
    /// When this was read.
    pub t_ns: u64,
    /// Name of the policy, as in `[control] policy`.
    pub policy: String,
    /// Direction in which this end sends, to which all figures apply: `down` at the proxy, `up`
    /// at the device.
    pub direction: String,
    /// Accesses by name.
    pub accesses: Vec<AccessControl>,
    /// Time since the decision that holds, milliseconds; absent while the policy decides nothing.
    pub decided_ms: Option<u64>,
    /// Reason for that decision, one sentence.
    pub why: Option<String>,
}

/// One access as the policy of an end sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AccessControl {
    /// Name of the access.
    pub name: String,
    /// Weight that was decided; absent while the policy decides none.
    pub weight: Option<f64>,
    /// Whether it carries only where no other can, by the policy's decision.
    pub rests: bool,
    /// Estimated capacity; absent while nothing is known.
    pub capacity_mbps: Option<f64>,
    /// Estimator that it comes from.
    pub estimator: Option<String>,
    /// Age of the newest evidence for it, milliseconds.
    pub age_ms: Option<u64>,
    /// Whether it is only a lower bound, because the access was never full.
    pub at_least: bool,
    /// Rate of the last sample; absent while no path is sampled.
    pub rate_mbps: Option<f64>,
    /// Obstacle that kept the access from carrying more then: `nothing`, `scheduler`,
    /// `peer-window`, `slow-start` or `application`.
    pub limited_by: Option<String>,
    /// Probes by transfers; absent where the access has not the estimator `probe`.
    pub probe: Option<ProbeControl>,
}

/// Probes of one access by transfers, as `[control.probe]` has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProbeControl {
    /// Bytes that transfers have moved since the daemon began, both directions.
    pub bytes: u64,
    /// Bytes that the budgets still allow; absent at the proxy, which keeps none.
    pub left_bytes: Option<u64>,
    /// Time to the next transfer, milliseconds, budgets permitting; absent while none is planned.
    pub due_ms: Option<u64>,
    /// Newest rate from the proxy to the device; absent before the first.
    pub down_mbps: Option<f64>,
    /// Newest rate from the device to the proxy; absent before the first.
    pub up_mbps: Option<f64>,
    /// Reason why no transfer is planned, or why the last one failed; one sentence.
    pub note: Option<String>,
}
