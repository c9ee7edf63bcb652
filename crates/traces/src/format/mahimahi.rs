//! Mahimahi's link traces, as its `LinkQueue` reads them: one non-negative
//! integer per line, milliseconds, never descending, no empty line, the last
//! not zero. Every line is an opportunity for one packet; after the last line's
//! millisecond the trace begins again, counted from there.

use super::super::error::LineError;
use super::super::{Capacity, MAX_SAMPLES, MAX_SPAN, OPPORTUNITY_BYTES};
use super::{Parsed, lines, quote, text};

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, LineError> {
    let mut ms: Vec<u64> = Vec::new();
    for (line, bytes) in lines(bytes) {
        let t = text(line, bytes)?;
        let digits = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        let limit = MAX_SPAN.as_millis() as u64;
        let v = t
            .parse()
            .ok()
            .filter(|v| digits && *v <= limit)
            .ok_or_else(|| {
                LineError::at(
                    line,
                    format!(
                        "{} is not a time: expected whole milliseconds, at most {limit}",
                        quote(t)
                    ),
                )
            })?;
        if let Some(&last) = ms.last()
            && v < last
        {
            return Err(LineError::at(
                line,
                format!("{v} ms comes after {last} ms: expected times that never descend"),
            ));
        }
        if ms.len() == MAX_SAMPLES {
            return Err(LineError::at(
                line,
                format!("too many delivery opportunities: expected at most {MAX_SAMPLES}"),
            ));
        }
        ms.push(v);
    }
    if ms.last() == Some(&0) {
        return Err(LineError::at(
            ms.len() as u64,
            "the trace ends at 0 ms: expected a last time above zero",
        ));
    }
    Ok(Parsed {
        capacity: Capacity::Opportunities {
            ms,
            packet_bytes: OPPORTUNITY_BYTES,
        },
        problems: Vec::new(),
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::Trace;
    use super::*;

    #[test]
    fn reads_what_mahimahi_reads() {
        let t = Trace::parse(b"0\n0\n5\r\n12\n", None).unwrap();
        assert_eq!(
            t.capacity,
            Capacity::Opportunities {
                ms: vec![0, 0, 5, 12],
                packet_bytes: 1500
            }
        );
        assert_eq!(t.span().as_millis(), 12);
    }

    #[test]
    fn refuses_what_mahimahi_refuses() {
        for (bad, line) in [
            ("5\n4\n", 2),
            ("5\n\n6\n", 2),
            ("0\n0\n", 2),
            ("1\n2.5\n", 2),
            ("1\n-2\n", 2),
            ("1\n99999999999999999999999\n", 2),
            ("\n", 1),
        ] {
            let e = parse(bad.as_bytes()).err().unwrap();
            assert_eq!(e.line, Some(line), "{bad:?}: {e}");
            assert!(e.msg.contains("expected"), "{bad:?}: {e}");
        }
    }
}
