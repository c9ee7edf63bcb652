//! CSV of received powers, as MONROE nodes and our generator give them: a header
//! whose names are taken in several spellings, then a row per time and cell.

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::rows::{Row, Rows, number, records};
use crate::LineError;
use crate::format::{MAX_TIME_S, quote, text};

/// A column: the name that we write, and other spellings that are read. Case
/// does not matter.
pub(in super::super) struct Column {
    pub(in super::super) name: &'static str,
    spellings: &'static [&'static str],
}

/// The columns; the first five carry the measurement, RSRP and time must be.
pub(in super::super) const COLUMNS: [Column; 9] = [
    Column {
        name: "time_s",
        spellings: &["timestamp", "time", "t_s"],
    },
    Column {
        name: "operator",
        spellings: &["operatorname", "imsimccmnc", "nwmccmnc"],
    },
    Column {
        name: "carrier",
        spellings: &["earfcn", "frequency", "band"],
    },
    Column {
        name: "cell",
        spellings: &["cellid", "cell_id", "cid", "pci"],
    },
    Column {
        name: "rsrp_dbm",
        spellings: &["rsrp"],
    },
    Column {
        name: "rsrq_db",
        spellings: &["rsrq"],
    },
    Column {
        name: "sinr_db",
        spellings: &["sinr", "snr"],
    },
    Column {
        name: "bandwidth_mhz",
        spellings: &["bandwidth"],
    },
    Column {
        name: "segment",
        spellings: &[],
    },
];

fn position(header: &[&str], column: &Column) -> Option<usize> {
    let is = |h: &str, name: &str| h.eq_ignore_ascii_case(name);
    let spellings = std::iter::once(&column.name).chain(column.spellings);
    // The first spelling wins: MONROE has both a CID and a PCI.
    spellings
        .into_iter()
        .find_map(|s| header.iter().position(|h| is(h, s)))
}

fn split(line: &str) -> Vec<&str> {
    line.split(',')
        .map(|f| f.trim().trim_matches('"').trim())
        .collect()
}

pub(super) fn is_header(line: &str) -> bool {
    let header = split(line);
    let has = |i: usize| position(&header, &COLUMNS[i]).is_some();
    has(0) && has(3) && has(4)
}

pub(super) fn parse(bytes: &[u8]) -> Result<(Rows, Vec<String>), LineError> {
    let mut lines = records(bytes);
    let (line, first) = lines
        .next()
        .ok_or_else(|| LineError::file("the file is empty: expected a header"))?;
    let header = split(text(line, first)?);
    let at: Vec<Option<usize>> = COLUMNS.iter().map(|c| position(&header, c)).collect();
    for required in [0, 3, 4] {
        if at[required].is_none() {
            let c = &COLUMNS[required];
            let others = c.spellings.join(", ");
            let msg = format!("no column \"{}\" (nor {others}) in the header", c.name);
            return Err(LineError::at(line, msg));
        }
    }
    let mut notes = Vec::new();
    if at[2].is_none() {
        notes.push("no column for the carrier: all cells of an operator share one".to_owned());
    }
    let mut rows = Rows::default();
    for (line, bytes) in lines {
        let f = split(text(line, bytes)?);
        if f.len() != header.len() {
            let (n, expected) = (f.len(), header.len());
            let msg = format!("{n} fields in this line: expected {expected} as in the header");
            return Err(LineError::at(line, msg));
        }
        let field = |i: usize| at[i].map_or("", |c| f[c]);
        let name = |i: usize, default| Some(field(i)).filter(|v| !v.is_empty()).unwrap_or(default);
        let value = |i: usize, what: &str| number(line, field(i), what);
        rows.push(&Row {
            line,
            time_us: time(line, field(0))?,
            operator: name(1, "operator"),
            carrier: name(2, "carrier"),
            cell: field(3),
            rsrp: value(4, "dBm")?,
            rsrq: value(5, "dB")?,
            sinr: value(6, "dB")?,
            bandwidth_mhz: value(7, "MHz")?,
            segment: field(8),
        })?;
    }
    Ok((rows, notes))
}

/// Seconds, of any epoch, or a date and time, with a zone or in none.
fn time(line: u64, field: &str) -> Result<i64, LineError> {
    if let Ok(s) = field.parse::<f64>()
        && (0.0..=MAX_TIME_S).contains(&s)
    {
        return Ok((s * 1e6).round() as i64);
    }
    if let Ok(t) = field.parse::<Timestamp>() {
        return Ok(t.as_microsecond());
    }
    if let Ok(t) = field.parse::<DateTime>() {
        let since = t.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0));
        return Ok(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    }
    let msg = format!(
        "{} is not a time: expected seconds or a date such as 2022-05-06T07:08:09Z",
        quote(field)
    );
    Err(LineError::at(line, msg))
}
