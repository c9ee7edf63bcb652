//! Counters of power that Linux shows in files: batteries, sensors, rails and processor packages.
//!
//! Each counter is a [`PowerSource`] found below a root, `/sys` on a real device. No file of Linux
//! gives the power of a modem alone: sources measure the whole device or a rail, and
//! [`braid_core::energy::attribution`] divides it among accesses by their rates. To add a kind: a
//! file here and a line in [`discover`].

mod hwmon;
mod iio;
mod power_supply;
mod powercap;
mod sensor;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use braid_core::Time;
use thiserror::Error;

/// Part of the device that a source measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    System,
    /// One supply of it, by the name that its driver gives.
    Rail(String),
}

/// Power at a moment, or over the time since the reading before.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerObservation {
    /// Moment of the reading.
    pub at: Time,
    /// Name of the source.
    pub source: String,
    /// Part of the device.
    pub scope: Scope,
    /// Power that it takes, mW.
    pub power_mw: f64,
}

/// Error: a counter could not be read.
#[derive(Debug, Error)]
pub enum PowerError {
    /// The file cannot be read; a device that was pulled out, or a right that is missing.
    #[error("cannot read the power counter {path}: {why}", path = .0.display(), why = .1)]
    Read(PathBuf, #[source] std::io::Error),
    /// The file has no number.
    #[error("the power counter {path} says \"{said}\": expected a whole number", path = .0.display(), said = .1)]
    NoNumber(PathBuf, String),
}

/// Counter of power.
pub trait PowerSource: Debug + Send {
    /// Returns its name: kind and number, as `power_supply/BAT0`.
    fn name(&self) -> &str;

    /// Returns what it measures.
    fn scope(&self) -> &Scope;

    /// Reads its power, mW; `None` while it cannot be known, as at the first reading of an energy
    /// counter, or on a battery that is charged.
    ///
    /// # Errors
    /// A file cannot be read, or has no number.
    fn power_mw(&mut self, now: Time) -> Result<Option<f64>, PowerError>;

    /// Reads it as an observation.
    ///
    /// # Errors
    /// As [`PowerSource::power_mw`].
    fn observe(&mut self, now: Time) -> Result<Option<PowerObservation>, PowerError> {
        let power = self.power_mw(now)?;
        Ok(power.map(|power_mw| PowerObservation {
            at: now,
            source: self.name().to_owned(),
            scope: self.scope().clone(),
            power_mw,
        }))
    }
}

/// Finds every source below `root`, in the order of their names by kind.
pub fn discover(root: &Path) -> Vec<Box<dyn PowerSource>> {
    let mut sources: Vec<Box<dyn PowerSource>> = Vec::new();
    sources.extend(power_supply::find(root));
    sources.extend(hwmon::find(root));
    sources.extend(iio::find(root));
    sources.extend(powercap::find(root));
    sources
}

/// Folders in `folder`, by name; none where it is not there.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

/// Name of a folder.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Text of a file without the line's end; `None` where it cannot be read.
fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Number in a file.
fn number(path: &Path) -> Result<f64, PowerError> {
    let text = fs::read_to_string(path).map_err(|e| PowerError::Read(path.to_owned(), e))?;
    match text.trim().parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(v),
        _ => Err(PowerError::NoNumber(
            path.to_owned(),
            text.trim().chars().take(40).collect(),
        )),
    }
}
