//! Energy of a transfer as Tables 2 and 3 of Shams et al. (Sensors 2023, 23, 7699; paper 002 of
//! the project) imply it.
//!
//! The paper measured joules of 60 MB downloads over LTE and Wi-Fi and prints no power. No constant
//! power explains its tables (R2 below -150 in every row); energy = a · bytes + b · time does, with
//! nearly all of it in the bytes. The model is this line through the printed means, and says
//! nothing about states of a radio: there is no promotion, no tail, and idle is free.

use serde::{Deserialize, Serialize};

use super::radio::{Radio, Timers};
use super::{Energy, Interval, PowerModel};

/// Parameters of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper002Parameters {
    /// Energy of 10^6 bytes in either direction, joules.
    pub joules_per_mb: f64,
    /// Power while data flows, mW.
    pub in_use_mw: f64,
}

/// Model of paper 002.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paper002 {
    p: Paper002Parameters,
    radio: Radio,
}

impl Paper002 {
    pub(super) fn new(p: Paper002Parameters) -> Self {
        Self {
            p,
            radio: Radio::default(),
        }
    }
}

impl PowerModel for Paper002 {
    fn name(&self) -> &'static str {
        "paper002"
    }

    fn advance(&mut self, interval: &Interval) -> Energy {
        let spent = self.radio.pass(interval, &Timers::of_ms(0.0, 0.0));
        let mb = (interval.down_bytes + interval.up_bytes) / 1e6;
        Energy {
            active_joules: self.p.joules_per_mb * mb + self.p.in_use_mw * spent.active_s / 1e3,
            ..Energy::default()
        }
    }
}
