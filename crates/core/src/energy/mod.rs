//! Power models: how much energy an access's radio takes for what it carries.
//!
//! A model is a state machine over time. It is told interval by interval what was carried
//! ([`Interval`]) and answers with the energy of the interval, split by the radio's state
//! ([`Energy`]). It keeps no clock, no sockets and no randomness. Parameter sets of measured
//! devices stand in [`sets`]. To add a model: a file here, an arm in [`Parameters`] and a line in
//! [`MODELS`]; docs/energy.md describes each.

mod affine;
pub mod attribution;
mod drx;
mod nr38840;
mod paper002;
mod parameters;
mod radio;
pub mod sets;
#[cfg(test)]
mod tests;
mod wifi_airtime;

use std::fmt::Debug;
use std::ops::{AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use affine::{AffineParameters, SignalTerm};
pub use drx::DrxParameters;
pub use nr38840::Nr38840Parameters;
pub use paper002::Paper002Parameters;
pub use parameters::{BadParameter, Parameters};
pub use wifi_airtime::WifiAirtimeParameters;

/// Received signal of an access; a value that was not measured is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signal {
    /// Reference signal received power, dBm.
    pub rsrp_dbm: Option<f64>,
    /// Signal to interference and noise ratio, dB.
    pub sinr_db: Option<f64>,
}

/// Use of a shared medium by one station, as the medium counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Airtime {
    /// Time on the air with frames that did not collide.
    pub sending: Duration,
    /// Time on the air with frames that collided.
    pub collided: Duration,
    /// Time in which frames for this station were on the air.
    pub receiving: Duration,
    /// Frames sent, each once.
    pub frames_sent: u64,
    /// Frames received.
    pub frames_received: u64,
}

/// Traffic of an access in a stretch of time, at an even rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Length of the stretch.
    pub length: Duration,
    /// Bytes towards the device. A recorded rate gives parts of bytes.
    pub down_bytes: f64,
    /// Bytes from the device.
    pub up_bytes: f64,
    /// Received signal, for models that take it.
    pub signal: Signal,
    /// Airtime, where the medium counted it.
    pub airtime: Option<Airtime>,
}

impl Interval {
    /// Returns a stretch of `length` at these rates, Mbit/s.
    pub fn at_rates(length: Duration, down_mbps: f64, up_mbps: f64) -> Self {
        let bytes = |mbps: f64| mbps * length.as_secs_f64() * 125_000.0;
        Self {
            length,
            down_bytes: bytes(down_mbps),
            up_bytes: bytes(up_mbps),
            ..Self::default()
        }
    }

    /// Returns a stretch of `length` without data.
    pub fn silent(length: Duration) -> Self {
        Self::at_rates(length, 0.0, 0.0)
    }

    /// Whether anything was carried, or anything of the station was on the air.
    fn has_data(&self) -> bool {
        let on_air = |a: Airtime| !(a.sending + a.collided + a.receiving).is_zero();
        self.down_bytes > 0.0 || self.up_bytes > 0.0 || self.airtime.is_some_and(on_air)
    }

    /// Returns what was carried down and up, Mbit.
    fn mbit(&self) -> (f64, f64) {
        (self.down_bytes * 8e-6, self.up_bytes * 8e-6)
    }
}

/// Energy by the state that the radio was in, joules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Data flowed.
    pub active_joules: f64,
    /// The radio connected, for data that waited.
    pub promotion_joules: f64,
    /// The radio stayed connected after data.
    pub tail_joules: f64,
    /// The radio slept and listened for calls.
    pub idle_joules: f64,
}

impl Energy {
    /// Returns the sum over all states.
    pub fn total_joules(&self) -> f64 {
        self.active_joules + self.promotion_joules + self.tail_joules + self.idle_joules
    }

    /// Returns the mean power over `length`, mW; 0 where that is no time.
    pub fn mean_mw(&self, length: Duration) -> f64 {
        match length.as_secs_f64() {
            0.0 => 0.0,
            s => self.total_joules() * 1e3 / s,
        }
    }
}

impl AddAssign for Energy {
    fn add_assign(&mut self, other: Self) {
        self.active_joules += other.active_joules;
        self.promotion_joules += other.promotion_joules;
        self.tail_joules += other.tail_joules;
        self.idle_joules += other.idle_joules;
    }
}

impl Sub for Energy {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            active_joules: self.active_joules - other.active_joules,
            promotion_joules: self.promotion_joules - other.promotion_joules,
            tail_joules: self.tail_joules - other.tail_joules,
            idle_joules: self.idle_joules - other.idle_joules,
        }
    }
}

/// Power model with its state: one radio of one device.
pub trait PowerModel: Debug + Send {
    /// Returns its name in scenarios, files and flags.
    fn name(&self) -> &'static str;

    /// Returns the energy of the next stretch of time, which begins where the one before ended.
    /// The radio is idle before the first.
    fn advance(&mut self, interval: &Interval) -> Energy;
}

/// Every model, by name, with one line that says what it computes from.
pub const MODELS: &[(&str, &str)] = &[
    (
        "affine",
        "throughput down and up over a base, signal where it is known; promotion and tail",
    ),
    (
        "drx",
        "RRC states and their timers: connected, DRX cycles, inactive, paging",
    ),
    (
        "nr38840",
        "relative slot powers of 3GPP TR 38.840 (FR1), scaled to mW",
    ),
    (
        "wifi-airtime",
        "time on the air, frames and collisions of a Wi-Fi station",
    ),
    (
        "paper002",
        "energy per byte and per second of use, as the tables of paper 002 imply",
    ),
];

/// Error: no model has this name. [`names`] has those that exist, for a did-you-mean.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no power model is called \"{0}\": expected one of {all}",
    all = names().collect::<Vec<_>>().join(", ")
)]
pub struct UnknownModel(pub String);

/// Returns the name of every model.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|(name, _)| *name)
}
