//! Powers of the UCC 5G production dataset (D. Raca et al., MMSys 2020): the
//! serving cell's RSRP, RSRQ and SNR, and RSRP of one neighbour whose identity is
//! not recorded.

use jiff::civil::DateTime;

use super::super::flaws::FlawKind;
use super::rows::{Row, Rows, number, records};
use crate::LineError;
use crate::format::{quote, text};

const TIME_FORMAT: &str = "%Y.%m.%d_%H.%M.%S";
/// The columns that must be there.
const NEEDED: [&str; 6] = [
    "Timestamp",
    "Operatorname",
    "RAWCELLID",
    "NetworkMode",
    "RSRP",
    "DL_bitrate",
];

pub(super) fn is_header(line: &str) -> bool {
    let has = |name: &&str| line.split(',').any(|f| f.trim() == *name);
    NEEDED.iter().all(has)
}

/// The carrier is not recorded: what is heard in one network mode is taken as
/// one carrier, on which the neighbour interferes.
pub(super) fn parse(bytes: &[u8]) -> Result<(Rows, Vec<String>), LineError> {
    let mut lines = records(bytes);
    let (line, first) = lines
        .next()
        .ok_or_else(|| LineError::file("the file is empty: expected a header"))?;
    let header: Vec<&str> = text(line, first)?.split(',').map(str::trim).collect();
    let find = |name: &str| header.iter().position(|h| *h == name);
    let mut at = [0; NEEDED.len()];
    for (i, name) in NEEDED.iter().enumerate() {
        at[i] = find(name)
            .ok_or_else(|| LineError::at(line, format!("no column \"{name}\" in the header")))?;
    }
    let [time, operator, cell, mode, rsrp, _] = at;
    let (rsrq, snr, other) = (find("RSRQ"), find("SNR"), find("NRxRSRP"));
    let mut rows = Rows::default();
    for (line, bytes) in lines {
        let f: Vec<&str> = text(line, bytes)?.split(',').map(str::trim).collect();
        if f.len() != header.len() {
            let (n, expected) = (f.len(), header.len());
            let msg = format!("{n} fields in this line: expected {expected} as in the header");
            return Err(LineError::at(line, msg));
        }
        let at = DateTime::strptime(TIME_FORMAT, f[time]).map_err(|_| {
            let msg = format!(
                "{} is not a time: expected as in 2019.12.14_10.16.30",
                quote(f[time])
            );
            LineError::at(line, msg)
        })?;
        let since = at.duration_since(DateTime::constant(2000, 1, 1, 0, 0, 0, 0));
        let value = |i: Option<usize>, what| number(line, i.map_or("", |i| f[i]), what);
        let has_rsrp = matches!(f[mode], "5G" | "LTE");
        if !has_rsrp {
            rows.flaw(FlawKind::OtherTechnology, line);
        }
        let row = Row {
            line,
            time_us: since.as_secs().saturating_mul(1_000_000),
            operator: f[operator],
            carrier: f[mode],
            cell: if has_rsrp { f[cell] } else { "" },
            rsrp: value(Some(rsrp), "dBm")?,
            rsrq: value(rsrq, "dB")?,
            sinr: value(snr, "dB")?,
            bandwidth_mhz: None,
            segment: "",
        };
        rows.push(&row)?;
        let neighbour = value(other, "dBm")?;
        if has_rsrp && neighbour.is_some() {
            rows.push(&Row {
                cell: "neighbour",
                rsrp: neighbour,
                rsrq: None,
                sinr: None,
                ..row
            })?;
        }
    }
    let notes = vec![
        "carriers are not recorded: each network mode is taken as one carrier, on which the \
         neighbour of NRxRSRP interferes"
            .to_owned(),
    ];
    Ok((rows, notes))
}
