//! The scenario of a drive: a TOML file, strict.

use braid_api::diagnostic::{Problem, nearest};
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
    /// Where it cannot be read or does not hold together: the place, what is wrong there, and
    /// what was expected.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let spec: Self = toml::from_str(text)?;
        spec.check()?;
        Ok(spec)
    }

    /// Checks that names refer to what there is and that numbers are in their ranges.
    ///
    /// # Errors
    /// The key, what is wrong with its value, and what was expected.
    pub fn check(&self) -> Result<(), Problem> {
        self.receiver.check()?;
        count(&["operator"], "operator", self.operator.len(), 8)?;
        count(&["stretch"], "stretch", self.stretch.len(), 1000)?;
        count(&["area"], "area", self.area.len(), 64)?;
        for (i, o) in self.operator.iter().enumerate() {
            let at = ["operator", &i.to_string()];
            name(&[&at[..], &["name"]].concat(), &o.name)?;
            if self.operator[..i].iter().any(|p| p.name == o.name) {
                let what = format!("two operators named \"{}\"", o.name);
                return Err(Problem::at_key(&[&at[..], &["name"]].concat(), what));
            }
            o.check(&at)?;
        }
        for (area, a) in &self.area {
            name(&["area", area], area)?;
            let speed = format!("{area}: speed_kmh");
            within(
                &["area", area, "speed_kmh"],
                &speed,
                a.speed_kmh,
                1.0,
                300.0,
            )?;
            for (operator, g) in &a.sites {
                self.check_grid(area, operator, g)?;
            }
        }
        for (i, s) in self.stretch.iter().enumerate() {
            self.check_stretch(&["stretch", &i.to_string()], s)?;
        }
        Ok(())
    }

    fn check_stretch(&self, at: &[&str], s: &Stretch) -> Result<(), Problem> {
        if !self.area.contains_key(&s.area) {
            let known = self.area.keys().map(String::as_str);
            let what = format!("no area \"{}\"", s.area);
            return Err(unknown(&[at, &["area"]].concat(), what, &s.area, known));
        }
        let what = format!("stretch {}: minutes", s.area);
        within(&[at, &["minutes"]].concat(), &what, s.minutes, 0.1, 1440.0)
    }

    fn check_grid(&self, area: &str, operator: &str, g: &Grid) -> Result<(), Problem> {
        let at = ["area", area, "sites", operator];
        let of = format!("{area}, {operator}");
        let Some(o) = self.operator.iter().find(|o| o.name == operator) else {
            let known = self.operator.iter().map(|o| o.name.as_str());
            let what = format!("{of}: no operator \"{operator}\"");
            return Err(unknown(&at, what, operator, known));
        };
        for (key, value, low, high) in [
            ("spacing_m", g.spacing_m, 50.0, 30_000.0),
            ("rows", f64::from(g.rows), 1.0, 9.0),
            ("jitter", g.jitter, 0.0, 0.5),
            ("sectors", g.sectors as f64, 1.0, 6.0),
            ("height_m", g.height_m, 5.0, 150.0),
            ("power_offset_db", g.power_offset_db, -40.0, 20.0),
        ] {
            let key_at = [&at[..], &[key]].concat();
            within(&key_at, &format!("{of}: {key}"), value, low, high)?;
        }
        for (carrier, share) in &g.carriers {
            let at = [&at[..], &["carriers", carrier]].concat();
            if !o.carrier.iter().any(|c| c.name == *carrier) {
                let known = o.carrier.iter().map(|c| c.name.as_str());
                let what = format!("{of}: no carrier \"{carrier}\" of {operator}");
                return Err(unknown(&at, what, carrier, known));
            }
            within(&at, &format!("{of}: part with {carrier}"), *share, 0.0, 1.0)?;
        }
        Ok(())
    }
}

impl Receiver {
    fn check(&self) -> Result<(), Problem> {
        for (key, value, low, high) in [
            ("height_m", self.height_m, 1.0, 10.0),
            ("vehicle_loss_db", self.vehicle_loss_db, 0.0, 60.0),
            ("noise_figure_db", self.noise_figure_db, 0.0, 30.0),
            ("sensitivity_dbm", self.sensitivity_dbm, -150.0, -60.0),
            ("detection_db", self.detection_db, -20.0, 20.0),
        ] {
            within(
                &["receiver", key],
                &format!("receiver: {key}"),
                value,
                low,
                high,
            )?;
        }
        Ok(())
    }
}

impl OperatorSpec {
    /// Checks the carriers; `at` is the place of the operator.
    fn check(&self, at: &[&str]) -> Result<(), Problem> {
        let carriers = format!("{}: carrier", self.name);
        count(
            &[at, &["carrier"]].concat(),
            &carriers,
            self.carrier.len(),
            8,
        )?;
        for (i, c) in self.carrier.iter().enumerate() {
            let number = i.to_string();
            let at = |key| [at, &["carrier", &number, key]].concat();
            name(&at("name"), &c.name)?;
            if self.carrier[..i].iter().any(|p| p.name == c.name) {
                let what = format!("two carriers named \"{}\" of {}", c.name, self.name);
                return Err(Problem::at_key(&at("name"), what));
            }
            for (key, value, low, high) in [
                ("frequency_mhz", c.frequency_mhz, 450.0, 6000.0),
                ("bandwidth_mhz", c.bandwidth_mhz, 1.4, 20.0),
                ("power_dbm", c.power_dbm, -10.0, 60.0),
                ("antenna_dbi", c.antenna_dbi, -10.0, 30.0),
            ] {
                let what = format!("{} {}: {key}", self.name, c.name);
                within(&at(key), &what, value, low, high)?;
            }
        }
        Ok(())
    }
}

fn within(at: &[&str], what: &str, v: f64, low: f64, high: f64) -> Result<(), Problem> {
    if (low..=high).contains(&v) {
        return Ok(());
    }
    let what = format!("{what} is {v}: expected {low} to {high}");
    Err(Problem::at_key(at, what))
}

fn count(at: &[&str], what: &str, n: usize, most: usize) -> Result<(), Problem> {
    if (1..=most).contains(&n) {
        return Ok(());
    }
    let what = format!("{n} of {what}: expected 1 to {most}");
    Err(Problem::at_key(at, what))
}

/// Problem with a name that stands for nothing: which there are, and which was meant.
fn unknown<'a>(
    at: &[&str],
    mut what: String,
    given: &str,
    known: impl Iterator<Item = &'a str>,
) -> Problem {
    let known: Vec<&str> = known.collect();
    what += &format!(": expected one of {}", known.join(", "));
    if let Some(near) = nearest(given, known) {
        what += &format!("; did you mean \"{near}\"?");
    }
    Problem::at_key(at, what)
}

/// Names stand in CSV files and in columns of traces.
fn name(at: &[&str], s: &str) -> Result<(), Problem> {
    let ok = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    if !s.is_empty() && s.len() <= 40 && s.bytes().all(ok) {
        return Ok(());
    }
    let what = format!("\"{s}\" is no name: expected up to 40 letters, digits, _ - .");
    Err(Problem::at_key(at, what))
}
