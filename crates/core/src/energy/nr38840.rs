//! Relative slot powers of 3GPP TR 38.840 section 8.1 (FR1), scaled to mW.
//!
//! Table 18 (state: relative power): deep sleep 1, light sleep 20, micro sleep 45, PDCCH only 100,
//! PDCCH and SSB 170, PDCCH and PDSCH 300, uplink 250 at 0 dBm and 700 at 23 dBm. Table 19
//! (transition: energy, time): deep sleep 450 units·ms, 20 ms; light sleep 100 units·ms, 6 ms;
//! micro sleep none. Section 8.1.3: a bandwidth part of X MHz takes 0.4 + 0.6 (X − 20)/80 of the
//! power of 100 MHz, PDCCH alone at least 50; two receive antennas take 0.7 of four.
//!
//! The report gives two uplink powers and no curve between them; this takes a straight line over
//! dBm, as 5G-LENA does. It gives no mW: `unit_mw` is a free scale.

use serde::{Deserialize, Serialize};

use super::radio::{Radio, Timers};
use super::{Energy, Interval, PowerModel};

const DEEP_SLEEP: f64 = 1.0;
const LIGHT_SLEEP: f64 = 20.0;
const MICRO_SLEEP: f64 = 45.0;
const PDCCH: f64 = 100.0;
const LEAST_PDCCH: f64 = 50.0;
const PDCCH_AND_SSB: f64 = 170.0;
const PDCCH_AND_PDSCH: f64 = 300.0;
const UPLINK: (f64, f64) = (250.0, 700.0);
const MAX_UPLINK_DBM: f64 = 23.0;
/// Energy of a transition (units·ms) and its time (ms).
const TO_DEEP: (f64, f64) = (450.0, 20.0);
const TO_LIGHT: (f64, f64) = (100.0, 6.0);
/// A slot at a subcarrier spacing of 30 kHz, ms.
const SLOT_MS: f64 = 0.5;

/// Parameters of the model of TR 38.840.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nr38840Parameters {
    /// Power of one relative unit, mW.
    pub unit_mw: f64,
    /// Throughput towards the device at which every slot has a PDSCH, Mbit/s.
    pub peak_down_mbps: f64,
    /// Throughput from the device at which it sends in every slot, Mbit/s.
    pub peak_up_mbps: f64,
    /// Bandwidth part, MHz, 10 to 100.
    #[serde(default = "reference_bandwidth")]
    pub bandwidth_mhz: f64,
    /// Receive antennas: 2 or 4.
    #[serde(default = "reference_antennas")]
    pub rx_antennas: u8,
    /// Transmit power, dBm; the report has 0 to 23.
    #[serde(default = "full_power")]
    pub tx_power_dbm: f64,
    /// Time from the last data to the first DRX cycle, ms.
    #[serde(default)]
    pub inactivity_ms: f64,
    /// Length of a DRX cycle, ms; 0: none, PDCCH is monitored in every slot.
    #[serde(default)]
    pub cycle_ms: f64,
    /// Part of a cycle in which PDCCH is monitored, ms.
    #[serde(default)]
    pub on_ms: f64,
    /// Time from the last data to idle, ms.
    #[serde(default)]
    pub tail_ms: f64,
    /// Length of a paging cycle in idle, ms; 0: deep sleep for good.
    #[serde(default)]
    pub paging_cycle_ms: f64,
}

fn reference_bandwidth() -> f64 {
    100.0
}

fn reference_antennas() -> u8 {
    4
}

fn full_power() -> f64 {
    MAX_UPLINK_DBM
}

/// Returns the least energy of a gap of `ms` without reception, units·ms: the deepest sleep that
/// pays and for which there is time.
fn sleep(ms: f64) -> f64 {
    let deeper = [(LIGHT_SLEEP, TO_LIGHT), (DEEP_SLEEP, TO_DEEP)];
    let possible = deeper.into_iter().filter(|(_, (_, time))| ms >= *time);
    let energies = possible.map(|(power, (energy, _))| power * ms + energy);
    energies.fold(MICRO_SLEEP * ms, f64::min)
}

/// Model of TR 38.840 with its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nr38840 {
    p: Nr38840Parameters,
    timers: Timers,
    radio: Radio,
    /// Relative powers.
    pdcch: f64,
    pdsch: f64,
    uplink: f64,
    cycles: f64,
    paging: f64,
}

impl Nr38840 {
    pub(super) fn new(p: Nr38840Parameters) -> Self {
        let antennas = if p.rx_antennas == 2 { 0.7 } else { 1.0 };
        let scale = (0.4 + 0.6 * (p.bandwidth_mhz - 20.0) / 80.0) * antennas;
        let pdcch = (PDCCH * scale).max(LEAST_PDCCH);
        let level = p.tx_power_dbm.clamp(0.0, MAX_UPLINK_DBM) / MAX_UPLINK_DBM;
        let mean = |cycle: f64, on: f64, power: f64, none: f64| match cycle > 0.0 {
            true => {
                let on = on.min(cycle);
                (power * on + sleep(cycle - on)) / cycle
            }
            false => none,
        };
        Self {
            p,
            timers: Timers::of_ms(0.0, p.tail_ms),
            radio: Radio::default(),
            pdcch,
            pdsch: (PDCCH_AND_PDSCH * scale).max(pdcch),
            uplink: UPLINK.0 + level * (UPLINK.1 - UPLINK.0),
            cycles: mean(p.cycle_ms, p.on_ms, pdcch, pdcch),
            paging: mean(
                p.paging_cycle_ms,
                SLOT_MS,
                (PDCCH_AND_SSB * scale).max(pdcch),
                DEEP_SLEEP,
            ),
        }
    }
}

impl PowerModel for Nr38840 {
    fn name(&self) -> &'static str {
        "nr38840"
    }

    fn advance(&mut self, interval: &Interval) -> Energy {
        let spent = self.radio.pass(interval, &self.timers);
        let (down, up) = interval.mbit();
        let slots = |mbit: f64, peak: f64| (mbit / peak).min(spent.active_s);
        let active = self.pdcch * spent.active_s
            + (self.pdsch - self.pdcch) * slots(down, self.p.peak_down_mbps)
            + self.uplink * slots(up, self.p.peak_up_mbps);
        let tail_s = self.p.tail_ms / 1e3;
        let continuous_s = (self.p.inactivity_ms / 1e3).min(tail_s);
        let tail = self.pdcch * spent.tail_within_s(0.0, continuous_s)
            + self.cycles * spent.tail_within_s(continuous_s, tail_s);
        let joules = |units_s: f64| units_s * self.p.unit_mw / 1e3;
        Energy {
            active_joules: joules(active),
            promotion_joules: 0.0,
            tail_joules: joules(tail),
            idle_joules: joules(self.paging * spent.idle_s),
        }
    }
}
