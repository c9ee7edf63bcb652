//! Facts about a flow that rules ask for.

use std::net::IpAddr;

use super::values::{Dscp, Mac};

/// Protocol numbers (IANA) of those that have ports, as far as rules know them.
const WITH_PORTS: [u8; 2] = [6, 17];

/// Flow of packets, as a rule sees it. A fact that is absent is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Address of the host behind the device.
    pub client: Option<IpAddr>,
    /// Address of its interface.
    pub mac: Option<Mac>,
    /// Destination.
    pub to: IpAddr,
    /// Protocol above IP, by its number (IANA).
    pub protocol: Option<u8>,
    /// Port of the destination.
    pub port: Option<u16>,
    /// Differentiated services code point (RFC 2474).
    pub dscp: Option<Dscp>,
}

impl Flow {
    /// Describes a flow of which the destination alone is known.
    pub fn to(to: IpAddr) -> Self {
        Self {
            client: None,
            mac: None,
            to,
            protocol: None,
            port: None,
            dscp: None,
        }
    }

    /// Whether its packets have ports; `None` where the protocol is not known.
    pub(super) fn has_ports(&self) -> Option<bool> {
        self.protocol.map(|p| WITH_PORTS.contains(&p))
    }
}
