//! From traces to link rates, other steps, parts, and delivery opportunities.

use std::time::Duration;

use braid_core::Rate;

use super::error::LineError;
use super::{Capacity, Column, MAX_SAMPLES, OPPORTUNITY_BYTES, OPPORTUNITY_COLUMN, Trace};
use crate::RateSpec;

impl Trace {
    /// The column at `index` as the rate of a link that repeats after the
    /// trace's span; a trace of one sample is a constant rate.
    ///
    /// # Panics
    /// When there is no such column ([`Trace::column_index`] gives a good one).
    pub fn rate_spec(&self, index: usize) -> RateSpec {
        match &self.capacity {
            Capacity::Opportunities { ms, packet_bytes } => {
                assert_eq!(index, 0, "an opportunity trace has one column");
                RateSpec::Opportunities {
                    ms: ms.clone(),
                    packet_bytes: *packet_bytes,
                }
            }
            Capacity::Steps {
                starts,
                end,
                columns,
            } => {
                let rates = &columns[index].rates;
                let mut points: Vec<_> =
                    starts.iter().copied().zip(rates.iter().copied()).collect();
                points.dedup_by_key(|p| p.1);
                match points[..] {
                    [(_, rate)] => RateSpec::Constant(rate),
                    _ => RateSpec::Steps {
                        points,
                        period: Some(*end),
                    },
                }
            }
        }
    }

    /// The trace with a sample every `step`, each the mean over its step, so
    /// that no capacity is gained or lost. The span is rounded up to whole
    /// steps: what the last one carries is spread over all of it.
    ///
    /// # Errors
    /// The step is zero, or so short that there would be too many samples.
    pub fn resampled(&self, step: Duration) -> Result<Self, LineError> {
        let us = u64::try_from(step.as_micros()).unwrap_or(u64::MAX);
        let span = self.span().as_micros() as u64;
        let n = if us == 0 { u64::MAX } else { span.div_ceil(us) };
        let width = self.columns().len() as u64;
        if n.saturating_mul(width) > MAX_SAMPLES as u64 {
            return Err(LineError::file(format!(
                "a step of {step:?} is too short for a trace of {:.0} s: expected at most {MAX_SAMPLES} samples",
                self.span().as_secs_f64()
            )));
        }
        let n = n as usize;
        let starts: Vec<u64> = (0..n as u64).map(|i| i * us).collect();
        let columns = match &self.capacity {
            Capacity::Steps {
                starts,
                end,
                columns,
            } => columns
                .iter()
                .map(|c| {
                    let mut bits = vec![0u128; n]; // 10^-6 bit
                    for (i, rate) in c.rates.iter().enumerate() {
                        let from = starts[i].as_micros() as u64;
                        let to = starts.get(i + 1).unwrap_or(end).as_micros() as u64;
                        let mut at = from;
                        while at < to {
                            let w = at / us;
                            let until = to.min((w + 1) * us);
                            bits[w as usize] += u128::from(rate.as_bps()) * u128::from(until - at);
                            at = until;
                        }
                    }
                    Column {
                        name: c.name.clone(),
                        rates: rates(&bits, us),
                    }
                })
                .collect(),
            Capacity::Opportunities { ms, packet_bytes } => {
                let mut bits = vec![0u128; n];
                for m in ms {
                    let w = ((m * 1000 / us) as usize).min(n - 1);
                    bits[w] += u128::from(*packet_bytes) * 8_000_000;
                }
                vec![Column {
                    name: OPPORTUNITY_COLUMN.to_owned(),
                    rates: rates(&bits, us),
                }]
            }
        };
        Ok(Self {
            capacity: Capacity::Steps {
                starts: starts.into_iter().map(Duration::from_micros).collect(),
                end: Duration::from_micros(n as u64 * us),
                columns,
            },
            ..self.clone_meta()
        })
    }

    /// The part from `start` on that is `length` long, or as long as there is.
    ///
    /// # Errors
    /// Nothing is left.
    pub fn part(&self, start: Duration, length: Option<Duration>) -> Result<Self, LineError> {
        let stop = length.map_or(self.span(), |l| start.saturating_add(l).min(self.span()));
        let nothing = || {
            LineError::file(format!(
                "nothing of the trace is left: it is {:.3} s long",
                self.span().as_secs_f64()
            ))
        };
        if start >= stop {
            return Err(nothing());
        }
        let capacity = match &self.capacity {
            Capacity::Steps {
                starts, columns, ..
            } => {
                let first = starts.partition_point(|s| *s <= start).saturating_sub(1);
                let last = starts.partition_point(|s| *s < stop);
                Capacity::Steps {
                    starts: starts[first..last]
                        .iter()
                        .map(|s| s.saturating_sub(start))
                        .collect(),
                    end: stop - start,
                    columns: columns
                        .iter()
                        .map(|c| Column {
                            name: c.name.clone(),
                            rates: c.rates[first..last].to_vec(),
                        })
                        .collect(),
                }
            }
            Capacity::Opportunities { ms, packet_bytes } => {
                let (from, to) = (start.as_millis() as u64, stop.as_millis() as u64);
                let ms: Vec<u64> = ms
                    .iter()
                    .filter(|m| (from..=to).contains(m))
                    .map(|m| m - from)
                    .collect();
                if ms.last().is_none_or(|m| *m == 0) {
                    return Err(nothing());
                }
                Capacity::Opportunities {
                    ms,
                    packet_bytes: *packet_bytes,
                }
            }
        };
        Ok(Self {
            capacity,
            ..self.clone_meta()
        })
    }

    /// The trace with only the columns at `indices`, under the given names.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn select(&self, indices: &[(usize, String)]) -> Self {
        let capacity = match &self.capacity {
            Capacity::Opportunities { .. } => self.capacity.clone(),
            Capacity::Steps {
                starts,
                end,
                columns,
            } => Capacity::Steps {
                starts: starts.clone(),
                end: *end,
                columns: indices
                    .iter()
                    .map(|(i, name)| Column {
                        name: name.clone(),
                        rates: columns[*i].rates.clone(),
                    })
                    .collect(),
            },
        };
        Self {
            capacity,
            ..self.clone_meta()
        }
    }

    /// Delivery opportunities of [`OPPORTUNITY_BYTES`] that carry what the
    /// column at `index` carries: each falls in the millisecond by whose end
    /// its bytes have passed. The last opportunity sets the length of a
    /// repetition, so one is put at the end where none falls there.
    ///
    /// # Errors
    /// There would be too many, or the trace is shorter than a millisecond.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn opportunities(&self, index: usize) -> Result<Vec<u64>, LineError> {
        let (starts, end, rates) = match &self.capacity {
            Capacity::Opportunities { ms, .. } => return Ok(ms.clone()),
            Capacity::Steps {
                starts,
                end,
                columns,
            } => (starts, end, &columns[index].rates),
        };
        let last_ms = end.as_micros().div_ceil(1000) as u64;
        let each = u128::from(OPPORTUNITY_BYTES) * 8_000_000; // 10^-6 bit
        let mut ms = Vec::new();
        let mut left = each; // until the next opportunity
        for (i, rate) in rates.iter().enumerate() {
            let bps = u128::from(rate.as_bps());
            let from = starts[i].as_micros();
            let to = starts.get(i + 1).unwrap_or(end).as_micros();
            let mut spent = 0u128; // since `from`
            let total = bps * (to - from);
            while total - spent >= left {
                spent += left;
                left = each;
                let at = from + spent.div_ceil(bps);
                if ms.len() == MAX_SAMPLES {
                    return Err(LineError::file(format!(
                        "too many delivery opportunities: expected at most {MAX_SAMPLES}; take a part of the trace or scale it down"
                    )));
                }
                ms.push((at.div_ceil(1000) as u64).min(last_ms));
            }
            left -= total - spent;
        }
        if ms.last() != Some(&last_ms) {
            ms.push(last_ms);
        }
        Ok(ms)
    }

    fn clone_meta(&self) -> Self {
        Self {
            format: self.format,
            capacity: Capacity::Opportunities {
                ms: Vec::new(),
                packet_bytes: 0,
            },
            problems: self.problems.clone(),
            notes: self.notes.clone(),
        }
    }
}

/// Mean rates from millionths of bits per window of `us` microseconds.
fn rates(bits: &[u128], us: u64) -> Vec<Rate> {
    let us = u128::from(us);
    let of = |b: &u128| Rate::from_bps(u64::try_from((b + us / 2) / us).unwrap_or(u64::MAX));
    bits.iter().map(of).collect()
}
