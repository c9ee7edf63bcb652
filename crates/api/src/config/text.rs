//! Values that a configuration writes as text.

use std::net::IpAddr;

use ipnet::IpNet;

/// Reads an address, or a prefix.
pub(super) fn parse_network(s: &str) -> Result<IpNet, String> {
    let address = || s.parse::<IpAddr>().ok().map(IpNet::from);
    let network = s.parse().ok().or_else(address);
    network.ok_or_else(|| format!("\"{s}\" is no address and no prefix"))
}

/// Addresses of peers: one, or a prefix.
pub(super) mod network {
    use ipnet::IpNet;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(network: &IpNet, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(network)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<IpNet, D::Error> {
        super::parse_network(&String::deserialize(d)?).map_err(D::Error::custom)
    }
}

/// Lists of addresses and prefixes.
pub(super) mod networks {
    use ipnet::IpNet;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(all: &[IpNet], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(all.iter().map(ToString::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<IpNet>, D::Error> {
        let all = Vec::<String>::deserialize(d)?;
        let networks = all.iter().map(|s| super::parse_network(s));
        networks.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// Sizes in bytes, with their unit.
pub(super) mod bytes {
    use braid_core::units::parse_bytes;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &u64, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{bytes} B"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
        parse_bytes(&String::deserialize(d)?).map_err(D::Error::custom)
    }
}

/// One address, or none.
pub(super) mod host {
    use std::net::IpAddr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(a: &Option<IpAddr>, s: S) -> Result<S::Ok, S::Error> {
        a.serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<IpAddr>, D::Error> {
        let Some(text) = Option::<String>::deserialize(d)? else {
            return Ok(None);
        };
        let network = super::parse_network(&text).map_err(D::Error::custom)?;
        if network.prefix_len() != network.max_prefix_len() {
            let what = "a device has an address here, not a prefix";
            return Err(D::Error::custom(format!("\"{text}\": {what}")));
        }
        Ok(Some(network.addr()))
    }
}

/// One rate with its unit, or none.
pub(super) mod optional_rate {
    use braid_core::Rate;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(rate: &Option<Rate>, s: S) -> Result<S::Ok, S::Error> {
        rate.map(|r| r.to_string()).serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Rate>, D::Error> {
        let text = Option::<String>::deserialize(d)?;
        let read = text.map(|t| t.parse()).transpose();
        read.map_err(D::Error::custom)
    }
}

/// One rate with its unit.
pub(super) mod rate {
    use braid_core::Rate;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(rate: &Rate, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(rate)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Rate, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

/// One duration with its unit.
pub(super) mod duration {
    use std::time::Duration;

    use braid_core::units;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&units::format_duration(*d))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        units::parse_duration(&String::deserialize(d)?).map_err(D::Error::custom)
    }
}

/// Expected rates with their units.
pub(super) mod rates {
    use braid_core::Rate;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::{Expected, Limit};

    /// Rates of downlink and uplink.
    type Both = [Option<Rate>; 2];

    #[derive(Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Text {
        #[serde(skip_serializing_if = "Option::is_none")]
        down: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        up: Option<String>,
    }

    pub(crate) fn serialize<S: Serializer, R: Copy + Into<Both>>(
        rates: &R,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        let text = |r: Option<Rate>| r.map(|r| r.to_string());
        let [down, up] = (*rates).into();
        Text {
            down: text(down),
            up: text(up),
        }
        .serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, R: From<Both>>(
        d: D,
    ) -> Result<R, D::Error> {
        let text = Text::deserialize(d)?;
        let rate = |way: &str, text: Option<String>| {
            let read = text.map(|t| t.parse::<Rate>()).transpose();
            read.map_err(|e| D::Error::custom(format!("{way}: {e}")))
        };
        Ok(R::from([rate("down", text.down)?, rate("up", text.up)?]))
    }

    impl From<Both> for Expected {
        fn from([down, up]: Both) -> Self {
            Self { down, up }
        }
    }

    impl From<Expected> for Both {
        fn from(rates: Expected) -> Self {
            [rates.down, rates.up]
        }
    }

    impl From<Both> for Limit {
        fn from([down, up]: Both) -> Self {
            Self { down, up }
        }
    }

    impl From<Limit> for Both {
        fn from(rates: Limit) -> Self {
            [rates.down, rates.up]
        }
    }
}
