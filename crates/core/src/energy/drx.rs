//! LTE and NR by their RRC states: connected without sleep, connected with DRX cycles, inactive,
//! idle with paging.
//!
//! ```text
//! data ─> continuous reception ─inactivity─> DRX cycles ─tail─> INACTIVE ─> IDLE (paging)
//! ```
//!
//! Timers as TS 36.321 and TS 38.321 5.7 (C-DRX), TS 36.304 7.1 and TS 38.304 7.1 (paging) name
//! them. A cycle counts with its mean power, so that it does not matter where in it data ends.

use serde::{Deserialize, Serialize};

use super::radio::{Carrying, Radio, Timers};
use super::{Energy, Interval, PowerModel};

/// Parameters of the RRC model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrxParameters {
    /// Power while the receiver is on and connected, mW.
    pub connected_mw: f64,
    /// Power for each Mbit/s towards the device, mW.
    pub down_mw_per_mbps: f64,
    /// Power for each Mbit/s from the device, mW.
    pub up_mw_per_mbps: f64,
    /// Power on top while more flows from the device than towards it, mW.
    #[serde(default)]
    pub uplink_mw: f64,
    /// Time from idle to connected, ms.
    #[serde(default)]
    pub promotion_ms: f64,
    /// Power in it, mW.
    #[serde(default)]
    pub promotion_mw: f64,
    /// Time from the last data to the first DRX cycle, ms.
    #[serde(default)]
    pub inactivity_ms: f64,
    /// Length of a DRX cycle, ms; 0: none, the receiver stays on.
    #[serde(default)]
    pub cycle_ms: f64,
    /// Part of a cycle in which the receiver is on, ms.
    #[serde(default)]
    pub on_ms: f64,
    /// Power between those parts, mW.
    #[serde(default)]
    pub sleep_mw: f64,
    /// Time from the last data to the end of the connected state, ms.
    #[serde(default)]
    pub tail_ms: f64,
    /// Time from the last data to the end of the inactive state (NR), ms; at most the tail: none.
    #[serde(default)]
    pub inactive_until_ms: f64,
    /// Length of a paging cycle, inactive or idle, ms; 0: the receiver sleeps.
    #[serde(default)]
    pub paging_cycle_ms: f64,
    /// Part of it in which the receiver is on, ms.
    #[serde(default)]
    pub paging_on_ms: f64,
    /// Power between those parts, mW.
    #[serde(default)]
    pub idle_mw: f64,
}

/// Mean power of a cycle, mW: `on` for `on_ms`, `off` for the rest; `none` where there is no cycle.
fn cycle_mw(cycle_ms: f64, on_ms: f64, on: f64, off: f64, none: f64) -> f64 {
    match cycle_ms > 0.0 {
        true => {
            let share = (on_ms / cycle_ms).min(1.0);
            on * share + off * (1.0 - share)
        }
        false => none,
    }
}

/// RRC model with its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drx {
    p: DrxParameters,
    timers: Timers,
    radio: Radio,
    cycles_mw: f64,
    paging_mw: f64,
}

impl Drx {
    pub(super) fn new(p: DrxParameters) -> Self {
        let on = p.connected_mw;
        Self {
            p,
            timers: Timers::of_ms(p.promotion_ms, p.tail_ms.max(p.inactive_until_ms)),
            radio: Radio::default(),
            cycles_mw: cycle_mw(p.cycle_ms, p.on_ms, on, p.sleep_mw, on),
            paging_mw: cycle_mw(p.paging_cycle_ms, p.paging_on_ms, on, p.idle_mw, p.idle_mw),
        }
    }
}

impl PowerModel for Drx {
    fn name(&self) -> &'static str {
        "drx"
    }

    fn advance(&mut self, interval: &Interval) -> Energy {
        let p = &self.p;
        let spent = self.radio.pass(interval, &self.timers);
        let carrying = Carrying {
            base_mw: p.connected_mw,
            uplink_mw: p.uplink_mw,
            down_mw_per_mbps: p.down_mw_per_mbps,
            up_mw_per_mbps: p.up_mw_per_mbps,
        };
        let tail_s = p.tail_ms / 1e3;
        let continuous_s = (p.inactivity_ms / 1e3).min(tail_s);
        let tail = p.connected_mw * spent.tail_within_s(0.0, continuous_s)
            + self.cycles_mw * spent.tail_within_s(continuous_s, tail_s)
            + self.paging_mw * spent.tail_within_s(tail_s, f64::INFINITY);
        Energy {
            active_joules: carrying.joules(interval, spent.active_s),
            promotion_joules: p.promotion_mw * spent.promotion_s / 1e3,
            tail_joules: tail / 1e3,
            idle_joules: self.paging_mw * spent.idle_s / 1e3,
        }
    }
}
