//! Formats on the wire: PDCP PDUs (TS 36.323 6.2), LWAAP (TS 36.360), Xw-U frames (TS 36.465) and
//! the part of GTP-U (TS 29.281) that carries them.
//!
//! Decoders take any bytes: what is too short or unknown is an error, reserved bits are ignored
//! as the standards ask. Encoders set reserved bits to zero.

pub mod control;
pub mod data;
pub mod gtp;
pub mod lwaap;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tshark;
pub mod xw;

use thiserror::Error;

/// Length of the sequence number of a data radio bearer (TS 36.323 6.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnSize {
    /// 12 bits, the form before Release 11.
    Bits12,
    /// 15 bits (`pdcp-SN-Size-v1130`).
    Bits15,
    /// 18 bits (`pdcp-SN-Size-v1310`), the only form with a polling bit.
    Bits18,
}

impl SnSize {
    /// Every length.
    pub const ALL: [SnSize; 3] = [SnSize::Bits12, SnSize::Bits15, SnSize::Bits18];

    /// Length in bits.
    pub const fn bits(self) -> u32 {
        match self {
            SnSize::Bits12 => 12,
            SnSize::Bits15 => 15,
            SnSize::Bits18 => 18,
        }
    }

    /// How many sequence numbers there are: `Maximum_PDCP_SN + 1`.
    pub const fn modulus(self) -> u32 {
        1 << self.bits()
    }

    /// Reordering window: half of the numbers (TS 36.323 7.3).
    pub const fn window(self) -> u32 {
        self.modulus() / 2
    }

    /// Sequence number in a COUNT: its low bits.
    pub const fn sn(self, count: u32) -> u32 {
        count & (self.modulus() - 1)
    }
}

/// Why bytes could not be read as what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Fewer bytes than the format needs.
    #[error("{format}: needs at least {need} bytes, got {got}")]
    Short {
        /// Name of the format.
        format: &'static str,
        /// Bytes it needs at least.
        need: usize,
        /// Bytes there were.
        got: usize,
    },
    /// A kind that is not read here.
    #[error("{format}: kind {kind} is not one that is read here")]
    Kind {
        /// Name of the format.
        format: &'static str,
        /// Kind that stood there.
        kind: u8,
    },
    /// A version, flag or length that contradicts the format.
    #[error("{format}: {reason}")]
    Malformed {
        /// Name of the format.
        format: &'static str,
        /// Contradiction that was met.
        reason: &'static str,
    },
}

/// Bytes `at..at + len`, or that they are missing.
fn take<'a>(
    format: &'static str,
    bytes: &'a [u8],
    at: usize,
    len: usize,
) -> Result<&'a [u8], DecodeError> {
    bytes.get(at..at + len).ok_or(DecodeError::Short {
        format,
        need: at + len,
        got: bytes.len(),
    })
}

/// Number in up to four bytes, the highest first.
fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |n, &b| (n << 8) | u32::from(b))
}

/// Appends the low three bytes of `n`.
fn put_u24(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&n.to_be_bytes()[1..]);
}
