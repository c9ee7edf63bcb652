//! Whether a path carries full packets.
//!
//! The library's own search for black holes takes a queue that overflows for one: short
//! packets find room in it where long ones do not. It is off on this lane, which knows what
//! was acknowledged of which length. Of a path that is alive, long datagrams that are lost
//! one and all say that it carries only short ones (RFC 8899 4.3).

use std::time::{Duration, Instant};

/// Bytes of a datagram that fits where QUIC does: in a UDP payload of 1200 bytes.
pub(super) const SHORT: usize = 1150;
/// Long ones that are lost in a row, where one has arrived before.
const MOST: u32 = 32;
/// Where none has yet.
const FEW: u32 = 4;
/// When long ones are tried again, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));

/// What is known of one path.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The latest that has arrived.
    arrived: Option<u64>,
    /// Lost after it.
    lost: u32,
    /// Whether one has arrived since long ones were tried.
    proven: bool,
    short_until: Option<Instant>,
    again: Duration,
}

impl Default for Fit {
    fn default() -> Self {
        Self {
            arrived: None,
            lost: 0,
            proven: false,
            short_until: None,
            again: AGAIN.0,
        }
    }
}

impl Fit {
    /// Bytes that the next datagram may have, of `room`.
    pub(super) fn room(&self, room: usize, now: Instant) -> usize {
        match self.short_until.is_some_and(|t| now < t) {
            true => room.min(SHORT),
            false => room,
        }
    }

    /// Whether it seems to carry only short ones.
    pub(super) fn is_short(&self) -> bool {
        self.short_until.is_some()
    }

    /// Datagram number `n`, of `len` bytes, has arrived.
    pub(super) fn arrived(&mut self, n: u64, len: usize) {
        if len > SHORT {
            self.arrived = self.arrived.max(Some(n));
            (self.lost, self.proven, self.short_until) = (0, true, None);
            self.again = AGAIN.0;
        }
    }

    /// It was lost, on a path that is not silent.
    pub(super) fn lost(&mut self, n: u64, len: usize, now: Instant) {
        if len <= SHORT || self.arrived.is_some_and(|a| n < a) {
            return;
        }
        self.lost += 1;
        if self.lost >= if self.proven { MOST } else { FEW } {
            self.short_until = Some(now + self.again);
            self.again = (2 * self.again).min(AGAIN.1);
            (self.lost, self.proven) = (0, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = 1414;

    #[test]
    fn a_path_that_loses_all_long_ones_gets_short_ones() {
        let (mut fit, now) = (Fit::default(), Instant::now());
        (0..3).for_each(|n| fit.lost(n, LONG, now));
        assert_eq!(fit.room(LONG, now), LONG);
        fit.lost(3, LONG, now);
        assert_eq!((fit.room(LONG, now), fit.room(900, now)), (SHORT, 900));
        let later = now + AGAIN.0;
        assert_eq!(fit.room(LONG, later), LONG, "tried again");
        (4..8).for_each(|n| fit.lost(n, LONG, later));
        assert_eq!(fit.room(LONG, later + AGAIN.0), SHORT, "not as soon");
        // What arrives late proves the contrary.
        fit.arrived(7, LONG);
        assert_eq!(fit.room(LONG, later), LONG);
    }

    #[test]
    fn an_overflow_is_none() {
        let (mut fit, now) = (Fit::default(), Instant::now());
        for n in 0..10_000 {
            match n % 100 {
                99 => fit.arrived(n, LONG),
                // Short ones that find room say nothing.
                50 => fit.arrived(n, SHORT),
                _ => {}
            }
        }
        (0..9_999).for_each(|n| fit.lost(n, LONG, now));
        (10_000..10_031).for_each(|n| fit.lost(n, LONG, now));
        assert_eq!(fit.room(LONG, now), LONG);
        fit.lost(10_031, LONG, now);
        assert_eq!(fit.room(LONG, now), SHORT);
    }
}
