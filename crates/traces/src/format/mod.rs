//! The formats that traces are read from; one file each.

mod csv;
mod iperf3;
mod mahimahi;
mod mapped;
mod paired;
mod pensieve;
mod ucc;
mod ugr;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::LineError;
use super::samples::{Samples, Value};
use super::{Capacity, Quantity, Trace};

pub(super) use csv::{TIME_COLUMN, is_name};
pub use mapped::{Mapping, Moment};
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
    /// Cooked traces of Pensieve: seconds, Mbit/s, separated by white space.
    Pensieve,
    /// UGR dynamic experiment: weights per cycle, 50 Mbit/s each.
    UgrDynamic,
    /// Output of `iperf3 --json`: what arrived in each interval.
    Iperf3,
    /// A table with names of its own, as a [`Mapping`] says; never recognised.
    Mapped,
}

impl Format {
    /// Formats that a file can be said to have.
    pub const ALL: [Self; 7] = [
        Self::Csv,
        Self::Mahimahi,
        Self::Ucc5g,
        Self::Paired,
        Self::Pensieve,
        Self::UgrDynamic,
        Self::Iperf3,
    ];

    /// The name used on the command line and in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Mahimahi => "mahimahi",
            Self::Ucc5g => "ucc-5g",
            Self::Paired => "paired",
            Self::Pensieve => "pensieve",
            Self::UgrDynamic => "ugr-dynamic",
            Self::Iperf3 => "iperf3",
            Self::Mapped => "mapped",
        }
    }

    /// Describes the format in a few words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Csv => "CSV of seconds and Mbit/s",
            Self::Mahimahi => "Mahimahi delivery opportunities",
            Self::Ucc5g => "UCC 5G production dataset",
            Self::Paired => "5G and 4G measured together",
            Self::Pensieve => "Pensieve, seconds and Mbit/s",
            Self::UgrDynamic => "UGR dynamic experiment, weights",
            Self::Iperf3 => "iperf3, JSON",
            Self::Mapped => "table with columns of its own",
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
    if text.starts_with('{') {
        Ok(Format::Iperf3)
    } else if ucc::is_header(text) {
        Ok(Format::Ucc5g)
    } else if ugr::is_header(text) {
        Ok(Format::UgrDynamic)
    } else if text.contains(',') {
        Ok(Format::Csv)
    } else if fields.len() == 1 && text.bytes().all(|b| b.is_ascii_digit()) {
        Ok(Format::Mahimahi)
    } else if fields.len() == 3 && numbers {
        Ok(Format::Paired)
    } else if fields.len() == 2 && numbers {
        Ok(Format::Pensieve)
    } else {
        Err(unknown())
    }
}

/// Output of a format's reader.
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

    fn trace(self, format: Format) -> Trace {
        Trace {
            format,
            capacity: self.capacity,
            problems: self.problems,
            notes: self.notes,
        }
    }
}

pub(super) fn parse(bytes: &[u8], format: Format) -> Result<Trace, LineError> {
    let parsed = match format {
        Format::Csv => csv::parse(bytes, Quantity::Rate),
        Format::Mahimahi => mahimahi::parse(bytes),
        Format::Ucc5g => ucc::parse(bytes),
        Format::Paired => paired::parse(bytes),
        Format::Pensieve => pensieve::parse(bytes),
        Format::UgrDynamic => ugr::parse(bytes),
        Format::Iperf3 => iperf3::parse(bytes),
        Format::Mapped => Err(LineError::file(
            "which columns of the table are meant is not said",
        )),
    }?;
    Ok(parsed.trace(format))
}

pub(super) fn parse_quantity(bytes: &[u8], quantity: Quantity) -> Result<Trace, LineError> {
    Ok(csv::parse(bytes, quantity)?.trace(Format::Csv))
}

pub(super) fn parse_mapped(bytes: &[u8], mapping: &Mapping) -> Result<Trace, LineError> {
    Ok(mapped::parse(bytes, mapping)?.trace(Format::Mapped))
}

/// Numbered lines without their ends, which are LF, CR LF or CR; a byte order mark is left
/// out.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let whole = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let ends: [&[u8]; 3] = [b"\r\n", b"\n", b"\r"];
    let bytes = ends.iter().find_map(|e| whole.strip_suffix(*e));
    let bytes = bytes.unwrap_or(whole);
    let by_lf = bytes.split(|b| *b == b'\n');
    let by_both = by_lf.flat_map(|l| {
        let l = l.strip_suffix(b"\r").unwrap_or(l);
        l.split(|b| *b == b'\r')
    });
    (1u64..).zip(by_both)
}

/// The text of one line.
pub(crate) fn text(line: u64, bytes: &[u8]) -> Result<&str, LineError> {
    std::str::from_utf8(bytes)
        .map_err(|_| LineError::at(line, "not text: expected UTF-8 (is this a binary file?)"))
}

/// Up to 40 characters of `s` in quotes, for messages: as they stand, since a space too many
/// may be all that is wrong.
pub(crate) fn quote(s: &str) -> String {
    match s.char_indices().nth(40) {
        Some((i, _)) => format!("{:?}...", &s[..i]),
        None => format!("{s:?}"),
    }
}

/// Latest time that is read, in seconds since any epoch: what is beyond is given in another
/// unit.
pub(crate) const MAX_TIME_S: f64 = 1e11;

/// Microseconds since the recorder's own epoch, of a field in seconds: a clock that counts
/// since 1970 is as good as one that counts since the start, as only differences matter.
pub(crate) fn seconds(line: u64, field: &str) -> Result<i64, LineError> {
    let wrong = |expected: &str| {
        let msg = format!("{} is not a time: expected {expected}", quote(field));
        Err(LineError::at(line, msg))
    };
    match field.trim().parse::<f64>() {
        Ok(s) if (0.0..=MAX_TIME_S).contains(&s) => Ok((s * 1e6).round() as i64),
        Ok(s) if s > MAX_TIME_S => wrong("seconds since any epoch (are these milliseconds?)"),
        _ => wrong("seconds from 0 on"),
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

#[cfg(test)]
mod tests {
    use super::super::Trace;
    use super::*;

    #[test]
    fn lines_end_as_any_system_ends_them() {
        let all = |b: &'static [u8]| lines(b).collect::<Vec<_>>();
        let expected: Vec<(u64, &[u8])> = vec![(1, b"1"), (2, b""), (3, b"3")];
        for bytes in ["1\n\n3\n", "1\r\n\r\n3", "1\r\r3\r", "\u{feff}1\n\r\n3\r\n"] {
            assert_eq!(all(bytes.as_bytes()), expected, "{bytes:?}");
        }
        let old_mac = Trace::parse(b"0\r5\r12\r", None).unwrap();
        assert_eq!(old_mac.format, Format::Mahimahi);
    }

    #[test]
    fn times_of_any_epoch_make_the_same_trace() {
        let csv = |start: f64| {
            let rows = [0.0, 0.25, 1.0].map(|t| format!("{},7\n", start + t));
            Trace::parse(format!("t_s,a_mbps\n{}", rows.concat()).as_bytes(), None).unwrap()
        };
        assert_eq!(csv(1_700_000_000.0).capacity, csv(0.0).capacity);
        let paired = |start: u64| {
            let rows = [0, 1, 2].map(|t| format!("{} 7 8\n", start + t));
            Trace::parse(rows.concat().as_bytes(), None).unwrap()
        };
        assert_eq!(paired(1_700_000_000).capacity, paired(0).capacity);
    }

    #[test]
    fn messages_show_what_is_wrong_as_it_stands() {
        let says = |bytes: &[u8], what: &str| {
            let e = Trace::parse(bytes, None).err().unwrap();
            assert!(e.msg.contains(what), "{e}");
        };
        says(b"1\n 2\n", "\" 2\" is not a time");
        says(b"t_s,a_mbps\n1700000000000,1\n", "milliseconds?");
        says(b"t_s,a_mbps\n0,1\n2592001,1\n", "at most 30 days");
    }
}
