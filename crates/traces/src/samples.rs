//! From recorded samples to piecewise constant rates: the rules for flawed data.

use std::time::Duration;

use braid_core::Rate;

use super::error::{LineError, Problem, ProblemKind, Problems};
use super::{Capacity, Column, MAX_RATE, MAX_SAMPLES, MAX_SPAN};

/// A forward step of more than this many typical ones is a clock jump.
const JUMP_STEPS: i64 = 30;

/// Treatment of samples that do not ascend in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Refuse them: the file is made, not recorded.
    Strict,
    /// Apply the rules of [`ProblemKind::rule`].
    Recorded,
}

/// A value of a sample before it is checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// Mbit/s as read, not yet judged.
    Mbps(f64),
    /// Not recorded.
    Missing,
}

impl Value {
    /// Reads a field: a number times `scale` (to Mbit/s), or one of the marks
    /// for "not recorded".
    pub(super) fn read(field: &str, scale: f64) -> Result<Self, ()> {
        let field = field.trim();
        let mark = ["", "-", "na", "n/a", "nan", "null"];
        if mark.iter().any(|m| field.eq_ignore_ascii_case(m)) {
            return Ok(Self::Missing);
        }
        let v: f64 = field.parse().map_err(|_| ())?;
        Ok(Self::Mbps(v * scale))
    }
}

/// Samples in the order of the file.
#[derive(Debug)]
pub(super) struct Samples {
    names: Vec<String>,
    policy: Policy,
    lines: Vec<u64>,
    /// Microseconds on the recorder's clock.
    times: Vec<i64>,
    /// One column after the other within a row.
    values: Vec<Option<Rate>>,
    problems: Problems,
}

impl Samples {
    pub(super) fn new(names: Vec<String>, policy: Policy) -> Self {
        Self {
            names,
            policy,
            lines: Vec::new(),
            times: Vec::new(),
            values: Vec::new(),
            problems: Problems::default(),
        }
    }

    pub(super) fn problem(&mut self, kind: ProblemKind, line: u64) {
        self.problems.add(kind, line, None);
    }

    /// Adds the row of `line`, at `time_us`, with a value per column.
    pub(super) fn push(
        &mut self,
        line: u64,
        time_us: i64,
        values: impl Iterator<Item = Value>,
    ) -> Result<(), LineError> {
        let before = self.values.len();
        for v in values {
            let rate = match v {
                Value::Missing => {
                    self.problems.add(ProblemKind::Missing, line, None);
                    None
                }
                Value::Mbps(m) if (0.0..=MAX_RATE.as_mbps()).contains(&m) => {
                    Some(Rate::from_mbps(m))
                }
                Value::Mbps(m) if self.policy == Policy::Strict => {
                    return Err(LineError::at(
                        line,
                        format!("{m} Mbit/s is not a rate: expected 0 to 1000000"),
                    ));
                }
                Value::Mbps(_) => {
                    self.problems.add(ProblemKind::Impossible, line, None);
                    None
                }
            };
            self.values.push(rate);
        }
        debug_assert_eq!(self.values.len() - before, self.names.len());
        if self.values.len() > MAX_SAMPLES {
            return Err(LineError::at(
                line,
                format!("too many samples: expected at most {MAX_SAMPLES}"),
            ));
        }
        self.lines.push(line);
        self.times.push(time_us);
        Ok(())
    }

    /// Applies the rules and gives the capacity with the problems found.
    pub(super) fn finish(mut self) -> Result<(Capacity, Vec<Problem>), LineError> {
        if self.times.is_empty() {
            return Err(LineError::file("the trace has no samples"));
        }
        let step = typical_step(&self.times);
        let starts = match self.policy {
            Policy::Strict => self.strict_times(step)?,
            Policy::Recorded => self.recorded_times(step),
        };
        self.merge(starts, step)
    }

    fn strict_times(&mut self, step: i64) -> Result<Vec<i64>, LineError> {
        let first = self.times[0];
        for (i, w) in self.times.windows(2).enumerate() {
            if w[1] <= w[0] {
                return Err(LineError::at(
                    self.lines[i + 1],
                    format!(
                        "time {} s does not come after {} s: expected ascending times",
                        w[1] as f64 / 1e6,
                        w[0] as f64 / 1e6
                    ),
                ));
            }
        }
        // Only in a regular trace is a longer step a sign of something missing.
        let steps = self.times.windows(2).map(|w| w[1] - w[0]);
        let regular = steps.clone().filter(|s| *s == step).count() * 10 >= steps.len() * 9;
        for (i, s) in steps.enumerate() {
            if regular && s > step + step / 2 {
                let line = self.lines[i + 1];
                self.problems
                    .add(ProblemKind::Gap, line, Some(s as f64 / 1e6));
            }
        }
        Ok(self.times.iter().map(|t| t - first).collect())
    }

    fn recorded_times(&mut self, step: i64) -> Vec<i64> {
        let mut out: Vec<i64> = Vec::with_capacity(self.times.len());
        let mut previous: Option<(i64, i64)> = None; // on the recorder's clock, on ours
        for (&raw, &line) in self.times.iter().zip(&self.lines) {
            let at = match previous {
                None => 0,
                Some((r, at)) => {
                    let d = raw.saturating_sub(r);
                    let seconds = Some((d as f64 / 1e6).abs());
                    if d < 0 || d > step.saturating_mul(JUMP_STEPS) {
                        self.problems.add(ProblemKind::ClockJump, line, seconds);
                        at.saturating_add(step)
                    } else {
                        if d > step + step / 2 {
                            self.problems.add(ProblemKind::Gap, line, seconds);
                        }
                        at.saturating_add(d)
                    }
                }
            };
            out.push(at);
            previous = Some((raw, at));
        }
        out
    }

    /// Joins rows of one time, fills in missing values and makes the columns.
    fn merge(mut self, times: Vec<i64>, step: i64) -> Result<(Capacity, Vec<Problem>), LineError> {
        let width = self.names.len();
        let last_line = self.lines.last().copied().unwrap_or(1);
        let end = times.last().copied().unwrap_or(0).saturating_add(step);
        if end > MAX_SPAN.as_micros() as i64 {
            return Err(LineError::at(
                last_line,
                "the trace is too long: expected at most 30 days",
            ));
        }
        let mut starts = Vec::with_capacity(times.len());
        let mut columns: Vec<Vec<Option<Rate>>> = vec![Vec::with_capacity(times.len()); width];
        let mut row = 0;
        while row < times.len() {
            let next = (row + 1..times.len())
                .find(|&r| times[r] != times[row])
                .unwrap_or(times.len());
            let values = |r: usize| &self.values[r * width..(r + 1) * width];
            for r in row + 1..next {
                let kind = if values(r) == values(row) {
                    ProblemKind::Repeated
                } else {
                    ProblemKind::Conflicting
                };
                self.problems.add(kind, self.lines[r], None);
            }
            for (c, column) in columns.iter_mut().enumerate() {
                column.push(mean((row..next).filter_map(|r| values(r)[c])));
            }
            starts.push(micros(times[row]));
            row = next;
        }
        let columns = self
            .names
            .into_iter()
            .zip(columns)
            .filter_map(|(name, values)| {
                Some(Column {
                    name,
                    rates: hold(&values)?,
                })
            })
            .collect::<Vec<_>>();
        if columns.is_empty() {
            return Err(LineError::file(
                "the trace has no usable value in any column",
            ));
        }
        let capacity = Capacity::Steps {
            starts,
            end: micros(end),
            columns,
        };
        Ok((capacity, self.problems.into_sorted()))
    }
}

fn micros(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or(0))
}

/// Median of the forward steps, in microseconds; one second when there is none.
fn typical_step(times: &[i64]) -> i64 {
    let mut steps: Vec<i64> = times
        .windows(2)
        .map(|w| w[1].saturating_sub(w[0]))
        .filter(|d| *d > 0)
        .collect();
    let middle = steps.len() / 2;
    if steps.is_empty() {
        return 1_000_000;
    }
    *steps.select_nth_unstable(middle).1
}

fn mean(rates: impl Iterator<Item = Rate>) -> Option<Rate> {
    let (n, sum) = rates.fold((0u64, 0u64), |(n, s), r| (n + 1, s + r.as_bps()));
    (n > 0).then(|| Rate::from_bps((sum + n / 2) / n))
}

/// Holds values over missing ones; `None` when there is not one value.
fn hold(values: &[Option<Rate>]) -> Option<Vec<Rate>> {
    let mut current = values.iter().find_map(|v| *v)?;
    let held = values.iter().map(|v| {
        current = v.unwrap_or(current);
        current
    });
    Some(held.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: Policy, rows: &[(i64, Value)]) -> Result<(Capacity, Vec<Problem>), LineError> {
        let mut s = Samples::new(vec!["a".into()], policy);
        for (i, (t, v)) in rows.iter().enumerate() {
            s.push(i as u64 + 1, t * 1_000_000, std::iter::once(*v))?;
        }
        s.finish()
    }

    fn seconds_and_mbps(c: &Capacity) -> (Vec<u64>, u64, Vec<u64>) {
        let Capacity::Steps {
            starts,
            end,
            columns,
        } = c
        else {
            panic!("not sampled")
        };
        (
            starts.iter().map(Duration::as_secs).collect(),
            end.as_secs(),
            columns[0]
                .rates
                .iter()
                .map(|r| r.as_bps() / 1_000_000)
                .collect(),
        )
    }

    #[test]
    fn rules_for_recorded_data() {
        use Value::{Mbps, Missing};
        let rows = [
            (100, Missing),
            (101, Mbps(8.0)),
            (101, Mbps(8.0)), // repeated
            (102, Mbps(4.0)),
            (102, Mbps(6.0)),  // conflicting
            (105, Mbps(-3.0)), // gap, impossible
            (106, Mbps(9.0)),
            (6, Mbps(1.0)), // clock jump back
            (7, Mbps(2.0)),
            (700, Mbps(3.0)), // and forward
        ];
        let (c, problems) = run(Policy::Recorded, &rows).unwrap();
        assert_eq!(
            seconds_and_mbps(&c),
            (
                vec![0, 1, 2, 5, 6, 7, 8, 9],
                10,
                vec![8, 8, 5, 5, 9, 1, 2, 3]
            )
        );
        let found: Vec<_> = problems
            .iter()
            .map(|p| (p.kind, p.count, p.first_line))
            .collect();
        assert_eq!(
            found,
            [
                (ProblemKind::Gap, 1, 6),
                (ProblemKind::Repeated, 1, 3),
                (ProblemKind::Conflicting, 1, 5),
                (ProblemKind::ClockJump, 2, 8),
                (ProblemKind::Missing, 1, 1),
                (ProblemKind::Impossible, 1, 6),
            ]
        );
    }

    #[test]
    fn strict_refuses_what_it_cannot_order() {
        use Value::Mbps;
        let e = run(Policy::Strict, &[(0, Mbps(1.0)), (0, Mbps(1.0))]).unwrap_err();
        assert_eq!(e.line, Some(2));
        let e = run(Policy::Strict, &[(0, Mbps(1.0)), (1, Mbps(2e6))]).unwrap_err();
        assert!(e.msg.contains("expected 0 to 1000000"), "{e}");
        let e = run(Policy::Recorded, &[(0, Value::Missing)]).unwrap_err();
        assert!(e.msg.contains("no usable value"), "{e}");
    }

    #[test]
    fn an_irregular_strict_trace_has_no_gaps() {
        let rows: Vec<_> = [0, 1, 5, 60].map(|t| (t, Value::Mbps(1.0))).into();
        assert!(run(Policy::Strict, &rows).unwrap().1.is_empty());
        let rows: Vec<_> = (0..30)
            .filter(|t| *t != 9)
            .map(|t| (t, Value::Mbps(1.0)))
            .collect();
        assert_eq!(
            run(Policy::Strict, &rows).unwrap().1[0].kind,
            ProblemKind::Gap
        );
    }
}
