//! PDCP data PDUs of a data radio bearer (TS 36.323 6.2.3, 6.2.9, 6.2.11).

use super::control::Control;
use super::{DecodeError, SnSize, big_endian, put_u24, take};

/// Set in the first byte of data PDUs, clear in that of control PDUs (D/C, 6.3.7).
pub(super) const DATA: u8 = 0x80;

/// Polling bit of the 18-bit form (6.3.18).
const POLL: u8 = 0x40;

/// Largest SDU, in bytes (4.3.1).
pub const MAX_SDU_BYTES: usize = 8188;

/// Header of a data PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Sequence number; its high bits beyond the length in use are not written.
    pub sn: u32,
    /// Whether a status report is asked for. Only the 18-bit form can say so.
    pub poll: bool,
}

impl DataHeader {
    /// Bytes of the header with sequence numbers of `size`.
    pub const fn len(size: SnSize) -> usize {
        match size {
            SnSize::Bits12 | SnSize::Bits15 => 2,
            SnSize::Bits18 => 3,
        }
    }

    /// Appends the header to `out`.
    pub fn encode(self, size: SnSize, out: &mut Vec<u8>) {
        let sn = size.sn(self.sn);
        match size {
            SnSize::Bits12 | SnSize::Bits15 => {
                out.extend_from_slice(&(0x8000 | sn as u16).to_be_bytes());
            }
            SnSize::Bits18 => {
                let flags = DATA | if self.poll { POLL } else { 0 };
                put_u24(out, (u32::from(flags) << 16) | sn);
            }
        }
    }
}

/// A PDCP PDU as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// A packet of the bearer, still ciphered where the bearer is.
    Data {
        /// Number and polling bit.
        header: DataHeader,
        /// Bytes behind the header.
        payload: &'a [u8],
    },
    /// A report or marker; never ciphered (5.6).
    Control(Control),
}

impl<'a> Pdu<'a> {
    /// Reads a PDU of a bearer whose sequence numbers have `size`.
    pub fn decode(size: SnSize, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let first = take("PDCP PDU", bytes, 0, 1)?[0];
        if first & DATA == 0 {
            return Control::decode(size, bytes).map(Pdu::Control);
        }
        let len = DataHeader::len(size);
        let sn = size.sn(big_endian(take("PDCP data PDU", bytes, 0, len)?));
        let poll = size == SnSize::Bits18 && first & POLL != 0;
        Ok(Pdu::Data {
            header: DataHeader { sn, poll },
            payload: &bytes[len..],
        })
    }
}
