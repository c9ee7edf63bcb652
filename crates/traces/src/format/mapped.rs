//! A table of somebody else's: named columns, separated by commas, semicolons or tabs, with
//! times in seconds or as dates.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::super::error::LineError;
use super::super::samples::{Policy, Samples, Value};
use super::super::{MAX_COLUMNS, Quantity};
use super::{MAX_TIME_S, Parsed, lines, quote, text};

/// Meaning of the columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// Name of the column of times.
    pub time: String,
    /// Unit of times that are numbers.
    pub moment: Moment,
    /// Columns to read, by name, and the names of their links.
    pub columns: Vec<(String, String)>,
    /// Quantity of these columns.
    pub quantity: Quantity,
    /// Factor from their unit to that of the quantity: Mbit/s, ms, or a fraction.
    pub scale: f64,
}

/// Unit of times that are numbers, since whatever moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// Seconds.
    #[default]
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl Moment {
    const fn per_second(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::Millis => 1e3,
            Self::Micros => 1e6,
            Self::Nanos => 1e9,
        }
    }
}

pub(super) fn parse(bytes: &[u8], mapping: &Mapping) -> Result<Parsed, LineError> {
    let mut rows = lines(bytes).filter(|(_, b)| {
        let b = b.trim_ascii();
        !b.is_empty() && !b.starts_with(b"#")
    });
    let Some((line, bytes)) = rows.next() else {
        return Err(LineError::file(
            "the table is empty: expected the names of its columns",
        ));
    };
    let first = text(line, bytes)?;
    let separator = separator(first);
    let names = split(first, separator);
    let place = |wanted: &str| {
        let found = names.iter().position(|n| n == wanted);
        found.ok_or_else(|| {
            LineError::at(
                line,
                format!(
                    "no column \"{wanted}\" in the table: expected one of {}",
                    names.join(", ")
                ),
            )
        })
    };
    let time = place(&mapping.time)?;
    let columns: Vec<usize> = mapping
        .columns
        .iter()
        .map(|(column, _)| place(column))
        .collect::<Result<_, _>>()?;
    if columns.len() > MAX_COLUMNS {
        return Err(LineError::file(format!(
            "{} columns: expected at most {MAX_COLUMNS}",
            columns.len()
        )));
    }
    let links = mapping.columns.iter().map(|(_, link)| link.clone());
    let mut samples = Samples::new(links.collect(), Policy::Recorded);
    for (line, bytes) in rows {
        let fields = split(text(line, bytes)?, separator);
        if fields.len() != names.len() {
            let msg = format!(
                "{} fields in this line: expected {}",
                fields.len(),
                names.len()
            );
            return Err(LineError::at(line, msg));
        }
        let at = moment(line, &fields[time], mapping.moment)?;
        let values: Vec<Value> = columns
            .iter()
            .map(|i| value(line, &fields[*i], separator, mapping))
            .collect::<Result<_, _>>()?;
        samples.push(line, at, values.into_iter())?;
    }
    Parsed::of(samples, Vec::new())
}

/// Separator of a header: the most frequent outside of quotes.
fn separator(header: &str) -> char {
    let count = |c: char| split(header, c).len();
    let all = ['\t', ';', ','];
    // The last of equals: a comma may be all there is.
    all.into_iter().max_by_key(|c| count(*c)).unwrap_or(',')
}

/// Fields of a line, which may be in quotes (RFC 4180; none over several lines).
fn split(line: &str, separator: char) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut all = line.chars().peekable();
    while let Some(c) = all.next() {
        let field = fields.last_mut().expect("never empty");
        match c {
            '"' if quoted && all.peek() == Some(&'"') => field.push(all.next().unwrap_or('"')),
            '"' => quoted = !quoted,
            c if c == separator && !quoted => fields.push(String::new()),
            c => field.push(c),
        }
    }
    fields.iter().map(|f| f.trim().to_owned()).collect()
}

/// Microseconds since whatever moment.
fn moment(line: u64, field: &str, unit: Moment) -> Result<i64, LineError> {
    if let Ok(number) = field.parse::<f64>() {
        let s = number / unit.per_second();
        if (0.0..=MAX_TIME_S).contains(&s) {
            return Ok((s * 1e6).round() as i64);
        }
    }
    let without_zone = || {
        let local: DateTime = field.parse().ok()?;
        local.to_zoned(TimeZone::UTC).ok().map(|z| z.timestamp())
    };
    let date = field.parse::<Timestamp>().ok().or_else(without_zone);
    date.map(Timestamp::as_microsecond).ok_or_else(|| {
        LineError::at(
            line,
            format!(
                "{} is not a time: expected a number from 0 on in the unit of --time-unit, or a \
                 date such as 2026-01-31T12:01:02.5Z",
                quote(field)
            ),
        )
    })
}

fn value(line: u64, field: &str, separator: char, mapping: &Mapping) -> Result<Value, LineError> {
    // Where commas do not separate, they may be those of decimals.
    let decimal = match separator {
        ',' => field.to_owned(),
        _ => field.replacen(',', ".", 1),
    };
    let quantity = mapping.quantity;
    let read = Value::read(&decimal, mapping.scale).map_err(|()| {
        let what = quantity.noun();
        LineError::at(
            line,
            format!("{} is not a number for a {what}", quote(field)),
        )
    })?;
    Ok(match read {
        // Above what there is: the rules for impossible values of rates.
        Value::Mbps(v) if v > quantity.max() => Value::Mbps(f64::INFINITY),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::Trace;
    use super::*;

    fn mapping(columns: &[(&str, &str)], quantity: Quantity, scale: f64) -> Mapping {
        let own = columns.iter().map(|(a, b)| ((*a).into(), (*b).into()));
        Mapping {
            time: "Zeit".into(),
            moment: Moment::Seconds,
            columns: own.collect(),
            quantity,
            scale,
        }
    }

    #[test]
    fn any_separator_decimal_and_date_will_do() {
        let ms = Duration::from_millis;
        let down = mapping(&[("DL kbit/s", "down")], Quantity::Rate, 1e-3);
        let expected = [(ms(0), 1000.5), (ms(1500), 90.0)];
        for file in [
            "Zeit,DL kbit/s\n10,1000500\n11.5,90000\n",
            "# a log\nZeit;DL kbit/s;x\n10;1000500,0;a\n11.5;90000;\n",
            "x\tZeit\tDL kbit/s\n,\t10\t1000500\n,\t11.5\t90000\n",
            "Zeit,\"DL kbit/s\"\n2026-01-31T12:01:02Z,1000500\n2026-01-31T12:01:03.5Z,90000\n",
            "Zeit,DL kbit/s\n2026-01-31 12:01:02,1000500\n2026-01-31 12:01:03.5,90000\n",
            "Zeit;DL kbit/s\n2026-01-31T12:01:02+01:00;1000500\n2026-01-31T11:01:03.5Z;90000\n",
        ] {
            let t = Trace::parse_mapped(file.as_bytes(), &down).unwrap();
            assert_eq!(t.columns(), ["down"], "{file}");
            assert_eq!(t.values(0), expected, "{file}");
        }
    }

    #[test]
    fn delays_and_losses_have_units_too() {
        let file = b"Zeit,rtt,lost\n0,0.02,1\n1,0.03,150\n";
        let delay = mapping(&[("rtt", "nr")], Quantity::Delay, 1e3);
        let t = Trace::parse_mapped(file, &delay).unwrap();
        assert_eq!(t.values(0)[1].1, 30.0);
        let loss = mapping(&[("lost", "nr")], Quantity::Loss, 0.01);
        let t = Trace::parse_mapped(file, &loss).unwrap();
        // 150 % cannot be: the value before is held, and it is counted.
        assert_eq!((t.values(0).len(), t.problems.len()), (1, 1));
    }

    #[test]
    fn says_where_and_what() {
        let down = mapping(&[("down", "down")], Quantity::Rate, 1.0);
        for (file, line, says) in [
            ("", None, "empty"),
            (
                "Zeit,up\n",
                Some(1),
                "no column \"down\" in the table: expected one of Zeit, up",
            ),
            (
                "Zeit,down\n0\n",
                Some(2),
                "1 fields in this line: expected 2",
            ),
            ("Zeit,down\nsoon,1\n", Some(2), "\"soon\" is not a time"),
            (
                "Zeit,down\n0,fast\n",
                Some(2),
                "\"fast\" is not a number for a rate",
            ),
        ] {
            let e = Trace::parse_mapped(file.as_bytes(), &down).unwrap_err();
            assert_eq!(e.line, line, "{file:?}: {e}");
            assert!(e.msg.contains(says), "{file:?}: {e}");
        }
    }
}
