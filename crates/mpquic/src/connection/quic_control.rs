//! QUIC's own frames beside data, and when QUIC is polled for them.
//!
//! Polled at once, it would answer every second acknowledgement of the lane with a packet
//! on its first path, however slow that is, and where many receivers share a Wi-Fi channel
//! one such packet takes the place of one with data. So these answers wait for data to take
//! them along.

use std::time::{Duration, Instant};

/// How long an answer waits for data: less than the peer was told (`max_ack_delay`, 25 ms).
const MAX_WAIT: Duration = Duration::from_millis(20);
/// Bytes that an answer takes in a packet with data, for all paths: an identifier, the
/// largest number and a delay, some ranges, and ECN counts. Rather more: one that is longer
/// than all others, and rare, has the library take the loss of others for a path that does
/// not carry packets of their size.
const ROOM: usize = 64;

/// State of QUIC's own frames: whether any may wait to be sent.
#[derive(Debug, Default)]
pub(super) struct QuicControl {
    /// Whether something may wait.
    pending: bool,
    /// Events since [`QuicControl::is_wanted`] was called last.
    events: u32,
    /// Events among them that only brought an acknowledgement of the lane.
    lane_acks: u32,
    /// Whether acknowledgements of the lane may not have been acknowledged.
    ack_owed: bool,
    /// When they are to be, with data or without.
    due: Option<Instant>,
}

impl QuicControl {
    /// Notes that QUIC may have something to send.
    pub(super) fn mark_pending(&mut self) {
        self.pending = true;
    }

    /// Counts an event that QUIC was given.
    pub(super) fn event_arrived(&mut self) {
        self.events = self.events.saturating_add(1);
    }

    /// Counts an event that only brought an acknowledgement of the lane.
    pub(super) fn lane_ack_arrived(&mut self, now: Instant) {
        self.lane_acks = self.lane_acks.saturating_add(1);
        self.due.get_or_insert(now + MAX_WAIT);
    }

    /// Returns whether QUIC is to be polled now.
    pub(super) fn is_wanted(&mut self) -> bool {
        self.pending |= self.events > self.lane_acks;
        self.ack_owed |= self.lane_acks > 0;
        (self.events, self.lane_acks) = (0, 0);
        self.pending
    }

    /// Returns when it is to be polled, whatever happens.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Handles the passing of time.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.due.is_some_and(|t| t <= now) {
            (self.pending, self.due) = (true, None);
        }
    }

    /// Notes that QUIC was polled, and has nothing more to send.
    pub(super) fn drained(&mut self) {
        self.pending = false;
        self.ack_sent();
    }

    /// Notes that acknowledgements of QUIC went with data.
    pub(super) fn ack_sent(&mut self) {
        (self.ack_owed, self.due) = (false, None);
    }

    /// Returns the bytes to leave free in a packet with data.
    pub(super) fn room(&self) -> usize {
        if self.ack_owed { ROOM } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Told of `arrived` packets, of which `acks` were acknowledgements of the lane.
    fn control(arrived: u32, acks: u32, now: Instant) -> QuicControl {
        let mut control = QuicControl::default();
        (0..arrived).for_each(|_| control.event_arrived());
        (0..acks).for_each(|_| control.lane_ack_arrived(now));
        control
    }

    #[test]
    fn answers_to_acknowledgements_wait_for_data() {
        let now = Instant::now();
        let mut control = control(3, 3, now);
        assert!(!control.is_wanted());
        assert_eq!(control.room(), ROOM);
        control.ack_sent();
        assert_eq!((control.room(), control.due()), (0, None));
        control.on_timeout(now + MAX_WAIT);
        assert!(!control.is_wanted());
    }

    #[test]
    fn without_data_they_wait_no_longer_than_the_peer_was_told() {
        let now = Instant::now();
        let mut control = control(1, 1, now);
        assert!(!control.is_wanted());
        let due = control.due().unwrap();
        assert!(due <= now + Duration::from_millis(25));
        control.on_timeout(due - Duration::from_micros(1));
        assert!(!control.is_wanted());
        control.on_timeout(due);
        assert!(control.is_wanted());
        control.drained();
        assert!(!control.is_wanted() && control.room() == 0);
    }

    #[test]
    fn what_is_not_an_acknowledgement_is_answered_at_once() {
        let now = Instant::now();
        assert!(control(2, 1, now).is_wanted());
        let mut control = control(0, 0, now);
        assert!(!control.is_wanted());
        control.mark_pending();
        assert!(control.is_wanted());
    }

    #[test]
    fn a_later_acknowledgement_does_not_put_the_answer_off() {
        let now = Instant::now();
        let mut control = control(1, 1, now);
        control.event_arrived();
        control.lane_ack_arrived(now + MAX_WAIT / 2);
        assert_eq!(control.due(), Some(now + MAX_WAIT));
    }
}
