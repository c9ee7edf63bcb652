//! Property tests of parsing and splitting, against a segmentation written
//! independently of it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::emulator::checksum::Sum;
use crate::emulator::segment::Checksums;
use crate::emulator::vnet::ETHERNET_LEN;

const PEER: Framing = Framing::Ethernet {
    peer: [2, 0, 0, 0, 0, 9],
};

/// Properties of a test packet.
#[derive(Clone, Debug)]
struct Case {
    v6: bool,
    udp: bool,
    /// Words of IPv4 options, or 8-byte units of IPv6 extension headers.
    ip_extra: usize,
    /// Words of TCP options.
    tcp_options: usize,
    tcp_flags: u8,
    seq: u32,
    id: u16,
    payload: Vec<u8>,
    gso: u16,
}

fn cases() -> impl Strategy<Value = Case> {
    (
        (any::<bool>(), any::<bool>(), 0usize..4, 0usize..=10),
        (any::<u8>(), any::<u32>(), any::<u16>()),
        vec(any::<u8>(), 1..6000),
        1u16..1600,
    )
        .prop_map(
            |((v6, udp, ip_extra, tcp_options), (tcp_flags, seq, id), payload, gso)| Case {
                v6,
                udp,
                ip_extra,
                tcp_options,
                tcp_flags,
                seq,
                id,
                payload,
                gso,
            },
        )
}

impl Case {
    fn ip_header(&self) -> usize {
        if self.v6 {
            40 + 8 * self.ip_extra
        } else {
            20 + 4 * self.ip_extra
        }
    }

    fn transport_header(&self) -> usize {
        if self.udp {
            8
        } else {
            20 + 4 * self.tcp_options
        }
    }

    /// The super-packet as a kernel with checksum offload would hand it over.
    fn super_packet(&self) -> Vec<u8> {
        let (l3, l4) = (self.ip_header(), self.transport_header());
        let protocol = if self.udp { 17 } else { 6 };
        let gso = self.payload.len() > usize::from(self.gso);
        let mut b = Vnet {
            flags: NEEDS_CSUM,
            gso_type: match (gso, self.udp, self.v6) {
                (false, ..) => GSO_NONE,
                (true, true, _) => GSO_UDP_L4,
                (true, false, false) => {
                    GSO_TCPV4
                        | if self.tcp_flags & 0x80 != 0 {
                            GSO_ECN
                        } else {
                            0
                        }
                }
                (true, false, true) => {
                    GSO_TCPV6
                        | if self.tcp_flags & 0x80 != 0 {
                            GSO_ECN
                        } else {
                            0
                        }
                }
            },
            hdr_len: if gso { (l3 + l4) as u16 } else { 0 },
            gso_size: if gso { self.gso } else { 0 },
            csum_start: l3 as u16,
            csum_offset: if self.udp { 6 } else { 16 },
        }
        .bytes()
        .to_vec();
        if self.v6 {
            b.extend([0x60, 0, 0, 0]);
            b.extend(((l3 - 40 + l4 + self.payload.len()) as u16).to_be_bytes());
            b.extend([if self.ip_extra > 0 { 60 } else { protocol }, 64]);
            b.extend((1..=32).collect::<Vec<u8>>());
            for i in 0..self.ip_extra {
                let next = if i + 1 == self.ip_extra { protocol } else { 60 };
                b.extend([next, 0, 1, 4, 0, 0, 0, 0]);
            }
        } else {
            b.extend([0x40 | (l3 / 4) as u8, 0]);
            b.extend(((l3 + l4 + self.payload.len()) as u16).to_be_bytes());
            b.extend(self.id.to_be_bytes());
            b.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            b.extend(vec![1; 4 * self.ip_extra]);
            let c = Sum::default().add(&b[VNET_LEN..]).checksum();
            b[VNET_LEN + 10..VNET_LEN + 12].copy_from_slice(&c.to_be_bytes());
        }
        let t = b.len();
        b.extend([0x12, 0x34, 0x56, 0x78]);
        if self.udp {
            b.extend(((8 + self.payload.len()) as u16).to_be_bytes());
            b.extend([0, 0]);
        } else {
            b.extend(self.seq.to_be_bytes());
            b.extend([
                0,
                0,
                0,
                9,
                ((l4 / 4) << 4) as u8,
                self.tcp_flags,
                1,
                0,
                0,
                0,
                0,
                0,
            ]);
            b.extend(vec![1; 4 * self.tcp_options]);
        }
        let partial = pseudo(&b[VNET_LEN..], l4 + self.payload.len(), protocol).folded();
        let field = t + if self.udp { 6 } else { 16 };
        b[field..field + 2].copy_from_slice(&partial.to_be_bytes());
        b.extend(&self.payload);
        b
    }
}

fn pseudo(ip: &[u8], bytes: usize, protocol: u8) -> Sum {
    let addresses = if ip[0] >> 4 == 4 {
        &ip[12..20]
    } else {
        &ip[8..40]
    };
    Sum::default()
        .add(addresses)
        .word(bytes as u16)
        .word(u16::from(protocol))
}

/// Software segmentation of a super-packet behind a virtio-net header, with
/// complete checksums: the reference. `l3`: length of the IP header.
fn segments(b: &[u8], l3: usize, udp: bool) -> Vec<Vec<u8>> {
    let v = Vnet::read(b).unwrap();
    let ip = &b[VNET_LEN..];
    let l4 = if udp {
        8
    } else {
        usize::from(ip[l3 + 12] >> 4) * 4
    };
    let (head, payload) = ip.split_at(l3 + l4);
    let size = if v.gso_type == GSO_NONE {
        payload.len()
    } else {
        usize::from(v.gso_size)
    };
    let parts: Vec<&[u8]> = payload.chunks(size.max(1)).collect();
    let mut all = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let mut p = [head, part].concat();
        let bytes = p.len();
        if p[0] >> 4 == 4 {
            p[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
            let id = u16::from_be_bytes([p[4], p[5]]).wrapping_add(i as u16);
            p[4..6].copy_from_slice(&id.to_be_bytes());
            p[10..12].fill(0);
            let c = Sum::default().add(&p[..l3]).checksum();
            p[10..12].copy_from_slice(&c.to_be_bytes());
        } else {
            p[4..6].copy_from_slice(&((bytes - 40) as u16).to_be_bytes());
        }
        let field = if udp {
            p[l3 + 4..l3 + 6].copy_from_slice(&((bytes - l3) as u16).to_be_bytes());
            l3 + 6
        } else {
            let seq = u32::from_be_bytes(p[l3 + 4..l3 + 8].try_into().unwrap());
            let seq = seq.wrapping_add((i * size) as u32);
            p[l3 + 4..l3 + 8].copy_from_slice(&seq.to_be_bytes());
            if i > 0 {
                p[l3 + 13] &= 0x7f;
            }
            if i + 1 < parts.len() {
                p[l3 + 13] &= 0xf6;
            }
            l3 + 16
        };
        if v.flags & NEEDS_CSUM != 0 {
            p[field..field + 2].fill(0);
            let protocol = if udp { 17 } else { 6 };
            let c = pseudo(&p, bytes - l3, protocol).add(&p[l3..]).checksum();
            let c = if udp && c == 0 { 0xffff } else { c };
            p[field..field + 2].copy_from_slice(&c.to_be_bytes());
        }
        all.push(p);
    }
    all
}

/// Writes packets `span` of `b` as a port would.
fn emit(b: &[u8], from: Framing, span: (u32, u32), to: Framing, checksums: Checksums) -> Vec<u8> {
    let p = Packet::parse(b, from).unwrap();
    if p.is_whole(span.0, span.1, from, to, checksums) {
        return b[..p.end].to_vec();
    }
    let mut h = [0; MAX_HEADER + ETHERNET_LEN];
    let (n, payload) = p.headers(b, span, to, checksums, &mut h);
    [&h[..n], &b[payload]].concat()
}

/// Turns a frame with an Ethernet header into one without.
fn strip(b: &[u8]) -> Vec<u8> {
    let mut v = Vnet::read(b).unwrap();
    if v.flags & NEEDS_CSUM != 0 {
        v.csum_start -= ETHERNET_LEN as u16;
    }
    if v.gso_type != GSO_NONE {
        v.hdr_len -= ETHERNET_LEN as u16;
    }
    [&v.bytes(), &b[VNET_LEN + ETHERNET_LEN..]].concat()
}

proptest! {
    #[test]
    fn splitting_and_resegmenting_is_segmenting(c in cases(), cuts in vec(any::<Index>(), 0..6), ethernet in any::<bool>()) {
        let b = c.super_packet();
        let p = Packet::parse(&b, Framing::Ip).unwrap();
        let want = segments(&b, c.ip_header(), c.udp);
        prop_assert_eq!(p.packets as usize, want.len());
        let train = p.train(3);
        for (i, w) in want.iter().enumerate() {
            prop_assert_eq!(train.packet_bytes(i as u32) as usize, w.len());
        }
        let mut at: Vec<u32> = cuts.iter().map(|i| i.index(p.packets as usize + 1) as u32).collect();
        at.extend([0, p.packets]);
        at.sort_unstable();
        let mut got = Vec::new();
        for w in at.windows(2).filter(|w| w[0] < w[1]) {
            let out = if ethernet {
                strip(&emit(&b, Framing::Ip, (w[0], w[1]), PEER, Checksums::Partial))
            } else {
                emit(&b, Framing::Ip, (w[0], w[1]), Framing::Ip, Checksums::Partial)
            };
            let again = Packet::parse(&out, Framing::Ip).unwrap();
            prop_assert_eq!(again.packets, w[1] - w[0]);
            prop_assert_eq!(usize::from(again.vnet.hdr_len), if again.packets > 1 { p.header_bytes() } else { 0 });
            got.extend(segments(&out, c.ip_header(), c.udp));
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn completed_checksums_are_right(c in cases()) {
        let b = c.super_packet();
        for (i, want) in segments(&b, c.ip_header(), c.udp).iter().enumerate() {
            let i = i as u32;
            let out = emit(&b, Framing::Ip, (i, i + 1), Framing::Ip, Checksums::Complete);
            prop_assert_eq!(Vnet::read(&out).unwrap(), Vnet::default());
            prop_assert_eq!(&out[VNET_LEN..], &want[..]);
        }
    }

    #[test]
    fn ethernet_in_and_out(c in cases()) {
        let b = c.super_packet();
        let framed = emit(&b, Framing::Ip, (0, Packet::parse(&b, Framing::Ip).unwrap().packets), PEER, Checksums::Partial);
        prop_assert_eq!(&framed[VNET_LEN..VNET_LEN + 6], &[2, 0, 0, 0, 0, 9]);
        let mut padded = framed.clone();
        padded.extend([0; 7]);
        let p = Packet::parse(&padded, PEER).unwrap();
        prop_assert_eq!(p.end, framed.len());
        let back = emit(&padded, PEER, (0, p.packets), Framing::Ip, Checksums::Partial);
        prop_assert_eq!(segments(&back, c.ip_header(), c.udp), segments(&b, c.ip_header(), c.udp));
    }

    /// Whatever is read, every part of it can be written without a panic.
    #[test]
    fn any_bytes_pass(mut b in vec(any::<u8>(), 0..300), version in prop_oneof![Just(0x45u8), Just(0x60), any::<u8>()],
                      protocol in prop_oneof![Just(6u8), Just(17), Just(0), Just(43), Just(51), any::<u8>()],
                      gso in prop_oneof![Just(0u8), Just(1), Just(4), Just(5), any::<u8>()], honest in any::<bool>()) {
        if b.len() > VNET_LEN + 20 {
            let ip = VNET_LEN;
            b[ip] = version;
            b[ip + if version == 0x60 { 6 } else { 9 }] = protocol;
            b[1] = gso;
            if honest {
                let bytes = (b.len() - ip - if version == 0x60 { 40.min(b.len() - ip) } else { 0 }) as u16;
                b[0] = NEEDS_CSUM;
                b[4..6].copy_from_slice(&3u16.to_ne_bytes());
                b[6..8].copy_from_slice(&(if version == 0x60 { 40u16 } else { 20 }).to_ne_bytes());
                b[8..10].copy_from_slice(&(if protocol == 6 { 16u16 } else { 6 }).to_ne_bytes());
                let at = ip + if version == 0x60 { 4 } else { 2 };
                b[at..at + 2].copy_from_slice(&bytes.to_be_bytes());
                b[ip + 6..ip + 8].copy_from_slice(&if version == 0x60 { [protocol, 1] } else { [0, 0] });
            }
        }
        for from in [Framing::Ip, PEER] {
            let Some(p) = Packet::parse(&b, from) else { continue };
            prop_assert!(p.ip <= p.transport && p.transport <= p.payload && p.payload <= p.end && p.end <= b.len());
            let t = p.train(0);
            prop_assert_eq!(t.bytes(0, t.packets), (p.packets as usize * p.header_bytes() + p.end - p.payload) as u64);
            for i in 0..p.packets {
                for to in [Framing::Ip, PEER] {
                    emit(&b, from, (i, i + 1), to, Checksums::Complete);
                    emit(&b, from, (i, p.packets), to, Checksums::Partial);
                }
            }
        }
    }
}

#[test]
fn fragments_and_short_packets_are_opaque() {
    let whole = Case {
        v6: false,
        udp: true,
        ip_extra: 0,
        tcp_options: 0,
        tcp_flags: 0,
        seq: 0,
        id: 7,
        payload: vec![5; 100],
        gso: 1000,
    }
    .super_packet();
    assert_eq!(
        Packet::parse(&whole, Framing::Ip).unwrap().kind,
        Transport::Udp
    );
    let mut fragment = whole.clone();
    fragment[VNET_LEN + 6] = 0x20;
    let p = Packet::parse(&fragment, Framing::Ip).unwrap();
    assert_eq!(
        (p.kind, p.packets, p.train(0).full_bytes),
        (Transport::Opaque, 1, 128)
    );
    let cut = &whole[..whole.len() - 1];
    assert_eq!(
        Packet::parse(cut, Framing::Ip).unwrap().kind,
        Transport::Opaque
    );
    assert!(Packet::parse(&whole[..VNET_LEN], Framing::Ip).is_none());
}
