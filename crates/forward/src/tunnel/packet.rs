//! IP packets on their way through the tunnel: whose they are, and how they are queued.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_core::class::DEFAULT_NUMBER;
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

/// Returns the message of a packet that comes from a resolver by UDP; none of a part of a packet.
pub(super) fn from_resolver(packet: &[u8]) -> Option<&[u8]> {
    let header = Header::of(packet)?;
    let [from, _] = header.ports(packet)?;
    let is_it = header.protocol == UDP && from == DNS;
    // Behind the header of UDP.
    packet.get(header.payload + 8..).filter(|_| is_it)
}

/// Reads a message of the tunnel in every way; says whether its packet is one of IP. For fuzzers.
///
/// # Panics
/// A mark changes more than the packet's traffic class and checksum.
#[doc(hidden)]
pub fn read_packet(data: &[u8]) -> bool {
    let (class, packet) = of_message(Bytes::copy_from_slice(data));
    flow(&packet);
    from_resolver(&packet).map(braid_core::domain::read);
    let queued = queued_with_class(packet.clone(), class);
    if let Some(marked) = (queued.mark)(&queued.data) {
        assert_eq!(marked.len(), queued.data.len(), "{data:02x?}");
        let changed = marked.iter().zip(&queued.data).filter(|(a, b)| a != b);
        assert!(changed.count() <= 3, "{data:02x?}");
        assert_eq!(of_message(marked).0, class, "{data:02x?}");
    }
    ends(&packet).is_some()
}

/// First byte of a message whose packet is of another class than the default, with the number of that:
/// no IP packet begins so.
const CLASS: u8 = 0xc0;

/// Returns the class of a message, and its packet.
pub(super) fn of_message(message: Bytes) -> (u8, Bytes) {
    match message.first() {
        Some(first) if first & 0xf0 == CLASS => (first & 0xf, message.slice(1..)),
        _ => (DEFAULT_NUMBER, message),
    }
}

/// Wraps a packet of a class to be sent in the queue of its flow, with the class for the other end.
pub(super) fn queued_with_class(packet: Bytes, class: u8) -> Packet {
    let mut queued = queued(packet, class);
    if class != DEFAULT_NUMBER {
        let parts = [&[CLASS | class & 0xf][..], &queued.data];
        queued.data = parts.concat().into();
        queued.mark = mark_behind_class;
    }
    queued
}

/// Wraps a packet of a class to be sent in the queue of its flow.
pub(super) fn queued(packet: Bytes, class: u8) -> Packet {
    let header = Header::of(&packet);
    let ports = header.as_ref().and_then(|h| h.ports(&packet));
    let ordered = header.as_ref().is_some_and(|h| {
        // A question has no order, nor has a voice time for one.
        let is_dns = h.protocol == UDP && ports.is_some_and(|p| p.contains(&DNS));
        let is_prompt = h.class >> 2 >= PROMPT || [ICMP, ICMPV6].contains(&h.protocol);
        !is_dns && !is_prompt
    });
    Packet {
        class,
        flow: header.map_or(0, |h| h.flow(ports)),
        ordered,
        data: packet,
        mark,
    }
}

/// Returns the number of a packet's flow, the same in both directions.
pub(super) fn flow(packet: &[u8]) -> u32 {
    let header = Header::of(packet);
    header.map_or(0, |h| h.flow(h.ports(packet)))
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

/// Ports of the source and of the destination.
type Ports = [[u8; 2]; 2];

impl Header {
    /// Returns the ports; none of what has none, as a fragment.
    fn ports(&self, packet: &[u8]) -> Option<Ports> {
        if self.fragment || ![TCP, UDP].contains(&self.protocol) {
            return None;
        }
        let [a, b, c, d] = *packet.get(self.payload..)?.first_chunk()?;
        Some([[a, b], [c, d]])
    }

    /// Returns the number of the flow, the same in both directions.
    fn flow(&self, ports: Option<Ports>) -> u32 {
        let [from, to] = ports.unwrap_or_default();
        let (from, to) = ((self.source, from), (self.destination, to));
        let mut hash = DefaultHasher::new();
        (from.min(to), from.max(to), self.protocol).hash(&mut hash);
        hash.finish() as u32
    }

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

/// Marks a packet behind its class ([`mark`]).
fn mark_behind_class(message: &Bytes) -> Option<Bytes> {
    let marked = mark(&message.slice(1..))?;
    Some([&message[..1], &marked].concat().into())
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
    use braid_core::mutate::Mutator;
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
            let queued = queued(packet.into(), 0);
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
        // What comes back is of the same flow.
        let mut back = v4(0, UDP, [443, 5000]);
        back[12..20].rotate_left(4);
        assert_eq!(quic.0, flow(&back));
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

    #[test]
    fn changed_messages_are_read() {
        let seeds: [&[u8]; 3] = [
            include_bytes!("../../../../fuzz/seeds/tunnel/v4"),
            include_bytes!("../../../../fuzz/seeds/tunnel/v6"),
            include_bytes!("../../../../fuzz/seeds/tunnel/class"),
        ];
        assert!(seeds.into_iter().all(read_packet));
        let mutated = Mutator::new(1, seeds.map(<[u8]>::to_vec)).take(50_000);
        let read = mutated.filter(|data| read_packet(data)).count();
        assert!(read > 10_000, "{read}");
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
            let marked = mark(&queued(packet.clone().into(), 0).data);
            prop_assert!(marked.is_none_or(|m| m.len() == packet.len()));
            flow(&packet);
            of_message(packet.into());
        }

        #[test]
        fn a_class_goes_with_the_packet_and_comes_off_again(
            packet in prop::sample::select(vec![v4(0x29, UDP, [1, 2]), v6(0x29)]), class in 0u8..8,
        ) {
            let queued = queued_with_class(packet.clone().into(), class);
            prop_assert_eq!(queued.class, class);
            prop_assert_eq!(of_message(queued.data.clone()), (class, packet.clone().into()));
            // Congestion is marked behind the class.
            let marked = (queued.mark)(&queued.data).unwrap();
            let (same, inner) = of_message(marked);
            prop_assert_eq!((same, Some(inner)), (class, mark(&packet.into())));
        }
    }
}
