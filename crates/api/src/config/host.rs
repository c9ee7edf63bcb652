//! The proxy: an address, or a name that the device resolves.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Length of a name (RFC 1035 2.3.4), without the final dot.
const NAME_MAX: usize = 253;
/// Length of one of its labels.
const LABEL_MAX: usize = 63;

/// A host, as a configuration writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Its address.
    Address(IpAddr),
    /// Its name in the DNS, or in `/etc/hosts`.
    Name(String),
}

impl Host {
    /// Returns its address where that is what was written.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(a) => Some(*a),
            Self::Name(_) => None,
        }
    }
}

impl From<IpAddr> for Host {
    fn from(a: IpAddr) -> Self {
        Self::Address(a)
    }
}

/// Whether a host could be called so (RFC 1123 2.1). A last label of digits alone is that of an
/// address which is not whole.
fn is_name(s: &str) -> bool {
    let name = s.strip_suffix('.').unwrap_or(s);
    let label = |l: &str| {
        let fits = (1..=LABEL_MAX).contains(&l.len());
        let letters = l
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        fits && letters && !l.starts_with('-') && !l.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let number = last.bytes().all(|b| b.is_ascii_digit());
    name.len() <= NAME_MAX && !number && name.split('.').all(label)
}

impl FromStr for Host {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) if is_name(s) => Ok(Self::Name(s.to_owned())),
            Err(_) => Err(format!("\"{s}\" is no address and no name of a host")),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(a) => a.fmt(f),
            Self::Name(n) => n.fmt(f),
        }
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Reads one host, or a list of them.
pub(super) fn one_or_more<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Host>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "an address or the name of a host, or a list of them"
    )]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    let all = match OneOrMore::deserialize(d)? {
        OneOrMore::One(host) => vec![host],
        OneOrMore::More(all) => all,
    };
    let hosts = all.iter().map(|s| s.parse());
    hosts
        .collect::<Result<_, String>>()
        .map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        let of = |s: &str| s.parse::<Host>();
        assert_eq!(
            of("10.0.0.1"),
            Ok(Host::Address("10.0.0.1".parse().unwrap()))
        );
        assert_eq!(of("fd77::1"), Ok(Host::Address("fd77::1".parse().unwrap())));
        for name in [
            "proxy.example.org",
            "proxy",
            "a-1.example.",
            "xn--bcher-kva.example",
        ] {
            assert_eq!(of(name), Ok(Host::Name(name.into())));
        }
        for bad in [
            "",
            ".",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.1/24",
            "a..b",
            "-a.b",
            "a-.b",
            "a b",
            "fd77:",
            "https://proxy.example.org",
            &"a.".repeat(128),
            &"a".repeat(64),
        ] {
            assert!(
                of(bad).unwrap_err().contains("no address and no name"),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(s in "[a-z0-9.:-]{1,20}") {
            if let Ok(host) = s.parse::<Host>() {
                prop_assert_eq!(host.to_string().parse::<Host>(), Ok(host));
            }
        }
    }
}
