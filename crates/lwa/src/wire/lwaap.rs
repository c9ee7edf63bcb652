//! LWAAP, the adaptation protocol on WLAN: one byte that names the bearer (TS 36.360 6.1.2).

use thiserror::Error;

use super::{DecodeError, take};

/// EtherType of LWAAP frames on a LAN (TS 36.300 22A.1.2).
pub const ETHERTYPE: u16 = 0x9E65;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 1;

/// Identity of a data radio bearer: 5 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DrbId(u8);

/// A bearer identity beyond 5 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("bearer identity {0}: has 5 bits on the wire, so at most 31 is possible")]
pub struct DrbIdTooLarge(u8);

impl DrbId {
    /// Identity `id`, at most 31.
    pub const fn new(id: u8) -> Result<Self, DrbIdTooLarge> {
        if id < 32 {
            Ok(DrbId(id))
        } else {
            Err(DrbIdTooLarge(id))
        }
    }

    /// Number of the bearer.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Appends the header of `drb`; the PDCP PDU follows.
pub fn encode(drb: DrbId, out: &mut Vec<u8>) {
    out.push(drb.0);
}

/// Reads the header: the bearer, and the PDCP PDU behind it. Reserved bits are ignored.
pub fn decode(bytes: &[u8]) -> Result<(DrbId, &[u8]), DecodeError> {
    let first = take("LWAAP PDU", bytes, 0, HEADER_BYTES)?[0];
    Ok((DrbId(first & 0x1f), &bytes[HEADER_BYTES..]))
}
