//! Parameters beside the rules: addresses and proxies of the steering functionalities (3GPP TS 24.193
//! 6.1.4), and where measurements are sent to (6.1.5).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::reader::{DecodeError, Reader, wrong};
use super::{EncodeError, length8};

/// Addresses of one host: of IPv4, of IPv6, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Address of IPv4.
    V4(Ipv4Addr),
    /// Address of IPv6.
    V6(Ipv6Addr),
    /// Address of each.
    Both(Ipv4Addr, Ipv6Addr),
}

impl Addresses {
    fn decode(from: &mut Reader<'_>, what: &str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let kind = from.u8(what)?;
        let v4 = |from: &mut Reader<'_>| from.array::<4>(what).map(Ipv4Addr::from);
        let v6 = |from: &mut Reader<'_>| from.array::<16>(what).map(Ipv6Addr::from);
        match kind {
            1 => v4(from).map(Self::V4),
            2 => v6(from).map(Self::V6),
            3 => Ok(Self::Both(v4(from)?, v6(from)?)),
            _ => Err(wrong(
                at,
                format!("{kind}: an address is of type 1 (IPv4), 2 (IPv6) or 3 (both)"),
            )),
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::V4(v4) => {
                out.push(1);
                out.extend(v4.octets());
            }
            Self::V6(v6) => {
                out.push(2);
                out.extend(v6.octets());
            }
            Self::Both(v4, v6) => {
                out.push(3);
                out.extend(v4.octets());
                out.extend(v6.octets());
            }
        }
    }
}

/// MPTCP proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Addresses.
    pub addresses: Addresses,
    /// Port.
    pub port: u16,
    /// Type: 1 is a transport converter (RFC 8803).
    pub kind: u8,
}

/// Network steering functionalities information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkSteering {
    /// Addresses that the device uses over the 3GPP access alone.
    pub threegpp: Addresses,
    /// Addresses that it uses over the non-3GPP access alone.
    pub non_threegpp: Addresses,
    /// MPTCP proxies.
    pub proxies: Vec<Proxy>,
    /// Octets of a later release behind the proxies.
    pub later: Vec<u8>,
}

impl NetworkSteering {
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let own = "the device's addresses";
        let (threegpp, non_threegpp) =
            (Addresses::decode(from, own)?, Addresses::decode(from, own)?);
        let length = from.u8("the length of the proxies")?;
        let mut part = from.part(length.into(), "the proxies")?;
        let mut proxies = Vec::new();
        while !part.is_empty() {
            proxies.push(Proxy {
                addresses: Addresses::decode(&mut part, "a proxy's address")?,
                port: part.u16("a proxy's port")?,
                kind: part.u8("a proxy's type")?,
            });
        }
        Ok(Self {
            threegpp,
            non_threegpp,
            proxies,
            later: from.rest().to_vec(),
        })
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut proxies = Vec::new();
        for proxy in &self.proxies {
            proxy.addresses.encode(&mut proxies);
            proxies.extend(proxy.port.to_be_bytes());
            proxies.push(proxy.kind);
        }
        let mut out = Vec::new();
        self.threegpp.encode(&mut out);
        self.non_threegpp.encode(&mut out);
        out.push(length8("the proxies", proxies.len())?);
        out.extend(proxies);
        out.extend(&self.later);
        Ok(out)
    }
}

/// Measurement assistance information: where the performance measurement function of the network is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// Information of a session of IP.
    Ip {
        /// Addresses of the function.
        addresses: Addresses,
        /// Port for the 3GPP access.
        threegpp_port: u16,
        /// Port for the non-3GPP access.
        non_threegpp_port: u16,
        /// Whether the device has to report the availability of accesses (AARI).
        reports: bool,
        /// Octets of a later release behind it.
        later: Vec<u8>,
    },
    /// Information of a session of Ethernet.
    Ethernet {
        /// MAC address for the 3GPP access.
        threegpp: [u8; 6],
        /// MAC address for the non-3GPP access.
        non_threegpp: [u8; 6],
        /// Whether the device has to report the availability of accesses (AARI).
        reports: bool,
    },
}

/// Octets of the information of a session of Ethernet. Nothing in it tells the kind of session; one of
/// IP has 10, 22 or 26 octets in Release 16.
const ETHERNET: usize = 13;

impl Measurement {
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if from.len() == ETHERNET {
            return Ok(Self::Ethernet {
                threegpp: from.array("a MAC address")?,
                non_threegpp: from.array("a MAC address")?,
                reports: from.u8("the report indicator")? & 1 == 1,
            });
        }
        Ok(Self::Ip {
            addresses: Addresses::decode(from, "the address for measurements")?,
            threegpp_port: from.u16("the port for the 3GPP access")?,
            non_threegpp_port: from.u16("the port for the non-3GPP access")?,
            reports: from.u8("the report indicator")? & 1 == 1,
            later: from.rest().to_vec(),
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Ip {
                addresses,
                threegpp_port,
                non_threegpp_port,
                reports,
                later,
            } => {
                addresses.encode(&mut out);
                out.extend(threegpp_port.to_be_bytes());
                out.extend(non_threegpp_port.to_be_bytes());
                out.push((*reports).into());
                out.extend(later);
            }
            Self::Ethernet {
                threegpp,
                non_threegpp,
                reports,
            } => {
                out.extend(threegpp);
                out.extend(non_threegpp);
                out.push((*reports).into());
            }
        }
        out
    }
}
