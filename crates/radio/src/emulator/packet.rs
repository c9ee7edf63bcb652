//! Super-packets: what the kernel hands over with `IFF_VNET_HDR`. One buffer
//! holds `[virtio-net header][Ethernet?][IP][TCP or UDP][payload]` and stands
//! for one or many packets on the wire.

use super::vnet::{
    Framing, GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, VNET_LEN, Vnet,
};
use crate::model::Train;

/// Longest headers (virtio-net to transport) that can be rewritten. Packets
/// with longer ones, which takes hundreds of bytes of IPv6 extension headers,
/// pass whole.
pub(crate) const MAX_HEADER: usize = 512;

/// The transport that segmentation rewrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    /// Anything else; never split.
    Opaque,
}

/// Where things lie in a buffer. Offsets count from its first byte and are
/// ascending and within the buffer it was parsed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Start of the IP header.
    pub(crate) ip: usize,
    /// Start of the transport header (of whatever follows the link layer when opaque).
    pub(crate) transport: usize,
    /// Start of the payload.
    pub(crate) payload: usize,
    /// One past the last byte of the packet.
    pub(crate) end: usize,
    /// Transport protocol.
    pub(crate) kind: Transport,
    /// Payload bytes of every wire packet but the last.
    pub(crate) segment: usize,
    /// Packets on the wire.
    pub(crate) packets: u32,
    /// The virtio-net header.
    pub(crate) vnet: Vnet,
}

/// Transport protocol and offset, and the end of the IP packet.
struct Ip {
    kind: Transport,
    transport: usize,
    end: usize,
}

impl Packet {
    /// Reads the headers of `buf`, behind a link-layer header as `framing` says.
    /// `None` if it is not IP at all. IP that cannot be understood is opaque:
    /// one packet, passed on as it is.
    pub(crate) fn parse(buf: &[u8], framing: Framing) -> Option<Self> {
        let vnet = Vnet::read(buf)?;
        let ip = VNET_LEN + framing.len();
        let version = buf.get(ip)? >> 4;
        if let Framing::Ethernet { .. } = framing {
            let want = if version == 6 { 0x86dd } else { 0x0800 };
            if word(buf, ip - 2)? != want {
                return None;
            }
        }
        let walked = match version {
            4 => ipv4(buf, ip),
            6 => ipv6(buf, ip),
            _ => return None,
        }
        .unwrap_or(Ip {
            kind: Transport::Opaque,
            transport: ip,
            end: buf.len(),
        });
        let (kind, transport, end) = (walked.kind, walked.transport, walked.end);
        let payload = match kind {
            Transport::Tcp => tcp_payload(buf, transport, end),
            Transport::Udp => (transport + 8 <= end).then_some(transport + 8),
            Transport::Opaque => None,
        };
        let gso = match (vnet.gso_type & !GSO_ECN, kind) {
            (GSO_TCPV4, Transport::Tcp) => version == 4,
            (GSO_TCPV6, Transport::Tcp) => version == 6,
            (GSO_UDP_L4, Transport::Udp) => true,
            _ => false,
        };
        let mut p = Packet {
            ip,
            transport: ip,
            payload: ip,
            end,
            kind: Transport::Opaque,
            segment: end - ip,
            packets: 1,
            vnet,
        };
        // Without a partial checksum in a known place a super-packet cannot be split.
        if let Some(payload) = payload.filter(|&x| x <= MAX_HEADER) {
            let bytes = end - payload;
            let size = usize::from(vnet.gso_size);
            let offset = if kind == Transport::Tcp { 16 } else { 6 };
            let partial = vnet.flags & NEEDS_CSUM != 0
                && usize::from(vnet.csum_start) + VNET_LEN == transport
                && usize::from(vnet.csum_offset) == offset;
            let split = gso && partial && size > 0 && bytes > size;
            if split || vnet.gso_type == GSO_NONE || bytes <= size {
                p.transport = transport;
                p.payload = payload;
                p.kind = kind;
                p.segment = if split { size } else { bytes };
                // At most 64 Ki packets: the buffer is bounded by IP's 16-bit length.
                p.packets = if split {
                    bytes.div_ceil(size) as u32
                } else {
                    1
                };
            }
        }
        Some(p)
    }

    /// Bytes of the IP and transport headers.
    pub(crate) fn header_bytes(&self) -> usize {
        self.payload - self.ip
    }

    /// The packet as the models see it, under the handle `id`.
    pub(crate) fn train(&self, id: u32) -> Train {
        let h = self.header_bytes();
        let last = self.end - self.payload - (self.packets as usize - 1) * self.segment;
        Train {
            id,
            packets: self.packets,
            full_bytes: (h + self.segment) as u32,
            last_bytes: (h + last) as u32,
        }
    }

    /// Where the payload of the wire packets `first..end` lies.
    pub(crate) fn payload_of(&self, first: u32, end: u32) -> std::ops::Range<usize> {
        let from = self.payload + first as usize * self.segment;
        let to = (self.payload + end as usize * self.segment).min(self.end);
        from..to
    }
}

fn word(buf: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([
        *buf.get(at)?,
        *buf.get(at + 1)?,
    ])))
}

fn transport(protocol: u8) -> Transport {
    match protocol {
        6 => Transport::Tcp,
        17 => Transport::Udp,
        _ => Transport::Opaque,
    }
}

/// RFC 791 3.1. `None`: not a whole, sound IPv4 packet.
fn ipv4(buf: &[u8], ip: usize) -> Option<Ip> {
    let header = usize::from(buf.get(ip)? & 15) * 4;
    let end = ip + word(buf, ip + 2)?;
    if header < 20 || ip + header > end || end > buf.len() {
        return None;
    }
    let fragment = word(buf, ip + 6)? & 0x3fff != 0;
    let kind = if fragment {
        Transport::Opaque
    } else {
        transport(*buf.get(ip + 9)?)
    };
    Some(Ip {
        kind,
        transport: ip + header,
        end,
    })
}

/// RFC 8200 3 and 4. `None`: not a whole, sound IPv6 packet.
fn ipv6(buf: &[u8], ip: usize) -> Option<Ip> {
    let end = ip + 40 + word(buf, ip + 4)?;
    if end > buf.len() {
        return None;
    }
    let mut next = *buf.get(ip + 6)?;
    let mut at = ip + 40;
    loop {
        // Every extension header is at least 8 bytes long, so this ends.
        let units = match next {
            0 | 43 | 60 => 8, // hop-by-hop, routing, destination options
            51 => 4,          // authentication header (RFC 4302 2.2)
            _ => break,
        };
        let length = usize::from(*buf.get(at + 1)?);
        let bytes = if units == 8 {
            (length + 1) * 8
        } else {
            (length + 2) * 4
        };
        next = *buf.get(at)?;
        at += bytes;
        if at > end {
            return None;
        }
    }
    Some(Ip {
        kind: transport(next),
        transport: at,
        end,
    })
}

/// Start of TCP's payload (RFC 9293 3.1, data offset).
fn tcp_payload(buf: &[u8], transport: usize, end: usize) -> Option<usize> {
    let header = usize::from(buf.get(transport + 12)? >> 4) * 4;
    (header >= 20 && transport + header <= end).then_some(transport + header)
}

#[cfg(test)]
mod tests;
