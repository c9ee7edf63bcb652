//! The file of a plan: CSV, a row per change.

use std::io::{self, Write};
use std::time::Duration;

use braid_core::Rate;

use super::{Attached, MAX_INTERFACES, Plan, Row, State};
use crate::format::{fields, quote, seconds, text};
use crate::write::decimal;
use crate::{LineError, MAX_RATE, MAX_SPAN};

const HEADER: &str = "t_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address";

/// Writes `plan`, with each line of `comments` behind a `#` on top.
///
/// # Errors
/// Writing failed, or a name has a comma or a line end.
pub fn write(plan: &Plan, comments: &[String], out: &mut impl Write) -> io::Result<()> {
    for c in comments.iter().flat_map(|c| c.lines()) {
        writeln!(out, "# {c}")?;
    }
    writeln!(out, "{HEADER}")?;
    for row in &plan.rows {
        let (name, attached) = match &row.state {
            State::Up(a) => ("up", Some(a)),
            State::Handover(a) => ("handover", Some(a)),
            State::Down => ("down", None),
        };
        let t = decimal(micros(row.at));
        write!(out, "{t},{},{name}", row.interface)?;
        match attached {
            None => writeln!(out, ",,,,,,")?,
            Some(a) => {
                let names = [&a.operator, &a.carrier, &a.cell];
                if let Some(bad) = names.into_iter().find(|n| !plain(n)) {
                    let msg = format!("\"{bad}\" cannot stand in a plan: it has a comma or such");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, msg));
                }
                let (rate, delay) = (decimal(a.rate.as_bps()), decimal(micros(a.delay) * 1000));
                let [operator, carrier, cell] = names;
                writeln!(
                    out,
                    ",{operator},{carrier},{cell},{rate},{delay},{}",
                    a.address
                )?;
            }
        }
    }
    writeln!(out, "{},,end,,,,,,", decimal(micros(plan.length)))
}

fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(u64::MAX)
}

/// A name that stands between commas as it is.
fn plain(name: &str) -> bool {
    !name.is_empty() && name.trim() == name && !name.contains(|c: char| c == ',' || c.is_control())
}

/// Reads a plan.
///
/// # Errors
/// Strict: where and what is wrong, and what was expected.
pub fn parse(bytes: &[u8]) -> Result<Plan, LineError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut header = false;
    let mut end: Option<Duration> = None;
    let mut start: Option<i64> = None;
    for (line, bytes) in crate::format::lines(bytes) {
        let t = text(line, bytes)?.trim_end();
        if t.is_empty() || t.starts_with('#') {
            continue;
        }
        if !header {
            if t != HEADER {
                let msg = format!("{}: expected the header {HEADER}", quote(t));
                return Err(LineError::at(line, msg));
            }
            header = true;
            continue;
        }
        if end.is_some() {
            return Err(LineError::at(line, "a row after the end: expected none"));
        }
        let f = fields(line, t, 9, HEADER)?;
        let time = seconds(line, f[0])?;
        let since = time - *start.get_or_insert(time);
        let before = rows.last().map_or(Duration::ZERO, |r| r.at);
        let at = u64::try_from(since).map(Duration::from_micros);
        let Some(at) = at.ok().filter(|t| *t >= before) else {
            let msg = format!("{}: expected no time before the row above", quote(f[0]));
            return Err(LineError::at(line, msg));
        };
        if at > MAX_SPAN {
            let msg = "the plan is too long: expected at most 30 days from its first row";
            return Err(LineError::at(line, msg));
        }
        if f[2] == "end" {
            if at.is_zero() {
                return Err(LineError::at(
                    line,
                    "the plan ends where it begins: expected a later time",
                ));
            }
            end = Some(at);
            continue;
        }
        rows.push(row(line, at, &f)?);
        if rows.len() > crate::MAX_SAMPLES {
            return Err(LineError::at(line, "too many rows: expected 10000000"));
        }
    }
    let length = end.ok_or_else(|| {
        LineError::file("the plan has no end: expected a last row such as 600,,end,,,,,,")
    })?;
    let interfaces = rows.iter().map(|r| r.interface).max().unwrap_or(0);
    let first = |i| rows.iter().find(|r| r.interface == i);
    let begins = |i: &usize| first(*i).is_some_and(|r| r.at.is_zero());
    if let Some(i) = (1..=interfaces.max(1)).find(|i| !begins(i)) {
        let msg =
            format!("interface {i} has no row at the first time: expected one of every interface");
        return Err(LineError::file(msg));
    }
    Ok(Plan {
        interfaces,
        length,
        rows,
    })
}

fn row(line: u64, at: Duration, f: &[&str]) -> Result<Row, LineError> {
    let wrong = |field: &str, expected: &str| {
        LineError::at(line, format!("{}: expected {expected}", quote(field)))
    };
    let interface = f[1]
        .parse()
        .ok()
        .filter(|i| (1..=MAX_INTERFACES).contains(i));
    let interface = interface.ok_or_else(|| wrong(f[1], "an interface, 1 to 8"))?;
    let number = |field: &str, most: f64, expected: &str| {
        let v = field
            .parse::<f64>()
            .ok()
            .filter(|v| (0.0..=most).contains(v));
        v.ok_or_else(|| wrong(field, expected))
    };
    let attached = || {
        if let Some(bad) = f[3..6].iter().find(|n| !plain(n)) {
            return Err(wrong(bad, "the name of an operator, a carrier or a cell"));
        }
        let rate = number(f[6], MAX_RATE.as_mbps(), "Mbit/s, 0 to 1000000")?;
        let delay = number(f[7], 1e4, "milliseconds, 0 to 10000")?;
        Ok(Attached {
            operator: f[3].to_owned(),
            carrier: f[4].to_owned(),
            cell: f[5].to_owned(),
            rate: Rate::from_mbps(rate),
            delay: Duration::from_micros((delay * 1e3).round() as u64),
            address: f[8]
                .parse()
                .map_err(|_| wrong(f[8], "the number of an address"))?,
        })
    };
    let state = match f[2] {
        "up" => State::Up(attached()?),
        "handover" => State::Handover(attached()?),
        "down" if f[3..].iter().all(|v| v.is_empty()) => State::Down,
        "down" => {
            return Err(wrong(
                &f[3..].join(","),
                "nothing for an interface that is down",
            ));
        }
        other => return Err(wrong(other, "up, handover, down or end")),
    };
    Ok(Row {
        at,
        interface,
        state,
    })
}
