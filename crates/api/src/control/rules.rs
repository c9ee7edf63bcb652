//! Rules about hosts behind a device, as an end tells them.

use std::collections::BTreeMap;

use braid_core::class::ClassSteering;
use braid_core::rules::Rule;
use serde::{Deserialize, Serialize};

/// `GET /v1/rules`: rules in the order of precedence, and what has met them; none at the proxy, and
/// without `[lan]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rules {
    /// When this was read.
    pub t_ns: u64,
    /// The rules.
    pub rules: Vec<RuleStatus>,
    /// Count of flows that met none of them and went over the bond; zeros where there are no rules.
    pub default: RuleCount,
    /// The classes, the default behind the others; none where it is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassStatus>,
}

/// Class, and which accesses it uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassStatus {
    /// Its name.
    pub name: String,
    /// Steering of what the device sends; absent of the default, which is steered as the status says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "super::openapi::class"))]
    pub up: Option<ClassSteering>,
    /// Steering of what the proxy sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "super::openapi::class"))]
    pub down: Option<ClassSteering>,
    /// Bytes that the device has sent of it on each access, with the headers of IP.
    pub sent_bytes: BTreeMap<String, u64>,
}

/// Rule, and what has met it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleStatus {
    /// Its name, or its place.
    pub title: String,
    /// The rule as configured.
    #[cfg_attr(test, schemars(schema_with = "super::openapi::rule"))]
    pub rule: Rule,
    /// Count of what has met it.
    pub count: RuleCount,
    /// Accesses by which flows leave that it sends directly: of IPv4, and of IPv6. None while no
    /// access works that it names, and for other rules.
    pub by: [Option<String>; 2],
    /// Why flows that meet it do not leave, in a sentence; absent where they do, or are to be
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Count of what has met a rule since it is in force. Bytes are those of packets with the headers of
/// IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RuleCount {
    /// Flows that have begun; of those that are refused, attempts.
    pub flows: u64,
    /// Packets from hosts.
    pub up_packets: u64,
    /// Bytes from hosts.
    pub up_bytes: u64,
    /// Packets to hosts.
    pub down_packets: u64,
    /// Bytes to hosts.
    pub down_bytes: u64,
}
