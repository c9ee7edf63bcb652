//! `allow` of `[mpquic]`: destinations that the proxy connects to for devices.

use ipnet::IpNet;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::parse_network;

/// Word for the Internet.
const INTERNET: &str = "internet";

/// Destinations, written as a list: addresses, prefixes and the word `internet`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Whatever is reachable globally (RFC 6890): no private, local or reserved address, and none of
    /// the proxy's own.
    pub internet: bool,
    /// Addresses of these networks.
    pub networks: Vec<IpNet>,
}

impl Allow {
    /// Whether it allows nothing.
    pub fn is_empty(&self) -> bool {
        !self.internet && self.networks.is_empty()
    }
}

impl Serialize for Allow {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let internet = self.internet.then(|| INTERNET.to_owned());
        let networks = self.networks.iter().map(ToString::to_string);
        s.collect_seq(internet.into_iter().chain(networks))
    }
}

impl<'de> Deserialize<'de> for Allow {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut allow = Self::default();
        for word in Vec::<String>::deserialize(d)? {
            if word == INTERNET {
                allow.internet = true;
                continue;
            }
            let network = parse_network(&word);
            let network = network
                .map_err(|e| D::Error::custom(format!("{e}, nor is it the word \"{INTERNET}\"")))?;
            allow.networks.push(network);
        }
        Ok(allow)
    }
}
