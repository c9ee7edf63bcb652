//! IP packets on their way through the tunnel: whose they are, and how they are queued.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_mpquic::Packet;
use bytes::Bytes;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const DNS: [u8; 2] = 53_u16.to_be_bytes();
/// Least DSCP of traffic that waits for nothing: class 5, telephony and above it (RFC 4594).
const PROMPT: u8 = 40;

/// Source and destination of a packet; `None` for what is no IP packet.
pub(super) fn ends(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let header = Header::of(packet)?;
    Some((header.source, header.destination))
}

/// Wraps a packet to be sent in the queue of its flow.
pub(super) fn queued(packet: Bytes) -> Packet {
    let header = Header::of(&packet);
    let mut hash = DefaultHasher::new();
    let mut ordered = false;
    if let Some(h) = &header {
        (h.source, h.destination, h.protocol).hash(&mut hash);
        // Ports; of what has none, as a fragment, the addresses alone.
        let ports = match h.protocol {
            TCP | UDP => packet.get(h.payload..h.payload + 4).filter(|_| !h.fragment),
            _ => None,
        };
        ports.hash(&mut hash);
        // A question has no order, nor has a voice time for one.
        let is_dns = h.protocol == UDP && ports.is_some_and(|p| p[..2] == DNS || p[2..] == DNS);
        let is_prompt = h.class >> 2 >= PROMPT || [ICMP, ICMPV6].contains(&h.protocol);
        ordered = !is_dns && !is_prompt;
    }
    let flow = hash.finish() as u32;
    Packet {
        flow,
        ordered,
        data: packet,
        mark,
    }
}

/// Fields of a packet's IP header.
struct Header {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Type of service, or traffic class.
    class: u8,
    /// Where the payload begins.
    payload: usize,
    /// Whether it is a part of a packet.
    fragment: bool,
}

impl Header {
    fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::v4(packet.first_chunk::<20>()?),
            6 => Self::v6(packet.first_chunk::<40>()?),
            _ => None,
        }
    }

    fn v4(h: &[u8; 20]) -> Option<Self> {
        let at = |i: usize| Some(Ipv4Addr::from(*h.get(i..)?.first_chunk::<4>()?));
        Some(Self {
            source: at(12)?.into(),
            destination: at(16)?.into(),
            protocol: h[9],
            class: h[1],
            payload: usize::from(h[0] & 0xf) * 4,
            // More of them, or not the first.
            fragment: u16::from_be_bytes([h[6], h[7]]) & 0x3fff != 0,
        })
    }

    fn v6(h: &[u8; 40]) -> Option<Self> {
        let at = |i: usize| Some(Ipv6Addr::from(*h.get(i..)?.first_chunk::<16>()?));
        Some(Self {
            source: at(8)?.into(),
            destination: at(24)?.into(),
            protocol: h[6],
            class: h[0] << 4 | h[1] >> 4,
            payload: 40,
            fragment: false,
        })
    }
}

/// Marks a packet as one that met congestion (CE), if its sender understands that (RFC 3168 5).
fn mark(packet: &Bytes) -> Option<Bytes> {
    let class = Header::of(packet)?.class;
    let ecn = class & 3;
    if ecn == 0 {
        return None;
    }
    if ecn == 3 {
        return Some(packet.clone());
    }
    let mut marked = packet.to_vec();
    match packet[0] >> 4 {
        4 => {
            let word = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
            let before = word(&marked);
            marked[1] |= 3;
            // As RFC 1624 has it.
            let sum =
                u32::from(!word(&marked[10..])) + u32::from(!before) + u32::from(word(&marked));
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            marked[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        _ => marked[1] |= 3 << 4,
    }
    Some(marked.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(class: u8, protocol: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut p = vec![0; 28];
        p[0] = 0x45;
        p[1] = class;
        p[3] = 28;
        p[8] = 64;
        p[9] = protocol;
        p[12..16].copy_from_slice(&[10, 1, 2, 3]);
        p[16..20].copy_from_slice(&[9, 9, 9, 9]);
        p[20..22].copy_from_slice(&ports[0].to_be_bytes());
        p[22..24].copy_from_slice(&ports[1].to_be_bytes());
        let sum = checksum(&p[..20]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p
    }

    /// Checksum of a header (RFC 1071); 0 where the header has the right one.
    fn checksum(header: &[u8]) -> u16 {
        let words = header
            .chunks(2)
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn v6(class: u8) -> Vec<u8> {
        let mut p = vec![0; 48];
        p[0] = 0x60 | class >> 4;
        p[1] = class << 4 | 0xb;
        p[6] = UDP;
        p[23] = 1;
        p[39] = 2;
        p
    }

    #[test]
    fn the_ends_of_both_families_are_read() {
        let packet = v4(0, UDP, [1, 2]);
        let ends4 = ([10, 1, 2, 3].into(), [9, 9, 9, 9].into());
        assert_eq!(ends(&packet), Some(ends4));
        assert_eq!(ends(&packet[..19]), None);
        let packet = v6(0);
        let ends6 = ("::1".parse().unwrap(), "::2".parse().unwrap());
        assert_eq!(ends(&packet), Some(ends6));
        assert_eq!(ends(&packet[..39]), None);
    }

    #[test]
    fn flows_are_told_apart_by_addresses_protocol_and_ports() {
        let of = |packet: Vec<u8>| {
            let queued = queued(packet.into());
            (queued.flow, queued.ordered)
        };
        let quic = of(v4(0, UDP, [5000, 443]));
        assert_eq!(quic, of(v4(2, UDP, [5000, 443])));
        assert!(quic.1);
        for other in [
            v4(0, UDP, [5001, 443]),
            v4(0, TCP, [5000, 443]),
            v4(0, UDP, [443, 5000]),
        ] {
            assert_ne!(quic.0, of(other).0);
        }
        let fragment = |ports| {
            let mut p = v4(0, UDP, ports);
            p[6] = 0x20;
            of(p).0
        };
        assert_eq!(fragment([1, 2]), fragment([3, 4]));
        for (prompt, what) in [
            (v4(46 << 2, UDP, [1, 2]), "voice"),
            (v4(0, UDP, [53, 4000]), "an answer"),
            (v4(0, UDP, [4000, 53]), "a question"),
            (v4(0, ICMP, [0, 0]), "a ping"),
            (v6(46 << 2), "voice"),
        ] {
            assert!(!of(prompt).1, "{what}");
        }
        // Cut off, and nothing at all.
        of(v4(0, UDP, [1, 2])[..22].to_vec());
        of(vec![]);
    }

    #[test]
    fn a_mark_is_for_who_understands_it_and_the_checksum_stays_right() {
        for ecn in [1, 2, 3] {
            let class = 0x28 | ecn;
            let marked = mark(&v4(class, UDP, [1, 2]).into()).unwrap();
            assert_eq!((marked[1], checksum(&marked[..20])), (0x2b, 0));
            let marked = mark(&v6(class).into()).unwrap();
            assert_eq!((marked[0], marked[1]), (0x62, 0xbb));
        }
        assert_eq!(mark(&v4(0x28, UDP, [1, 2]).into()), None);
        assert_eq!(mark(&v6(0x28).into()), None);
        assert_eq!(mark(&Bytes::new()), None);
    }

    proptest! {
        #[test]
        fn anything_is_read(packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let is_long = match packet.first().map(|b| b >> 4) {
                Some(4) => packet.len() >= 20,
                Some(6) => packet.len() >= 40,
                _ => false,
            };
            prop_assert_eq!(ends(&packet).is_some(), is_long);
            let marked = mark(&queued(packet.clone().into()).data);
            prop_assert!(marked.is_none_or(|m| m.len() == packet.len()));
        }
    }
}
