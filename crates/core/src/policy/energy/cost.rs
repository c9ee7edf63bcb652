//! Power of a radio that carries so much, and the energy that waking it takes.

use std::time::Duration;

use crate::Rate;
use crate::control::PerDirection;
use crate::energy::{Interval, Parameters};

/// Time within which promotion and tail end with all parameters that are allowed: an hour each.
const LONG: Duration = Duration::from_secs(7_200);
/// Stretch whose mean power counts as steady.
const STEADY: Duration = Duration::from_secs(10);

/// Power and energy of one radio, by its power model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    parameters: Parameters,
    /// Power without traffic, mW.
    pub(super) idle_mw: f64,
    /// Energy that traffic takes beside its bytes and its time, J: promotion before, tail after.
    pub(super) wake_joules: f64,
}

impl Cost {
    /// Computes what these parameters imply.
    pub(super) fn of(parameters: Parameters) -> Self {
        let silent = Interval::silent(STEADY);
        let mut cost = Self {
            parameters,
            idle_mw: parameters.make().advance(&silent).mean_mw(STEADY),
            wake_joules: 0.0,
        };
        let mbps = PerDirection {
            down: Rate::from_bps(1_000_000),
            up: Rate::ZERO,
        };
        let mut radio = parameters.make();
        let both = radio
            .advance(&Interval::at_rates(LONG, 1.0, 0.0))
            .total_joules()
            + radio.advance(&Interval::silent(LONG)).total_joules();
        let steady = (cost.steady_mw(mbps) + cost.idle_mw) / 1e3 * LONG.as_secs_f64();
        cost.wake_joules = (both - steady).max(0.0);
        cost
    }

    /// Returns the mean power while this is carried for long, mW.
    pub(super) fn steady_mw(&self, carried: PerDirection<Rate>) -> f64 {
        let (down, up) = (carried.down.as_mbps(), carried.up.as_mbps());
        let mut radio = self.parameters.make();
        radio.advance(&Interval::at_rates(LONG, down, up));
        radio
            .advance(&Interval::at_rates(STEADY, down, up))
            .mean_mw(STEADY)
    }
}
