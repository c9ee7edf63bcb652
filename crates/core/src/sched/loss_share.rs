//! Share of packets that a path has lately lost, by counting (3GPP TS 24.193 5.4.5, packet loss
//! measurement).

use std::time::Duration;

use crate::Time;

/// Least length of a window, and least packets in it: fewer would make the share coarse.
const WINDOW: Duration = Duration::from_secs(1);
const PACKETS: u64 = 50;
/// Length after which a window ends whatever is in it. A path that carries nothing is then taken for
/// one without loss, so that it is tried again.
const LONGEST: Duration = Duration::from_secs(10);
/// Packets of such a window by which there is a share at all.
const FEW: u64 = 10;

/// Share of one path.
#[derive(Clone, Copy, Debug)]
pub struct LossShare {
    /// Begin of the window, and the packets sent and lost before it.
    began: Time,
    sent: u64,
    lost: u64,
    share: f64,
}

impl LossShare {
    /// Begins to count, with the packets that a path has sent and lost so far.
    pub fn new(sent: u64, lost: u64, now: Time) -> Self {
        Self {
            began: now,
            sent,
            lost,
            share: 0.0,
        }
    }

    /// Takes the packets that the path has sent and lost so far.
    pub fn update(&mut self, sent: u64, lost: u64, now: Time) {
        let (more, gone) = (
            sent.saturating_sub(self.sent),
            lost.saturating_sub(self.lost),
        );
        let length = now.since(self.began);
        if length >= LONGEST || (length >= WINDOW && more >= PACKETS) {
            // What was lost may have been sent before the window.
            let share = match more {
                ..FEW => 0.0,
                _ => gone as f64 / more as f64,
            };
            *self = Self {
                share: share.min(1.0),
                ..Self::new(sent, lost, now)
            };
        }
    }

    /// Returns the share of packets lost in the last whole window, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_share_is_of_the_last_whole_window_and_ends_with_rest() {
        let mut loss = LossShare::new(1000, 7, at(0));
        loss.update(1100, 17, at(900));
        assert_eq!(loss.share(), 0.0, "the window is not over");
        loss.update(1200, 27, at(1000));
        assert!((loss.share() - 0.1).abs() < 1e-9);
        // A few packets say little.
        loss.update(1201, 28, at(3000));
        assert!((loss.share() - 0.1).abs() < 1e-9);
        loss.update(1201, 28, at(11_000));
        assert_eq!(loss.share(), 0.0);
        loss.update(1221, 40, at(21_000));
        assert!((loss.share() - 0.6).abs() < 1e-9);
        loss.update(1221, 60, at(31_000));
        assert_eq!(loss.share(), 0.0, "nothing else was sent");
    }
}
