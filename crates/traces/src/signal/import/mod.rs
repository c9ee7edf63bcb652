//! Reading recorded signals; one file per format.

mod csv;
mod rows;
mod ucc;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::Measurements;
use crate::{LineError, TraceError};

pub(super) use csv::COLUMNS;

/// A file format for signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalFormat {
    /// CSV with a header: time, operator, cell, carrier, RSRP, and more.
    Signal,
    /// UCC 5G production dataset (G-NetTrack CSV, one operator, 1 Hz).
    Ucc5g,
}

impl SignalFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Signal, Self::Ucc5g];

    /// The name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Ucc5g => "ucc-5g",
        }
    }

    /// Describes the format in a few words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Signal => "CSV of received powers",
            Self::Ucc5g => "UCC 5G production dataset",
        }
    }

    /// Recognises a file of signals by its header; `None` if it is none.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        let (_, header) = rows::records(bytes).next()?;
        let header = std::str::from_utf8(header).ok()?;
        if ucc::is_header(header) {
            Some(Self::Ucc5g)
        } else if csv::is_header(header) {
            Some(Self::Signal)
        } else {
            None
        }
    }
}

impl fmt::Display for SignalFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SignalFormat {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|f| f.name() == s);
        found.ok_or_else(|| format!("\"{s}\" is no format of signals: expected signal or ucc-5g"))
    }
}

/// Reads signals from the bytes of a file.
///
/// # Errors
/// A line cannot be read, or nothing usable is in the file.
pub fn parse(bytes: &[u8], format: SignalFormat) -> Result<Measurements, LineError> {
    let (rows, notes) = match format {
        SignalFormat::Signal => csv::parse(bytes),
        SignalFormat::Ucc5g => ucc::parse(bytes),
    }?;
    let mut m = rows.finish()?;
    m.notes.extend(notes);
    Ok(m)
}

/// Reads the file at `path`, in `format` or else in the one that its header
/// shows.
///
/// # Errors
/// As [`parse`], or the file cannot be read, or its format is not known.
pub fn read(path: &Path, format: Option<SignalFormat>) -> Result<Measurements, TraceError> {
    let bytes = crate::read_bounded(path).map_err(|e| e.in_file(path))?;
    let format = format
        .or_else(|| SignalFormat::detect(&bytes))
        .ok_or_else(|| {
            let msg =
                "no signals in this line: expected a header with at least time, cell and RSRP";
            LineError::at(1, msg).in_file(path)
        })?;
    parse(&bytes, format).map_err(|e| e.in_file(path))
}

#[cfg(test)]
mod tests;
