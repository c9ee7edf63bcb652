//! Paced messages: their schedule, their form, and counting them.

use std::time::Duration;

use braid_core::{Rate, Time};

use super::meter::Plan;
use super::pattern::{Corruption, Pattern};
use super::spec::MESSAGE_HEADER_BYTES;

const HEADER: usize = MESSAGE_HEADER_BYTES as usize;

/// When each message is due: message `i` at `start + i * bytes / rate`, before
/// the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    start: Time,
    rate: Rate,
    bytes: u32,
    /// The first message of the measured window.
    first: u64,
    total: u64,
}

impl Schedule {
    pub(crate) fn new(plan: Plan, rate: Rate, bytes: u32) -> Self {
        let mut s = Self {
            start: plan.start,
            rate,
            bytes,
            first: 0,
            total: 0,
        };
        s.first = s.before(plan.window);
        s.total = s.before(plan.end);
        s
    }

    /// When message `i` is due.
    pub(crate) fn due(&self, i: u64) -> Time {
        let sent = i.saturating_mul(u64::from(self.bytes));
        // A specification with a rate of zero does not pass its check.
        self.start + self.rate.time_for(sent).unwrap_or(Duration::MAX)
    }

    /// Number of messages due before `t`.
    fn before(&self, t: Time) -> u64 {
        let guess = self.rate.bytes_in(t.since(self.start)) / u64::from(self.bytes);
        // Rounding leaves the guess at most one off to either side.
        (guess.saturating_sub(1)..)
            .find(|i| self.due(*i) >= t)
            .unwrap_or(u64::MAX)
    }

    /// Number of messages in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Numbers of the messages that are due in the measured window.
    pub(crate) fn window(&self) -> std::ops::Range<u64> {
        self.first..self.total
    }
}

/// Writes and reads messages of one length: number, time stamp, length and a
/// check of the three (8 + 8 + 8 + 8 bytes, little-endian), then payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codec {
    pattern: Pattern,
    bytes: u32,
}

impl Codec {
    pub(crate) fn new(pattern: Pattern, bytes: u32) -> Self {
        Self { pattern, bytes }
    }

    /// Length of a message.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.bytes)
    }

    fn payload_offset(self, number: u64) -> u64 {
        number.wrapping_mul(u64::from(self.bytes) - HEADER as u64)
    }

    fn header(self, number: u64, stamp: Time) -> [u8; HEADER] {
        let mut h = [0; HEADER];
        h[..8].copy_from_slice(&number.to_le_bytes());
        h[8..16].copy_from_slice(&stamp.as_nanos().to_le_bytes());
        h[16..24].copy_from_slice(&u64::from(self.bytes).to_le_bytes());
        let check = self.pattern.digest(&h[..24]);
        h[24..].copy_from_slice(&check.to_le_bytes());
        h
    }

    /// Writes message `number`, stamped `stamp`, over `buf`, which has its length.
    pub(crate) fn write(self, number: u64, stamp: Time, buf: &mut [u8]) {
        buf[..HEADER].copy_from_slice(&self.header(number, stamp));
        self.pattern
            .fill(self.payload_offset(number), &mut buf[HEADER..]);
    }

    /// Reads a message: its number and stamp.
    ///
    /// # Errors
    /// The first byte that is not as it was sent; offsets count from the start
    /// of the message.
    pub(crate) fn read(self, buf: &[u8]) -> Result<(u64, Time), Corruption> {
        let mismatch = |offset: usize, expected: u8, found: u8| Corruption {
            offset: offset as u64,
            expected,
            found,
            belongs_at: None,
        };
        if buf.len() != self.bytes as usize {
            // A datagram that was cut or has grown.
            let offset = buf.len().min(self.bytes as usize);
            return Err(mismatch(offset, 0, 0));
        }
        let word = |at: usize| {
            let mut w = [0; 8];
            w.copy_from_slice(&buf[at..at + 8]);
            u64::from_le_bytes(w)
        };
        let (number, stamp) = (word(0), Time::from_nanos(word(8)));
        let good = self.header(number, stamp);
        if let Some(i) = (0..HEADER).find(|i| good[*i] != buf[*i]) {
            return Err(mismatch(i, good[i], buf[i]));
        }
        let offset = self.payload_offset(number);
        match self.pattern.first_bad(offset, &buf[HEADER..]) {
            None => Ok((number, stamp)),
            Some(i) => {
                let expected = self.pattern.byte(offset + i as u64);
                Err(mismatch(HEADER + i, expected, buf[HEADER + i]))
            }
        }
    }
}

/// Record of the messages that have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// A bit per message.
    bits: Vec<u64>,
    /// The highest number so far plus one.
    next: u64,
}

/// How a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// After all with lower numbers that came.
    Next,
    /// After one with a higher number.
    Reordered,
    /// Once more.
    Duplicate,
}

impl Seen {
    /// Takes the number of a message, which is below the number of all.
    pub(crate) fn take(&mut self, number: u64) -> Arrival {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        if self.bits[word] & bit != 0 {
            return Arrival::Duplicate;
        }
        self.bits[word] |= bit;
        if number < self.next {
            return Arrival::Reordered;
        }
        self.next = number + 1;
        Arrival::Next
    }

    /// The highest number so far plus one.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(warmup_ns: u64, duration_ns: u64) -> Plan {
        let start = Time::from_nanos(1_000);
        Plan {
            start,
            window: start + Duration::from_nanos(warmup_ns),
            end: start + Duration::from_nanos(duration_ns),
        }
    }

    #[test]
    fn schedule_of_a_voice_call() {
        // 160 bytes every 20 ms.
        let p = plan(1_000_000_000, 10_000_000_000);
        let s = Schedule::new(p, Rate::from_bps(64_000), 160);
        assert_eq!(s.due(0), p.start);
        assert_eq!(s.due(50), p.window);
        assert_eq!((s.window(), s.total()), (50..500, 500));
    }

    #[test]
    fn codec_tells_cut_and_foreign_messages() {
        let c = Codec::new(Pattern::new(1, "down"), 100);
        let mut m = vec![0; 100];
        c.write(3, Time::from_nanos(77), &mut m);
        assert_eq!(c.read(&m), Ok((3, Time::from_nanos(77))));
        assert_eq!(c.read(&m[..60]).unwrap_err().offset, 60);
        assert!(c.read(&[0; 100]).is_err());
        let other = Codec::new(Pattern::new(1, "up"), 100);
        assert!(other.read(&m).is_err());
    }

    #[test]
    fn seen_tells_order_and_copies() {
        let mut s = Seen::default();
        let arrivals: Vec<_> = [0, 2, 1, 2, 200, 199].map(|n| s.take(n)).into();
        use Arrival::{Duplicate, Next, Reordered};
        assert_eq!(
            arrivals,
            [Next, Next, Reordered, Duplicate, Next, Reordered]
        );
        assert_eq!(s.next(), 201);
    }

    proptest! {
        #[test]
        fn counts_agree_with_due_times(rate in 1u64..10_000_000_000, bytes in 32u32..70_000, warmup in 0u64..1_000_000, more in 1u64..10_000_000) {
            let p = plan(warmup, warmup + more);
            let s = Schedule::new(p, Rate::from_bps(rate), bytes);
            let w = s.window();
            prop_assert!(s.due(w.end) >= p.end);
            prop_assert!(s.due(w.start) >= p.window);
            if w.end > 0 {
                prop_assert!(s.due(w.end - 1) < p.end);
            }
            if w.start > 0 {
                prop_assert!(s.due(w.start - 1) < p.window);
            }
        }

        #[test]
        fn any_flipped_bit_is_seen(bytes in 32u32..300, number in 0u64..1 << 40, stamp: u64, at: prop::sample::Index, bit in 0u8..8) {
            let c = Codec::new(Pattern::new(9, "down"), bytes);
            let mut m = vec![0; bytes as usize];
            c.write(number, Time::from_nanos(stamp), &mut m);
            m[at.index(bytes as usize)] ^= 1 << bit;
            prop_assert!(c.read(&m).is_err());
        }
    }
}
