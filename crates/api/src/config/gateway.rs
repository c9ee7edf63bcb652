//! `[gateway]`: packets of devices that leave at the proxy.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::text;
use crate::diagnostic::Problem;
use crate::{Engine, Role};

/// `[gateway]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gateway {
    /// Networks of the addresses that devices get in the tunnel: one of IPv4, and one of IPv6 or
    /// none.
    #[serde(with = "text::networks")]
    pub pool: Vec<IpNet>,
}

impl Default for Gateway {
    fn default() -> Self {
        let v4 = Ipv4Net::new_assert([10, 137, 0, 0].into(), 16);
        // The letters "braid" after fd.
        let v6 = Ipv6Net::new_assert([0xfd62, 0x7261, 0x6964, 0, 0, 0, 0, 0].into(), 64);
        Self {
            pool: vec![v4.into(), v6.into()],
        }
    }
}

/// Lengths of the prefixes: room for devices beside the proxy itself.
const V4: std::ops::RangeInclusive<u8> = 8..=29;
const V6: std::ops::RangeInclusive<u8> = 8..=64;

impl Gateway {
    /// Returns the network of IPv4 and that of IPv6, which a checked one has.
    pub fn pools(&self) -> Option<(Ipv4Net, Option<Ipv6Net>)> {
        let v4 = self.pool.iter().find_map(|net| match net {
            IpNet::V4(net) => Some(net.trunc()),
            IpNet::V6(_) => None,
        });
        let v6 = self.pool.iter().find_map(|net| match net {
            IpNet::V6(net) => Some(net.trunc()),
            IpNet::V4(_) => None,
        });
        Some((v4?, v6))
    }

    pub(super) fn check(&self, role: Role, engines: &[Engine]) -> Result<(), Problem> {
        let at = |what: &str| Err(Problem::at_key(&["gateway", "pool"], what));
        if role == Role::Device {
            let what = "packets leave at the proxy: set it there";
            return Err(Problem::at_key(&["gateway"], what));
        }
        if !engines.contains(&Engine::Mpquic) {
            let what = "packets come over sessions of Multipath QUIC: expected \"mpquic\" among \
                        `engines`";
            return Err(Problem::at_key(&["gateway"], what));
        }
        let of = |v4: bool| {
            self.pool
                .iter()
                .filter(|n| n.addr().is_ipv4() == v4)
                .count()
        };
        if of(true) != 1 || of(false) > 1 {
            return at("expected one network of IPv4, and one of IPv6 or none");
        }
        for net in &self.pool {
            let (lengths, family) = match net {
                IpNet::V4(_) => (V4, "IPv4"),
                IpNet::V6(_) => (V6, "IPv6"),
            };
            if !lengths.contains(&net.prefix_len()) {
                return at(&format!(
                    "{net}: expected a prefix of {} to {} bits of {family}",
                    lengths.start(),
                    lengths.end()
                ));
            }
        }
        Ok(())
    }
}
