//! Writing traces: our CSV, and Mahimahi delivery opportunities.

use std::io::{self, Write};
use std::time::Duration;

use super::format::{TIME_COLUMN, is_name};
use super::{Capacity, Column, Quantity, Trace};

/// Writes a sampled trace as our CSV, which [`Trace::parse`] reads back, with
/// each line of `comments` behind a `#` on top.
///
/// # Errors
/// Writing failed; the trace consists of opportunities ([`Trace::resampled`]
/// makes samples of them); or a column's name does not fit a header.
pub fn csv(trace: &Trace, comments: &[String], out: &mut impl Write) -> io::Result<()> {
    columns(&[(trace, Quantity::Rate)], comments, out)
}

/// Writes traces of several quantities beside each other, as [`csv`] does one of rates.
///
/// # Errors
/// As [`csv`]; the samples are not of the same times.
pub fn columns(
    traces: &[(&Trace, Quantity)],
    comments: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    let invalid = |msg: String| io::Error::new(io::ErrorKind::InvalidInput, msg);
    let mut times: Option<&[Duration]> = None;
    let mut all: Vec<(&Column, Quantity)> = Vec::new();
    for (trace, quantity) in traces {
        let Capacity::Steps {
            starts, columns, ..
        } = &trace.capacity
        else {
            return Err(invalid(
                "delivery opportunities have no rate until resampled".into(),
            ));
        };
        if *times.get_or_insert(starts) != starts.as_slice() {
            return Err(invalid("samples of different times".into()));
        }
        all.extend(columns.iter().map(|c| (c, *quantity)));
    }
    if let Some((c, _)) = all.iter().find(|(c, _)| !is_name(&c.name)) {
        return Err(invalid(format!(
            "\"{}\" cannot name a column: expected letters, digits, _ - .",
            c.name
        )));
    }
    for c in comments.iter().flat_map(|c| c.lines()) {
        writeln!(out, "# {c}")?;
    }
    write!(out, "{TIME_COLUMN}")?;
    for (c, quantity) in &all {
        write!(out, ",{}{}", c.name, quantity.suffix())?;
    }
    writeln!(out)?;
    for (i, t) in times.unwrap_or_default().iter().enumerate() {
        write!(out, "{}", decimal(t.as_micros() as u64))?;
        for (c, _) in &all {
            write!(out, ",{}", decimal(c.rates[i].as_bps()))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes delivery opportunities as Mahimahi reads them: no comments, since its
/// link shell takes none.
///
/// # Errors
/// Writing failed.
pub fn mahimahi(ms: &[u64], out: &mut impl Write) -> io::Result<()> {
    ms.iter().try_for_each(|m| writeln!(out, "{m}"))
}

/// `millionths` as a decimal without trailing zeros.
pub(crate) fn decimal(millionths: u64) -> String {
    let (whole, part) = (millionths / 1_000_000, millionths % 1_000_000);
    if part == 0 {
        return whole.to_string();
    }
    let digits = format!("{part:06}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}
