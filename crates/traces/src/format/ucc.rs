//! The UCC 5G production dataset (D. Raca et al., "Beyond Throughput, the Next
//! Generation: a 5G Dataset with Channel and Context Metrics", MMSys 2020): CSV
//! by G-NetTrack, one row a second, rates in kbit/s. Rows of one second come
//! twice, seconds are skipped, values can be `-`.

use std::collections::BTreeMap;

use jiff::civil::DateTime;

use super::super::error::{LineError, ProblemKind};
use super::super::samples::{Policy, Samples};
use super::{Parsed, lines, quote, text, value};

/// The name of the column of what was downloaded.
pub(crate) const DOWNLINK: &str = "down";
/// And of what was uploaded.
pub(crate) const UPLINK: &str = "up";

/// The columns that are used; the others may be anything.
const TIME: &str = "Timestamp";
const DOWN: &str = "DL_bitrate";
const UP: &str = "UL_bitrate";
const MODE: &str = "NetworkMode";
const STATE: &str = "State";
const TIME_FORMAT: &str = "%Y.%m.%d_%H.%M.%S";

pub(super) fn is_header(line: &str) -> bool {
    let has = |name: &str| line.split(',').any(|f| f.trim() == name);
    has(TIME) && has(DOWN)
}

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, LineError> {
    let mut rows = lines(bytes).filter(|(_, b)| !b.trim_ascii().is_empty());
    let (line, first) = rows
        .next()
        .ok_or_else(|| LineError::file("the trace is empty"))?;
    let header: Vec<&str> = text(line, first)?.split(',').map(str::trim).collect();
    let index = |name: &str| header.iter().position(|h| *h == name);
    let need = |name: &str| {
        index(name).ok_or_else(|| {
            LineError::at(
                line,
                format!("no column \"{name}\": expected {TIME}, {DOWN} and {UP}"),
            )
        })
    };
    let (time, down, up) = (need(TIME)?, need(DOWN)?, need(UP)?);
    let (mode, state) = (index(MODE), index(STATE));

    let mut samples = Samples::new(vec![DOWNLINK.into(), UPLINK.into()], Policy::Recorded);
    let mut modes: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = 0u64;
    for (line, bytes) in rows {
        let f: Vec<&str> = text(line, bytes)?.split(',').map(str::trim).collect();
        if f.len() != header.len() {
            return Err(LineError::at(
                line,
                format!(
                    "{} fields in this line: expected {} as in the header",
                    f.len(),
                    header.len()
                ),
            ));
        }
        let at = DateTime::strptime(TIME_FORMAT, f[time]).map_err(|_| {
            LineError::at(
                line,
                format!(
                    "{} is not a time: expected as in 2019.12.14_10.16.30",
                    quote(f[time])
                ),
            )
        })?;
        // Only differences of times matter, so any zone does.
        let since = at.duration_since(DateTime::constant(2000, 1, 1, 0, 0, 0, 0));
        let values = [
            value(line, f[down], 1e-3, "kbit/s")?,
            value(line, f[up], 1e-3, "kbit/s")?,
        ];
        samples.push(
            line,
            since.as_secs().saturating_mul(1_000_000),
            values.into_iter(),
        )?;
        if let Some(s) = state
            && f[s].starts_with('I')
        {
            samples.problem(ProblemKind::NotTransferring, line);
        }
        if let Some(m) = mode
            && (modes.len() < 16 || modes.contains_key(f[m]))
        {
            *modes.entry(f[m].to_owned()).or_default() += 1;
        }
        count += 1;
    }
    let mut notes = Vec::new();
    if count > 0 && !modes.is_empty() {
        let mut by_share: Vec<_> = modes.into_iter().collect();
        by_share.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let shares: Vec<String> = by_share
            .iter()
            .map(|(m, n)| format!("{m} {:.1} %", *n as f64 * 100.0 / count as f64))
            .collect();
        notes.push(format!("network mode: {}", shares.join(", ")));
    }
    Parsed::of(samples, notes)
}

#[cfg(test)]
mod tests {
    use super::super::super::{Capacity, Trace};
    use super::*;

    const HEADER: &str = "Timestamp,NetworkMode,DL_bitrate,UL_bitrate,State\n";

    #[test]
    fn reads_rows_across_midnight() {
        let file = format!(
            "{HEADER}2019.12.31_23.59.59,5G,1500,10,D\n2020.01.01_00.00.00,LTE,-,10,I\n\
             2020.01.01_00.00.00,LTE,-,10,D\n2020.01.01_00.00.01,5G,2500.5,10,D\n"
        );
        let t = Trace::parse(file.as_bytes(), None).unwrap();
        let Capacity::Steps {
            starts, columns, ..
        } = &t.capacity
        else {
            panic!("not sampled")
        };
        assert_eq!(starts.len(), 3);
        let down: Vec<u64> = columns[0].rates.iter().map(|r| r.as_bps()).collect();
        assert_eq!(down, [1_500_000, 1_500_000, 2_500_500]);
        assert_eq!(t.notes, ["network mode: 5G 50.0 %, LTE 50.0 %"]);
        let kinds: Vec<_> = t.problems.iter().map(|p| (p.kind, p.count)).collect();
        assert_eq!(
            kinds,
            [
                (ProblemKind::Repeated, 1),
                (ProblemKind::Missing, 2),
                (ProblemKind::NotTransferring, 1)
            ]
        );
    }

    #[test]
    fn says_where_and_what() {
        for (rows, line, says) in [
            (
                "2019.12.31_23.59.59,5G,1,1\n",
                2,
                "4 fields in this line: expected 5",
            ),
            ("2019-12-31 23:59:59,5G,1,1,D\n", 2, "is not a time"),
            ("2019.13.31_23.59.59,5G,1,1,D\n", 2, "is not a time"),
            (
                "2019.12.31_23.59.59,5G,fast,1,D\n",
                2,
                "\"fast\" is not a number of kbit/s",
            ),
        ] {
            let e = parse(format!("{HEADER}{rows}").as_bytes()).err().unwrap();
            assert!(
                e.line == Some(line) && e.msg.contains(says),
                "{rows:?}: {e}"
            );
        }
        let e = parse(b"Timestamp,DL_bitrate\n").err().unwrap();
        assert!(e.msg.contains("UL_bitrate"), "{e}");
    }
}
