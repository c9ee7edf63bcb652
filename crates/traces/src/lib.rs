//! Capacity traces: reading the formats that measurements come in, describing
//! them, drawing them, and turning them into the rate of a link.
//!
//! A [`Trace`] is read from bytes ([`Trace::parse`]) or a file
//! ([`Trace::read`]); [`load`] goes straight to the [`RateSpec`] of one column.
//! The formats and the rules for flawed data are described in `docs/traces.md`.

mod convert;
mod error;
pub mod format;
pub mod generate;
pub mod plot;
mod quantity;
mod rate_spec;
mod samples;
pub mod signal;
pub mod stats;
pub mod transfers;
pub mod write;

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use braid_api::bounded;
use braid_core::Rate;

pub use error::{LineError, Problem, ProblemKind, TraceError};
pub use format::{Format, Mapping, Moment};
pub use quantity::Quantity;
pub use rate_spec::RateSpec;

/// Bytes of IP packet per Mahimahi delivery opportunity.
///
/// Mahimahi's link shell counts 1504 bytes per opportunity (`PACKET_SIZE` in
/// `link_queue.hh`), but it reads its packets from a TUN device opened without
/// `IFF_NO_PI`, so 4 of them are the packet information header: an opportunity
/// carries one IP packet of 1500 bytes. Rates of links are IP-layer rates here.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// Largest trace file that is read.
pub const MAX_FILE_BYTES: u64 = 128 << 20;
/// Most samples (rows times columns) or delivery opportunities of a trace.
pub const MAX_SAMPLES: usize = 10_000_000;
/// Most columns of a trace.
pub const MAX_COLUMNS: usize = 64;
/// Longest trace.
pub const MAX_SPAN: Duration = Duration::from_secs(30 * 86_400);
/// Highest rate that is believed.
pub const MAX_RATE: Rate = Rate::from_bps(1_000_000_000_000);

/// A capacity trace: one or more links over a common time that starts at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The format it was read from.
    pub format: Format,
    /// The capacity itself.
    pub capacity: Capacity,
    /// Flaws found in the data, each handled by the rule of its kind.
    pub problems: Vec<Problem>,
    /// Further remarks about the file, a sentence each.
    pub notes: Vec<String>,
}

/// Capacity over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Piecewise constant rates.
    Steps {
        /// When each sample begins to hold: ascending, the first zero.
        starts: Vec<Duration>,
        /// When the last sample ceases to hold.
        end: Duration,
        /// The links; each has as many rates as there are starts.
        columns: Vec<Column>,
    },
    /// Single packets that may leave at given milliseconds.
    Opportunities {
        /// Milliseconds, ascending with repeats; the last is not zero and ends
        /// the trace.
        ms: Vec<u64>,
        /// IP bytes per opportunity.
        packet_bytes: u32,
    },
}

/// One link of a sampled trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the link, unique in its trace.
    pub name: String,
    /// Rate from each start on.
    pub rates: Vec<Rate>,
}

/// The name by which the one column of an opportunity trace goes.
pub const OPPORTUNITY_COLUMN: &str = "link";

impl Trace {
    /// Reads a trace from the bytes of a file, in `format` or else in the one
    /// that the content shows.
    ///
    /// # Errors
    /// The format is not recognised, or a line cannot be read in it.
    pub fn parse(bytes: &[u8], format: Option<Format>) -> Result<Self, LineError> {
        let format = match format {
            Some(f) => f,
            None => format::detect(bytes)?,
        };
        format::parse(bytes, format)
    }

    /// Reads columns of `quantity` from the bytes of a file in our CSV, which may have
    /// others beside them.
    ///
    /// # Errors
    /// There is no such column, or a line cannot be read.
    pub fn parse_quantity(bytes: &[u8], quantity: Quantity) -> Result<Self, LineError> {
        format::parse_quantity(bytes, quantity)
    }

    /// Reads columns of a table with names of its own, as `mapping` says.
    ///
    /// # Errors
    /// There is no such column, or a line cannot be read.
    pub fn parse_mapped(bytes: &[u8], mapping: &Mapping) -> Result<Self, LineError> {
        format::parse_mapped(bytes, mapping)
    }

    /// Reads the trace file at `path`.
    ///
    /// # Errors
    /// The file cannot be read or is over [`MAX_FILE_BYTES`], and as
    /// [`Trace::parse`].
    pub fn read(path: &Path, format: Option<Format>) -> Result<Self, TraceError> {
        let bytes = read_bounded(path).map_err(|e| e.in_file(path))?;
        Self::parse(&bytes, format).map_err(|e| e.in_file(path))
    }

    /// Names of the links.
    pub fn columns(&self) -> Vec<&str> {
        match &self.capacity {
            Capacity::Steps { columns, .. } => columns.iter().map(|c| c.name.as_str()).collect(),
            Capacity::Opportunities { .. } => vec![OPPORTUNITY_COLUMN],
        }
    }

    /// Length of the trace, and of one repetition when it is played.
    pub fn span(&self) -> Duration {
        match &self.capacity {
            Capacity::Steps { end, .. } => *end,
            Capacity::Opportunities { ms, .. } => {
                Duration::from_millis(ms.last().copied().unwrap_or(0))
            }
        }
    }

    /// Samples per column, or delivery opportunities.
    pub fn samples(&self) -> usize {
        match &self.capacity {
            Capacity::Steps { starts, .. } => starts.len(),
            Capacity::Opportunities { ms, .. } => ms.len(),
        }
    }

    /// Index of the column called `name`; without a name the only column.
    ///
    /// # Errors
    /// No such column, or no name where there are several; says which exist.
    pub fn column_index(&self, name: Option<&str>) -> Result<usize, LineError> {
        let names = self.columns();
        match name {
            None if names.len() == 1 => Ok(0),
            None => Err(LineError::file(format!(
                "the trace has {} columns: say which one to take ({})",
                names.len(),
                names.join(", ")
            ))),
            Some(n) => names.iter().position(|c| *c == n).ok_or_else(|| {
                LineError::file(format!(
                    "no column \"{n}\" in the trace: expected one of {}",
                    names.join(", ")
                ))
            }),
        }
    }
}

/// One column of a trace file, ready for a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The rate, repeating after the trace's span.
    pub rate: RateSpec,
    /// Flaws of the data that were handled.
    pub problems: Vec<Problem>,
    /// Length of one repetition.
    pub span: Duration,
    /// The column that was taken.
    pub column: String,
}

/// Reads one column of the trace file at `path` as the rate of a link. Without
/// `column` the trace must have only one.
///
/// # Errors
/// As [`Trace::read`] and [`Trace::column_index`].
pub fn load(
    path: &Path,
    column: Option<&str>,
    format: Option<Format>,
) -> Result<Loaded, TraceError> {
    load_with_hints(path, column, &[], format)
}

/// Like [`load`]; where no `column` is named and the trace has several, the
/// first of `hints` (such as the name of the access, then `down` or `up`) that
/// is the name of a column is taken.
///
/// # Errors
/// As [`load`].
pub fn load_with_hints(
    path: &Path,
    column: Option<&str>,
    hints: &[&str],
    format: Option<Format>,
) -> Result<Loaded, TraceError> {
    let trace = Trace::read(path, format)?;
    let names = trace.columns();
    let hinted = || hints.iter().copied().find(|h| names.contains(h));
    let wanted = column.or_else(|| if names.len() > 1 { hinted() } else { None });
    let index = trace.column_index(wanted).map_err(|e| e.in_file(path))?;
    Ok(Loaded {
        rate: trace.rate_spec(index),
        span: trace.span(),
        column: names[index].to_owned(),
        problems: trace.problems,
    })
}

/// Reads a file that belongs to traces as text.
///
/// # Errors
/// It cannot be read, is over [`MAX_FILE_BYTES`] or no UTF-8.
pub fn read_text(path: &Path) -> Result<String, TraceError> {
    let bytes = read_bounded(path).map_err(|e| e.in_file(path))?;
    let msg = "not text: expected UTF-8";
    String::from_utf8(bytes).map_err(|_| LineError::file(msg).in_file(path))
}

/// Reads a trace file whole.
///
/// # Errors
/// It cannot be read, or is over [`MAX_FILE_BYTES`].
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, TraceError> {
    read_bounded(path).map_err(|e| e.in_file(path))
}

pub(crate) fn read_bounded(path: &Path) -> Result<Vec<u8>, LineError> {
    bounded::read(path, MAX_FILE_BYTES).map_err(|e| {
        LineError::file(match e.kind() {
            ErrorKind::FileTooLarge => format!(
                "the trace is too large: expected at most {} MiB",
                MAX_FILE_BYTES >> 20
            ),
            _ => format!("cannot read the trace: {e}"),
        })
    })
}

#[cfg(test)]
mod tests;
