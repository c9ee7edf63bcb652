//! The formats that traces are read from; one file each.

mod csv;
mod mahimahi;
mod paired;
mod ucc;
mod ugr;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::LineError;
use super::samples::{Samples, Value};
use super::{Capacity, MAX_SPAN, Trace};

pub(super) use csv::{RATE_SUFFIX, TIME_COLUMN, is_name};
pub(crate) use ucc::{DOWNLINK, UPLINK};

/// A trace file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Ours: seconds and one Mbit/s column per link, strict.
    Csv,
    /// Mahimahi delivery opportunities: a millisecond per line and packet.
    Mahimahi,
    /// UCC 5G production dataset (G-NetTrack CSV, one operator, 1 Hz).
    Ucc5g,
    /// 5G and 4G throughput of one drive: seconds, Mbit/s, Mbit/s, separated
    /// by white space.
    Paired,
    /// UGR dynamic experiment: weights per cycle, 50 Mbit/s each.
    UgrDynamic,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [
        Self::Csv,
        Self::Mahimahi,
        Self::Ucc5g,
        Self::Paired,
        Self::UgrDynamic,
    ];

    /// The name used on the command line and in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Mahimahi => "mahimahi",
            Self::Ucc5g => "ucc-5g",
            Self::Paired => "paired",
            Self::UgrDynamic => "ugr-dynamic",
        }
    }

    /// What it is, in a few words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Csv => "CSV of seconds and Mbit/s",
            Self::Mahimahi => "Mahimahi delivery opportunities",
            Self::Ucc5g => "UCC 5G production dataset",
            Self::Paired => "5G and 4G measured together",
            Self::UgrDynamic => "UGR dynamic experiment, weights",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|f| f.name() == s)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                format!("\"{s}\" is not a trace format: expected one of {names}")
            })
    }
}

/// Recognises the format of a file by its first line that is neither empty nor
/// a comment.
pub(super) fn detect(bytes: &[u8]) -> Result<Format, LineError> {
    let found = lines(bytes).find(|(_, l)| {
        let l = l.trim_ascii();
        !l.is_empty() && !l.starts_with(b"#")
    });
    let Some((line, text)) = found else {
        return Err(LineError::file(
            "the trace is empty: expected at least one sample",
        ));
    };
    let unknown = || {
        let names = Format::ALL.map(Format::name).join(", ");
        LineError::at(
            line,
            format!("cannot tell the format from this line: expected one of {names}"),
        )
    };
    let text = std::str::from_utf8(text).map_err(|_| unknown())?.trim();
    let fields: Vec<&str> = text.split_whitespace().collect();
    let numbers = fields.iter().all(|f| f.parse::<f64>().is_ok());
    if ucc::is_header(text) {
        Ok(Format::Ucc5g)
    } else if ugr::is_header(text) {
        Ok(Format::UgrDynamic)
    } else if text.contains(',') {
        Ok(Format::Csv)
    } else if fields.len() == 1 && text.bytes().all(|b| b.is_ascii_digit()) {
        Ok(Format::Mahimahi)
    } else if fields.len() == 3 && numbers {
        Ok(Format::Paired)
    } else {
        Err(unknown())
    }
}

/// What a format's reader gives.
struct Parsed {
    capacity: Capacity,
    problems: Vec<super::Problem>,
    notes: Vec<String>,
}

impl Parsed {
    fn of(samples: Samples, notes: Vec<String>) -> Result<Self, LineError> {
        let (capacity, problems) = samples.finish()?;
        Ok(Self {
            capacity,
            problems,
            notes,
        })
    }
}

pub(super) fn parse(bytes: &[u8], format: Format) -> Result<Trace, LineError> {
    let parsed = match format {
        Format::Csv => csv::parse(bytes),
        Format::Mahimahi => mahimahi::parse(bytes),
        Format::Ucc5g => ucc::parse(bytes),
        Format::Paired => paired::parse(bytes),
        Format::UgrDynamic => ugr::parse(bytes),
    }?;
    Ok(Trace {
        format,
        capacity: parsed.capacity,
        problems: parsed.problems,
        notes: parsed.notes,
    })
}

/// Numbered lines without their line ends; a byte order mark is left out.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let numbered = (1u64..).zip(bytes.split(|b| *b == b'\n'));
    numbered.map(|(n, l)| (n, l.strip_suffix(b"\r").unwrap_or(l)))
}

/// The text of one line.
pub(crate) fn text(line: u64, bytes: &[u8]) -> Result<&str, LineError> {
    std::str::from_utf8(bytes)
        .map_err(|_| LineError::at(line, "not text: expected UTF-8 (is this a binary file?)"))
}

/// Up to 40 characters of `s` in quotes, for messages.
pub(crate) fn quote(s: &str) -> String {
    let s = s.trim();
    match s.char_indices().nth(40) {
        Some((i, _)) => format!("{:?}...", &s[..i]),
        None => format!("{s:?}"),
    }
}

/// Seconds as microseconds; within [`MAX_SPAN`] of zero.
pub(crate) fn seconds(line: u64, field: &str) -> Result<i64, LineError> {
    let limit = MAX_SPAN.as_secs_f64();
    match field.trim().parse::<f64>() {
        Ok(s) if (0.0..=limit).contains(&s) => Ok((s * 1e6).round() as i64),
        _ => Err(LineError::at(
            line,
            format!(
                "{} is not a time: expected seconds from 0 to {limit}",
                quote(field)
            ),
        )),
    }
}

/// A value in a recorded file; `unit` names what was expected.
fn value(line: u64, field: &str, scale: f64, unit: &str) -> Result<Value, LineError> {
    Value::read(field, scale).map_err(|()| {
        LineError::at(
            line,
            format!(
                "{} is not a number of {unit} (nor \"-\" for none)",
                quote(field)
            ),
        )
    })
}

/// Splits a record into exactly `n` fields.
pub(crate) fn fields<'a>(
    line: u64,
    text: &'a str,
    n: usize,
    expected: &str,
) -> Result<Vec<&'a str>, LineError> {
    let f: Vec<&str> = text.split(',').map(str::trim).collect();
    if f.len() == n {
        return Ok(f);
    }
    let count = match f.len() {
        1 => "1 field".to_owned(),
        k => format!("{k} fields"),
    };
    Err(LineError::at(
        line,
        format!("{count} in this line: expected {n} ({expected})"),
    ))
}
