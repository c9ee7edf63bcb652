//! Acknowledgements: ranges as in RFC 9000 19.3.1.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Malformed, get, get_time, get_u32, put};

/// More ranges than this are not written, and not read.
pub(in crate::lane) const MAX_RANGES: usize = 64;

/// An acknowledgement of datagrams of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lane) struct Ack {
    pub(in crate::lane) path: u32,
    /// When the largest was received, microseconds of the receiver's clock, modulo 2^32.
    pub(in crate::lane) received: u32,
    /// How long it waited for this, microseconds.
    pub(in crate::lane) delay: u64,
    /// First and last of each range, the latest first, without overlaps.
    pub(in crate::lane) ranges: Vec<(u64, u64)>,
}

impl Ack {
    pub(super) fn write(&self, out: &mut BytesMut) {
        let ranges = &self.ranges[..self.ranges.len().min(MAX_RANGES)];
        let Some((first, largest)) = ranges.first().copied() else {
            return;
        };
        out.put_u8(5);
        put(out, self.path.into());
        put(out, largest);
        out.put_u32(self.received);
        put(out, self.delay);
        put(out, ranges.len() as u64 - 1);
        put(out, largest - first);
        let mut before = first;
        for (first, last) in &ranges[1..] {
            put(out, before - last - 2);
            put(out, last - first);
            before = *first;
        }
    }

    pub(super) fn read(buf: &mut Bytes) -> Result<Self, Malformed> {
        const WRONG: Malformed = Malformed("ranges that are none");
        let (path, largest) = (get_u32(buf)?, get(buf)?);
        let (received, delay) = (get_time(buf)?, get(buf)?);
        let more = usize::try_from(get(buf)?).unwrap_or(usize::MAX);
        if more >= MAX_RANGES {
            return Err(Malformed("too many ranges"));
        }
        let first = largest.checked_sub(get(buf)?).ok_or(WRONG)?;
        let mut ranges = vec![(first, largest)];
        let mut before = first;
        for _ in 0..more {
            let gap = get(buf)?;
            let last = before.checked_sub(gap + 2).ok_or(WRONG)?;
            let first = last.checked_sub(get(buf)?).ok_or(WRONG)?;
            ranges.push((first, last));
            before = first;
        }
        Ok(Self {
            path,
            received,
            delay,
            ranges,
        })
    }
}
