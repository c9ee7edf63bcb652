//! [`Swing`] behind the library's interface.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use braid_core::cc::Swing;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Factory of its controllers.
#[derive(Debug, Default)]
pub(crate) struct SwingConfig;

impl ControllerFactory for SwingConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(SwingController {
            epoch: now,
            mtu: mtu.into(),
            swing: Swing::default(),
        })
    }
}

/// Controller of one path. The gate in front of it keeps its state before losses that may be none.
#[derive(Clone, Debug)]
struct SwingController {
    /// Time that others count from.
    epoch: Instant,
    mtu: f64,
    swing: Swing,
}

impl SwingController {
    /// Returns seconds since the epoch, or until then.
    fn seconds(&self, at: Instant) -> f64 {
        match at.checked_duration_since(self.epoch) {
            Some(after) => after.as_secs_f64(),
            None => -self.epoch.duration_since(at).as_secs_f64(),
        }
    }

    fn bytes(&self, packets: f64) -> u64 {
        (packets * self.mtu) as u64
    }
}

impl Controller for SwingController {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let (sent, now) = (self.seconds(sent), self.seconds(now));
        let packets = bytes as f64 / self.mtu;
        let srtt = rtt.get().as_secs_f64();
        self.swing.on_ack(packets, sent, srtt, !app_limited, now);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        lost_bytes: u64,
        _largest: u64,
    ) {
        let (sent, now) = (self.seconds(sent), self.seconds(now));
        if persistent {
            self.swing.on_persistent_congestion(now);
        } else {
            let lost = if ecn {
                0.0
            } else {
                lost_bytes as f64 / self.mtu
            };
            self.swing.on_congestion(sent, lost, now);
        }
    }

    fn on_packet_lost(&mut self, _bytes: u16, _number: u64, now: Instant) {
        self.swing.on_loss(self.seconds(now));
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
    }

    fn window(&self) -> u64 {
        self.bytes(self.swing.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        // What is infinite becomes the greatest number.
        metrics.ssthresh = Some(self.bytes(self.swing.ssthresh()));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.bytes(Swing::default().window())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
