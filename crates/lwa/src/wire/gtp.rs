//! GTP-U as far as an aggregated bearer uses it (TS 29.281): G-PDU, echo, the Xw RAN container.
//!
//! Tunnels of Xw-U run over GTP-U; its echo messages serve as probes of a link.

use super::xw::XwFrame;
use super::{DecodeError, big_endian, take};

const FORMAT: &str = "GTP-U message";
/// Version 1, protocol type GTP.
const VERSION: u8 = 0x30;
const VERSION_MASK: u8 = 0xf0;
const EXTENSION: u8 = 0x04;
const SEQUENCE: u8 = 0x02;
const N_PDU: u8 = 0x01;
const XW_RAN_CONTAINER: u8 = 0x83;
/// Unknown extension headers whose kind has this bit must not be skipped (5.2.1).
const COMPREHENSION: u8 = 0x80;

/// UDP port of GTP-U.
pub const PORT: u16 = 2152;

/// Bytes of a G-PDU's headers with an Xw-U sequence number in front of the LWAAP header.
pub const USER_DATA_BYTES: usize = 20;

/// Kind of a message (TS 29.281 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Echo request: a probe.
    EchoRequest,
    /// Echo response with its one element, recovery.
    EchoResponse,
    /// G-PDU: a packet of the tunnel, or, with nothing behind its headers, only these.
    Gpdu,
}

/// A GTP-U message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtpFrame<'a> {
    /// Kind.
    pub message: Message,
    /// Tunnel; zero in echo messages.
    pub teid: u32,
    /// Sequence number; echo messages have one.
    pub sequence: Option<u16>,
    /// Frame of Xw-U in an extension header.
    pub xw: Option<XwFrame>,
    /// Bytes behind all headers.
    pub payload: &'a [u8],
}

impl Message {
    const fn code(self) -> u8 {
        match self {
            Message::EchoRequest => 1,
            Message::EchoResponse => 2,
            Message::Gpdu => 255,
        }
    }
}

impl GtpFrame<'_> {
    /// Probe number `sequence`.
    pub const fn echo_request(sequence: u16) -> Self {
        GtpFrame {
            message: Message::EchoRequest,
            teid: 0,
            sequence: Some(sequence),
            xw: None,
            payload: &[],
        }
    }

    /// Answer to the probe number `sequence`; restart counter zero, as a receiver ignores it.
    pub const fn echo_response(sequence: u16) -> Self {
        GtpFrame {
            message: Message::EchoResponse,
            teid: 0,
            sequence: Some(sequence),
            xw: None,
            payload: &[14, 0],
        }
    }

    /// Appends the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut flags = VERSION;
        if self.xw.is_some() {
            flags |= EXTENSION;
        }
        if self.sequence.is_some() {
            flags |= SEQUENCE;
        }
        out.push(flags);
        out.push(self.message.code());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.teid.to_be_bytes());
        if flags != VERSION {
            out.extend_from_slice(&self.sequence.unwrap_or(0).to_be_bytes());
            out.push(0);
            out.push(if self.xw.is_some() {
                XW_RAN_CONTAINER
            } else {
                0
            });
        }
        if let Some(xw) = &self.xw {
            let at = out.len();
            out.push(0);
            xw.encode(out);
            out.push(0);
            // 255 ranges would not fit into the length of an extension header: see `MAX_RANGES`
            // of this module.
            out[at] = ((out.len() - at) / 4) as u8;
        }
        out.extend_from_slice(self.payload);
        let length = (out.len() - start - 8) as u16;
        out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Most lost ranges in a status that travels in an extension header: its length counts up to
/// 255 units of 4 bytes.
pub const MAX_RANGES: usize = (255 * 4 - 2 - 13) / 6;

impl<'a> GtpFrame<'a> {
    /// Reads a message; bytes behind its length are ignored.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let malformed = |reason| DecodeError::Malformed {
            format: FORMAT,
            reason,
        };
        let head = take(FORMAT, bytes, 0, 8)?;
        let flags = head[0];
        if flags & VERSION_MASK != VERSION {
            return Err(malformed("neither version 1 nor protocol type GTP"));
        }
        let message = match head[1] {
            1 => Message::EchoRequest,
            2 => Message::EchoResponse,
            255 => Message::Gpdu,
            kind => {
                return Err(DecodeError::Kind {
                    format: FORMAT,
                    kind,
                });
            }
        };
        let teid = big_endian(&head[4..8]);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let body = take(FORMAT, bytes, 8, length)?;
        let (mut sequence, mut xw, mut at) = (None, None, 0);
        if flags & (EXTENSION | SEQUENCE | N_PDU) != 0 {
            let optional = take(FORMAT, body, 0, 4)?;
            if flags & SEQUENCE != 0 {
                sequence = Some(u16::from_be_bytes([optional[0], optional[1]]));
            }
            at = 4;
            let mut next = if flags & EXTENSION != 0 {
                optional[3]
            } else {
                0
            };
            while next != 0 {
                let units = usize::from(take(FORMAT, body, at, 1)?[0]);
                if units == 0 {
                    return Err(malformed("extension header of length zero"));
                }
                let header = take(FORMAT, body, at, units * 4)?;
                let content = &header[1..header.len() - 1];
                match next {
                    XW_RAN_CONTAINER => xw = Some(XwFrame::decode(content)?),
                    kind if kind & COMPREHENSION != 0 => {
                        return Err(DecodeError::Kind {
                            format: "GTP-U extension header",
                            kind,
                        });
                    }
                    _ => {}
                }
                next = header[header.len() - 1];
                at += header.len();
            }
        }
        Ok(GtpFrame {
            message,
            teid,
            sequence,
            xw,
            payload: &body[at..],
        })
    }
}
