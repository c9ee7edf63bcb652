//! Writing traces: our CSV, and Mahimahi delivery opportunities.

use std::io::{self, Write};

use super::format::{RATE_SUFFIX, TIME_COLUMN, is_name};
use super::{Capacity, Trace};

/// Writes a sampled trace as our CSV, which [`Trace::parse`] reads back, with
/// each line of `comments` behind a `#` on top.
///
/// # Errors
/// Writing failed; the trace consists of opportunities ([`Trace::resampled`]
/// makes samples of them); or a column's name does not fit a header.
pub fn csv(trace: &Trace, comments: &[String], out: &mut impl Write) -> io::Result<()> {
    let invalid = |msg: String| io::Error::new(io::ErrorKind::InvalidInput, msg);
    let Capacity::Steps {
        starts, columns, ..
    } = &trace.capacity
    else {
        return Err(invalid(
            "delivery opportunities have no rate until resampled".into(),
        ));
    };
    if let Some(c) = columns.iter().find(|c| !is_name(&c.name)) {
        return Err(invalid(format!(
            "\"{}\" cannot name a column: expected letters, digits, _ - .",
            c.name
        )));
    }
    for c in comments.iter().flat_map(|c| c.lines()) {
        writeln!(out, "# {c}")?;
    }
    write!(out, "{TIME_COLUMN}")?;
    for c in columns {
        write!(out, ",{}{RATE_SUFFIX}", c.name)?;
    }
    writeln!(out)?;
    for (i, t) in starts.iter().enumerate() {
        write!(out, "{}", decimal(t.as_micros() as u64))?;
        for c in columns {
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
