//! Facts about a flow that rules ask for.

use std::net::IpAddr;

use super::values::{Dscp, Mac};

/// Protocol numbers (IANA) of those that have ports, as far as rules know them.
const WITH_PORTS: [u8; 2] = [6, 17];

/// Origin of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Program of the device itself.
    Device,
    /// Host behind the device.
    Host,
}

/// Flow of packets, as a rule sees it. A fact that is absent is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Address of the host behind the device.
    pub client: Option<IpAddr>,
    /// Address of its interface.
    pub mac: Option<Mac>,
    /// Number of the user of the device whose program sends (uid).
    pub user: Option<u32>,
    /// Name of that user.
    pub user_name: Option<String>,
    /// Path of the control group of the unit whose program sends, or its name.
    pub unit: Option<String>,
    /// Destination.
    pub to: IpAddr,
    /// Name by which the destination was found.
    pub domain: Option<String>,
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
            user: None,
            user_name: None,
            unit: None,
            to,
            domain: None,
            protocol: None,
            port: None,
            dscp: None,
        }
    }

    /// Returns where it comes from; `None` where that is not known.
    pub(super) fn origin(&self) -> Option<Origin> {
        if self.user.is_some() || self.user_name.is_some() || self.unit.is_some() {
            return Some(Origin::Device);
        }
        let is_host = self.client.is_some() || self.mac.is_some();
        is_host.then_some(Origin::Host)
    }

    /// Whether its packets have ports; `None` where the protocol is not known.
    pub(super) fn has_ports(&self) -> Option<bool> {
        self.protocol.map(|p| WITH_PORTS.contains(&p))
    }
}
