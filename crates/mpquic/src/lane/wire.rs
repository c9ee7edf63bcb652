//! Format of a DATAGRAM frame (RFC 9221) of the datagram lane.
//!
//! ```text
//! datagram = kind (1 byte) [path (i) sequence (i) sent (4 bytes)] frame*
//! frame    = 1 | 2  channel (i) offset (i) length (i) bytes   stream data; 2: its last
//!          | 3 | 4  number (i) [flow (i) sequence (i)] total (i) offset (i) length (i) bytes
//!                        part of a message; 4: to be given in the order of its flow
//!          | 5      path (i) largest (i) received (4 bytes) delay (i) count (i)
//!                   first (i) [gap (i) length (i)]*          acknowledgement
//!          | 6      channel (i) max (i)                      credit of a channel
//!          | 7      max (i)                                  credit of all together
//!          | 8      path of QUIC (i) rate (i) number (i)
//!                        what it may carry to the sender of this, 0 if that is not known;
//!                        of several the one with the greatest number holds
//!          | 9      path of QUIC (i)                         it is lost, and being closed
//!          | 10     channel (i) code (i) size (i)            reset: of `size` bytes that were
//!                        sent, no more is sent again (RESET_STREAM, RFC 9000 19.4)
//!          | 11     channel (i) code (i)                     stop: what is sent there is thrown
//!                        away (STOP_SENDING, RFC 9000 19.5)
//! ```
//!
//! (i) is a variable-length integer (RFC 9000 16), `path` the sender's number of a path,
//! `sent` and `received` microseconds of the own clock modulo 2^32, `rate` bytes per
//! second. A datagram that only
//! acknowledges has no number and is not acknowledged. Ranges are as in RFC 9000 19.3.1.

mod ack;

use std::time::Instant;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use noq_proto::coding::{Decodable, Encodable};
use noq_proto::{PathId, VarInt};
use smallvec::SmallVec;

use super::message_order::Place;
pub(super) use ack::{Ack, MAX_RANGES};

/// Kinds of datagrams.
const NUMBERED: u8 = 0x51;
pub(super) const PLAIN: u8 = 0x50;

/// Bytes that a number takes (RFC 9000 16).
const fn size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Bytes of a frame's own that stand before at most `room` bytes of stream data.
pub(super) const fn stream_header(channel: u64, offset: u64, room: usize) -> usize {
    1 + size(channel) + size(offset) + size(room as u64)
}

/// Bytes of a frame's own that stand before at most `room` bytes of a message.
pub(super) const fn message_header(
    number: u64,
    place: Option<Place>,
    total: u32,
    offset: u32,
    room: usize,
) -> usize {
    let place = match place {
        Some(p) => size(p.flow) + size(p.sequence),
        None => 0,
    };
    1 + size(number) + place + size(total as u64) + size(offset as u64) + size(room as u64)
}

/// Bytes of a numbered datagram's own: on each of the first paths the same, also later, as
/// long as there are fewer than 2^30, so that a copy finds room on another path.
pub(super) fn header(path: u32, sequence: u64) -> usize {
    1 + size(path.into()).max(2) + size(sequence).max(4) + 4
}

/// The number of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// The sender's path.
    pub(super) path: u32,
    pub(super) sequence: u64,
    /// Microseconds of the sender's clock, modulo 2^32.
    pub(super) sent: u32,
}

/// Frames of one datagram, which seldom has more than two.
pub(super) type Frames = SmallVec<[Frame; 2]>;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Stream {
        channel: u64,
        offset: u64,
        fin: bool,
        data: Bytes,
    },
    Message {
        number: u64,
        /// Place in a flow, where it is to be given in order.
        place: Option<Place>,
        total: u32,
        offset: u32,
        data: Bytes,
    },
    Ack(Ack),
    Credit {
        channel: u64,
        max: u64,
    },
    CreditOfAll {
        max: u64,
    },
    Expected {
        path: PathId,
        rate: u64,
        number: u64,
    },
    Closed {
        path: PathId,
    },
    Reset {
        channel: u64,
        code: u64,
        size: u64,
    },
    Stop {
        channel: u64,
        code: u64,
    },
}

/// Datagram that does not have the format of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datagram that is not as agreed: {0}")]
pub struct Malformed(&'static str);

/// The greatest number that a variable-length integer takes.
const MAX_NUMBER: u64 = (1 << 62) - 1;

pub(super) fn put(out: &mut BytesMut, value: u64) {
    let value = VarInt::from_u64(value.min(MAX_NUMBER)).unwrap_or(VarInt::MAX);
    value.encode(out);
}

fn get(buf: &mut Bytes) -> Result<u64, Malformed> {
    let value = VarInt::decode(buf).map_err(|_| Malformed("it ends in a number"))?;
    Ok(value.into_inner())
}

fn get_u32(buf: &mut Bytes) -> Result<u32, Malformed> {
    u32::try_from(get(buf)?).map_err(|_| Malformed("a number is too large"))
}

fn get_time(buf: &mut Bytes) -> Result<u32, Malformed> {
    buf.try_get_u32()
        .map_err(|_| Malformed("it ends in a time"))
}

fn get_data(buf: &mut Bytes) -> Result<Bytes, Malformed> {
    let len = usize::try_from(get(buf)?).unwrap_or(usize::MAX);
    if len > buf.len() {
        return Err(Malformed("it is shorter than what it says"));
    }
    Ok(buf.split_to(len))
}

/// A time on the own clock, as it is told: microseconds modulo 2^32.
pub(super) fn micros(clock: Instant, at: Instant) -> u32 {
    (at.duration_since(clock).as_micros() & u128::from(u32::MAX)) as u32
}

/// Begins a datagram.
pub(super) fn begin(number: Option<Number>, out: &mut BytesMut) {
    let Some(n) = number else {
        out.put_u8(PLAIN);
        return;
    };
    out.put_u8(NUMBERED);
    put(out, n.path.into());
    put(out, n.sequence);
    out.put_u32(n.sent);
}

impl Frame {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Stream {
                channel,
                offset,
                data,
                ..
            } => stream_header(*channel, *offset, data.len()) + data.len(),
            Self::Message {
                number,
                place,
                total,
                offset,
                data,
            } => message_header(*number, *place, *total, *offset, data.len()) + data.len(),
            _ => {
                let mut out = BytesMut::new();
                self.write(&mut out);
                out.len()
            }
        }
    }

    pub(super) fn write(&self, out: &mut BytesMut) {
        match self {
            Self::Stream {
                channel,
                offset,
                fin,
                data,
            } => {
                out.put_u8(1 + u8::from(*fin));
                put(out, *channel);
                put(out, *offset);
                put(out, data.len() as u64);
                out.put_slice(data);
            }
            Self::Message {
                number,
                place,
                total,
                offset,
                data,
            } => {
                out.put_u8(3 + u8::from(place.is_some()));
                put(out, *number);
                if let Some(place) = place {
                    put(out, place.flow);
                    put(out, place.sequence);
                }
                put(out, (*total).into());
                put(out, (*offset).into());
                put(out, data.len() as u64);
                out.put_slice(data);
            }
            Self::Ack(ack) => ack.write(out),
            Self::Credit { channel, max } => {
                out.put_u8(6);
                put(out, *channel);
                put(out, *max);
            }
            Self::CreditOfAll { max } => {
                out.put_u8(7);
                put(out, *max);
            }
            Self::Expected { path, rate, number } => {
                out.put_u8(8);
                path.encode(out);
                put(out, *rate);
                put(out, *number);
            }
            Self::Closed { path } => {
                out.put_u8(9);
                path.encode(out);
            }
            Self::Reset {
                channel,
                code,
                size,
            } => {
                out.put_u8(10);
                put(out, *channel);
                put(out, *code);
                put(out, *size);
            }
            Self::Stop { channel, code } => {
                out.put_u8(11);
                put(out, *channel);
                put(out, *code);
            }
        }
    }

    fn read(buf: &mut Bytes) -> Result<Self, Malformed> {
        let kind = buf.get_u8();
        Ok(match kind {
            1 | 2 => {
                let (channel, offset) = (get(buf)?, get(buf)?);
                let data = get_data(buf)?;
                if offset > MAX_NUMBER - data.len() as u64 {
                    return Err(Malformed("stream data beyond its greatest offset"));
                }
                let fin = kind == 2;
                Self::Stream {
                    channel,
                    offset,
                    fin,
                    data,
                }
            }
            3 | 4 => {
                let number = get(buf)?;
                let place = match kind {
                    4 => Some(Place {
                        flow: get(buf)?,
                        sequence: get(buf)?,
                    }),
                    _ => None,
                };
                let total = get_u32(buf)?;
                let offset = get_u32(buf)?;
                let data = get_data(buf)?;
                let end = u64::from(offset) + data.len() as u64;
                if end > total.into() {
                    return Err(Malformed("a message longer than it says"));
                }
                Self::Message {
                    number,
                    place,
                    total,
                    offset,
                    data,
                }
            }
            5 => Self::Ack(Ack::read(buf)?),
            6 => Self::Credit {
                channel: get(buf)?,
                max: get(buf)?,
            },
            7 => Self::CreditOfAll { max: get(buf)? },
            8 => Self::Expected {
                path: PathId::from(get_u32(buf)?),
                rate: get(buf)?,
                number: get(buf)?,
            },
            9 => Self::Closed {
                path: PathId::from(get_u32(buf)?),
            },
            10 => Self::Reset {
                channel: get(buf)?,
                code: get(buf)?,
                size: get(buf)?,
            },
            11 => Self::Stop {
                channel: get(buf)?,
                code: get(buf)?,
            },
            _ => return Err(Malformed("an unknown frame")),
        })
    }
}

/// Reads a whole datagram.
pub(super) fn read(mut buf: Bytes) -> Result<(Option<Number>, Vec<Frame>), Malformed> {
    let kind = buf.try_get_u8().map_err(|_| Malformed("it is empty"))?;
    let number = match kind {
        NUMBERED => Some(Number {
            path: get_u32(&mut buf)?,
            sequence: get(&mut buf)?,
            sent: get_time(&mut buf)?,
        }),
        PLAIN => None,
        _ => return Err(Malformed("of an unknown kind")),
    };
    let mut frames = Vec::new();
    while buf.has_remaining() {
        frames.push(Frame::read(&mut buf)?);
    }
    Ok((number, frames))
}

/// Reads a datagram; says whether it is one. For fuzzers.
///
/// # Panics
/// It is one, and is not read the same after it was written again.
#[doc(hidden)]
pub fn read_datagram(data: &[u8]) -> bool {
    let Ok((number, frames)) = read(Bytes::copy_from_slice(data)) else {
        return false;
    };
    let mut out = BytesMut::new();
    begin(number, &mut out);
    frames.iter().for_each(|f| f.write(&mut out));
    assert_eq!(read(out.freeze()), Ok((number, frames)), "{data:02x?}");
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_core::mutate::Mutator;
    use proptest::prelude::*;

    #[test]
    fn changed_datagrams_are_read_or_refused() {
        let seeds: [&[u8]; 4] = [
            include_bytes!("../../../../fuzz/seeds/lane/stream"),
            include_bytes!("../../../../fuzz/seeds/lane/message"),
            include_bytes!("../../../../fuzz/seeds/lane/ack"),
            include_bytes!("../../../../fuzz/seeds/lane/control"),
        ];
        assert!(seeds.into_iter().all(read_datagram));
        let mutated = Mutator::new(1, seeds.map(<[u8]>::to_vec)).take(50_000);
        let read = mutated.filter(|data| read_datagram(data)).count();
        assert!(read > 1000, "{read}: most of the reader is not reached");
    }

    fn number() -> impl Strategy<Value = Option<Number>> {
        let some = (any::<u32>(), 0..=MAX_NUMBER, any::<u32>());
        prop::option::of(some.prop_map(|(path, sequence, sent)| Number {
            path,
            sequence,
            sent,
        }))
    }

    fn ack() -> impl Strategy<Value = Ack> {
        let steps = prop::collection::vec((0u64..1000, 0u64..1000), 1..MAX_RANGES);
        (any::<u32>(), any::<u32>(), 0..=MAX_NUMBER, steps).prop_map(
            |(path, received, delay, steps)| {
                let mut at = 1 << 40;
                let mut ranges = Vec::new();
                for (gap, len) in steps {
                    let last = at - gap - 2;
                    ranges.push((last - len, last));
                    at = last - len;
                }
                Ack {
                    path,
                    received,
                    delay,
                    ranges,
                }
            },
        )
    }

    fn data() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from)
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let stream = (0..=MAX_NUMBER, 0..MAX_NUMBER - 300, any::<bool>(), data());
        let place =
            (0..=MAX_NUMBER, 0..=MAX_NUMBER).prop_map(|(flow, sequence)| Place { flow, sequence });
        let message = (
            0..=MAX_NUMBER,
            0u32..1000,
            0u32..1000,
            prop::option::of(place),
            data(),
        );
        prop_oneof![
            stream.prop_map(|(channel, offset, fin, data)| Frame::Stream {
                channel,
                offset,
                fin,
                data
            }),
            message.prop_map(|(number, more, offset, place, data)| Frame::Message {
                number,
                place,
                total: offset + data.len() as u32 + more,
                offset,
                data,
            }),
            ack().prop_map(Frame::Ack),
            (0..=MAX_NUMBER, 0..=MAX_NUMBER)
                .prop_map(|(channel, max)| Frame::Credit { channel, max }),
            (0..=MAX_NUMBER).prop_map(|max| Frame::CreditOfAll { max }),
            (any::<u32>(), 0..=MAX_NUMBER, 0..=MAX_NUMBER).prop_map(|(path, rate, number)| {
                Frame::Expected {
                    path: PathId::from(path),
                    rate,
                    number,
                }
            }),
            any::<u32>().prop_map(|path| Frame::Closed {
                path: PathId::from(path),
            }),
            (0..=MAX_NUMBER, 0..=MAX_NUMBER, 0..=MAX_NUMBER).prop_map(|(channel, code, size)| {
                Frame::Reset {
                    channel,
                    code,
                    size,
                }
            }),
            (0..=MAX_NUMBER, 0..=MAX_NUMBER)
                .prop_map(|(channel, code)| Frame::Stop { channel, code }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            number in number(), frames in prop::collection::vec(frame(), 0..5),
        ) {
            let mut out = BytesMut::new();
            begin(number, &mut out);
            frames.iter().for_each(|f| f.write(&mut out));
            prop_assert_eq!(read(out.freeze()), Ok((number, frames)));
        }

        #[test]
        fn headers_are_as_long_as_they_are_taken_for(
            shift in 0u32..62, number in 0..=MAX_NUMBER, path in any::<u32>(),
        ) {
            let (mut out, number) = (BytesMut::new(), number >> shift);
            begin(Some(Number { path, sequence: number, sent: 0 }), &mut out);
            prop_assert!(out.len() <= header(path, number));
            prop_assert!(header(path, number) - out.len() <= 4);
        }

        #[test]
        fn frames_are_as_long_as_they_are_taken_for(frame in frame()) {
            let mut out = BytesMut::new();
            frame.write(&mut out);
            prop_assert_eq!(out.len(), frame.bytes());
        }

        #[test]
        fn garbage_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(Bytes::from(data));
        }

        #[test]
        fn changed_and_cut_ones_are_read_or_refused(
            number in number(), frames in prop::collection::vec(frame(), 0..5),
            at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
        ) {
            let mut out = BytesMut::new();
            begin(number, &mut out);
            frames.iter().for_each(|f| f.write(&mut out));
            let at = at.index(out.len());
            out[at] = byte;
            let cut = cut.index(out.len());
            out.truncate(cut + 1);
            let _ = read(out.freeze());
        }
    }
}
