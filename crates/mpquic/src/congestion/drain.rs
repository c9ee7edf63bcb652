//! A window below the controller's own. On streams of QUIC, what waits in the queue of the
//! slowest path fills the peer's window, and all others stand idle: its queue is drained then,
//! as MPTCP penalizes such a subflow (Raiciu et al., How Hard Can It Be?, NSDI 2012, 4.2).

use std::time::Instant;

use super::shared::Slot;

/// A path's queue is left alone that is less than this part of its round trip.
const SHORT: f64 = 0.1;
/// At most this part of a window is taken away at a time.
const MAX_CUT: f64 = 0.5;
/// This part of a window comes back in a round trip.
const EASE: u64 = 20;
/// Packets that a path keeps.
const MIN_PACKETS: u64 = 4;

/// Such a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cap {
    pub(super) window: u64,
    /// When it may be less, and more: a round trip after it became that.
    less: Instant,
    more: Instant,
}

impl Slot {
    /// Limits the window to what the path carries without a queue, and little more.
    pub(crate) fn drain(&mut self, now: Instant) {
        let (least, srtt) = (self.min_rtt.as_secs_f64(), self.srtt.as_secs_f64());
        // Before the first sample of a path that was resumed, its queue is not known.
        let queue = if least > 0.0 { 1.0 - least / srtt } else { 0.0 };
        if self.cap.is_some_and(|c| c.less > now) || queue < SHORT {
            return;
        }
        let keep = (1.0 - queue + SHORT / 2.0).max(MAX_CUT);
        let window = (self.window.min(self.in_flight) as f64 * keep) as u64;
        self.cap = Some(Cap {
            window: window.max(MIN_PACKETS * self.mtu),
            less: now + self.srtt,
            more: now + self.srtt,
        });
        self.follow(self.controller_window);
    }

    /// A round trip without a reason to drain it gives it some more.
    pub(crate) fn ease(&mut self, now: Instant) {
        let Some(cap) = self.cap.as_mut().filter(|c| c.more <= now) else {
            return;
        };
        cap.window += cap.window / EASE;
        cap.more = now + self.srtt;
        self.cap = self.cap.filter(|c| c.window < self.controller_window);
        self.follow(self.controller_window);
    }

    /// Whether the controller's own window cannot be in full use.
    pub(super) fn is_capped(&self) -> bool {
        self.cap.is_some_and(|c| c.window < self.controller_window)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_a_queue_is_drained_and_the_window_comes_back() {
        let ms = Duration::from_millis;
        let begin = Instant::now();
        let mut slot = Slot::new(200_000, 1000);
        slot.in_flight = 200_000;
        slot.srtt = ms(21);
        slot.drain(begin);
        assert_eq!(slot.window, 200_000);
        slot.min_rtt = ms(20);
        slot.drain(begin);
        assert_eq!(slot.window, 200_000);
        slot.srtt = ms(40);
        slot.drain(begin);
        assert_eq!(slot.window, 110_000);
        // Not before it can be seen what that did.
        slot.drain(begin + ms(39));
        slot.ease(begin + ms(39));
        assert_eq!(slot.window, 110_000);
        let mut now = begin;
        for _ in 0..100 {
            now += ms(40);
            slot.ease(now);
        }
        assert_eq!((slot.window, slot.is_capped()), (200_000, false));
    }
}
