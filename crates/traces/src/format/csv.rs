//! Our own CSV: `t_s,nr_mbps,wifi_mbps`, then a row per sample; delays in `nr_ms` and
//! losses in `nr_loss` may stand beside the rates. Lines that
//! begin with `#` are comments. Without the header the links are called
//! `link1`, `link2`, ... Strict: what does not fit is an error.

use super::super::error::LineError;
use super::super::samples::{Policy, Samples, Value};
use super::super::{MAX_COLUMNS, Quantity};
use super::{Parsed, fields, lines, quote, seconds, text};

/// Header of the first column.
pub(in super::super) const TIME_COLUMN: &str = "t_s";

/// Whether `s` may name a link in a header.
pub(in super::super) fn is_name(s: &str) -> bool {
    !s.is_empty()
        && s.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

/// Columns of the file: the names of those of the quantity, none for others, and the whole
/// header for messages.
struct Header {
    names: Vec<Option<String>>,
    line: String,
}

/// Reads the columns of `quantity`.
pub(super) fn parse(bytes: &[u8], quantity: Quantity) -> Result<Parsed, LineError> {
    let rows = lines(bytes).filter(|(_, b)| {
        let b = b.trim_ascii();
        !b.is_empty() && !b.starts_with(b"#")
    });
    let mut table: Option<(Samples, Header)> = None;
    for (line, bytes) in rows {
        let t = text(line, bytes)?;
        let (samples, header) = match &mut table {
            Some(x) => x,
            None => {
                let (header, is_header) = header(line, t, quantity)?;
                let names = header.names.iter().flatten().cloned().collect();
                let new = table.insert((Samples::new(names, Policy::Strict), header));
                if is_header {
                    continue;
                }
                new
            }
        };
        let f = fields(line, t, header.names.len() + 1, &header.line)?;
        let at = seconds(line, f[0])?;
        let wanted = f[1..].iter().zip(&header.names);
        let wanted = wanted.filter(|(_, name)| name.is_some());
        let values: Vec<Value> = wanted
            .map(|(v, _)| value(line, v, quantity))
            .collect::<Result<_, _>>()?;
        samples.push(line, at, values.into_iter())?;
    }
    match table {
        Some((samples, ..)) => Parsed::of(samples, Vec::new()),
        None => Err(LineError::file(
            "the trace is empty: expected at least one sample",
        )),
    }
}

fn value(line: u64, field: &str, quantity: Quantity) -> Result<Value, LineError> {
    match field.parse::<f64>() {
        Ok(m) if (0.0..=quantity.max()).contains(&m) => Ok(Value::Mbps(m)),
        _ => Err(LineError::at(
            line,
            format!(
                "{} is not a {}: expected {}",
                quote(field),
                quantity.noun(),
                quantity.expected()
            ),
        )),
    }
}

/// Columns by the first row, and whether that row is a header.
fn header(line: u64, text: &str, quantity: Quantity) -> Result<(Header, bool), LineError> {
    let f: Vec<&str> = text.split(',').map(str::trim).collect();
    let suffix = quantity.suffix();
    if f.len() < 2 || f.len() > MAX_COLUMNS + 1 {
        return Err(LineError::at(
            line,
            format!(
                "expected seconds and 1 to {MAX_COLUMNS} columns, separated by commas{OWN_TABLE}"
            ),
        ));
    }
    if f.iter().all(|v| v.parse::<f64>().is_ok()) {
        let names: Vec<_> = (1..f.len()).map(|i| format!("link{i}")).collect();
        let columns = names.iter().map(|n| format!(",{n}{suffix}"));
        let line = TIME_COLUMN.to_owned() + &columns.collect::<String>();
        let names = names.into_iter().map(Some).collect();
        return Ok((Header { names, line }, false));
    }
    if f[0] != TIME_COLUMN {
        return Err(LineError::at(
            line,
            format!(
                "first column {}: expected \"{TIME_COLUMN}\" (seconds), as in \
                 {TIME_COLUMN},nr{suffix}{OWN_TABLE}",
                quote(f[0])
            ),
        ));
    }
    let mut names: Vec<Option<String>> = Vec::new();
    for (i, c) in f[1..].iter().enumerate() {
        if f[1..=i].contains(c) {
            return Err(LineError::at(
                line,
                format!("column {} twice: expected distinct names", quote(c)),
            ));
        }
        let of = |q: Quantity| c.strip_suffix(q.suffix()).filter(|n| is_name(n));
        let mine = of(quantity).map(str::to_owned);
        if mine.is_none() && Quantity::ALL.into_iter().all(|q| of(q).is_none()) {
            let ends = Quantity::ALL.map(|q| format!("\"{}\"", q.suffix()));
            return Err(LineError::at(
                line,
                format!(
                    "column {}: expected a name of letters, digits, _ - . that ends in {}{OWN_TABLE}",
                    quote(c),
                    ends.join(", ")
                ),
            ));
        }
        names.push(mine);
    }
    if names.iter().all(Option::is_none) {
        return Err(LineError::at(
            line,
            format!(
                "no column of the trace is a {}: expected a name that ends in \"{suffix}\"",
                quantity.noun()
            ),
        ));
    }
    let line = f.join(",");
    Ok((Header { names, line }, true))
}

/// Way out for a table that somebody else has made.
const OWN_TABLE: &str = "; a table with names of its own: braid trace import FILE --time COLUMN \
                         --rate COLUMN --unit UNIT";

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
    fn delays_and_losses_stand_beside_rates() {
        let file = b"t_s,nr_mbps,nr_ms,wifi_mbps,nr_loss\n0,100,12.5,7,0\n1,90,12.5,7,0.01\n";
        let rates = Trace::parse(file, None).unwrap();
        assert_eq!(rates.columns(), ["nr", "wifi"]);
        let of = |q| Trace::parse_quantity(file, q).unwrap();
        let s = std::time::Duration::from_secs;
        assert_eq!(of(Quantity::Delay).values(0), [(s(0), 12.5)]);
        assert_eq!(of(Quantity::Loss).values(0), [(s(0), 0.0), (s(1), 0.01)]);
        let bad = b"t_s,nr_loss\n0,1.5\n";
        let e = Trace::parse_quantity(bad, Quantity::Loss).unwrap_err();
        assert!(
            e.line == Some(2) && e.msg.contains("a fraction, 0 to 1"),
            "{e}"
        );
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
            ("t_s,a_mbps\n0,-1\n", Some(2), "0 to 1000000"),
            ("t_s,a_mbps\n-1,1\n", Some(2), "expected seconds from 0"),
            ("time,a_mbps\n0,1\n", Some(1), "expected \"t_s\""),
            ("t_s,a\n0,1\n", Some(1), "ends in \"_mbps\""),
            (
                "t_s,a_ms\n0,1\n",
                Some(1),
                "no column of the trace is a rate",
            ),
            ("t_s,a_mbps,a_mbps\n", Some(1), "distinct"),
            ("t_s,a_mbps\n", None, "no samples"),
            ("# nothing\n", None, "empty"),
            ("t_s,a_mbps\n0,1\n0,1\n", Some(3), "ascending"),
        ] {
            let e = parse(bad.as_bytes(), Quantity::Rate).err().unwrap();
            assert_eq!(e.line, line, "{bad:?}: {e}");
            assert!(e.msg.contains(says), "{bad:?}: {e}");
        }
    }
}
