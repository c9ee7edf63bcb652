//! Accesses, in the sense of 3GPP ATSSS (TS 23.501 5.32): the radio or wired
//! networks that a device can use at the same time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The technology of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// 5G New Radio.
    #[serde(rename = "5g")]
    Nr,
    /// LTE.
    Lte,
    /// Wi-Fi (IEEE 802.11).
    Wifi,
    /// LiFi (IEEE 802.11bb and its forerunners).
    Lifi,
    /// Wired Ethernet.
    Ethernet,
    /// Satellite (3GPP non-terrestrial networks and others).
    Satellite,
    /// Digital subscriber line.
    Dsl,
    /// Anything else.
    Other,
}

impl AccessKind {
    /// Every kind, as written in a scenario.
    pub const NAMES: [&'static str; 8] = [
        "5g",
        "lte",
        "wifi",
        "lifi",
        "ethernet",
        "satellite",
        "dsl",
        "other",
    ];
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nr => "5g",
            Self::Lte => "lte",
            Self::Wifi => "wifi",
            Self::Lifi => "lifi",
            Self::Ethernet => "ethernet",
            Self::Satellite => "satellite",
            Self::Dsl => "dsl",
            Self::Other => "other",
        })
    }
}

impl FromStr for AccessKind {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        Ok(match s {
            "5g" => Self::Nr,
            "lte" => Self::Lte,
            "wifi" => Self::Wifi,
            "lifi" => Self::Lifi,
            "ethernet" => Self::Ethernet,
            "satellite" => Self::Satellite,
            "dsl" => Self::Dsl,
            "other" => Self::Other,
            _ => {
                return Err(format!(
                    "unknown kind \"{s}\": expected one of {}",
                    Self::NAMES.join(", ")
                ));
            }
        })
    }
}

/// Whether an access is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessState {
    /// Used: something has come back on it.
    #[default]
    Active,
    /// Used, though nothing has come back on it yet.
    Init,
    /// Used when no other access is active.
    Backup,
    /// No interface, or it is down or without a carrier.
    Down,
    /// Nothing comes back on it, though its interface is up.
    Silent,
    /// Something on the path removes MPTCP's options: for plain TCP only.
    Stripped,
    /// Left out by a rule of the configuration or by a request, or because the kernel refused
    /// what it needs.
    Ignored,
    /// Its interface is up and has no address that may be used.
    NoAddress,
}

impl AccessState {
    /// Every state, in the order of the type.
    pub const ALL: [Self; 8] = [
        Self::Active,
        Self::Init,
        Self::Backup,
        Self::Down,
        Self::Silent,
        Self::Stripped,
        Self::Ignored,
        Self::NoAddress,
    ];

    /// Whether traffic goes over it, or would at once.
    pub const fn is_used(self) -> bool {
        matches!(self, Self::Active | Self::Init | Self::Backup)
    }

    /// The word that the API uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Init => "init",
            Self::Backup => "backup",
            Self::Down => "down",
            Self::Silent => "silent",
            Self::Stripped => "stripped",
            Self::Ignored => "ignored",
            Self::NoAddress => "no-address",
        }
    }
}

impl fmt::Display for AccessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_written_as_it_is_read() {
        for name in AccessKind::NAMES {
            let kind: AccessKind = name.parse().unwrap();
            assert_eq!(kind.to_string(), name);
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
        }
        for name in ["satellite", "dsl"] {
            assert!(name.parse::<AccessKind>().is_ok(), "{name}");
        }
        assert!(
            "6g".parse::<AccessKind>()
                .unwrap_err()
                .contains("satellite, dsl")
        );
    }
}
