//! Thresholds of a class: a path whose round-trip time or packet loss is above them carries nothing
//! of the class while another path is within (3GPP TS 23.501 5.32.8; TS 24.193 6.1.3.2, "threshold
//! values").

use std::time::Duration;

use super::PathView;
use super::view::{only_backups, takes_part};

/// Part of a threshold below which a path that was left out carries again. Without a margin, a path
/// at the threshold would come and go with every packet.
const RETURN: f64 = 0.8;

/// Thresholds; absent ones are not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thresholds {
    /// Greatest smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Greatest share of packets lost, 0 to 1.
    pub loss: Option<f64>,
}

impl Thresholds {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.rtt.is_none() && self.loss.is_none()
    }

    /// Whether a path of this round-trip time and loss is above a threshold, or above `part` of it.
    fn exceeded(&self, (rtt, loss): Measured, part: f64) -> bool {
        self.rtt.is_some_and(|most| rtt > most.mul_f64(part))
            || self.loss.is_some_and(|most| loss > most * part)
    }

    /// Whether a path of this round-trip time may carry again.
    pub fn lets_return(&self, rtt: Duration) -> bool {
        !self.exceeded((rtt, 0.0), RETURN)
    }
}

/// Smoothed round-trip time of a path, and the share of packets that it has lately lost, 0 to 1.
pub type Measured = (Duration, f64);

/// Paths that a class leaves out for its thresholds.
#[derive(Clone, Debug, Default)]
pub struct ThresholdGate {
    /// Numbers of the paths above ([`PathView::id`]).
    above: Vec<u32>,
}

impl ThresholdGate {
    /// Marks the paths that are above the thresholds ([`PathView::exceeds`]).
    pub fn mark(
        &mut self,
        thresholds: &Thresholds,
        paths: &mut [PathView],
        measured: impl Fn(&PathView) -> Measured,
    ) {
        let above = |p: &&PathView| {
            let part = match self.above.contains(&p.id) {
                true => RETURN,
                false => 1.0,
            };
            thresholds.exceeded(measured(p), part)
        };
        self.above = paths.iter().filter(above).map(|p| p.id).collect();
        for p in paths {
            p.exceeds = self.above.contains(&p.id);
        }
    }

    /// Makes paths that are above the thresholds unusable, unless none is within of those that take
    /// part. Backups take part where nothing else is usable: what leaves on one beside other paths,
    /// the peer takes for lost.
    pub fn apply(
        &mut self,
        thresholds: &Thresholds,
        paths: &mut [PathView],
        measured: impl Fn(&PathView) -> Measured,
    ) {
        self.mark(thresholds, paths, measured);
        let backups = only_backups(paths);
        if !paths.iter().any(|p| takes_part(p, backups) && !p.exceeds) {
            return;
        }
        for p in paths.iter_mut().filter(|p| takes_part(p, backups)) {
            p.usable = !p.exceeds;
        }
    }
}
