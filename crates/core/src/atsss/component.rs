//! Components of traffic descriptors (3GPP TS 24.526 5.2, table 5.2.1).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::reader::{DecodeError, Reader, wrong};
use super::{EncodeError, length8};

/// Component of a traffic descriptor: a criterion with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Component {
    /// Any traffic.
    MatchAll,
    /// Application, by the operating system's UUID (RFC 9562) and the identity that it has there.
    OsIdApp {
        /// UUID of the operating system.
        os: [u8; 16],
        /// Identity of the application, up to 255 octets.
        app: Vec<u8>,
    },
    /// IPv4 address of the peer, and the bits of it that count.
    RemoteV4(Ipv4Addr, Ipv4Addr),
    /// IPv4 address of the sender, and the bits of it that count.
    LocalV4(Ipv4Addr, Ipv4Addr),
    /// IPv6 address of the peer, and the length of its prefix, 0 to 128.
    RemoteV6(Ipv6Addr, u8),
    /// IPv6 address of the sender, and the length of its prefix, 0 to 128.
    LocalV6(Ipv6Addr, u8),
    /// Protocol above IPv4, or next header of IPv6.
    Protocol(u8),
    /// Port of the sender.
    LocalPort(u16),
    /// Ports of the sender, both included.
    LocalPorts(u16, u16),
    /// Port of the peer.
    RemotePort(u16),
    /// Ports of the peer, both included.
    RemotePorts(u16, u16),
    /// Security parameter index of IPsec (RFC 4301).
    SecurityParameterIndex(u32),
    /// Type of service of IPv4 or traffic class of IPv6, and the bits of it that count.
    TrafficClass(u8, u8),
    /// Flow label of IPv6, 20 bits.
    FlowLabel(u32),
    /// MAC address of the destination.
    DestinationMac([u8; 6]),
    /// MAC address of the source.
    SourceMac([u8; 6]),
    /// VLAN identifier of the customer's tag (IEEE 802.1Q), 12 bits.
    CTagVid(u16),
    /// VLAN identifier of the service's tag, 12 bits.
    STagVid(u16),
    /// Priority and drop eligibility of the customer's tag, 4 bits.
    CTagPcpDei(u8),
    /// Priority and drop eligibility of the service's tag, 4 bits.
    STagPcpDei(u8),
    /// Type of an Ethernet frame.
    Ethertype(u16),
    /// Data network name (TS 23.003 9A), up to 255 octets.
    Dnn(Vec<u8>),
    /// Connection capabilities that an application asked for, such as 1 for IMS.
    ConnectionCapabilities(Vec<u8>),
    /// Domain name of the destination, up to 255 octets.
    Fqdn(Vec<u8>),
    /// Identity that an application has with the operating system, up to 255 octets.
    OsApp(Vec<u8>),
    /// Component of a type that this codec does not know, and all that follows in the descriptor: how
    /// long it is nobody can tell.
    Other {
        /// Identifier of its type.
        identifier: u8,
        /// Rest of the descriptor.
        contents: Vec<u8>,
    },
}

impl Component {
    /// Returns the identifier of its type.
    pub fn identifier(&self) -> u8 {
        match self {
            Self::MatchAll => 1,
            Self::OsIdApp { .. } => 8,
            Self::RemoteV4(..) => 16,
            Self::LocalV4(..) => 17,
            Self::RemoteV6(..) => 33,
            Self::LocalV6(..) => 35,
            Self::Protocol(_) => 48,
            Self::LocalPort(_) => 64,
            Self::LocalPorts(..) => 65,
            Self::RemotePort(_) => 80,
            Self::RemotePorts(..) => 81,
            Self::SecurityParameterIndex(_) => 96,
            Self::TrafficClass(..) => 112,
            Self::FlowLabel(_) => 128,
            Self::DestinationMac(_) => 129,
            Self::SourceMac(_) => 130,
            Self::CTagVid(_) => 131,
            Self::STagVid(_) => 132,
            Self::CTagPcpDei(_) => 133,
            Self::STagPcpDei(_) => 134,
            Self::Ethertype(_) => 135,
            Self::Dnn(_) => 136,
            Self::ConnectionCapabilities(_) => 144,
            Self::Fqdn(_) => 145,
            Self::OsApp(_) => 160,
            Self::Other { identifier, .. } => *identifier,
        }
    }

    /// Returns the name that TS 24.526 has for its type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MatchAll => "match-all",
            Self::OsIdApp { .. } => "OS Id + OS App Id",
            Self::RemoteV4(..) => "IPv4 remote address",
            Self::LocalV4(..) => "IPv4 local address",
            Self::RemoteV6(..) => "IPv6 remote address/prefix length",
            Self::LocalV6(..) => "IPv6 local address/prefix length",
            Self::Protocol(_) => "protocol identifier/next header",
            Self::LocalPort(_) => "single local port",
            Self::LocalPorts(..) => "local port range",
            Self::RemotePort(_) => "single remote port",
            Self::RemotePorts(..) => "remote port range",
            Self::SecurityParameterIndex(_) => "security parameter index",
            Self::TrafficClass(..) => "type of service/traffic class",
            Self::FlowLabel(_) => "flow label",
            Self::DestinationMac(_) => "destination MAC address",
            Self::SourceMac(_) => "source MAC address",
            Self::CTagVid(_) => "802.1Q C-TAG VID",
            Self::STagVid(_) => "802.1Q S-TAG VID",
            Self::CTagPcpDei(_) => "802.1Q C-TAG PCP/DEI",
            Self::STagPcpDei(_) => "802.1Q S-TAG PCP/DEI",
            Self::Ethertype(_) => "ethertype",
            Self::Dnn(_) => "DNN",
            Self::ConnectionCapabilities(_) => "connection capabilities",
            Self::Fqdn(_) => "destination FQDN",
            Self::OsApp(_) => "OS App Id",
            Self::Other { .. } => "component of an unknown type",
        }
    }

    /// Reads the component that is next.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let identifier = from.u8("a component's type")?;
        let ports = |from: &mut Reader<'_>| {
            let at = from.offset();
            let (first, last) = (from.u16("a range of ports")?, from.u16("a range of ports")?);
            match first <= last {
                true => Ok((first, last)),
                false => Err(wrong(at, format!("no range of ports: {first} to {last}"))),
            }
        };
        let v4 = |from: &mut Reader<'_>| -> Result<(Ipv4Addr, Ipv4Addr), DecodeError> {
            let address = from.array::<4>("an IPv4 address")?;
            Ok((
                address.into(),
                from.array::<4>("an IPv4 address mask")?.into(),
            ))
        };
        let v6 = |from: &mut Reader<'_>| -> Result<(Ipv6Addr, u8), DecodeError> {
            let address = from.array::<16>("an IPv6 address")?.into();
            let at = from.offset();
            match from.u8("the length of an IPv6 prefix")? {
                length @ 0..=128 => Ok((address, length)),
                length => Err(wrong(
                    at,
                    format!("{length}: a prefix has 0 to 128 bits of IPv6"),
                )),
            }
        };
        Ok(match identifier {
            1 => Self::MatchAll,
            8 => Self::OsIdApp {
                os: from.array("an OS Id")?,
                app: from.counted("an OS App Id")?,
            },
            16 => v4(from).map(|(address, mask)| Self::RemoteV4(address, mask))?,
            17 => v4(from).map(|(address, mask)| Self::LocalV4(address, mask))?,
            33 => v6(from).map(|(address, length)| Self::RemoteV6(address, length))?,
            35 => v6(from).map(|(address, length)| Self::LocalV6(address, length))?,
            48 => Self::Protocol(from.u8("a protocol")?),
            64 => Self::LocalPort(from.u16("a port")?),
            65 => ports(from).map(|(first, last)| Self::LocalPorts(first, last))?,
            80 => Self::RemotePort(from.u16("a port")?),
            81 => ports(from).map(|(first, last)| Self::RemotePorts(first, last))?,
            96 => {
                let index = from.array("a security parameter index")?;
                Self::SecurityParameterIndex(u32::from_be_bytes(index))
            }
            112 => Self::TrafficClass(
                from.u8("a traffic class")?,
                from.u8("a traffic class mask")?,
            ),
            128 => {
                let [a, b, c] = from.array("a flow label")?;
                Self::FlowLabel(u32::from_be_bytes([0, a & 0xf, b, c]))
            }
            129 => Self::DestinationMac(from.array("a MAC address")?),
            130 => Self::SourceMac(from.array("a MAC address")?),
            131 => Self::CTagVid(from.u16("a VLAN identifier")? & 0xfff),
            132 => Self::STagVid(from.u16("a VLAN identifier")? & 0xfff),
            133 => Self::CTagPcpDei(from.u8("a priority")? & 0xf),
            134 => Self::STagPcpDei(from.u8("a priority")? & 0xf),
            135 => Self::Ethertype(from.u16("an ethertype")?),
            136 => Self::Dnn(from.counted("a DNN")?),
            144 => Self::ConnectionCapabilities(from.counted("connection capabilities")?),
            145 => Self::Fqdn(from.counted("a destination FQDN")?),
            160 => Self::OsApp(from.counted("an OS App Id")?),
            _ => Self::Other {
                identifier,
                contents: from.rest().to_vec(),
            },
        })
    }

    /// Writes it behind what is there.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.push(self.identifier());
        let within = |what, value: u32, max: u32| match value <= max {
            true => Ok(value.to_be_bytes()),
            false => Err(EncodeError::Value { what, value }),
        };
        match self {
            Self::MatchAll => {}
            Self::OsIdApp { os, app } => {
                out.extend(os);
                counted(self.name(), app, out)?;
            }
            Self::RemoteV4(address, mask) | Self::LocalV4(address, mask) => {
                out.extend(address.octets());
                out.extend(mask.octets());
            }
            Self::RemoteV6(address, length) | Self::LocalV6(address, length) => {
                let [_, _, _, length] = within(self.name(), (*length).into(), 128)?;
                out.extend(address.octets());
                out.push(length);
            }
            Self::Protocol(number) => out.push(*number),
            Self::LocalPort(port) | Self::RemotePort(port) => out.extend(port.to_be_bytes()),
            Self::LocalPorts(first, last) | Self::RemotePorts(first, last) => {
                within(self.name(), (*first).into(), (*last).into())?;
                out.extend(first.to_be_bytes());
                out.extend(last.to_be_bytes());
            }
            Self::SecurityParameterIndex(index) => out.extend(index.to_be_bytes()),
            Self::TrafficClass(value, mask) => out.extend([value, mask]),
            Self::FlowLabel(label) => out.extend(&within(self.name(), *label, 0xf_ffff)?[1..]),
            Self::DestinationMac(mac) | Self::SourceMac(mac) => out.extend(mac),
            Self::CTagVid(vid) | Self::STagVid(vid) => {
                out.extend(&within(self.name(), (*vid).into(), 0xfff)?[2..]);
            }
            Self::CTagPcpDei(bits) | Self::STagPcpDei(bits) => {
                out.extend(&within(self.name(), (*bits).into(), 0xf)?[3..]);
            }
            Self::Ethertype(number) => out.extend(number.to_be_bytes()),
            Self::Dnn(octets)
            | Self::ConnectionCapabilities(octets)
            | Self::Fqdn(octets)
            | Self::OsApp(octets) => counted(self.name(), octets, out)?,
            Self::Other { contents, .. } => out.extend(contents),
        }
        Ok(())
    }
}

/// Writes octets behind their number.
fn counted(what: &'static str, octets: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.push(length8(what, octets.len())?);
    out.extend(octets);
    Ok(())
}
