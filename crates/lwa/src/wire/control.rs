//! PDCP control PDUs: status report (TS 36.323 6.2.6), LWA status report (6.2.12), LWA end-marker.
//!
//! Bit positions were held against Wireshark's dissector, as the figures of the standard are
//! images in many editions.

use super::{DecodeError, SnSize, big_endian, put_u24, take};

const STATUS: u8 = 0b000;
const LWA_STATUS: u8 = 0b010;
const END_MARKER: u8 = 0b011;

/// A PDCP control PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// PDCP status report: received and missing packets.
    Status(StatusReport),
    /// LWA status report: progress of the WLAN link.
    LwaStatus(LwaStatus),
    /// LWA end-marker: a change of key.
    EndMarker {
        /// Sequence number of the last PDU ciphered with the previous key (LSN).
        lsn: u32,
    },
}

/// PDCP status report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// First missing sequence number.
    pub fms: u32,
    /// One bit per number from `fms + 1` on, the highest bit of a byte first; set where received.
    pub bitmap: Vec<u8>,
}

impl StatusReport {
    /// Whether the number `fms + offset` is reported as received; `offset` counts from 1.
    pub fn received(&self, offset: usize) -> bool {
        let Some(bit) = offset.checked_sub(1) else {
            return false;
        };
        self.bitmap
            .get(bit / 8)
            .is_some_and(|byte| byte & (0x80 >> (bit % 8)) != 0)
    }
}

/// LWA status report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LwaStatus {
    /// First missing sequence number.
    pub fms: u32,
    /// Highest sequence number received on WLAN (HRW).
    pub hrw: u32,
    /// How many are missing below `hrw`, the first missing one included (NMP).
    pub nmp: u32,
}

impl Control {
    /// Appends the PDU to `out`.
    pub fn encode(&self, size: SnSize, out: &mut Vec<u8>) {
        match self {
            Control::Status(report) => {
                put_first(size, STATUS, report.fms, out);
                out.extend_from_slice(&report.bitmap);
            }
            Control::LwaStatus(status) => {
                let (hrw, nmp) = (size.sn(status.hrw), size.sn(status.nmp));
                put_first(size, LWA_STATUS, status.fms, out);
                match size {
                    SnSize::Bits12 => put_u24(out, (hrw << 12) | nmp),
                    SnSize::Bits15 => {
                        out.extend_from_slice(&(hrw as u16).to_be_bytes());
                        out.extend_from_slice(&(nmp as u16).to_be_bytes());
                    }
                    SnSize::Bits18 => {
                        // 18 bits, 4 reserved, 18 bits.
                        let both = (u64::from(hrw) << 22) | u64::from(nmp);
                        out.extend_from_slice(&both.to_be_bytes()[3..]);
                    }
                }
            }
            Control::EndMarker { lsn } => put_first(size, END_MARKER, *lsn, out),
        }
    }

    /// Reads a control PDU; interspersed ROHC feedback is not read, as headers are not
    /// compressed.
    pub fn decode(size: SnSize, bytes: &[u8]) -> Result<Self, DecodeError> {
        const FORMAT: &str = "PDCP control PDU";
        let kind = (take(FORMAT, bytes, 0, 1)?[0] >> 4) & 0b111;
        let head = head_len(size);
        match kind {
            STATUS => Ok(Control::Status(StatusReport {
                fms: first_number(size, bytes)?,
                bitmap: bytes[head..].to_vec(),
            })),
            LWA_STATUS => {
                let fms = first_number(size, bytes)?;
                let (hrw, nmp) = match size {
                    SnSize::Bits12 => {
                        let both = big_endian(take(FORMAT, bytes, head, 3)?);
                        (both >> 12, both)
                    }
                    SnSize::Bits15 => (
                        big_endian(take(FORMAT, bytes, head, 2)?),
                        big_endian(take(FORMAT, bytes, head + 2, 2)?),
                    ),
                    SnSize::Bits18 => (
                        big_endian(take(FORMAT, bytes, head, 3)?) >> 6,
                        big_endian(take(FORMAT, bytes, head + 2, 3)?),
                    ),
                };
                Ok(Control::LwaStatus(LwaStatus {
                    fms,
                    hrw: size.sn(hrw),
                    nmp: size.sn(nmp),
                }))
            }
            END_MARKER => Ok(Control::EndMarker {
                lsn: first_number(size, bytes)?,
            }),
            kind => Err(DecodeError::Kind {
                format: FORMAT,
                kind,
            }),
        }
    }
}

/// Bytes up to the end of the first number.
const fn head_len(size: SnSize) -> usize {
    match size {
        SnSize::Bits12 => 2,
        SnSize::Bits15 | SnSize::Bits18 => 3,
    }
}

/// Appends D/C, the kind, and the first number: right-aligned in two bytes or three.
fn put_first(size: SnSize, kind: u8, number: u32, out: &mut Vec<u8>) {
    let (kind, number) = (u32::from(kind), size.sn(number));
    match size {
        SnSize::Bits12 => out.extend_from_slice(&(((kind << 12) | number) as u16).to_be_bytes()),
        SnSize::Bits15 | SnSize::Bits18 => put_u24(out, (kind << 20) | number),
    }
}

fn first_number(size: SnSize, bytes: &[u8]) -> Result<u32, DecodeError> {
    let head = take("PDCP control PDU", bytes, 0, head_len(size))?;
    Ok(size.sn(big_endian(head)))
}
