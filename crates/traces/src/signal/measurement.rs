//! Signals as they were measured: which cells a device heard, second by second.

use super::flaws::Flaw;

/// Powers that are believed, dBm: what devices may report (TS 38.133 table
/// 10.1.6.1-1).
pub const RSRP_DBM: std::ops::RangeInclusive<f64> = -156.0..=-31.0;
/// SINR that is believed, dB (TS 38.133 table 10.1.16.1-1).
pub const SINR_DB: std::ops::RangeInclusive<f64> = -23.0..=40.0;
/// RSRQ that is believed, dB (TS 38.133 table 10.1.11.1-1).
pub const RSRQ_DB: std::ops::RangeInclusive<f64> = -43.0..=20.0;
/// Bandwidths that are believed, MHz.
pub const BANDWIDTH_MHZ: std::ops::RangeInclusive<f64> = 0.1..=400.0;
/// Bandwidth of a carrier of which nothing is said, MHz.
pub const DEFAULT_BANDWIDTH_MHZ: f64 = 20.0;

/// A carrier of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Carrier {
    /// Index of its operator.
    pub operator: usize,
    /// Its name: a frequency, a channel number, a band.
    pub name: String,
    /// Its bandwidth, if the file says so, MHz.
    pub bandwidth_mhz: Option<f64>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of its carrier.
    pub carrier: usize,
    /// Its name, unique on its carrier.
    pub name: String,
}

/// A cell as heard in one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard {
    /// Index of the cell.
    pub cell: usize,
    /// Reference signal received power, dBm.
    pub rsrp_dbm: f64,
    /// Reference signal received quality, dB, where measured.
    pub rsrq_db: Option<f64>,
    /// Signal to interference and noise, dB, where measured.
    pub sinr_db: Option<f64>,
}

/// One second of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// The cells heard, ascending by index, each once.
    pub heard: Vec<Heard>,
    /// Index of the segment of the drive, where the file says so.
    pub segment: Option<usize>,
}

/// A measurement of signals, a second after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    /// Names of the operators.
    pub operators: Vec<String>,
    /// Their carriers.
    pub carriers: Vec<Carrier>,
    /// Their cells.
    pub cells: Vec<Cell>,
    /// Names of segments of the drive.
    pub segments: Vec<String>,
    /// Cells heard, second by second.
    pub seconds: Vec<Second>,
    /// Flaws found in the data, each handled by the rule of its kind.
    pub flaws: Vec<Flaw>,
    /// Further remarks, a sentence each.
    pub notes: Vec<String>,
}

impl Measurements {
    /// Operator, carrier and cell by name, for people: `op1/1800/17a`.
    pub fn cell_name(&self, cell: usize) -> String {
        let c = &self.cells[cell];
        let carrier = &self.carriers[c.carrier];
        let operator = &self.operators[carrier.operator];
        format!("{operator}/{}/{}", carrier.name, c.name)
    }
}
