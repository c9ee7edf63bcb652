//! Taking some of a super-packet's wire packets out of it: new headers, and
//! the payload where it lies.

use std::ops::Range;

use super::checksum::Sum;
use super::packet::{MAX_HEADER, Packet, Transport};
use super::vnet::{ETHERNET_LEN, Framing, GSO_ECN, GSO_NONE, NEEDS_CSUM, VNET_LEN, Vnet};

/// Room for the headers of one write: what a packet had, and an Ethernet header.
pub(crate) type HeaderBuf = [u8; MAX_HEADER + ETHERNET_LEN];

/// Source address of the frames we write: locally administered.
const OUR_MAC: [u8; 6] = [0x02, 0x62, 0x72, 0x61, 0x69, 0x64];

/// Treatment of transport checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksums {
    /// Leave them to the receiving kernel, which then trusts the payload.
    Partial,
    /// Complete them here, so that the receiving stack checks every byte. One
    /// packet at a time.
    Complete,
}

/// FIN and PSH, which only the last packet keeps.
const FIN_PSH: u8 = 0x09;
/// CWR, which only the first packet keeps (RFC 3168 6.1.2).
const CWR: u8 = 0x80;

impl Packet {
    /// Whether the packets `first..end` can be written by handing over the
    /// buffer as it is.
    pub(crate) fn is_whole(
        &self,
        first: u32,
        end: u32,
        from: Framing,
        to: Framing,
        checksums: Checksums,
    ) -> bool {
        first == 0
            && end == self.packets
            && from == Framing::Ip
            && to == Framing::Ip
            && (checksums == Checksums::Partial || self.vnet.flags & NEEDS_CSUM == 0)
    }

    /// Headers for the wire packets `first..end` (`first < end <= packets`,
    /// one packet for [`Checksums::Complete`]) of this packet in `buf`, written
    /// to `out`; returns their length and where the payload behind them lies.
    pub(crate) fn headers(
        &self,
        buf: &[u8],
        (first, end): (u32, u32),
        to: Framing,
        checksums: Checksums,
        out: &mut HeaderBuf,
    ) -> (usize, Range<usize>) {
        let payload = self.payload_of(first, end);
        let ip_out = VNET_LEN + to.len();
        let used = ip_out + self.header_bytes();
        out[ip_out..used].copy_from_slice(&buf[self.ip..self.payload]);
        if let Framing::Ethernet { peer } = to {
            out[VNET_LEN..VNET_LEN + 6].copy_from_slice(&peer);
            out[VNET_LEN + 6..VNET_LEN + 12].copy_from_slice(&OUR_MAC);
            let ethertype: u16 = if buf[self.ip] >> 4 == 6 {
                0x86dd
            } else {
                0x0800
            };
            out[VNET_LEN + 12..ip_out].copy_from_slice(&ethertype.to_be_bytes());
        }
        let mut vnet = self.vnet_for(first, end, ip_out);
        if self.packets > 1 {
            let transport = self.transport - self.ip;
            self.rewrite(&mut out[ip_out..used], transport, first, end);
        }
        if checksums == Checksums::Complete && vnet.flags & NEEDS_CSUM != 0 {
            let start = VNET_LEN + usize::from(vnet.csum_start);
            let field = start + usize::from(vnet.csum_offset);
            // Both lie in the headers for TCP and UDP; others keep their request.
            if self.kind != Transport::Opaque && start >= ip_out && field + 2 <= used {
                let sum = Sum::default()
                    .add(&out[start..used])
                    .add(&buf[payload.clone()]);
                let value = match sum.checksum() {
                    0 if self.kind == Transport::Udp => 0xffff,
                    c => c,
                };
                out[field..field + 2].copy_from_slice(&value.to_be_bytes());
                vnet = Vnet::default();
            }
        }
        out[..VNET_LEN].copy_from_slice(&vnet.bytes());
        (used, payload)
    }

    fn vnet_for(&self, first: u32, end: u32, ip_out: usize) -> Vnet {
        let mut v = self.vnet;
        let moved = |offset: u16| (usize::from(offset) + ip_out).wrapping_sub(self.ip) as u16;
        if v.flags & NEEDS_CSUM != 0 {
            v.csum_start = moved(v.csum_start);
        }
        if self.packets > 1 && end - first == 1 {
            v.gso_type = GSO_NONE;
            v.gso_size = 0;
        } else if first > 0 {
            v.gso_type &= !GSO_ECN;
        }
        v.hdr_len = match (v.gso_type, self.kind) {
            (GSO_NONE, _) => 0,
            (_, Transport::Opaque) => v.hdr_len,
            _ => (ip_out - VNET_LEN + self.header_bytes()) as u16,
        };
        v
    }

    /// Makes the headers `h` (IP and transport, the latter at `t`) of the whole
    /// those of the packets `first..end`.
    fn rewrite(&self, h: &mut [u8], t: usize, first: u32, end: u32) {
        let payload = self.payload_of(first, end).len();
        // Fits: the whole IP packet fitted into 16 bits.
        let ip_bytes = (h.len() + payload) as u16;
        let transport_bytes = (h.len() - t + payload) as u16;
        let old_transport_bytes = (self.end - self.transport) as u16;
        if h[0] >> 4 == 4 {
            put(h, 2, ip_bytes);
            // As the kernel's segmentation: one identification per packet (RFC 6864
            // lets it be anything for atomic datagrams).
            put(h, 4, get(h, 4).wrapping_add(first as u16));
            put(h, 10, 0);
            let sum = Sum::default().add(&h[..usize::from(h[0] & 15) * 4]);
            put(h, 10, sum.checksum());
        } else {
            put(h, 4, ip_bytes - 40);
        }
        let field = match self.kind {
            Transport::Tcp => {
                let at = first.wrapping_mul(self.segment as u32);
                let seq = u32::from_be_bytes([h[t + 4], h[t + 5], h[t + 6], h[t + 7]]);
                h[t + 4..t + 8].copy_from_slice(&seq.wrapping_add(at).to_be_bytes());
                if end != self.packets {
                    h[t + 13] &= !FIN_PSH;
                }
                if first != 0 {
                    h[t + 13] &= !CWR;
                }
                t + 16
            }
            Transport::Udp => {
                put(h, t + 4, transport_bytes);
                t + 6
            }
            Transport::Opaque => return,
        };
        // The field holds the pseudo-header's sum, of which only the length
        // changes (RFC 1624 eqn. 3 without the complements).
        let sum = Sum::default()
            .word(get(h, field))
            .word(!old_transport_bytes)
            .word(transport_bytes);
        put(h, field, sum.folded());
    }
}

fn get(h: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([h[at], h[at + 1]])
}

fn put(h: &mut [u8], at: usize, v: u16) {
    h[at..at + 2].copy_from_slice(&v.to_be_bytes());
}
