//! Writing signals as CSV, which [`super::import`] reads back.

use std::io::{self, Write};

use super::Measurements;
use super::import::COLUMNS;

/// Writes `m`, a row per second and cell, with each line of `comments` behind a
/// `#` on top. An operator of which nothing is heard in a second gets a row
/// without a cell: it was measured, and there was none.
///
/// # Errors
/// Writing failed, or a name has a comma, a quotation mark or a line end.
pub fn csv(m: &Measurements, comments: &[String], out: &mut impl Write) -> io::Result<()> {
    let carriers = m.carriers.iter().map(|c| &c.name);
    let cells = m.cells.iter().map(|c| &c.name);
    let mut names = m
        .operators
        .iter()
        .chain(&m.segments)
        .chain(carriers)
        .chain(cells);
    let bad =
        |n: &&String| n.is_empty() || n.contains(|c: char| ",\"#".contains(c) || c.is_control());
    if let Some(name) = names.find(bad) {
        let msg = format!("\"{name}\" cannot stand in a CSV file");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, msg));
    }
    for c in comments.iter().flat_map(|c| c.lines()) {
        writeln!(out, "# {c}")?;
    }
    let header: Vec<&str> = COLUMNS.iter().map(|c| c.name).collect();
    writeln!(out, "{}", header.join(","))?;
    let optional = |v: Option<f64>| v.map_or("-".to_owned(), |v| v.to_string());
    for (t, second) in m.seconds.iter().enumerate() {
        let segment = second.segment.map_or("-", |s| &m.segments[s]);
        let mut silent = vec![true; m.operators.len()];
        for h in &second.heard {
            let cell = &m.cells[h.cell];
            let carrier = &m.carriers[cell.carrier];
            silent[carrier.operator] = false;
            writeln!(
                out,
                "{t},{},{},{},{},{},{},{},{segment}",
                m.operators[carrier.operator],
                carrier.name,
                cell.name,
                h.rsrp_dbm,
                optional(h.rsrq_db),
                optional(h.sinr_db),
                optional(carrier.bandwidth_mhz),
            )?;
        }
        for (o, _) in silent.iter().enumerate().filter(|(_, s)| **s) {
            writeln!(out, "{t},{},-,-,-,-,-,-,{segment}", m.operators[o])?;
        }
    }
    Ok(())
}
