//! The window of one path: slow start, congestion avoidance, loss (RFC 5681),
//! with the growth left to a rule.

use super::{Facts, Rule};

/// Congestion window and slow-start threshold of one path, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    size: f64,
    ssthresh: f64,
    before_loss: f64,
}

impl Window {
    /// A window of `initial` packets, at least 1, in slow start (RFC 6928
    /// gives 10).
    pub fn new(initial: f64) -> Self {
        Self {
            size: initial.max(1.0),
            ssthresh: f64::INFINITY,
            before_loss: 0.0,
        }
    }

    /// A window of `size` packets, at least 1, that goes on with the slow-start
    /// threshold `ssthresh`.
    pub fn resumed(size: f64, ssthresh: f64) -> Self {
        Self {
            ssthresh,
            ..Self::new(size)
        }
    }

    /// The window, packets.
    pub fn size(&self) -> f64 {
        self.size
    }

    /// The slow-start threshold, packets; infinite before the first loss.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Whether the window grows with every acknowledged packet.
    pub fn in_slow_start(&self) -> bool {
        self.size < self.ssthresh
    }

    /// `acked` packets were acknowledged while the window was in use
    /// (RFC 7661: one that the application does not fill must not grow).
    /// `paths[me].window` is this window.
    pub fn on_ack(&mut self, rule: &dyn Rule, paths: &[Facts], me: usize, acked: f64) {
        let mut acked = acked;
        if self.in_slow_start() {
            let room = (self.ssthresh - self.size).min(acked);
            self.size += room;
            acked -= room;
        }
        if acked > 0.0 {
            let grown = self.size + rule.increase(paths, me) * acked;
            self.size = grown.max(1.0);
            // OLIA may shrink it; that is no return to slow start.
            self.ssthresh = self.ssthresh.min(self.size);
        }
    }

    /// A loss, at most one per round trip.
    pub fn on_loss(&mut self, rule: &dyn Rule, paths: &[Facts], me: usize) {
        self.before_loss = self.size;
        self.ssthresh = rule.after_loss(paths, me);
        self.size = self.ssthresh;
    }

    /// The loss was none: the packet came late.
    pub fn undo_loss(&mut self) {
        self.size = self.size.max(self.before_loss);
    }
}
