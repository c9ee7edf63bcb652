//! Parameters of any model, and what they must be.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::affine::Affine;
use super::drx::Drx;
use super::nr38840::Nr38840;
use super::paper002::Paper002;
use super::wifi_airtime::WifiAirtime;
use super::{
    AffineParameters, DrxParameters, Nr38840Parameters, Paper002Parameters, PowerModel, SignalTerm,
    WifiAirtimeParameters,
};

/// Most that a power may be, mW: a kilowatt.
const MAX_MW: f64 = 1e6;
/// Most that a time may be, ms: an hour.
const MAX_MS: f64 = 3.6e6;

/// Parameters of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parameters {
    /// Throughput over a base.
    Affine(AffineParameters),
    /// RRC states and their timers.
    Drx(DrxParameters),
    /// Relative powers of TR 38.840.
    Nr38840(Nr38840Parameters),
    /// Airtime of a Wi-Fi station.
    WifiAirtime(WifiAirtimeParameters),
    /// Energy per byte and per second of paper 002.
    Paper002(Paper002Parameters),
}

/// Error: a parameter has a value that it cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} is {value}: expected {expected}", key = path.join("."))]
pub struct BadParameter {
    /// Names of the tables that it is in below the model's, then its own.
    pub path: Vec<&'static str>,
    /// Value given.
    pub value: String,
    /// Values that it may have.
    pub expected: &'static str,
}

/// A parameter: its name, its value, and whether it is a power, a time or a divisor.
type Checked = (&'static str, f64, Kind);

#[derive(Clone, Copy)]
enum Kind {
    /// Power, energy or their slope: 0 to [`MAX_MW`].
    Power,
    /// Time: 0 to [`MAX_MS`].
    Time,
    /// Divisor: more than 0.
    Rate,
}

impl Kind {
    fn expected(self) -> &'static str {
        match self {
            Self::Power => "0 to 1000000",
            Self::Time => "0 to 3600000 ms",
            Self::Rate => "more than 0, at most 1000000 Mbit/s",
        }
    }

    fn allows(self, v: f64) -> bool {
        match self {
            Self::Power => (0.0..=MAX_MW).contains(&v),
            Self::Time => (0.0..=MAX_MS).contains(&v),
            Self::Rate => v > 0.0 && v <= 1e6,
        }
    }
}

fn bad(path: Vec<&'static str>, value: f64, expected: &'static str) -> BadParameter {
    BadParameter {
        path,
        value: value.to_string(),
        expected,
    }
}

impl Parameters {
    /// Returns the name of the model that they are for.
    pub fn model(&self) -> &'static str {
        self.make().name()
    }

    /// Makes the model, idle.
    pub fn make(&self) -> Box<dyn PowerModel> {
        match *self {
            Self::Affine(p) => Box::new(Affine::new(p)),
            Self::Drx(p) => Box::new(Drx::new(p)),
            Self::Nr38840(p) => Box::new(Nr38840::new(p)),
            Self::WifiAirtime(p) => Box::new(WifiAirtime::new(p)),
            Self::Paper002(p) => Box::new(Paper002::new(p)),
        }
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// The first that has no possible value.
    pub fn check(&self) -> Result<(), BadParameter> {
        use Kind::{Power, Rate, Time};
        let values: Vec<Checked> = match self {
            Self::Affine(p) => {
                for (name, term) in [("rsrp", p.rsrp), ("sinr", p.sinr)] {
                    check_signal(name, term)?;
                }
                vec![
                    ("base_mw", p.base_mw, Power),
                    ("down_mw_per_mbps", p.down_mw_per_mbps, Power),
                    ("up_mw_per_mbps", p.up_mw_per_mbps, Power),
                    ("uplink_mw", p.uplink_mw, Power),
                    ("promotion_ms", p.promotion_ms, Time),
                    ("promotion_mw", p.promotion_mw, Power),
                    ("tail_ms", p.tail_ms, Time),
                    ("tail_mw", p.tail_mw, Power),
                    ("idle_mw", p.idle_mw, Power),
                ]
            }
            Self::Drx(p) => vec![
                ("connected_mw", p.connected_mw, Power),
                ("down_mw_per_mbps", p.down_mw_per_mbps, Power),
                ("up_mw_per_mbps", p.up_mw_per_mbps, Power),
                ("uplink_mw", p.uplink_mw, Power),
                ("promotion_ms", p.promotion_ms, Time),
                ("promotion_mw", p.promotion_mw, Power),
                ("inactivity_ms", p.inactivity_ms, Time),
                ("cycle_ms", p.cycle_ms, Time),
                ("on_ms", p.on_ms, Time),
                ("sleep_mw", p.sleep_mw, Power),
                ("tail_ms", p.tail_ms, Time),
                ("inactive_until_ms", p.inactive_until_ms, Time),
                ("paging_cycle_ms", p.paging_cycle_ms, Time),
                ("paging_on_ms", p.paging_on_ms, Time),
                ("idle_mw", p.idle_mw, Power),
            ],
            Self::Nr38840(p) => {
                if !(10.0..=100.0).contains(&p.bandwidth_mhz) {
                    return Err(bad(vec!["bandwidth_mhz"], p.bandwidth_mhz, "10 to 100 MHz"));
                }
                if !matches!(p.rx_antennas, 2 | 4) {
                    return Err(bad(vec!["rx_antennas"], p.rx_antennas.into(), "2 or 4"));
                }
                if !(0.0..=23.0).contains(&p.tx_power_dbm) {
                    return Err(bad(vec!["tx_power_dbm"], p.tx_power_dbm, "0 to 23 dBm"));
                }
                vec![
                    ("unit_mw", p.unit_mw, Power),
                    ("peak_down_mbps", p.peak_down_mbps, Rate),
                    ("peak_up_mbps", p.peak_up_mbps, Rate),
                    ("inactivity_ms", p.inactivity_ms, Time),
                    ("cycle_ms", p.cycle_ms, Time),
                    ("on_ms", p.on_ms, Time),
                    ("tail_ms", p.tail_ms, Time),
                    ("paging_cycle_ms", p.paging_cycle_ms, Time),
                ]
            }
            Self::WifiAirtime(p) => vec![
                ("awake_mw", p.awake_mw, Power),
                ("receive_mw", p.receive_mw, Power),
                ("send_mw", p.send_mw, Power),
                ("frame_received_uj", p.frame_received_uj, Power),
                ("frame_sent_uj", p.frame_sent_uj, Power),
                ("tail_ms", p.tail_ms, Time),
                ("idle_mw", p.idle_mw, Power),
                ("channel_mbps", p.channel_mbps, Rate),
            ],
            Self::Paper002(p) => vec![
                ("joules_per_mb", p.joules_per_mb, Power),
                ("in_use_mw", p.in_use_mw, Power),
            ],
        };
        match values.into_iter().find(|(_, v, kind)| !kind.allows(*v)) {
            Some((name, v, kind)) => Err(bad(vec![name], v, kind.expected())),
            None => Ok(()),
        }
    }
}

fn check_signal(name: &'static str, term: Option<SignalTerm>) -> Result<(), BadParameter> {
    let Some(t) = term else { return Ok(()) };
    let dbs = [("reference", t.reference), ("min", t.min), ("max", t.max)];
    let known = |v: f64| (-200.0..=100.0).contains(&v);
    if let Some((key, v)) = dbs.into_iter().find(|(_, v)| !known(*v)) {
        return Err(bad(vec![name, key], v, "-200 to 100 dB"));
    }
    if t.min > t.max {
        return Err(bad(vec![name, "min"], t.min, "at most max"));
    }
    if !(-MAX_MW..=MAX_MW).contains(&t.mw_per_db) {
        return Err(bad(
            vec![name, "mw_per_db"],
            t.mw_per_db,
            "-1000000 to 1000000",
        ));
    }
    Ok(())
}
