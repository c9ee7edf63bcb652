//! Accesses as an end tells them, and what may be changed about them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use braid_core::{AccessKind, AccessState, Rate};

use super::AccessEnergy;
use crate::config::CapLevel;

/// One access as an end sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccessStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Its technology.
    #[cfg_attr(test, schemars(schema_with = "super::openapi::access_kind"))]
    pub kind: AccessKind,
    /// This access's (first) address at the device; absent while it has none.
    pub address: Option<IpAddr>,
    /// The interface; absent at the proxy, which has none per access.
    pub interface: Option<String>,
    /// The interface's index now; absent while it does not exist.
    pub ifindex: Option<u32>,
    /// Administratively up and with a carrier; at the proxy always true.
    pub up: bool,
    /// Whether the interface has the address now; at the proxy always true.
    pub has_address: bool,
    /// Whether new subflows may use it (an endpoint is set).
    pub enabled: bool,
    /// Whether it is used only when no other access is.
    pub backup: bool,
    /// Its share of the traffic where the scheduler knows weights.
    pub weight: Option<f64>,
    /// Its place in the order of the accesses, where it has one: the least carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// Rates that it is expected to carry, where they were told.
    #[serde(default, skip_serializing_if = "Expected::is_unknown")]
    pub expected: Expected,
    /// Greatest rates that are sent on it, where it is limited.
    #[serde(default, skip_serializing_if = "Limit::is_none")]
    pub limit: Limit,
    /// The path manager's (first) endpoint for it, if one is set.
    pub endpoint_id: Option<u8>,
    /// Whether it is used, and if not, what keeps it from being used.
    #[serde(default)]
    #[cfg_attr(test, schemars(schema_with = "super::openapi::access_state"))]
    pub state: AccessState,
    /// Sentence that says whether it is used, and if not, what keeps it from being used.
    #[serde(default)]
    pub why: String,
    /// Drawback of the access while it is used, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Every address that serves it, in the order of preference.
    #[serde(default)]
    pub addresses: Vec<AccessAddress>,
    /// Least smoothed round-trip time of its subflows; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_ms: Option<f64>,
    /// Round-trip time of the last answered probe; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_rtt_ms: Option<f64>,
    /// Share of the bytes sent by this end that were sent again, 0 to 1, over
    /// the life of its subflows; absent before anything was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Payload rate of its subflows in both directions over the last second, what was sent
    /// again left out; absent at the first reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbps: Option<f64>,
    /// Payload bytes sent on it since the daemon began, retransmissions included. It only
    /// grows, whatever happens to subflows, so that each reader can derive rates.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Payload bytes sent again since the daemon began.
    #[serde(default)]
    pub retransmitted_bytes: u64,
    /// Payload bytes received on it since the daemon began.
    #[serde(default)]
    pub received_bytes: u64,
    /// Established subflows and plain TCP connections on it now.
    #[serde(default)]
    pub subflows: u32,
    /// Part of its cap that it has used; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<CapStatus>,
    /// Energy of its radio; absent where it has no power model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<AccessEnergy>,
}

/// Part of its cap that an access has used ([`crate::config::Cap`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CapStatus {
    /// Bytes that it may carry in a month.
    pub monthly_bytes: u64,
    /// Bytes that it has carried in this one, both directions together.
    pub used_bytes: u64,
    /// Day on which this month began, such as 2026-11-15.
    pub since: String,
    /// Day on which the next one begins.
    pub until: String,
    /// Level.
    pub level: CapLevel,
}

/// An address of an access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccessAddress {
    /// The address.
    pub address: IpAddr,
    /// The interface that has it; absent at the proxy.
    pub interface: Option<String>,
    /// The path manager's endpoint for it, if one is set.
    pub endpoint_id: Option<u8>,
}

/// An interface that serves as no access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ignored {
    /// The interface.
    pub interface: String,
    /// Why, in a sentence.
    pub why: String,
}

/// `PUT /v1/accesses/{name}`: what to change; what is absent stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AccessChange {
    /// Use it only when no other access is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Add (true) or delete (false) its endpoint; deleting ends its subflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Rates that it is expected to carry, both directions anew; Multipath QUIC only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Greatest rates that are sent on it, both directions anew; Multipath QUIC only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// Greatest rates that are sent on an access, whatever it could carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// From the proxy to the device, bits per second of the IP layer; absent: any.
    #[serde(default, rename = "down_bps", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub down: Option<Rate>,
    /// From the device to the proxy, bits per second of the IP layer.
    #[serde(default, rename = "up_bps", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub up: Option<Rate>,
}

impl Limit {
    /// Whether it limits neither direction.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the lesser of both in each direction.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let less = |a: Option<Rate>, b: Option<Rate>| a.into_iter().chain(b).min();
        Self {
            down: less(self.down, other.down),
            up: less(self.up, other.up),
        }
    }

    /// # Errors
    /// A rate that no access has: below 1 kbit/s or above 1000 Gbit/s.
    pub fn check(&self) -> Result<(), String> {
        check(self.down, self.up, "any rate")
    }
}

/// Checks that rates are those of accesses; `absent`: the meaning of one that is left out.
fn check(down: Option<Rate>, up: Option<Rate>, absent: &str) -> Result<(), String> {
    for (way, rate) in [("down", down), ("up", up)] {
        if let Some(rate) = rate
            && !(1_000..=1_000_000_000_000).contains(&rate.as_bps())
        {
            return Err(format!(
                "{way}: {rate} is not from 1 kbit/s to 1000 Gbit/s; leave it out for {absent}"
            ));
        }
    }
    Ok(())
}

/// Rates that an access is expected to carry, by what is known before anything was sent on
/// it: received power (paper 003, section 3.1), a contract. New paths begin with that in
/// view, not with ten packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// From the proxy to the device, bits per second of the IP layer; absent if unknown.
    #[serde(default, rename = "down_bps", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub down: Option<Rate>,
    /// From the device to the proxy, bits per second of the IP layer.
    #[serde(default, rename = "up_bps", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub up: Option<Rate>,
}

impl Expected {
    /// Nothing is.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// # Errors
    /// A rate that no access has: below 1 kbit/s or above 1000 Gbit/s.
    pub fn check(&self) -> Result<(), String> {
        check(self.down, self.up, "one that is unknown")
    }
}
