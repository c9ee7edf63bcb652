//! From rows as recorded to one list of cells per second: the rules for flawed
//! data.

use std::collections::{BTreeMap, HashMap};

use super::super::flaws::{FlawKind, Flaws};
use super::super::measurement::{
    BANDWIDTH_MHZ, Carrier, Cell, Heard, Measurements, RSRP_DBM, RSRQ_DB, SINR_DB, Second,
};
use crate::{LineError, MAX_SAMPLES, MAX_SPAN};

/// Microseconds.
const SECOND: i64 = 1_000_000;
/// Longer without any row, and the recording is taken as paused, seconds; an
/// operator is held as long.
const HOLD_S: i64 = 30;
/// Most operators, carriers and segments; of cells there may be more.
const MAX_NAMES: usize = 256;
const MAX_CELLS: usize = 1_000_000;

/// Numbered lines that are neither empty nor comments.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let all = crate::format::lines(bytes);
    all.filter(|(_, l)| {
        let l = l.trim_ascii();
        !l.is_empty() && !l.starts_with(b"#")
    })
}

/// A number that may not have been recorded.
pub(super) fn number(line: u64, field: &str, what: &str) -> Result<Option<f64>, LineError> {
    let marks = ["", "-", "na", "n/a", "nan", "null"];
    if marks.iter().any(|m| field.eq_ignore_ascii_case(m)) {
        return Ok(None);
    }
    match field.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(Some(v)),
        _ => Err(LineError::at(
            line,
            format!(
                "{} is not a number: expected {what} (or \"-\" for none)",
                crate::format::quote(field)
            ),
        )),
    }
}

/// Values that one row has of one cell.
pub(super) struct Row<'a> {
    pub(super) line: u64,
    /// Microseconds on any clock.
    pub(super) time_us: i64,
    pub(super) operator: &'a str,
    pub(super) carrier: &'a str,
    /// Empty when the operator was looked for and no cell was heard.
    pub(super) cell: &'a str,
    pub(super) rsrp: Option<f64>,
    pub(super) rsrq: Option<f64>,
    pub(super) sinr: Option<f64>,
    pub(super) bandwidth_mhz: Option<f64>,
    pub(super) segment: &'a str,
}

struct Stored {
    line: u64,
    time_us: i64,
    operator: usize,
    segment: Option<usize>,
    heard: Option<Heard>,
}

/// Rows in the order of the file.
#[derive(Default)]
pub(super) struct Rows {
    names: Names,
    rows: Vec<Stored>,
    flaws: Flaws,
    /// Per operator the clock of its last row, and what it is behind by.
    last: Vec<(i64, i64)>,
}

#[derive(Default)]
struct Names {
    out: Measurements,
    operators: HashMap<String, usize>,
    carriers: HashMap<(usize, String), usize>,
    cells: HashMap<(usize, String), usize>,
    segments: HashMap<String, usize>,
}

impl Names {
    fn operator(&mut self, line: u64, name: &str) -> Result<usize, LineError> {
        let list = &mut self.out.operators;
        let index = intern(&mut self.operators, name.to_owned(), list.len());
        if index == list.len() {
            limit(line, "operators", index, MAX_NAMES)?;
            list.push(name.to_owned());
        }
        Ok(index)
    }

    fn carrier(&mut self, line: u64, operator: usize, name: &str) -> Result<usize, LineError> {
        let list = &mut self.out.carriers;
        let index = intern(&mut self.carriers, (operator, name.to_owned()), list.len());
        if index == list.len() {
            limit(line, "carriers", index, MAX_NAMES)?;
            list.push(Carrier {
                operator,
                name: name.to_owned(),
                bandwidth_mhz: None,
            });
        }
        Ok(index)
    }

    fn cell(&mut self, line: u64, carrier: usize, name: &str) -> Result<usize, LineError> {
        let list = &mut self.out.cells;
        let index = intern(&mut self.cells, (carrier, name.to_owned()), list.len());
        if index == list.len() {
            limit(line, "cells", index, MAX_CELLS)?;
            list.push(Cell {
                carrier,
                name: name.to_owned(),
            });
        }
        Ok(index)
    }

    fn segment(&mut self, line: u64, name: &str) -> Result<Option<usize>, LineError> {
        if name.is_empty() || name == "-" {
            return Ok(None);
        }
        let list = &mut self.out.segments;
        let index = intern(&mut self.segments, name.to_owned(), list.len());
        if index == list.len() {
            limit(line, "segments", index, MAX_NAMES)?;
            list.push(name.to_owned());
        }
        Ok(Some(index))
    }
}

fn intern<K: std::hash::Hash + Eq>(map: &mut HashMap<K, usize>, key: K, next: usize) -> usize {
    *map.entry(key).or_insert(next)
}

fn limit(line: u64, what: &str, n: usize, most: usize) -> Result<(), LineError> {
    if n < most {
        return Ok(());
    }
    let msg = format!("more than {most} {what}: is this column the {what}?");
    Err(LineError::at(line, msg))
}

impl Rows {
    pub(super) fn flaw(&mut self, kind: FlawKind, line: u64) {
        self.flaws.add(kind, line, None);
    }

    /// Adds a row after judging its values.
    pub(super) fn push(&mut self, row: &Row<'_>) -> Result<(), LineError> {
        let line = row.line;
        if self.rows.len() >= MAX_SAMPLES {
            let msg = format!("too many rows: expected at most {MAX_SAMPLES}");
            return Err(LineError::at(line, msg));
        }
        let operator = self.names.operator(line, row.operator)?;
        if operator == self.last.len() {
            self.last.push((row.time_us, 0));
        }
        let (before, behind) = &mut self.last[operator];
        let back = before.saturating_sub(row.time_us);
        if back > 0 {
            let seconds = back as f64 / 1e6;
            self.flaws.add(FlawKind::ClockJump, line, Some(seconds));
        }
        // Who sorts these by their times puts two places into one second.
        if back > HOLD_S * SECOND {
            *behind = behind.saturating_add(back).saturating_add(SECOND);
        }
        *before = row.time_us;
        let time_us = row.time_us.saturating_add(*behind);
        let segment = self.names.segment(line, row.segment)?;
        let heard = self.heard(row, operator)?;
        self.rows.push(Stored {
            line,
            time_us,
            operator,
            segment,
            heard,
        });
        Ok(())
    }

    fn heard(&mut self, row: &Row<'_>, operator: usize) -> Result<Option<Heard>, LineError> {
        let line = row.line;
        if row.cell.is_empty() || row.cell == "-" {
            return Ok(None);
        }
        let Some(rsrp_dbm) = row.rsrp else {
            self.flaws.add(FlawKind::Missing, line, None);
            return Ok(None);
        };
        if !RSRP_DBM.contains(&rsrp_dbm) {
            self.flaws.add(FlawKind::Impossible, line, None);
            return Ok(None);
        }
        let mut believed = |v: Option<f64>, range: &std::ops::RangeInclusive<f64>| {
            let ok = v.filter(|v| range.contains(v));
            if v.is_some() && ok.is_none() {
                self.flaws.add(FlawKind::Impossible, line, None);
            }
            ok
        };
        let (rsrq_db, sinr_db) = (believed(row.rsrq, &RSRQ_DB), believed(row.sinr, &SINR_DB));
        let bandwidth = believed(row.bandwidth_mhz, &BANDWIDTH_MHZ);
        let carrier = self.names.carrier(line, operator, row.carrier)?;
        let cell = self.names.cell(line, carrier, row.cell)?;
        let known = &mut self.names.out.carriers[carrier].bandwidth_mhz;
        *known = known.or(bandwidth);
        Ok(Some(Heard {
            cell,
            rsrp_dbm,
            rsrq_db,
            sinr_db,
        }))
    }

    /// Applies the rules.
    pub(super) fn finish(mut self) -> Result<Measurements, LineError> {
        if self.names.out.cells.is_empty() {
            return Err(LineError::file("no cell with a usable RSRP in the file"));
        }
        self.rows.sort_by_key(|r| r.time_us);
        let first = self.rows.first().map_or(0, |r| r.time_us);
        let second_of = |r: &Stored| r.time_us.saturating_sub(first).div_euclid(SECOND);
        let mut bins: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (i, r) in self.rows.iter().enumerate() {
            bins.entry(second_of(r)).or_default().push(i);
        }
        let operators = self.names.out.operators.len();
        let typical = self.typical_steps(&bins, operators);
        // What each operator was heard on last, when, and where it is held to.
        let mut held: Vec<(i64, Vec<Heard>)> = vec![(i64::MIN / 2, Vec::new()); operators];
        let mut seconds: Vec<Second> = Vec::new();
        let mut previous: Option<(i64, Option<usize>)> = None;
        for (&at, rows) in &bins {
            let line = self.rows[rows[0]].line;
            if let Some((before, segment)) = previous {
                let pause = at - before;
                if pause > HOLD_S {
                    self.flaws.add(FlawKind::Pause, line, Some(pause as f64));
                    held.iter_mut().for_each(|h| h.0 = i64::MIN / 2);
                } else {
                    for t in before + 1..at {
                        seconds.push(compose(&held, t, segment));
                    }
                }
            }
            let mut now: Vec<Option<Vec<Heard>>> = vec![None; operators];
            let mut segment = None;
            for &i in rows {
                let r = &self.rows[i];
                segment = segment.or(r.segment);
                let list = now[r.operator].get_or_insert_default();
                list.extend(r.heard);
            }
            self.duplicates(rows);
            for (o, list) in now.into_iter().enumerate() {
                let Some(list) = list else { continue };
                let since = at.saturating_sub(held[o].0);
                if held[o].0 >= 0 && since * 2 > typical[o] * 3 {
                    self.flaws.add(FlawKind::Gap, line, Some(since as f64));
                }
                held[o] = (at, mean_per_cell(list));
            }
            seconds.push(compose(&held, at, segment));
            previous = Some((at, segment));
            if seconds.len() as u64 > MAX_SPAN.as_secs() {
                let msg = "the recording is too long: expected at most 30 days";
                return Err(LineError::at(line, msg));
            }
        }
        let mut out = self.names.out;
        out.seconds = seconds;
        out.flaws = self.flaws.into_sorted();
        Ok(out)
    }

    /// Median time between the seconds in which an operator has a row.
    fn typical_steps(&self, bins: &BTreeMap<i64, Vec<usize>>, operators: usize) -> Vec<i64> {
        let mut last = vec![None; operators];
        let mut steps: Vec<Vec<i64>> = vec![Vec::new(); operators];
        for (&at, rows) in bins {
            for &i in rows {
                let o = self.rows[i].operator;
                if let Some(before) = last[o].replace(at)
                    && before != at
                {
                    steps[o].push(at - before);
                }
            }
        }
        let median = |mut s: Vec<i64>| {
            let middle = s.len() / 2;
            if s.is_empty() {
                return 1;
            }
            *s.select_nth_unstable(middle).1
        };
        steps.into_iter().map(median).collect()
    }

    /// Counts lines that have time and cells of another one in `rows`.
    fn duplicates(&mut self, rows: &[usize]) {
        let mut seen: HashMap<(i64, usize), usize> = HashMap::new();
        // One line may tell of several cells.
        let mut found: BTreeMap<u64, FlawKind> = BTreeMap::new();
        for &i in rows {
            let r = &self.rows[i];
            let Some(h) = r.heard else { continue };
            let first = *seen.entry((r.time_us, h.cell)).or_insert(i);
            if first != i {
                let kind = if self.rows[first].heard == r.heard {
                    FlawKind::Repeated
                } else {
                    FlawKind::Conflicting
                };
                let known = found.entry(r.line).or_insert(kind);
                *known = kind.max(*known);
            }
        }
        for (line, kind) in found {
            self.flaws.add(kind, line, None);
        }
    }
}

/// Composes what holds at second `t`: every operator's last list, for [`HOLD_S`].
fn compose(held: &[(i64, Vec<Heard>)], t: i64, segment: Option<usize>) -> Second {
    let fresh = held
        .iter()
        .filter(|(at, _)| t.saturating_sub(*at) <= HOLD_S);
    let mut heard: Vec<Heard> = fresh.flat_map(|(_, list)| list.iter().copied()).collect();
    heard.sort_by_key(|h| h.cell);
    Second { heard, segment }
}

/// One entry per cell: the means in dB of what several rows of a second say.
fn mean_per_cell(mut list: Vec<Heard>) -> Vec<Heard> {
    list.sort_by_key(|h| h.cell);
    let same = list.chunk_by(|a, b| a.cell == b.cell);
    let mean = |group: &[Heard], f: fn(&Heard) -> Option<f64>| {
        let values: Vec<f64> = group.iter().filter_map(f).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    same.map(|g| Heard {
        cell: g[0].cell,
        rsrp_dbm: mean(g, |h| Some(h.rsrp_dbm)).unwrap_or(g[0].rsrp_dbm),
        rsrq_db: mean(g, |h| h.rsrq_db),
        sinr_db: mean(g, |h| h.sinr_db),
    })
    .collect()
}
