//! A congestion controller with a gate in front: QUIC passes over a path whose window
//! is 0, so whoever opens one gate only says which path the next packet takes.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use super::coupled::Coupled;
use super::losses::{Known, Losses, Rtt};
use super::resume::Retreat;
use super::shared::Shared;

/// Above what the library's own pacer looks at: it does not pace. We do
/// ([`crate::pacer`]), before a path is chosen, so that one that has to wait holds up
/// no other.
const UNPACED: u64 = 1 << 40;

/// Room for a few datagrams that acknowledge.
const ACKS: u64 = 16 << 10;

/// Makes gated controllers of one connection.
pub(crate) struct Gates {
    pub(crate) shared: Shared,
    pub(crate) inner: Inner,
}

/// Controllers behind the gates.
#[derive(Clone)]
pub(crate) enum Inner {
    /// One by the library's interface, which knows of one path, and whether it takes back itself what it did
    /// for losses that were none: of the others the state before is kept.
    Library(Arc<dyn ControllerFactory + Send + Sync>, bool),
    /// One of ours, coupled with those of the other paths.
    Coupled(&'static dyn braid_core::cc::Rule),
}

impl Gates {
    /// Whether controllers take back themselves what they did for losses that were none.
    fn takes_back(&self) -> bool {
        matches!(self.inner, Inner::Library(_, true))
    }

    /// A controller that knows nothing yet.
    fn fresh(&self, slot: usize, now: Instant, mtu: u16) -> Box<dyn Controller> {
        match &self.inner {
            Inner::Library(factory, _) => Arc::clone(factory).build(now, mtu),
            Inner::Coupled(rule) => {
                let shared = self.shared.clone();
                Box::new(Coupled::new(*rule, shared, slot, now, mtu))
            }
        }
    }
}

impl ControllerFactory for Gates {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let mtu64 = u64::from(mtu);
        let slot = self.shared.add(Coupled::INITIAL_PACKETS * mtu64, mtu64);
        let inner = self.fresh(slot, now, mtu);
        let end = Arc::new(End {
            shared: self.shared.clone(),
            slot,
        });
        let gate = Gate {
            end,
            gates: self,
            inner,
            retreat: None,
            renewed: None,
            losses: Losses::default(),
            rtt: None,
            before: None,
            strange: false,
            probes: BTreeSet::new(),
            arrived: false,
        };
        gate.show();
        Box::new(gate)
    }
}

/// Ends the slot when the last controller of the path is gone.
#[derive(Debug)]
struct End {
    shared: Shared,
    slot: usize,
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.end(self.slot);
    }
}

pub(crate) struct Gate {
    end: Arc<End>,
    gates: Arc<Gates>,
    inner: Box<dyn Controller>,
    retreat: Option<Retreat>,
    /// When the controller began anew: what left before tells of the radio as it was.
    renewed: Option<Instant>,
    losses: Losses,
    rtt: Option<Rtt>,
    /// The controller as it was before the losses that may be none.
    before: Option<Box<dyn Controller>>,
    /// The library has taken packets for lost that are not known here.
    strange: bool,
    /// Numbers of probes of what fits that are under way.
    probes: BTreeSet<u64>,
    /// All that the library took for lost has arrived.
    arrived: bool,
}

impl Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate")
            .field("slot", &self.end.slot)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl Gate {
    /// The number of the slot of a controller, which is one of ours.
    pub(crate) fn slot(controller: &dyn Controller) -> Option<usize> {
        let any = controller.clone_box().into_any();
        any.downcast::<Self>().ok().map(|gate| gate.end.slot)
    }

    /// Replaces the controller by a fresh one, where the path's radio has changed. Returns what is
    /// asked of the slot on this occasion.
    fn renew<T>(&mut self, now: Instant, ask: impl FnOnce(&mut super::Slot) -> T) -> T {
        let slot = self.end.slot;
        let (due, answer) = self.end.shared.with(slot, |s| {
            let due = std::mem::take(&mut s.restart_requested).then_some(s.mtu);
            (due, ask(s))
        });
        if let Some(mtu) = due {
            self.inner = self.gates.fresh(slot, now, mtu as u16);
            (self.retreat, self.before) = (None, None);
            self.losses.drop_held();
            self.renewed = Some(now);
        }
        answer
    }

    /// Tells the controller of what is lost by now.
    fn find(&mut self, now: Instant) {
        let Some(rtt) = self.rtt else {
            return;
        };
        for lost in self.losses.settle(rtt, now) {
            self.inner.on_packet_lost(lost.bytes, lost.number, now);
        }
        if !self.losses.is_open() {
            self.before = None;
        }
        // BBR can take back what it did for the last loss of an episode alone, and one that is
        // none, right after it has looked for the round-trip time, cuts the path to what was
        // under way then. It loses nothing by hearing of losses two round trips late.
        let hold = self.gates.takes_back() && self.losses.is_reordered();
        let Some(found) = self.losses.find(rtt, now, hold) else {
            return;
        };
        if self.before.is_none() && !self.gates.takes_back() {
            self.before = Some(self.inner.clone_box());
        }
        let (mut bytes, mut largest) = (0, 0);
        for lost in found.packets {
            if !lost.given_up {
                self.land(lost.number, lost.bytes);
            }
            match found.held {
                true => self.count_lost(),
                false => self.lose(lost.number, lost.bytes, now),
            }
            bytes += u64::from(lost.bytes);
            largest = lost.number;
        }
        self.congested(now, found.sent, found.persistent, false, (bytes, largest));
    }

    /// A packet is not under way any more.
    fn land(&self, number: u64, bytes: u16) {
        self.end.shared.with(self.end.slot, |s| {
            s.landed(number, bytes.into());
        });
    }

    fn count_lost(&self) {
        self.end.shared.with(self.end.slot, |s| s.lost += 1);
    }

    fn lose(&mut self, number: u64, bytes: u16, now: Instant) {
        self.count_lost();
        self.inner.on_packet_lost(bytes, number, now);
    }

    /// Makes the controller answer congestion.
    fn congested(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        (bytes, largest): (u64, u64),
    ) {
        if self.renewed.is_some_and(|t| sent < t) {
            return;
        }
        let jump = self.end.shared.with(self.end.slot, |s| s.jump.take());
        if jump.is_some_and(|j| j.has_begun()) && !persistent {
            self.retreat = Some(Retreat::new(now));
        }
        let of_jump = |r: &mut Retreat| !persistent && r.take(sent, ecn, bytes, largest);
        if !self.retreat.as_mut().is_some_and(of_jump) {
            self.inner
                .on_congestion_event(now, sent, persistent, ecn, bytes, largest);
        }
        self.show();
    }

    /// Takes back what the controller did for losses, where all of them were none (as Eifel,
    /// RFC 4015, does).
    fn take_back(&mut self) {
        if !self.losses.were_spurious() {
            return;
        }
        // The controller has not heard of it.
        self.retreat = None;
        match self.before.take() {
            Some(mut before) => {
                if before.window() > self.inner.window() {
                    let mtu = self.end.shared.with(self.end.slot, |s| s.mtu);
                    before.on_mtu_update(mtu as u16);
                    self.inner = before;
                }
            }
            None => self.inner.on_spurious_congestion_event(),
        }
        self.show();
    }

    /// When something was sent, as the controller is told: BBR takes the least round-trip time
    /// for what the path takes without a queue, and where packets overtake each other that is
    /// the time of one that has overtaken all others.
    fn sent_at(&self, sent: Instant) -> Instant {
        match self.gates.takes_back() {
            true => sent.checked_sub(self.losses.spread()).unwrap_or(sent),
            false => sent,
        }
    }

    fn show(&self) {
        let (window, metrics) = (self.inner.window(), self.inner.metrics());
        self.end.shared.with(self.end.slot, |s| {
            s.overtaken = self.rtt.and_then(|rtt| self.losses.overtaken(s.asked, rtt));
            s.follow(window);
            s.pacing = metrics.pacing_rate;
            s.slow_start = metrics.ssthresh.is_none_or(|t| window < t);
        });
    }
}

impl Controller for Gate {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest: u64) {
        self.find(now);
        self.inner.on_sent(now, bytes, largest);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        // A longer packet is the library's own probe of what fits.
        match self.renew(now, |s| (u64::from(bytes) > s.mtu, s.probing)) {
            (true, _) => {}
            (false, true) => {
                self.probes.insert(number);
            }
            (false, false) => self.losses.sent(number, bytes, now),
        }
        let at = self.sent_at(now);
        self.inner.on_packet_sent(at, bytes, number);
        let window = self.inner.window();
        self.end.shared.with(self.end.slot, |s| match s.exempt {
            true => s.exempt_in_flight.sent(number, bytes),
            false => {
                s.in_flight += u64::from(bytes);
                if let Some(jump) = s.jump.as_mut().filter(|_| s.in_flight > window / 2) {
                    jump.begin(now);
                    // As far as the controller knows, it was in full use.
                    if s.in_flight + s.mtu > window {
                        s.jump_filled_at = Some(now);
                    }
                }
            }
        });
    }

    fn on_cwnd_limited(&mut self) {
        // Said as well when it is the gate that is closed.
        let full = |s: &mut super::Slot| !s.is_capped() && s.in_flight + s.mtu > s.window;
        if self.end.shared.with(self.end.slot, full) {
            self.inner.on_cwnd_limited();
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let times = Rtt {
            smoothed: rtt.get(),
            min_rtt: rtt.min(),
            deviation: self.renew(now, |s| s.rttvar),
        };
        self.rtt = Some(times);
        self.probes.remove(&number);
        let known = self.losses.acked(number, sent, times, now);
        let idle = self.end.shared.with(self.end.slot, |s| {
            let counts = match known {
                Known::Lost => {
                    s.lost = s.lost.saturating_sub(1);
                    true
                }
                Known::UnderWay | Known::Nothing => s.landed(number, bytes),
            };
            if counts {
                s.delivery.arrived(bytes, now, rtt.get());
            }
            (s.srtt, s.min_rtt) = (rtt.get(), rtt.min());
            if s.newest_acked_sent_at < Some(sent) {
                (s.newest_acked_sent_at, s.newest_acked_at) = (Some(sent), Some(now));
            }
            if let Some(jump) = &mut s.jump {
                jump.acked(bytes);
            }
            let off = s.srtt.abs_diff(now.duration_since(sent));
            s.rttvar = (3 * s.rttvar + off) / 4;
            s.was_idle(Some(sent))
        });
        let sent = self.sent_at(sent);
        self.inner.on_ack(now, sent, bytes, number, idle, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        _app_limited: bool,
        largest: Option<u64>,
    ) {
        if let Some(rtt) = self.rtt.filter(|_| std::mem::take(&mut self.arrived)) {
            self.losses.arrived(rtt, now);
        }
        self.losses.read(now);
        self.take_back();
        let in_flight = in_flight.saturating_sub(self.losses.written_off());
        let (idle, newest) = self.end.shared.with(self.end.slot, |s| {
            s.in_flight = in_flight.saturating_sub(s.exempt_in_flight.bytes());
            s.jump = s.jump.filter(|j| !j.is_over(now));
            (s.was_idle(s.newest_acked_sent_at), s.newest_acked_sent_at)
        });
        if let Some(retreat) = self.retreat.take_if(|r| r.is_over(newest)) {
            retreat.tell(&mut *self.inner, now);
        }
        self.inner.on_end_acks(now, in_flight, idle, largest);
        self.find(now);
        self.show();
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        lost_bytes: u64,
        largest: u64,
    ) {
        // Of others it was told, or will be.
        if ecn || std::mem::take(&mut self.strange) {
            self.congested(now, sent, persistent, ecn, (lost_bytes, largest));
        }
        self.show();
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        // One that only acknowledged: it was never under way.
        if bytes == 0 {
            return;
        }
        match self.losses.given_up(number) {
            Known::UnderWay => self.land(number, bytes),
            Known::Lost => {}
            Known::Nothing if self.probes.remove(&number) => {
                self.land(number, bytes);
            }
            Known::Nothing => {
                self.strange = true;
                self.land(number, bytes);
                self.lose(number, bytes, now);
            }
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.arrived = true;
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
        self.end.shared.with(self.end.slot, |s| s.mtu = mtu.into());
        self.show();
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, delay);
    }

    fn window(&self) -> u64 {
        let window = self.inner.window();
        self.end.shared.with(self.end.slot, |s| {
            let window = s.raised(window);
            // The library counts those that are left out.
            let exempt = s.exempt_in_flight.bytes() + self.losses.written_off();
            if s.exempt {
                return window.max(s.in_flight).saturating_add(exempt + ACKS);
            }
            if s.open || !s.scheduled {
                window.saturating_add(exempt)
            } else {
                0
            }
        })
    }

    fn metrics(&self) -> ControllerMetrics {
        // Not by way of `window`: the library takes a window of 0 here for a mistake.
        let mut metrics = self.inner.metrics();
        metrics.pacing_rate = None;
        metrics.send_quantum = None;
        metrics.congestion_window = UNPACED;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            end: Arc::clone(&self.end),
            gates: Arc::clone(&self.gates),
            inner: self.inner.clone_box(),
            retreat: self.retreat,
            renewed: self.renewed,
            // Where the path is another one, the library tells nothing of what left before.
            losses: Losses::default(),
            rtt: self.rtt,
            before: None,
            strange: false,
            probes: self.probes.clone(),
            arrived: false,
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_acknowledges_takes_no_room() {
        let (shared, now) = (Shared::default(), Instant::now());
        let gates = Arc::new(Gates {
            shared: shared.clone(),
            inner: crate::congestion::inner("cubic").unwrap(),
        });
        let mut gate = gates.build(now, 1200);
        let window = gate.window();
        shared.with(0, |s| s.exempt = true);
        (0..1000).for_each(|n| gate.on_packet_sent(now, 300, n));
        shared.with(0, |s| s.exempt = false);
        // The library holds 300 kB against the window.
        assert_eq!(gate.window(), 300_000 + window);
        assert_eq!(shared.with(0, |s| s.in_flight), 0);
        gate.on_packet_sent(now, 1200, 1000);
        assert_eq!(shared.with(0, |s| s.in_flight), 1200);
        (0..1000).for_each(|n| gate.on_packet_lost(300, n, now));
        assert_eq!(gate.window(), window);
        // One without anything that counts is none that the path has lost.
        let lost = shared.with(0, |s| s.lost);
        gate.on_packet_lost(0, 5000, now);
        assert_eq!(shared.with(0, |s| s.lost), lost);
        assert_eq!(shared.with(0, |s| s.in_flight), 1200);
    }

    #[test]
    fn what_left_before_the_radio_changed_tells_nothing_of_it() {
        let (shared, now) = (Shared::default(), Instant::now());
        let ms = Duration::from_millis;
        for name in crate::congestion::names() {
            let gates = Arc::new(Gates {
                shared: shared.clone(),
                inner: crate::congestion::inner(name).unwrap(),
            });
            let mut gate = gates.build(now, 1200);
            let slot = Gate::slot(&*gate).unwrap();
            let lost = |gate: &mut Box<dyn Controller>, sent, t| {
                // One that left before the gate was there.
                gate.on_packet_lost(1200, 99, now + ms(t));
                gate.on_congestion_event(now + ms(t), now + ms(sent), false, false, 1200, 9);
            };
            gate.on_packet_sent(now, 1200, 9);
            lost(&mut gate, 0, 50);
            shared.with(slot, |s| {
                s.min_rtt = ms(40);
                s.renew(20e6);
            });
            // Not before something leaves: the window is there at once.
            assert_eq!(gate.window(), 400_000, "{name}");
            gate.on_packet_sent(now + ms(60), 1200, 10);
            lost(&mut gate, 55, 90);
            assert_eq!(gate.window(), 400_000, "{name}");
            assert!(shared.with(slot, |s| s.slow_start), "{name}");
            lost(&mut gate, 60, 100);
            assert!(gate.window() < 400_000, "{name}");
        }
    }
}
