//! QUIC's own frames beside data, and when QUIC is polled for them.
//!
//! Polled at once, it would answer every second acknowledgement of the lane with a packet
//! on its first path, however slow that is, and where many receivers share a Wi-Fi channel
//! one such packet takes the place of one with data. So these answers wait for data to take
//! them along.

use std::time::{Duration, Instant};

/// How long an answer waits for data: less than the peer was told (`max_ack_delay`, 25 ms).
const PATIENCE: Duration = Duration::from_millis(20);
/// Bytes that an answer takes in a packet with data, for all paths: an identifier, the
/// largest number and a delay, some ranges, and ECN counts. Rather more: one that is longer
/// than all others, and rare, has the library take the loss of others for a path that does
/// not carry packets of their size.
const ROOM: usize = 64;

/// QUIC's own frames.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Something may wait.
    stirred: bool,
    /// Events since it was last looked.
    arrived: u32,
    /// Events among them that only brought an acknowledgement of the lane.
    acks: u32,
    /// Whether there were such that may not have been answered.
    owed: bool,
    /// Until when that may be so.
    due: Option<Instant>,
}

impl Own {
    /// Something has happened.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// QUIC was told of something.
    pub(super) fn arrived(&mut self) {
        self.arrived = self.arrived.saturating_add(1);
    }

    /// Counts an arrival that was an acknowledgement of the lane.
    pub(super) fn acknowledged(&mut self, now: Instant) {
        self.acks = self.acks.saturating_add(1);
        self.due.get_or_insert(now + PATIENCE);
    }

    /// Whether QUIC is to be asked now.
    pub(super) fn is_wanted(&mut self) -> bool {
        self.stirred |= self.arrived > self.acks;
        self.owed |= self.acks > 0;
        (self.arrived, self.acks) = (0, 0);
        self.stirred
    }

    /// When it is to be, whatever happens.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Time has passed.
    pub(super) fn passed(&mut self, now: Instant) {
        if self.due.is_some_and(|t| t <= now) {
            (self.stirred, self.due) = (true, None);
        }
    }

    /// Records that QUIC was polled, and had nothing more to say.
    pub(super) fn said(&mut self) {
        self.stirred = false;
        self.answered();
    }

    /// Records that what QUIC had to say about packets went with data.
    pub(super) fn answered(&mut self) {
        (self.owed, self.due) = (false, None);
    }

    /// Bytes to leave free in a packet with data.
    pub(super) fn room(&self) -> usize {
        if self.owed { ROOM } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Told of `arrived` packets, of which `acks` were acknowledgements of the lane.
    fn own(arrived: u32, acks: u32, now: Instant) -> Own {
        let mut own = Own::default();
        (0..arrived).for_each(|_| own.arrived());
        (0..acks).for_each(|_| own.acknowledged(now));
        own
    }

    #[test]
    fn answers_to_acknowledgements_wait_for_data() {
        let now = Instant::now();
        let mut own = own(3, 3, now);
        assert!(!own.is_wanted());
        assert_eq!(own.room(), ROOM);
        own.answered();
        assert_eq!((own.room(), own.due()), (0, None));
        own.passed(now + PATIENCE);
        assert!(!own.is_wanted());
    }

    #[test]
    fn without_data_they_wait_no_longer_than_the_peer_was_told() {
        let now = Instant::now();
        let mut own = own(1, 1, now);
        assert!(!own.is_wanted());
        let due = own.due().unwrap();
        assert!(due <= now + Duration::from_millis(25));
        own.passed(due - Duration::from_micros(1));
        assert!(!own.is_wanted());
        own.passed(due);
        assert!(own.is_wanted());
        own.said();
        assert!(!own.is_wanted() && own.room() == 0);
    }

    #[test]
    fn what_is_not_an_acknowledgement_is_answered_at_once() {
        let now = Instant::now();
        assert!(own(2, 1, now).is_wanted());
        let mut own = own(0, 0, now);
        assert!(!own.is_wanted());
        own.stir();
        assert!(own.is_wanted());
    }

    #[test]
    fn a_later_acknowledgement_does_not_put_the_answer_off() {
        let now = Instant::now();
        let mut own = own(1, 1, now);
        own.arrived();
        own.acknowledged(now + PATIENCE / 2);
        assert_eq!(own.due(), Some(now + PATIENCE));
    }
}
