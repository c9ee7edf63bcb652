//! The scenario of a drive: a TOML file, strict.

use indexmap::IndexMap;
use serde::Deserialize;

use super::path_loss::Propagation;

/// The shipped scenario, whose statistics are held against the paper's.
const SHIPPED: &str = include_str!("two-operators.toml");

/// A drive through areas in which operators have sites.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// The device.
    #[serde(default)]
    pub receiver: Receiver,
    /// The operators, 1 to 8.
    pub operator: Vec<OperatorSpec>,
    /// Kinds of areas.
    pub area: IndexMap<String, Area>,
    /// The road: one stretch after the other, then again from the first.
    pub stretch: Vec<Stretch>,
}

/// The device that drives.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Receiver {
    /// Height of its antenna, m, 1 to 10.
    pub height_m: f64,
    /// Loss into the vehicle, dB: 9 (TR 38.901 7.4.3.2).
    pub vehicle_loss_db: f64,
    /// Its noise figure, dB.
    pub noise_figure_db: f64,
    /// No cell is heard below this RSRP, dBm (TS 36.133 8.1.2.2.1.1: -127 to
    /// -124, depending on the band).
    pub sensitivity_dbm: f64,
    /// No cell is heard whose power is not at least this much over all else on
    /// its carrier, dB: -6 (the same clause, SCH Es/Iot).
    pub detection_db: f64,
}

impl Default for Receiver {
    fn default() -> Self {
        Self {
            height_m: 1.5,
            vehicle_loss_db: 9.0,
            noise_figure_db: 9.0,
            sensitivity_dbm: -127.0,
            detection_db: -6.0,
        }
    }
}

/// An operator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorSpec {
    /// Its name, unique.
    pub name: String,
    /// Its carriers, 1 to 8.
    pub carrier: Vec<CarrierSpec>,
}

/// A carrier of an operator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarrierSpec {
    /// Its name, unique for its operator.
    pub name: String,
    /// Frequency, MHz, 450 to 6000.
    pub frequency_mhz: f64,
    /// Bandwidth, MHz, 1.4 to 20: of 15 kHz subcarriers 90 % are used.
    pub bandwidth_mhz: f64,
    /// Power of the transmitter on the whole carrier, dBm.
    pub power_dbm: f64,
    /// Gain of a sector's antenna less cable losses, dBi.
    pub antenna_dbi: f64,
}

/// A kind of area.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// How signals propagate.
    pub propagation: Propagation,
    /// Speed of the vehicle, km/h, 1 to 300.
    pub speed_kmh: f64,
    /// Sites by the name of their operator.
    pub sites: IndexMap<String, Grid>,
}

/// Where an operator has sites: a grid along the road, jittered.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Distance between sites, m, 50 to 30000.
    pub spacing_m: f64,
    /// Rows of the grid, side by side, 1 to 9; the road runs along the middle.
    #[serde(default = "one")]
    pub rows: u32,
    /// How far a site is from its place in the grid at most, as a part of the
    /// spacing, 0 to 0.5.
    #[serde(default = "third")]
    pub jitter: f64,
    /// Sectors of a site, 1 (all around) to 6.
    #[serde(default = "three")]
    pub sectors: usize,
    /// How high antennas are, m, 5 to 150.
    pub height_m: f64,
    /// Added to every carrier's power here, dB: small cells send less.
    #[serde(default)]
    pub power_offset_db: f64,
    /// The part of the sites that have a carrier, 0 to 1, by its name; a carrier
    /// that is not named is on none.
    pub carriers: IndexMap<String, f64>,
}

fn one() -> u32 {
    1
}

fn three() -> usize {
    3
}

fn third() -> f64 {
    0.3
}

/// A part of the road.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// The kind of area it runs through.
    pub area: String,
    /// How long it takes, minutes, 0.1 to 1440.
    pub minutes: f64,
}

impl DriveSpec {
    /// The shipped scenario: two operators, two carriers each, residential areas,
    /// roads and open country.
    pub fn shipped() -> Self {
        toml::from_str(SHIPPED).expect("a test reads the shipped scenario")
    }

    /// Text of [`DriveSpec::shipped`].
    pub fn shipped_text() -> &'static str {
        SHIPPED
    }

    /// Reads a scenario and checks it.
    ///
    /// # Errors
    /// Where it cannot be read, as line and column; what does not hold together.
    pub fn parse(text: &str) -> Result<Self, crate::LineError> {
        let spec: Self = toml::from_str(text).map_err(|e| {
            let before = e.span().map(|s| &text[..s.start.min(text.len())]);
            let line = before.map(|b| b.matches('\n').count() as u64 + 1);
            crate::LineError {
                line,
                msg: e.message().trim().to_owned(),
            }
        })?;
        spec.check()
            .map_err(|msg| crate::LineError { line: None, msg })?;
        Ok(spec)
    }

    /// Whether names refer to what there is and numbers are in their ranges.
    ///
    /// # Errors
    /// What is wrong and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let r = &self.receiver;
        within("receiver: height_m", r.height_m, 1.0, 10.0)?;
        within("receiver: vehicle_loss_db", r.vehicle_loss_db, 0.0, 60.0)?;
        within("receiver: noise_figure_db", r.noise_figure_db, 0.0, 30.0)?;
        within(
            "receiver: sensitivity_dbm",
            r.sensitivity_dbm,
            -150.0,
            -60.0,
        )?;
        within("receiver: detection_db", r.detection_db, -20.0, 20.0)?;
        count("operator", self.operator.len(), 8)?;
        count("stretch", self.stretch.len(), 1000)?;
        count("area", self.area.len(), 64)?;
        for (i, o) in self.operator.iter().enumerate() {
            name(&o.name)?;
            if self.operator[..i].iter().any(|p| p.name == o.name) {
                return Err(format!("two operators named \"{}\"", o.name));
            }
            count(&format!("{}: carrier", o.name), o.carrier.len(), 8)?;
            for (j, c) in o.carrier.iter().enumerate() {
                name(&c.name)?;
                let of = format!("{} {}", o.name, c.name);
                if o.carrier[..j].iter().any(|p| p.name == c.name) {
                    return Err(format!("two carriers named \"{}\" of {}", c.name, o.name));
                }
                within(
                    &format!("{of}: frequency_mhz"),
                    c.frequency_mhz,
                    450.0,
                    6000.0,
                )?;
                within(&format!("{of}: bandwidth_mhz"), c.bandwidth_mhz, 1.4, 20.0)?;
                within(&format!("{of}: power_dbm"), c.power_dbm, -10.0, 60.0)?;
                within(&format!("{of}: antenna_dbi"), c.antenna_dbi, -10.0, 30.0)?;
            }
        }
        for (area, a) in &self.area {
            name(area)?;
            within(&format!("{area}: speed_kmh"), a.speed_kmh, 1.0, 300.0)?;
            for (operator, g) in &a.sites {
                self.check_grid(&format!("{area}, {operator}"), operator, g)?;
            }
        }
        for s in &self.stretch {
            if !self.area.contains_key(&s.area) {
                let known: Vec<&str> = self.area.keys().map(String::as_str).collect();
                let known = known.join(", ");
                return Err(format!("no area \"{}\": expected one of {known}", s.area));
            }
            within(
                &format!("stretch {}: minutes", s.area),
                s.minutes,
                0.1,
                1440.0,
            )?;
        }
        Ok(())
    }

    fn check_grid(&self, of: &str, operator: &str, g: &Grid) -> Result<(), String> {
        let Some(o) = self.operator.iter().find(|o| o.name == operator) else {
            return Err(format!("{of}: no operator \"{operator}\""));
        };
        within(&format!("{of}: spacing_m"), g.spacing_m, 50.0, 30_000.0)?;
        within(&format!("{of}: rows"), f64::from(g.rows), 1.0, 9.0)?;
        within(&format!("{of}: jitter"), g.jitter, 0.0, 0.5)?;
        within(&format!("{of}: sectors"), g.sectors as f64, 1.0, 6.0)?;
        within(&format!("{of}: height_m"), g.height_m, 5.0, 150.0)?;
        within(
            &format!("{of}: power_offset_db"),
            g.power_offset_db,
            -40.0,
            20.0,
        )?;
        for (carrier, share) in &g.carriers {
            if !o.carrier.iter().any(|c| c.name == *carrier) {
                return Err(format!("{of}: no carrier \"{carrier}\" of {operator}"));
            }
            within(&format!("{of}: part with {carrier}"), *share, 0.0, 1.0)?;
        }
        Ok(())
    }
}

fn within(what: &str, v: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..=high).contains(&v) {
        return Ok(());
    }
    Err(format!("{what} is {v}: expected {low} to {high}"))
}

fn count(what: &str, n: usize, most: usize) -> Result<(), String> {
    if (1..=most).contains(&n) {
        return Ok(());
    }
    Err(format!("{n} of {what}: expected 1 to {most}"))
}

/// Names stand in CSV files and in columns of traces.
fn name(s: &str) -> Result<(), String> {
    let ok = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    if !s.is_empty() && s.len() <= 40 && s.bytes().all(ok) {
        return Ok(());
    }
    Err(format!(
        "\"{s}\" is no name: expected up to 40 letters, digits, _ - ."
    ))
}
