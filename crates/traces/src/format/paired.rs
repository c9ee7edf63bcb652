//! Seconds, 5G Mbit/s and 4G Mbit/s of one drive, separated by white space, as
//! in the artifact of "A Variegated Look at 5G in the Wild" (SIGCOMM 2021).

use super::super::error::LineError;
use super::super::samples::{Policy, Samples};
use super::{Parsed, lines, quote, seconds, text, value};

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, LineError> {
    columns(bytes, &["nr", "lte"], "seconds, 5G Mbit/s and 4G Mbit/s")
}

/// Reads seconds and one column of Mbit/s for each of `names`, separated by white space.
pub(super) fn columns(bytes: &[u8], names: &[&str], expected: &str) -> Result<Parsed, LineError> {
    let names = names.iter().map(|n| (*n).to_owned());
    let names: Vec<String> = names.collect();
    let width = names.len();
    let mut samples = Samples::new(names, Policy::Recorded);
    for (line, bytes) in lines(bytes) {
        let t = text(line, bytes)?.trim();
        if t.is_empty() || t.starts_with('#') {
            continue;
        }
        let f: Vec<&str> = t.split_whitespace().collect();
        if f.len() != width + 1 {
            let msg = format!("{}: expected {expected}", quote(t));
            return Err(LineError::at(line, msg));
        }
        let at = seconds(line, f[0])?;
        let values = f[1..].iter().map(|v| value(line, v, 1.0, "Mbit/s"));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        samples.push(line, at, values.into_iter())?;
    }
    Parsed::of(samples, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::super::super::Trace;
    use super::*;

    #[test]
    fn reads_pairs() {
        let t = Trace::parse(b"1.0\t361\t32.0\n2.0\t703\t44.5\n", None).unwrap();
        assert_eq!((t.columns(), t.samples()), (vec!["nr", "lte"], 2));
        let e = parse(b"1.0 361\n").err().unwrap();
        assert_eq!(e.line, Some(1));
        let e = parse(b"1.0 361 2\n2.0 slow 2\n").err().unwrap();
        assert!(e.line == Some(2) && e.msg.contains("\"slow\""), "{e}");
    }
}
