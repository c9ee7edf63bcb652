//! Header bytes per packet, from which the wire ceiling of a transfer follows.
//!
//! Held against captured packets by `crates/mptcp/tests/it/headers.rs`.

/// Network and transport headers of a full-sized data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP with the timestamps option (RFC 7323): 20 + 12 bytes.
    Tcp,
    /// MPTCP (RFC 8684) as Linux sends it: TCP with timestamps and a DSS option
    /// with 64-bit data acknowledgement and 64-bit data sequence number, without
    /// checksum (4 + 8 + 14, padded to 28 bytes): all 40 bytes that TCP has for
    /// options. A sender that has never received data on the connection
    /// acknowledges with 32 bits, which takes 4 bytes less.
    Mptcp,
    /// UDP: 8 bytes.
    Udp,
    /// Multipath QUIC on streams of its own: UDP, a short header with an 8-byte connection
    /// id and a packet number of 2 bytes (RFC 9000 17.3.1), a STREAM frame that ends the
    /// packet (type, stream, 4 bytes of offset) and the tag of the encryption (16).
    MpquicStream,
    /// Multipath QUIC on the datagram lane: UDP, header and tag as on streams, a DATAGRAM frame
    /// with its length, and in it what the lane numbers a datagram with, and the head of a
    /// stream frame. As the first 16,384 datagrams of a path have it, so that it is a ceiling;
    /// later ones have 2 bytes more.
    MpquicDatagram,
}

/// UDP payload of a full packet of Multipath QUIC, whatever the MTU allows beyond: what
/// fits into 1500 bytes of IPv6 as well.
const QUIC_PAYLOAD: u32 = 1452;
/// Before and after the frames of a packet: flags, connection id, packet number, tag.
const QUIC_PACKET: u32 = 1 + 8 + 2 + 16;
/// Bytes before the frames of a datagram of the lane: kind, path, sequence (2 bytes), time.
const LANE_NUMBER: u32 = 1 + 1 + 2 + 4;
/// Bytes of the head of a stream frame in it: kind, channel, offset (4 bytes), length.
const LANE_FRAME: u32 = 1 + 1 + 4 + 2;

impl Transport {
    /// Transport header and options of a data packet, in bytes.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::Tcp => 20 + 12,
            Self::Mptcp => 20 + 12 + 28,
            Self::Udp => 8,
            Self::MpquicStream => 8 + QUIC_PACKET + 6,
            Self::MpquicDatagram => 8 + QUIC_PACKET + 3 + LANE_NUMBER + LANE_FRAME,
        }
    }

    /// Share of an IP packet of `mtu` bytes that is payload, 0 to 1;
    /// `ip_header` is 20 for IPv4, 40 for IPv6.
    pub fn payload_fraction(self, mtu: u32, ip_header: u32) -> f64 {
        let headers = ip_header + self.header_bytes();
        let mtu = match self {
            Self::MpquicStream | Self::MpquicDatagram => mtu.min(QUIC_PAYLOAD + 8 + ip_header),
            _ => mtu,
        };
        f64::from(mtu.saturating_sub(headers)) / f64::from(mtu.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_over_ethernet_mtu() {
        let f = Transport::Tcp.payload_fraction(1500, 20);
        assert!((f - 1448.0 / 1500.0).abs() < 1e-12);
    }

    #[test]
    fn mptcp_fills_the_option_space() {
        let f = Transport::Mptcp.payload_fraction(1500, 20);
        assert!((f - 1420.0 / 1500.0).abs() < 1e-12);
        assert_eq!(Transport::Mptcp.header_bytes(), 60);
    }

    #[test]
    fn quic_does_not_grow_with_the_mtu() {
        let f = |mtu| Transport::MpquicDatagram.payload_fraction(mtu, 20);
        assert!((f(1500) - 1406.0 / 1480.0).abs() < 1e-12);
        assert!((f(9000) - f(1500)).abs() < 1e-12);
    }
}
