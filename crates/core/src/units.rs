//! Quantities with units as people write them in scenarios and flags.

use std::time::Duration;

use thiserror::Error;

/// Why a quantity could not be read: what was given and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{given}\" is not valid: expected {expected}")]
pub struct ParseError {
    given: String,
    expected: String,
}

impl ParseError {
    pub(crate) fn new(given: &str, expected: &str) -> Self {
        Self {
            given: given.to_owned(),
            expected: expected.to_owned(),
        }
    }

    pub(crate) fn unit(given: &str, unit: &str, units: &str) -> Self {
        if unit.is_empty() {
            Self::new(given, &format!("a unit after the number: {units}"))
        } else {
            Self::new(given, &format!("one of the units {units}"))
        }
    }

    pub(crate) fn range(given: &str, range: &str) -> Self {
        Self::new(given, range)
    }
}

/// Splits `12.5 ms` into a finite non-negative number and its unit.
pub(crate) fn split<'a>(s: &'a str, expected: &str) -> Result<(f64, &'a str), ParseError> {
    let t = s.trim();
    let end = t
        .char_indices()
        .find(|&(i, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && t[i + 1..].starts_with(|n: char| n.is_ascii_digit() || n == '-' || n == '+');
            let sign = matches!(c, '-' | '+') && (i == 0 || t[..i].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || c == '.' || exponent || sign)
        })
        .map_or(t.len(), |(i, _)| i);
    let v: f64 = t[..end].parse().map_err(|_| ParseError::new(s, expected))?;
    if !v.is_finite() || v < 0.0 {
        return Err(ParseError::new(s, expected));
    }
    Ok((v, t[end..].trim_start()))
}

/// Reads a duration such as `10 ms`, `1.28ms`, `200 us`, `20s`, `5 min`.
///
/// # Errors
/// No number, a negative one, an unknown unit, or more than 30 days.
pub fn parse_duration(s: &str) -> Result<Duration, ParseError> {
    let (v, unit) = split(s, "a duration such as \"10 ms\"")?;
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(ParseError::unit(s, unit, "ns, us, ms, s, min or h")),
    };
    let ns = v * scale;
    if ns > 30.0 * 86_400e9 {
        return Err(ParseError::range(s, "at most 30 days"));
    }
    Ok(Duration::from_nanos(ns.round() as u64))
}

/// Writes a duration so that [`parse_duration`] reads the same back.
pub fn format_duration(d: Duration) -> String {
    let ns = d.as_nanos();
    match ns {
        0 => "0 s".to_owned(),
        n if n % 1_000_000_000 == 0 => format!("{} s", n / 1_000_000_000),
        n if n >= 1_000_000 => format!("{} ms", n as f64 / 1e6),
        n if n >= 1_000 => format!("{} us", n as f64 / 1e3),
        n => format!("{n} ns"),
    }
}

/// Reads a size in bytes such as `64 MB`, `500 kB`, `1500 B`, `64 MiB`.
///
/// # Errors
/// No number, a negative one, an unknown unit, or more than 1 PB.
pub fn parse_bytes(s: &str) -> Result<u64, ParseError> {
    let (v, unit) = split(s, "a size such as \"64 MB\"")?;
    let scale = match unit {
        "B" | "bytes" | "byte" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(ParseError::unit(s, unit, "B, kB, MB, GB, KiB, MiB or GiB")),
    };
    let b = v * scale;
    if b > 1e15 {
        return Err(ParseError::range(s, "at most 1000 TB"));
    }
    Ok(b.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_units() {
        assert_eq!(
            parse_duration("1.28 ms").unwrap(),
            Duration::from_micros(1280)
        );
        assert_eq!(parse_duration("20s").unwrap(), Duration::from_secs(20));
        assert_eq!(parse_bytes("64 MB").unwrap(), 64_000_000);
        assert_eq!(parse_bytes("1.5e3 B").unwrap(), 1500);
    }

    #[test]
    fn says_what_was_expected() {
        let e = parse_duration("10").unwrap_err().to_string();
        assert!(e.contains("\"10\"") && e.contains("unit"), "{e}");
        assert!(parse_duration("-1 ms").is_err());
        assert!(parse_duration("1e30 h").is_err());
        assert!(parse_bytes("12 parsecs").is_err());
    }

    proptest! {
        #[test]
        fn durations_round_trip(us in 0u64..86_400_000_000) {
            let d = Duration::from_micros(us);
            prop_assert_eq!(parse_duration(&format_duration(d)).unwrap(), d);
        }

        #[test]
        fn never_panics(s in "\\PC*") {
            let _ = parse_duration(&s);
            let _ = parse_bytes(&s);
            let _ = s.parse::<crate::Rate>();
        }
    }
}
