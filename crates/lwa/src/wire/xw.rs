//! Xw-U frames between the node and the WLAN termination (TS 36.465 5.5.2).
//!
//! Field lengths are those of X2-U (TS 36.425 5.5.3), from which Xw-U was made: 3 bytes of
//! sequence number, 4 of a buffer size, 1 of a number of ranges. Frames are padded to `4 n - 2`
//! bytes, so that they fill an extension header of GTP-U.

use super::{DecodeError, big_endian, put_u24, take};

const FORMAT: &str = "Xw-U frame";
const USER_DATA: u8 = 0;
const DELIVERY_STATUS: u8 = 1;
const FINAL_FRAME: u8 = 0x02;
const LOST_REPORT: u8 = 0x01;

/// Most ranges of lost packets that one frame can name.
pub const MAX_RANGES: usize = 255;

/// Number of Xw-U sequence numbers: 24 bits.
pub const SN_MODULUS: u32 = 1 << 24;

/// A frame of the Xw user plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XwFrame {
    /// DL USER DATA (PDU type 0): numbers the packet that comes with it.
    UserData {
        /// Xw-U sequence number, 24 bits.
        sn: u32,
    },
    /// DL DATA DELIVERY STATUS (PDU type 1).
    Status(DeliveryStatus),
}

/// Progress of a link as its far side sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryStatus {
    /// Whether no further status follows.
    pub final_frame: bool,
    /// Highest Xw-U sequence number up to which all was delivered or is reported lost.
    pub highest_delivered: u32,
    /// Bytes wanted beyond `highest_delivered` for this bearer.
    pub desired_buffer_bytes: u32,
    /// Bytes wanted at least for all bearers of the UE.
    pub min_desired_buffer_bytes: u32,
    /// Ranges of lost sequence numbers, first and last included. At most [`MAX_RANGES`] are sent.
    pub lost: Vec<(u32, u32)>,
}

impl XwFrame {
    /// Appends the frame, padded to `4 n - 2` bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            XwFrame::UserData { sn } => {
                out.push(USER_DATA << 4);
                put_u24(out, *sn);
            }
            XwFrame::Status(status) => {
                let mut first = DELIVERY_STATUS << 4;
                if status.final_frame {
                    first |= FINAL_FRAME;
                }
                if !status.lost.is_empty() {
                    first |= LOST_REPORT;
                }
                out.push(first);
                put_u24(out, status.highest_delivered);
                out.extend_from_slice(&status.desired_buffer_bytes.to_be_bytes());
                out.extend_from_slice(&status.min_desired_buffer_bytes.to_be_bytes());
                if !status.lost.is_empty() {
                    let ranges = &status.lost[..status.lost.len().min(MAX_RANGES)];
                    out.push(ranges.len() as u8);
                    for &(start, end) in ranges {
                        put_u24(out, start);
                        put_u24(out, end);
                    }
                }
            }
        }
        while (out.len() - start) % 4 != 2 {
            out.push(0);
        }
    }

    /// Reads a frame; padding and later extensions behind it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let first = take(FORMAT, bytes, 0, 1)?[0];
        match first >> 4 {
            USER_DATA => Ok(XwFrame::UserData {
                sn: big_endian(take(FORMAT, bytes, 1, 3)?),
            }),
            DELIVERY_STATUS => {
                let mut status = DeliveryStatus {
                    final_frame: first & FINAL_FRAME != 0,
                    highest_delivered: big_endian(take(FORMAT, bytes, 1, 3)?),
                    desired_buffer_bytes: big_endian(take(FORMAT, bytes, 4, 4)?),
                    min_desired_buffer_bytes: big_endian(take(FORMAT, bytes, 8, 4)?),
                    lost: Vec::new(),
                };
                if first & LOST_REPORT != 0 {
                    let ranges = usize::from(take(FORMAT, bytes, 12, 1)?[0]);
                    let ranges = take(FORMAT, bytes, 13, 6 * ranges)?;
                    status.lost.extend(
                        ranges
                            .chunks_exact(6)
                            .map(|r| (big_endian(&r[..3]), big_endian(&r[3..]))),
                    );
                }
                Ok(XwFrame::Status(status))
            }
            kind => Err(DecodeError::Kind {
                format: FORMAT,
                kind,
            }),
        }
    }
}
