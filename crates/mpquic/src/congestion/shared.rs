//! State that the congestion controllers of one connection share: the scheduler reads the
//! windows of its paths from it, coupled controllers those of their siblings.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use braid_core::cc::Facts;

use super::ack_only::ExemptPackets;
use super::delivery::Delivery;
use super::drain::Cap;
use super::losses::Overtaken;
use super::resume::Jump;

/// One path's controller, as seen from outside.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Whether its path has not ended.
    pub(crate) alive: bool,
    /// Whether it belongs to a path that the scheduler gives data to; the gate of another is
    /// always open.
    pub(crate) scheduled: bool,
    /// The scheduler has data leave here now.
    pub(crate) open: bool,
    /// Only acknowledgements of the datagram lane leave now, which no window holds back,
    /// as it does not those of QUIC (RFC 9002 7).
    pub(crate) exempt: bool,
    /// Congestion window, bytes.
    pub(crate) window: u64,
    /// Congestion window of the controller alone, bytes: without a jump or a cap.
    pub(super) controller_window: u64,
    /// Bytes on their way that are acknowledged one day, without those that no window
    /// holds back.
    pub(crate) in_flight: u64,
    /// Packets on their way that no window holds back.
    pub(super) exempt_in_flight: ExemptPackets,
    /// Whether it had room, and nothing was sent: for want of data, or because the scheduler had
    /// another carry it. Acknowledgements may not open such a window (RFC 9002 7.8).
    /// The library's own view of that is wrong for a path that is held back.
    pub(crate) idle: bool,
    /// Bytes of a full UDP payload.
    pub(crate) mtu: u64,
    /// Whether packets sent now probe for size: their loss says nothing of congestion (RFC 8899 3).
    pub(crate) probing: bool,
    pub(crate) srtt: Duration,
    /// The least round-trip time so far.
    pub(super) min_rtt: Duration,
    /// Mean deviation of the round-trip time (RFC 9002 5.3).
    pub(crate) rttvar: Duration,
    /// Rate at which the controller wants to be sent, bytes per second, if it says.
    pub(crate) pacing: Option<u64>,
    pub(crate) slow_start: bool,
    /// A window above the controller's own, for its first round trips.
    pub(crate) jump: Option<Jump>,
    /// Whether another controller is to take over, as the radio has changed.
    pub(super) restart_requested: bool,
    /// A window below the controller's own.
    pub(super) cap: Option<Cap>,
    /// When something was sent last in a jump that filled the controller's window.
    pub(super) jump_filled_at: Option<Instant>,
    /// Send time of the newest packet that has been acknowledged.
    pub(crate) newest_acked_sent_at: Option<Instant>,
    /// Arrival time of that acknowledgement.
    pub(crate) newest_acked_at: Option<Instant>,
    /// Packets lost since it began.
    pub(crate) lost: u64,
    /// Data that has arrived at the peer.
    pub(crate) delivery: Delivery,
    /// The first that was overtaken, and that the library still waits for.
    pub(crate) overtaken: Option<Overtaken>,
    /// For what was sent until then, the library was asked whether it is lost.
    pub(crate) asked: Option<Instant>,
    /// For coupled controllers; none until a round-trip time is known.
    pub(crate) facts: Option<Facts>,
}

/// Queue that packets of others may have at a path, at least: half of what is good for voice.
const SHORT_QUEUE: Duration = Duration::from_millis(5);
/// Packets that the window for these has room for, at least.
const SHORT_WINDOW: u64 = 10;

impl Slot {
    /// Returns a window with which the path's queue stays short: what it has lately delivered in
    /// the least round trip and a little longer, and a quarter more while no queue shows.
    pub(crate) fn short_window(&self) -> u64 {
        let Some(rate) = self.delivery.greatest() else {
            return self.window;
        };
        let slack = SHORT_QUEUE.max(self.min_rtt / 8);
        let shows = self.srtt.saturating_sub(self.min_rtt) > slack;
        let times = if shows { 1.0 } else { 1.25 };
        let bytes = times * rate * (self.min_rtt + slack).as_secs_f64();
        self.window.min((bytes as u64).max(SHORT_WINDOW * self.mtu))
    }

    pub(super) fn new(window: u64, mtu: u64) -> Self {
        Self {
            alive: true,
            scheduled: false,
            open: true,
            exempt: false,
            window,
            controller_window: window,
            in_flight: 0,
            exempt_in_flight: ExemptPackets::default(),
            idle: false,
            mtu,
            probing: false,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            pacing: None,
            slow_start: true,
            jump: None,
            restart_requested: false,
            cap: None,
            jump_filled_at: None,
            newest_acked_sent_at: None,
            newest_acked_at: None,
            lost: 0,
            delivery: Delivery::default(),
            overtaken: None,
            asked: None,
            facts: None,
        }
    }
}

impl Slot {
    /// The controller's window, or the jump above it, or the cap below.
    pub(super) fn raised(&self, window: u64) -> u64 {
        let window = self.jump.map_or(window, |j| j.window.max(window));
        self.cap.map_or(window, |c| c.window.min(window))
    }

    /// The controller's window has changed.
    pub(super) fn follow(&mut self, window: u64) {
        self.controller_window = window;
        self.window = self.raised(window);
    }

    /// Whether the controller's own window was not in full use when something left at `sent`.
    pub(super) fn was_idle(&self, sent: Option<Instant>) -> bool {
        self.is_capped()
            || self.idle && (self.jump_filled_at.is_none() || sent > self.jump_filled_at)
    }

    /// A packet was acknowledged or lost. Returns whether congestion control counts it.
    pub(super) fn landed(&mut self, number: u64, bytes: u64) -> bool {
        let counts = !self.exempt_in_flight.ended(number);
        if counts {
            self.in_flight = self.in_flight.saturating_sub(bytes);
        }
        counts
    }

    /// Begins a jump, in place of another one that was not made use of.
    pub(crate) fn resume(&mut self, jump: Jump) {
        self.stay();
        if self.jump.is_none() && jump.window > self.controller_window {
            self.window = jump.window;
            self.srtt = jump.rtt;
            self.jump = Some(jump);
        }
    }

    /// Begins anew on a path that could carry more by now, `rate` bytes per second, than its
    /// window lets it: what it learned is of another radio (as RFC 9000 9.4 has it where a
    /// path changes). What it had under way goes on, or a jump above it.
    pub(crate) fn renew(&mut self, rate: f64) {
        // Of the time without a queue: that which stands goes at the new rate.
        let rtt = self.min_rtt;
        let under_way = self.jump.is_some_and(|j| j.has_begun());
        if under_way || self.controller_window as f64 >= rate * rtt.as_secs_f64() {
            return;
        }
        let Some(jump) = Jump::to(rate, rtt) else {
            return;
        };
        let jump = jump.at_least(self.controller_window);
        self.restart_requested = true;
        self.cap = None;
        (self.slow_start, self.lost) = (true, 0);
        (self.window, self.srtt) = (jump.window, rtt);
        self.jump = Some(jump);
    }

    /// Notes that the path is validated: it may carry data. Where that took `long`, what was sent
    /// before was lost while the path carried nothing, and its controller begins anew.
    pub(crate) fn validated(&mut self, long: bool) {
        self.scheduled = true;
        self.restart_requested |= long;
    }

    /// A jump that was not made use of is none any more.
    pub(crate) fn stay(&mut self) {
        self.jump = self.jump.filter(Jump::has_begun);
        self.window = self.raised(self.controller_window);
    }
}

/// Slots that have ended are left alone as long as there are no more of them: whoever has
/// not heard yet that one has ended does not take another for it.
const LEFT_ALONE: usize = 64;

/// The slots of one connection.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    all: Vec<Slot>,
    /// Slots that have ended, the first of them in front.
    ended: VecDeque<usize>,
}

impl Deref for Slots {
    type Target = Vec<Slot>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl DerefMut for Slots {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.all
    }
}

/// The slots of one connection, as its controllers share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Slots>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Slots> {
        // Nothing that is done under the lock leaves a slot half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new slot. Its number may be that of one that ended long ago: a peer that moves
    /// about, or opens and closes paths, makes no more of them than there are at a time.
    pub(super) fn add(&self, window: u64, mtu: u64) -> usize {
        let mut slots = self.lock();
        let new = Slot::new(window, mtu);
        if slots.ended.len() > LEFT_ALONE
            && let Some(number) = slots.ended.pop_front()
        {
            slots[number] = new;
            return number;
        }
        slots.push(new);
        slots.len() - 1
    }

    /// A slot has ended.
    pub(super) fn end(&self, number: usize) {
        let mut slots = self.lock();
        slots[number].alive = false;
        slots[number].facts = None;
        slots.ended.push_back(number);
    }

    /// Does something with a slot.
    pub(super) fn with<T>(&self, number: usize, f: impl FnOnce(&mut Slot) -> T) -> T {
        f(&mut self.lock()[number])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_that_was_not_used_can_be_lowered_and_taken_back() {
        let ms = Duration::from_millis;
        let mut slot = Slot::new(12_000, 1200);
        let to = |rate| Jump::to(rate, ms(50)).unwrap();
        slot.resume(to(40e6));
        assert_eq!((slot.window, slot.srtt), (1_000_000, ms(50)));
        slot.resume(to(4e6));
        assert_eq!(slot.window, 100_000);
        slot.stay();
        assert!(slot.jump.is_none() && slot.window == 12_000);
        slot.resume(to(4e4));
        assert!(slot.jump.is_none() && slot.window == 12_000);
        // What a liar says is bounded.
        slot.resume(to(1e30));
        assert_eq!(slot.window, 64 << 20);
        // One that is made use of goes on.
        if let Some(jump) = &mut slot.jump {
            jump.begin(Instant::now());
        }
        slot.resume(to(4e6));
        slot.stay();
        assert_eq!(slot.window, 64 << 20);
    }

    #[test]
    fn a_path_begins_anew_where_its_window_is_less_than_the_radio_carries() {
        let ms = Duration::from_millis;
        let slot = |own, rate| {
            let mut slot = Slot::new(own, 1200);
            (slot.lost, slot.min_rtt) = (9, ms(40));
            slot.renew(rate);
            (slot.restart_requested, slot.window, slot.lost)
        };
        assert_eq!(slot(100_000, 10e6), (true, 200_000, 0));
        assert_eq!(slot(300_000, 10e6), (true, 300_000, 0));
        assert_eq!(slot(400_000, 10e6), (false, 400_000, 9));
    }

    #[test]
    fn slots_that_ended_are_used_again_later() {
        let shared = Shared::default();
        let lasting = shared.add(1, 1);
        let mut last = Vec::new();
        for n in 0..1000 {
            let slot = shared.add(n, 1);
            assert!(slot != lasting && !last.contains(&slot));
            assert!(shared.with(slot, |s| s.alive && s.window == n));
            shared.end(slot);
            last.push(slot);
            last.drain(..last.len().saturating_sub(LEFT_ALONE));
        }
        assert!(shared.lock().len() <= LEFT_ALONE + 3);
        assert!(shared.with(lasting, |s| s.alive));
    }
}
