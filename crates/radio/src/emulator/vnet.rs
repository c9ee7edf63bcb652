//! The virtio-net header (virtio 1.2, 5.1.6) in front of every packet that is
//! read from or written to a port, and the framing behind it.

/// Length of the header.
pub(crate) const VNET_LEN: usize = 10;
/// Length of an Ethernet header.
pub(crate) const ETHERNET_LEN: usize = 14;

/// The checksum field holds only the pseudo-header's sum.
pub(crate) const NEEDS_CSUM: u8 = 1;

pub(crate) const GSO_NONE: u8 = 0;
pub(crate) const GSO_TCPV4: u8 = 1;
pub(crate) const GSO_TCPV6: u8 = 4;
pub(crate) const GSO_UDP_L4: u8 = 5;
/// Flag beside the type: the first packet carries CWR (RFC 3168).
pub(crate) const GSO_ECN: u8 = 0x80;

/// The legacy header: 16-bit fields in the machine's byte order, as TUN and
/// packet sockets exchange it unless told otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vnet {
    pub(crate) flags: u8,
    pub(crate) gso_type: u8,
    pub(crate) hdr_len: u16,
    pub(crate) gso_size: u16,
    /// Counted from the start of the frame behind this header.
    pub(crate) csum_start: u16,
    pub(crate) csum_offset: u16,
}

impl Vnet {
    /// Reads the header at the start of `buf`; `None` if it is too short.
    pub(crate) fn read(buf: &[u8]) -> Option<Self> {
        let b: &[u8; VNET_LEN] = buf.first_chunk()?;
        let word = |i| u16::from_ne_bytes([b[i], b[i + 1]]);
        Some(Self {
            flags: b[0],
            gso_type: b[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        })
    }

    /// The header's bytes.
    pub(crate) fn bytes(&self) -> [u8; VNET_LEN] {
        let mut b = [0; VNET_LEN];
        b[0] = self.flags;
        b[1] = self.gso_type;
        b[2..4].copy_from_slice(&self.hdr_len.to_ne_bytes());
        b[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        b[6..8].copy_from_slice(&self.csum_start.to_ne_bytes());
        b[8..10].copy_from_slice(&self.csum_offset.to_ne_bytes());
        b
    }
}

/// Bytes between the virtio-net header and the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Nothing (TUN).
    Ip,
    /// An Ethernet header, addressed to `peer` when written.
    Ethernet {
        /// Hardware address of the interface at the far end.
        peer: [u8; 6],
    },
}

impl Framing {
    /// Bytes of the link-layer header.
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Ip => 0,
            Self::Ethernet { .. } => ETHERNET_LEN,
        }
    }
}
