//! Affine power model: a base while connected, and so much for each Mbit/s.
//!
//! The form that Huang et al. (MobiSys 2012) and Narayanan et al. (SIGCOMM 2021) fit on phones:
//! power = base + a · downlink + b · uplink, with a promotion before the first data and a tail
//! after the last. Signal, where a set has terms for it, shifts the base linearly.

use serde::{Deserialize, Serialize};

use super::radio::{Carrying, Radio, Timers};
use super::{Energy, Interval, PowerModel, Signal};

/// Shift of the base by one measure of the signal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalTerm {
    /// Change of power, mW for each dB.
    pub mw_per_db: f64,
    /// Value at which the base holds, dBm or dB.
    pub reference: f64,
    /// Least value that was measured; below it, it counts.
    pub min: f64,
    /// Greatest value that was measured; above it, it counts.
    pub max: f64,
}

impl SignalTerm {
    /// Returns the shift at `value`, mW; 0 where nothing is known.
    fn mw(term: Option<Self>, value: Option<f64>) -> f64 {
        match (term, value.filter(|v| v.is_finite())) {
            (Some(t), Some(v)) => t.mw_per_db * (v.max(t.min).min(t.max) - t.reference),
            _ => 0.0,
        }
    }
}

/// Parameters of the affine model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AffineParameters {
    /// Power while connected and data flows, without its throughput, mW.
    pub base_mw: f64,
    /// Power for each Mbit/s towards the device, mW.
    pub down_mw_per_mbps: f64,
    /// Power for each Mbit/s from the device, mW.
    pub up_mw_per_mbps: f64,
    /// Power on top of the base while more flows from the device than towards it, mW.
    #[serde(default)]
    pub uplink_mw: f64,
    /// Length of the promotion, ms.
    #[serde(default)]
    pub promotion_ms: f64,
    /// Power in the promotion, mW.
    #[serde(default)]
    pub promotion_mw: f64,
    /// Length of the tail, ms.
    #[serde(default)]
    pub tail_ms: f64,
    /// Power in the tail, mW.
    #[serde(default)]
    pub tail_mw: f64,
    /// Power while idle, mW.
    #[serde(default)]
    pub idle_mw: f64,
    /// Shift by RSRP; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rsrp: Option<SignalTerm>,
    /// Shift by SINR; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sinr: Option<SignalTerm>,
}

impl AffineParameters {
    /// Returns the base at `signal`, mW: at least the power while idle.
    fn base_at_mw(&self, signal: Signal) -> f64 {
        let shift =
            SignalTerm::mw(self.rsrp, signal.rsrp_dbm) + SignalTerm::mw(self.sinr, signal.sinr_db);
        (self.base_mw + shift).max(self.idle_mw)
    }
}

/// Affine model with its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Affine {
    p: AffineParameters,
    timers: Timers,
    radio: Radio,
}

impl Affine {
    pub(super) fn new(p: AffineParameters) -> Self {
        Self {
            p,
            timers: Timers::of_ms(p.promotion_ms, p.tail_ms),
            radio: Radio::default(),
        }
    }
}

impl PowerModel for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn advance(&mut self, interval: &Interval) -> Energy {
        let p = &self.p;
        let spent = self.radio.pass(interval, &self.timers);
        let carrying = Carrying {
            base_mw: p.base_at_mw(interval.signal),
            uplink_mw: p.uplink_mw,
            down_mw_per_mbps: p.down_mw_per_mbps,
            up_mw_per_mbps: p.up_mw_per_mbps,
        };
        Energy {
            active_joules: carrying.joules(interval, spent.active_s),
            promotion_joules: p.promotion_mw * spent.promotion_s / 1e3,
            tail_joules: p.tail_mw * spent.in_tail_s() / 1e3,
            idle_joules: p.idle_mw * spent.idle_s / 1e3,
        }
    }
}
