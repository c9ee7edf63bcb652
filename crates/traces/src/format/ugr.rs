//! The dynamic experiment of "Combining 5G New Radio, Wi-Fi, and LiFi for
//! Industry 4.0" (section 6.5): the capacities of Wi-Fi and 5G probed once per
//! cycle while the access point is carried away and back, as weights of about
//! 50 Mbit/s a unit.

use super::super::error::LineError;
use super::super::samples::{Policy, Samples, Value};
use super::{Parsed, fields, lines, quote, text, value};

const HEADER: &str = "cycle,wifi_weight,nr_weight,wrr_mbps";
/// One unit of weight.
const UNIT_MBPS: f64 = 50.0;
/// The walk took 4 min 10 s and has 12 cycles in the file.
const CYCLE_US: i64 = 250_000_000 / 12;

pub(super) fn is_header(line: &str) -> bool {
    line.split(',').map(str::trim).eq(HEADER.split(','))
}

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, LineError> {
    let mut rows = lines(bytes).filter(|(_, b)| {
        let b = b.trim_ascii();
        !b.is_empty() && !b.starts_with(b"#")
    });
    let (line, first) = rows
        .next()
        .ok_or_else(|| LineError::file("the trace is empty"))?;
    let t = text(line, first)?;
    if !is_header(t) {
        return Err(LineError::at(
            line,
            format!("{}: expected \"{HEADER}\"", quote(t)),
        ));
    }
    let mut samples = Samples::new(vec!["wifi".into(), "nr".into()], Policy::Recorded);
    let (mut sum, mut n) = (0.0, 0u32);
    for (line, bytes) in rows {
        let f = fields(line, text(line, bytes)?, 4, HEADER)?;
        let cycle: u32 = f[0].parse().map_err(|_| {
            LineError::at(
                line,
                format!("{} is not a cycle: expected a whole number", quote(f[0])),
            )
        })?;
        let weights = [
            value(line, f[1], UNIT_MBPS, "units of 50 Mbit/s")?,
            value(line, f[2], UNIT_MBPS, "units of 50 Mbit/s")?,
        ];
        if let Value::Mbps(m) = value(line, f[3], 1.0, "Mbit/s")? {
            (sum, n) = (sum + m, n + 1);
        }
        samples.push(line, i64::from(cycle) * CYCLE_US, weights.into_iter())?;
    }
    let mut notes = vec![format!(
        "a weight is taken as {UNIT_MBPS} Mbit/s and a cycle as {:.2} s (12 cycles in 250 s)",
        CYCLE_US as f64 / 1e6
    )];
    if n > 0 {
        notes.push(format!(
            "wrr_mbps is what weighted round robin reached over both (mean {:.0} Mbit/s), no link, and is left out",
            sum / f64::from(n)
        ));
    }
    Parsed::of(samples, notes)
}

#[cfg(test)]
mod tests {
    use super::super::super::Trace;
    use super::*;

    #[test]
    fn reads_weights() {
        let file = format!("{HEADER}\n0,17,5,1320.0\n1,18,5,967.0\n");
        let t = Trace::parse(file.as_bytes(), None).unwrap();
        assert_eq!(t.columns(), ["wifi", "nr"]);
        assert_eq!(t.span().as_micros(), 2 * CYCLE_US as u128);
        let e = parse(format!("{HEADER}\n0.5,17,5,1\n").as_bytes())
            .err()
            .unwrap();
        assert!(e.line == Some(2) && e.msg.contains("cycle"), "{e}");
        assert!(parse(b"0,17,5,1320.0\n").is_err());
    }
}
