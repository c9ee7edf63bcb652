//! `[access.NAME]`: what each end is told about an access.

use std::net::IpAddr;

use braid_core::{AccessKind, Pattern, weight};
use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cap::{AtCap, Cap};
use super::control::Estimator;
use super::manager::ADDRESSES;
use super::text;
use crate::diagnostic::Problem;
use crate::{Expected, Lane, Limit, Role, power_set};

/// Reason why Multipath TCP without a policy makes no use of what is expected.
pub const KERNEL_WINDOWS: &str = "the kernel's windows begin as the kernel has it: what is \
                                  expected is of use to engine = \"mpquic\" alone, and to policy \
                                  = \"capacity\" in [control]";

/// Reason why the stream lane makes no use of what is expected of downlinks.
pub const NO_LANE: &str =
    "only on the datagram lane the proxy is told what a downlink is expected to carry";

/// Reason why Multipath TCP limits no rate.
pub const NO_LIMIT: &str = "the kernel's Multipath TCP has no limit of the rate for an access: expected \
                            \"mpquic\" among `engines`, or tc qdisc at the interface";

/// Access in the configuration of one role.
pub trait Access: Serialize + DeserializeOwned {
    /// Role of the end that is told of accesses so.
    const ROLE: Role;
    /// Messages about wrong keys that say more than the parser's: how the parser's begins, and
    /// what to say instead.
    const WORDS: &[(&str, &str)];

    /// Returns the addresses that are known of it, if any are.
    fn network(&self) -> Option<IpNet>;

    /// Returns the interfaces that may serve it, where this end tells accesses by interface.
    fn interface(&self) -> Option<&Pattern>;

    /// Returns the power model of its radio, where this end knows of one.
    fn power(&self) -> Option<&str>;

    /// Checks the values of an access called `name`.
    ///
    /// # Errors
    /// The key, what is wrong with its value, and what was expected.
    fn check(&self, name: &str, setting: Setting) -> Result<(), Problem>;
}

/// Setting outside of an access that its values have to go with.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Whether Multipath QUIC serves.
    pub(super) quic: bool,
    /// Lane of Multipath QUIC.
    pub(super) lane: Lane,
    /// Whether a policy goes by what accesses carry.
    pub(super) estimates: bool,
    /// Reason why no access can be probed by transfers.
    pub(super) no_probes: Option<&'static str>,
}

impl Setting {
    /// Checks that an access can be probed where its estimator asks for it.
    fn check_estimator(&self, name: &str, estimator: Estimator) -> Result<(), Problem> {
        match self.no_probes.filter(|_| estimator == Estimator::Probe) {
            Some(why) => {
                let what = format!("access \"{name}\": estimator \"probe\": {why}");
                Err(Problem::at_key(&["access", name, "estimator"], what))
            }
            None => Ok(()),
        }
    }
}

/// `[access.NAME]` at the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceAccess {
    /// Interfaces that serve it: a name, or a pattern of names.
    pub interface: Pattern,
    /// Technology.
    #[serde(default = "other")]
    pub kind: AccessKind,
    /// The only address to use; absent: any of the interface.
    #[serde(default, with = "text::host", skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Addresses of one of its interfaces in use at most, 1 to 8; absent: as `[manager]` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_addresses: Option<usize>,
    /// Use it only when no other access is active.
    #[serde(default)]
    pub backup: bool,
    /// Place in the order of the accesses: those of the least number carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// Share of the traffic, above 0, where the scheduler knows weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Rates that it is expected to carry, as text with a unit; with Multipath QUIC or a policy.
    #[serde(
        default,
        with = "text::rates",
        skip_serializing_if = "Expected::is_unknown"
    )]
    pub expected: Expected,
    /// Greatest rates that are sent on it, as text with a unit; with Multipath QUIC.
    #[serde(default, with = "text::rates", skip_serializing_if = "Limit::is_none")]
    pub limit: Limit,
    /// Estimator of what it carries, for policies.
    #[serde(default)]
    pub estimator: Estimator,
    /// Bytes that it may carry in a month; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Cap>,
    /// Power model of its radio: a shipped set, or a file beside the configuration; absent: its
    /// energy is not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<String>,
}

/// `[access.NAME]` at the proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyAccess {
    /// Addresses of the peers on this access: one, or a prefix.
    #[serde(with = "text::network")]
    pub address: IpNet,
    /// Technology.
    #[serde(default = "other")]
    pub kind: AccessKind,
    /// Share of the traffic, above 0, where the scheduler knows weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Estimator of what it carries to the device, for policies: `passive` or `probe`.
    #[serde(default)]
    pub estimator: Estimator,
}

fn other() -> AccessKind {
    AccessKind::Other
}

impl Access for DeviceAccess {
    const ROLE: Role = Role::Device;
    const WORDS: &[(&str, &str)] = &[(
        "missing field `interface`",
        "an access of a device needs an interface: interface = \"NAME\"",
    )];

    fn network(&self) -> Option<IpNet> {
        self.address.map(IpNet::from)
    }

    fn interface(&self) -> Option<&Pattern> {
        Some(&self.interface)
    }

    fn power(&self) -> Option<&str> {
        self.power.as_deref()
    }

    fn check(&self, name: &str, setting: Setting) -> Result<(), Problem> {
        let at = |key: &str, what: &str| Problem::at_key(&["access", name, key], what);
        let quic = setting.quic;
        if self.max_addresses.is_some_and(|n| !ADDRESSES.contains(&n)) {
            let what = format!("access \"{name}\": expected 1 to 8 addresses");
            return Err(at("max_addresses", &what));
        }
        check_weight(name, self.weight)?;
        self.cap.map_or(Ok(()), |cap| cap.check(name))?;
        // The daemon reads files, as it knows where this one is.
        if let Some(power) = self.power.as_ref().filter(|p| !power_set::is_file(p)) {
            power_set::shipped(power).map_err(|e| at("power", &e))?;
        }
        self.expected.check().map_err(|e| at("expected", &e))?;
        self.limit.check().map_err(|e| at("limit", &e))?;
        let slows = self.cap.is_some_and(|c| c.at == AtCap::Slow);
        if !quic && (slows || !self.limit.is_none()) {
            let key = if slows { "cap" } else { "limit" };
            return Err(at(key, NO_LIMIT));
        }
        if !self.expected.is_unknown() && !quic && !setting.estimates {
            return Err(at("expected", KERNEL_WINDOWS));
        }
        setting.check_estimator(name, self.estimator)?;
        if self.estimator == Estimator::Expected && self.expected.up.is_none() {
            let what = "a device decides how it sends: the estimator \"expected\" needs \
                        expected = { up = \"RATE\" }";
            return Err(at("estimator", what));
        }
        if quic && self.expected.down.is_some() && setting.lane == Lane::Stream {
            return Err(at("expected", NO_LANE));
        }
        Ok(())
    }
}

impl Access for ProxyAccess {
    const ROLE: Role = Role::Proxy;
    // The list of keys is that of this table alone: elsewhere the parser's words stay.
    const WORDS: &[(&str, &str)] = &[
        (
            "missing field `address`",
            "a proxy knows its peer's accesses by address: give one, or a prefix",
        ),
        (
            "unknown key `interface`, expected one of `address`, `kind`, `weight`, `estimator`",
            "a proxy knows its peer's accesses by address, without interface",
        ),
        (
            "unknown key `max_addresses`, expected one of `address`, `kind`, `weight`, `estimator`",
            "max_addresses is set at the device",
        ),
        (
            "unknown key `backup`, expected one of `address`, `kind`, `weight`, `estimator`",
            "backup is set at the device",
        ),
        (
            "unknown key `priority`, expected one of `address`, `kind`, `weight`, `estimator`",
            "priority is set at the device",
        ),
        (
            "unknown key `expected`, expected one of `address`, `kind`, `weight`, `estimator`",
            "what an access carries the device knows: set it there",
        ),
    ];

    fn network(&self) -> Option<IpNet> {
        Some(self.address)
    }

    fn interface(&self) -> Option<&Pattern> {
        None
    }

    fn power(&self) -> Option<&str> {
        None
    }

    fn check(&self, name: &str, setting: Setting) -> Result<(), Problem> {
        if self.estimator == Estimator::Expected {
            let what = "what an access is expected to carry is set at the device: expected \
                        \"passive\" or \"probe\"";
            return Err(Problem::at_key(&["access", name, "estimator"], what));
        }
        setting.check_estimator(name, self.estimator)?;
        check_weight(name, self.weight)
    }
}

/// Checks that requests can name an access so.
pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    if !name.is_empty() && !name.contains(['/', '?', '#', '%']) {
        return Ok(());
    }
    let what = format!("access name \"{name}\" is empty or has one of / ? # %");
    Err(Problem::at_key(&["access", name], what))
}

fn check_weight(name: &str, given: Option<f64>) -> Result<(), Problem> {
    let wrong = |w: f64| w == 0.0 || weight::check(name, w).is_err();
    if !given.is_some_and(wrong) {
        return Ok(());
    }
    let what = format!(
        "access \"{name}\": expected a weight above 0, at most {}",
        weight::MAX
    );
    Err(Problem::at_key(&["access", name, "weight"], what))
}
