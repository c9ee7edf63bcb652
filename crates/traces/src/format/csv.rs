//! Our own CSV: `t_s,nr_mbps,wifi_mbps`, then a row per sample. Lines that
//! begin with `#` are comments. Without the header the links are called
//! `link1`, `link2`, ... Strict: what does not fit is an error.

use super::super::MAX_COLUMNS;
use super::super::error::LineError;
use super::super::samples::{Policy, Samples, Value};
use super::{Parsed, fields, lines, quote, seconds, text};

/// Header of the first column.
pub(in super::super) const TIME_COLUMN: &str = "t_s";
/// End of the header of every other column.
pub(in super::super) const RATE_SUFFIX: &str = "_mbps";

/// Whether `s` may name a link in a header.
pub(in super::super) fn is_name(s: &str) -> bool {
    !s.is_empty()
        && s.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, LineError> {
    let rows = lines(bytes).filter(|(_, b)| {
        let b = b.trim_ascii();
        !b.is_empty() && !b.starts_with(b"#")
    });
    let mut table: Option<(Samples, usize, String)> = None;
    for (line, bytes) in rows {
        let t = text(line, bytes)?;
        let (samples, width, header) = match &mut table {
            Some(x) => x,
            None => {
                let (names, is_header) = names(line, t)?;
                let header = header(&names);
                let width = names.len();
                let new = table.insert((Samples::new(names, Policy::Strict), width, header));
                if is_header {
                    continue;
                }
                new
            }
        };
        let f = fields(line, t, *width + 1, header)?;
        let at = seconds(line, f[0])?;
        let mut values = Vec::with_capacity(*width);
        for v in &f[1..] {
            match v.parse::<f64>() {
                Ok(m) if m.is_finite() => values.push(Value::Mbps(m)),
                _ => {
                    let msg = format!("{} is not a rate: expected Mbit/s as a number", quote(v));
                    return Err(LineError::at(line, msg));
                }
            }
        }
        samples.push(line, at, values.into_iter())?;
    }
    match table {
        Some((samples, ..)) => Parsed::of(samples, Vec::new()),
        None => Err(LineError::file(
            "the trace is empty: expected at least one sample",
        )),
    }
}

fn header(names: &[String]) -> String {
    let mut h = TIME_COLUMN.to_owned();
    for n in names {
        h = h + "," + n + RATE_SUFFIX;
    }
    h
}

/// Names of the links from the first row, and whether that row is a header.
fn names(line: u64, text: &str) -> Result<(Vec<String>, bool), LineError> {
    let f: Vec<&str> = text.split(',').map(str::trim).collect();
    if f.len() < 2 || f.len() > MAX_COLUMNS + 1 {
        return Err(LineError::at(
            line,
            format!(
                "expected seconds and 1 to {MAX_COLUMNS} columns of Mbit/s, separated by commas"
            ),
        ));
    }
    if f.iter().all(|v| v.parse::<f64>().is_ok()) {
        return Ok(((1..f.len()).map(|i| format!("link{i}")).collect(), false));
    }
    if f[0] != TIME_COLUMN {
        return Err(LineError::at(
            line,
            format!(
                "first column {}: expected \"{TIME_COLUMN}\" (seconds), as in {TIME_COLUMN},nr{RATE_SUFFIX}",
                quote(f[0])
            ),
        ));
    }
    let mut names: Vec<String> = Vec::new();
    for c in &f[1..] {
        let name = c.strip_suffix(RATE_SUFFIX).filter(|n| is_name(n)).ok_or_else(|| {
            LineError::at(
                line,
                format!(
                    "column {}: expected a name of letters, digits, _ - . that ends in \"{RATE_SUFFIX}\"",
                    quote(c)
                ),
            )
        })?;
        if names.iter().any(|n| n == name) {
            return Err(LineError::at(
                line,
                format!("column {} twice: expected distinct names", quote(c)),
            ));
        }
        names.push(name.to_owned());
    }
    Ok((names, true))
}

#[cfg(test)]
mod tests {
    use super::super::super::{Capacity, Trace};
    use super::*;

    #[test]
    fn reads_with_and_without_header() {
        let with = "# made by hand\nt_s,nr_mbps,wifi_mbps\n0,100,800.5\n1, 90,0\n";
        let t = Trace::parse(with.as_bytes(), None).unwrap();
        assert_eq!(t.columns(), ["nr", "wifi"]);
        let Capacity::Steps { columns, end, .. } = &t.capacity else {
            panic!("not sampled")
        };
        assert_eq!(columns[1].rates[0].as_bps(), 800_500_000);
        assert_eq!(end.as_secs(), 2);
        let t = Trace::parse(b"0,100\n0.5,90", None).unwrap();
        assert_eq!((t.columns(), t.span().as_millis()), (vec!["link1"], 1000));
    }

    #[test]
    fn says_where_and_what() {
        for (bad, line, says) in [
            (
                "t_s,a_mbps\n0,1\n1\n",
                Some(3),
                "1 field in this line: expected 2 (t_s,a_mbps)",
            ),
            ("t_s,a_mbps\n0,1\nx,1\n", Some(3), "\"x\" is not a time"),
            ("t_s,a_mbps\n0,fast\n", Some(2), "\"fast\" is not a rate"),
            ("t_s,a_mbps\n0,NaN\n", Some(2), "\"NaN\" is not a rate"),
            ("t_s,a_mbps\n0,-1\n", Some(2), "expected 0 to 1000000"),
            ("t_s,a_mbps\n-1,1\n", Some(2), "expected seconds from 0"),
            ("time,a_mbps\n0,1\n", Some(1), "expected \"t_s\""),
            ("t_s,a\n0,1\n", Some(1), "ends in \"_mbps\""),
            ("t_s,a_mbps,a_mbps\n", Some(1), "distinct"),
            ("t_s,a_mbps\n", None, "no samples"),
            ("# nothing\n", None, "empty"),
            ("t_s,a_mbps\n0,1\n0,1\n", Some(3), "ascending"),
        ] {
            let e = parse(bad.as_bytes()).err().unwrap();
            assert_eq!(e.line, line, "{bad:?}: {e}");
            assert!(e.msg.contains(says), "{bad:?}: {e}");
        }
    }
}
