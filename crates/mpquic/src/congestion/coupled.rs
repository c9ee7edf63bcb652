//! Coupled congestion control for paths of QUIC: the rules of [`braid_core::cc`] behind
//! the library's interface. Loss detection and round-trip times are QUIC's (RFC 9002).

use std::any::Any;
use std::time::{Duration, Instant};

use braid_core::cc::{Facts, Interval, Round, RoundState, Rule, Window, Wvegas};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};

use super::shared::Shared;

/// The controller of one path.
#[derive(Clone)]
pub(crate) struct Coupled {
    rule: &'static dyn Rule,
    shared: Shared,
    slot: usize,
    mtu: f64,
    window: Window,
    interval: Interval,
    /// A loss of what was sent before has been answered.
    recovered: Instant,
    delay: Option<Delay>,
    min_rtt: Duration,
    alpha: f64,
    queue_delay: f64,
    rate: f64,
}

/// The round trip that is going on.
#[derive(Clone, Copy, Debug)]
struct Delay {
    began: Instant,
    /// Minimum of the round-trip times. The draft takes the mean, which also counts what packets
    /// wait for in bursts, for one acknowledgement of many, and for a busy processor; the
    /// minimum is the queue that stands, as Linux's TCP Vegas measures it.
    min_rtt: Duration,
}

impl std::fmt::Debug for Coupled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coupled")
            .field("rule", &self.rule.name())
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl Coupled {
    /// The initial window (RFC 9002 7.2), packets.
    pub(super) const INITIAL_PACKETS: u64 = 10;

    pub(super) fn new(
        rule: &'static dyn Rule,
        shared: Shared,
        slot: usize,
        now: Instant,
        mtu: u16,
    ) -> Self {
        Self {
            rule,
            shared,
            slot,
            mtu: mtu.into(),
            window: Window::new(Self::INITIAL_PACKETS as f64),
            interval: Interval::default(),
            recovered: now,
            delay: None,
            min_rtt: Duration::MAX,
            alpha: Wvegas::INITIAL_ALPHA,
            queue_delay: 0.0,
            rate: 0.0,
        }
    }

    fn facts(&self, srtt: f64) -> Facts {
        Facts {
            interval_bytes: self.interval.bytes(),
            rate: self.rate,
            ..Facts::new(self.window.size(), srtt)
        }
    }

    /// The facts of all paths, this one's as they are now, and its place among them.
    fn paths(&self) -> Option<(Vec<Facts>, usize)> {
        let mut slots = self.shared.lock();
        let mine = &mut slots[self.slot];
        if mine.srtt.is_zero() {
            return None;
        }
        mine.facts = Some(self.facts(mine.srtt.as_secs_f64()));
        let alive = slots.iter().enumerate().filter(|(_, s)| s.alive);
        let known = alive.filter_map(|(i, s)| s.facts.map(|f| (i, f)));
        let known: Vec<(usize, Facts)> = known.collect();
        let me = known.iter().position(|(i, _)| *i == self.slot)?;
        Some((known.into_iter().map(|(_, f)| f).collect(), me))
    }

    /// Counts a round-trip time; at the end of a round, has the rule act. `smoothed` is
    /// without what acknowledgements wait for at the peer.
    fn count_delay(&mut self, now: Instant, sent: Instant, smoothed: Duration) {
        let sample = now.duration_since(sent);
        self.min_rtt = self.min_rtt.min(sample);
        let sample = sample.min(smoothed).max(self.min_rtt);
        let round = self.delay.get_or_insert(Delay {
            began: now,
            min_rtt: sample,
        });
        round.min_rtt = round.min_rtt.min(sample);
        if sent < round.began {
            return;
        }
        let rtt = round.min_rtt.as_secs_f64();
        self.delay = None;
        let base_rtt = self.min_rtt.as_secs_f64();
        let Some((paths, me)) = self.paths().filter(|_| base_rtt > 0.0) else {
            return;
        };
        let round = Round {
            state: RoundState {
                window: self.window.size(),
                ssthresh: self.window.ssthresh(),
                alpha: self.alpha,
                queue_delay: self.queue_delay,
                rate: self.rate,
            },
            base_rtt,
            rtt,
        };
        if let Some(after) = self.rule.end_of_round(&paths, me, &round) {
            self.window = Window::resumed(after.window, after.ssthresh);
            self.alpha = after.alpha;
            self.queue_delay = after.queue_delay;
            self.rate = after.rate;
        }
    }
}

impl Controller for Coupled {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.interval.on_ack(bytes);
        if app_limited || sent <= self.recovered {
            return;
        }
        self.count_delay(now, sent, rtt.get());
        if let Some((paths, me)) = self.paths() {
            let packets = bytes as f64 / self.mtu;
            self.window.on_ack(self.rule, &paths, me, packets);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        _ecn: bool,
        _lost_bytes: u64,
        _largest: u64,
    ) {
        if sent <= self.recovered {
            return;
        }
        self.recovered = now;
        self.interval.on_loss();
        match self.paths() {
            Some((paths, me)) => self.window.on_loss(self.rule, &paths, me),
            // Lost before the first round trip ended: as a path alone.
            None => {
                let alone = [self.facts(1.0)];
                self.window.on_loss(self.rule, &alone, 0);
            }
        }
        if persistent {
            // RFC 9002 7.6.2.
            self.window = Window::resumed(2.0, self.window.ssthresh());
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.window.undo_loss();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
    }

    fn window(&self) -> u64 {
        // Less than two packets would wait for acknowledgements that are delayed.
        (self.window.size().max(2.0) * self.mtu) as u64
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        let threshold = self.window.ssthresh() * self.mtu;
        metrics.ssthresh = threshold.is_finite().then_some(threshold as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        Self::INITIAL_PACKETS * self.mtu as u64
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
