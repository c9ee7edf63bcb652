//! Times that a radio spends in each state: the state machine that the models share.
//!
//! ```text
//!        data, promotion over          no data
//! IDLE ──────────────────────> ACTIVE ─────────> TAIL ──tail over──> IDLE
//!   └─data─> PROMOTION ──────────┘ ^───────data────┘
//! ```

use std::time::Duration;

use super::Interval;

/// Lengths of the states that end by themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// From the first data in idle until the radio carries it.
    pub(super) promotion: Duration,
    /// From the last data until the radio is idle.
    pub(super) tail: Duration,
}

impl Timers {
    /// Timers of these milliseconds.
    pub(super) fn of_ms(promotion_ms: f64, tail_ms: f64) -> Self {
        Self {
            promotion: from_ms(promotion_ms),
            tail: from_ms(tail_ms),
        }
    }
}

/// Nearest duration; parameters are checked to be finite and not negative.
fn from_ms(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

/// Energy while data flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrying {
    /// Power without throughput, mW.
    pub(super) base_mw: f64,
    /// Power on top while more flows from the device than towards it, mW.
    pub(super) uplink_mw: f64,
    /// Power for each Mbit/s towards the device, mW.
    pub(super) down_mw_per_mbps: f64,
    /// Power for each Mbit/s from the device, mW.
    pub(super) up_mw_per_mbps: f64,
}

impl Carrying {
    /// Returns the energy of an interval of which so many seconds were active, J.
    pub(super) fn joules(&self, interval: &Interval, active_s: f64) -> f64 {
        let (down, up) = interval.mbit();
        let uplink = if up > down { self.uplink_mw } else { 0.0 };
        let carried = self.down_mw_per_mbps * down + self.up_mw_per_mbps * up;
        ((self.base_mw + uplink) * active_s + carried) / 1e3
    }
}

/// State of a radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// Connecting for so long yet.
    Promotion { left: Duration },
    /// Connected; data ended so long ago.
    Connected { quiet: Duration },
}

/// Seconds that one interval spent in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    pub(super) promotion_s: f64,
    pub(super) active_s: f64,
    /// Begin and end of the part of the tail, since data ended.
    pub(super) tail_s: (f64, f64),
    pub(super) idle_s: f64,
}

impl Spent {
    /// Seconds in the tail.
    pub(super) fn in_tail_s(&self) -> f64 {
        self.tail_s.1 - self.tail_s.0
    }

    /// Seconds of the tail between `from_s` and `to_s` since data ended.
    pub(super) fn tail_within_s(&self, from_s: f64, to_s: f64) -> f64 {
        (self.tail_s.1.min(to_s) - self.tail_s.0.max(from_s)).max(0.0)
    }
}

/// Radio with its state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Radio(State);

impl Radio {
    /// Passes `interval`. Data of an interval flows from its beginning to its end, once the radio
    /// is connected.
    pub(super) fn pass(&mut self, interval: &Interval, timers: &Timers) -> Spent {
        let mut spent = Spent::default();
        let mut left = interval.length;
        let data = interval.has_data();
        if self.0 == State::Idle && data {
            self.0 = State::Promotion {
                left: timers.promotion,
            };
        }
        if let State::Promotion { left: wait } = self.0 {
            let part = wait.min(left);
            spent.promotion_s = part.as_secs_f64();
            left -= part;
            self.0 = match wait - part {
                Duration::ZERO => State::Connected {
                    quiet: Duration::ZERO,
                },
                wait => State::Promotion { left: wait },
            };
        }
        if let State::Connected { quiet } = self.0 {
            if data {
                spent.active_s = left.as_secs_f64();
                self.0 = State::Connected {
                    quiet: Duration::ZERO,
                };
                return spent;
            }
            let part = timers.tail.saturating_sub(quiet).min(left);
            left -= part;
            let quiet_after = quiet + part;
            spent.tail_s = (quiet.as_secs_f64(), quiet_after.as_secs_f64());
            self.0 = match left.is_zero() {
                true => State::Connected { quiet: quiet_after },
                false => State::Idle,
            };
        }
        spent.idle_s = left.as_secs_f64();
        spent
    }
}
