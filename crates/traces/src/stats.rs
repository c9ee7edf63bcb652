//! Describing a trace: rates over time, and outages.

use std::time::Duration;

use serde::Serialize;

use super::error::LineError;
use super::{Capacity, Format, Problem, Trace};

/// Outage limits and window by which a trace is described.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// An outage is a rate at or below this.
    pub outage_mbps: f64,
    /// for at least this long.
    pub outage_min: Duration,
    /// Delivery opportunities become rates over windows of this length.
    pub window: Duration,
}

impl Default for Options {
    /// At most 0.1 Mbit/s for at least a second; windows of a second.
    fn default() -> Self {
        Self {
            outage_mbps: 0.1,
            outage_min: Duration::from_secs(1),
            window: Duration::from_secs(1),
        }
    }
}

/// A stretch of constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// When it begins, seconds.
    pub start_s: f64,
    /// How long it lasts, seconds.
    pub length_s: f64,
    /// Its rate.
    pub mbps: f64,
}

/// A trace in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The format it was read from.
    pub format: Format,
    /// Length.
    pub span_s: f64,
    /// Samples per column, or delivery opportunities.
    pub samples: usize,
    /// Median time between samples; for opportunities the window over which
    /// rates are taken.
    pub step_s: f64,
    /// Per link.
    pub columns: Vec<ColumnSummary>,
    /// Flaws of the data.
    pub problems: Vec<Problem>,
    /// Further remarks.
    pub notes: Vec<String>,
}

/// A link in numbers. Percentiles are over time: at `p5_mbps` or less for 5 %
/// of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnSummary {
    /// Name of the link.
    pub name: String,
    /// Mean over time.
    pub mean_mbps: f64,
    /// Lowest.
    pub min_mbps: f64,
    /// 5th percentile.
    pub p5_mbps: f64,
    /// 20th percentile.
    pub p20_mbps: f64,
    /// Median.
    pub median_mbps: f64,
    /// 95th percentile.
    pub p95_mbps: f64,
    /// Highest.
    pub max_mbps: f64,
    /// Standard deviation over mean; null when the mean is zero.
    pub variation: Option<f64>,
    /// Times without capacity.
    pub outages: Outages,
}

/// Times without capacity.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outages {
    /// How many.
    pub count: usize,
    /// All together.
    pub total_s: f64,
    /// The longest.
    pub longest_s: f64,
}

impl Trace {
    /// The column at `index` as stretches of constant rate; opportunities as
    /// means over `window`.
    ///
    /// # Errors
    /// The window is too short for the trace.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn segments(&self, index: usize, window: Duration) -> Result<Vec<Segment>, LineError> {
        let resampled;
        let capacity = match &self.capacity {
            c @ Capacity::Steps { .. } => c,
            Capacity::Opportunities { .. } => {
                resampled = self.resampled(window)?;
                &resampled.capacity
            }
        };
        let Capacity::Steps {
            starts,
            end,
            columns,
        } = capacity
        else {
            return Ok(Vec::new()); // a resampled trace has steps
        };
        let ends = starts.iter().skip(1).chain(std::iter::once(end));
        let segments = starts.iter().zip(ends).zip(&columns[index].rates);
        let mut segments: Vec<Segment> = segments
            .map(|((from, to), rate)| Segment {
                start_s: from.as_secs_f64(),
                length_s: (*to - *from).as_secs_f64(),
                mbps: rate.as_mbps(),
            })
            .collect();
        // The last window may reach beyond the end, with nothing in it there.
        let over = end.saturating_sub(self.span()).as_secs_f64();
        if let Some(last) = segments.last_mut()
            && over > 0.0
        {
            let inside = last.length_s - over;
            last.mbps *= last.length_s / inside;
            last.length_s = inside;
        }
        Ok(segments)
    }

    /// Outages of the column at `index`, as start and length in seconds. In an
    /// opportunity trace an outage is a time without any opportunity.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn outages(&self, index: usize, options: &Options) -> Vec<(f64, f64)> {
        let least = options.outage_min.as_secs_f64();
        let mut found: Vec<(f64, f64)> = Vec::new();
        match &self.capacity {
            Capacity::Opportunities { ms, .. } => {
                let mut before = 0;
                for &m in ms {
                    if m > before {
                        found.push((before as f64 / 1e3, (m - before) as f64 / 1e3));
                    }
                    before = m;
                }
            }
            Capacity::Steps {
                starts,
                end,
                columns,
            } => {
                let mut open: Option<f64> = None;
                for (start, rate) in starts.iter().zip(&columns[index].rates) {
                    let at = start.as_secs_f64();
                    match (rate.as_mbps() <= options.outage_mbps, open) {
                        (true, None) => open = Some(at),
                        (false, Some(from)) => {
                            found.push((from, at - from));
                            open = None;
                        }
                        _ => {}
                    }
                }
                if let Some(from) = open {
                    found.push((from, end.as_secs_f64() - from));
                }
            }
        }
        // A microsecond of grace: times are differences of rounded numbers.
        found.retain(|(_, length)| *length >= least - 1e-6);
        found
    }

    /// The trace in numbers.
    ///
    /// # Errors
    /// The window is too short for the trace.
    pub fn summary(&self, options: &Options) -> Result<Summary, LineError> {
        let mut columns = Vec::new();
        for (i, name) in self.columns().into_iter().enumerate() {
            let segments = self.segments(i, options.window)?;
            let outages = self.outages(i, options);
            columns.push(describe(name, &segments, &outages));
        }
        Ok(Summary {
            format: self.format,
            span_s: self.span().as_secs_f64(),
            samples: self.samples(),
            step_s: self.step(options.window).as_secs_f64(),
            columns,
            problems: self.problems.clone(),
            notes: self.notes.clone(),
        })
    }

    /// Median time between samples; for opportunities `window`.
    pub fn step(&self, window: Duration) -> Duration {
        let Capacity::Steps { starts, end, .. } = &self.capacity else {
            return window;
        };
        let ends = starts.iter().skip(1).chain(std::iter::once(end));
        let mut steps: Vec<Duration> = starts.iter().zip(ends).map(|(a, b)| *b - *a).collect();
        let middle = steps.len() / 2;
        *steps.select_nth_unstable(middle).1
    }
}

/// The rate at or below which the segments are for the share `q` of the time;
/// `sorted` ascends by rate. NaN when empty.
pub(super) fn quantile(sorted: &[Segment], q: f64) -> f64 {
    let total: f64 = sorted.iter().map(|s| s.length_s).sum();
    let mut seen = 0.0;
    for s in sorted {
        seen += s.length_s;
        if seen >= q * total - 1e-9 {
            return s.mbps;
        }
    }
    sorted.last().map_or(f64::NAN, |s| s.mbps)
}

fn describe(name: &str, segments: &[Segment], outages: &[(f64, f64)]) -> ColumnSummary {
    let total: f64 = segments.iter().map(|s| s.length_s).sum();
    let mean = segments.iter().map(|s| s.mbps * s.length_s).sum::<f64>() / total;
    let square = |s: &Segment| (s.mbps - mean).powi(2) * s.length_s;
    let deviation = (segments.iter().map(square).sum::<f64>() / total).sqrt();
    let mut sorted = segments.to_vec();
    sorted.sort_by(|a, b| a.mbps.total_cmp(&b.mbps));
    ColumnSummary {
        name: name.to_owned(),
        mean_mbps: mean,
        min_mbps: quantile(&sorted, 0.0),
        p5_mbps: quantile(&sorted, 0.05),
        p20_mbps: quantile(&sorted, 0.2),
        median_mbps: quantile(&sorted, 0.5),
        p95_mbps: quantile(&sorted, 0.95),
        max_mbps: sorted.last().map_or(f64::NAN, |s| s.mbps),
        variation: (mean > 0.0).then_some(deviation / mean),
        outages: Outages {
            count: outages.len(),
            total_s: outages.iter().map(|o| o.1).fold(0.0, |a, b| a + b), // a sum of none is -0
            longest_s: outages.iter().map(|o| o.1).fold(0.0, f64::max),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_over_time() {
        // 10 Mbit/s for 1 s, nothing for 2 s, 40 Mbit/s for 7 s.
        let t = Trace::parse(
            b"0,10\n1,0\n3,40\n4,40\n5,40\n6,40\n7,40\n8,40\n9,40\n",
            None,
        );
        let s = t.unwrap().summary(&Options::default()).unwrap();
        let c = &s.columns[0];
        assert_eq!((s.span_s, s.step_s, s.samples), (10.0, 1.0, 9));
        assert!((c.mean_mbps - 29.0).abs() < 1e-9);
        assert_eq!((c.min_mbps, c.p5_mbps, c.p20_mbps), (0.0, 0.0, 0.0));
        assert_eq!((c.median_mbps, c.p95_mbps, c.max_mbps), (40.0, 40.0, 40.0));
        let deviation = (0.1f64 * 19.0 * 19.0 + 0.2 * 29.0 * 29.0 + 0.7 * 11.0 * 11.0).sqrt();
        assert!((c.variation.unwrap() - deviation / 29.0).abs() < 1e-9);
        assert_eq!((c.outages.count, c.outages.total_s), (1, 2.0));
    }

    #[test]
    fn silence_is_an_outage_of_opportunities() {
        let t = Trace::parse(b"1200\n1201\n1300\n4000\n", None).unwrap();
        let o = Options::default();
        assert_eq!(t.outages(0, &o), [(0.0, 1.2), (1.3, 2.7)]);
        let s = t.summary(&o).unwrap();
        assert_eq!((s.samples, s.step_s), (4, 1.0));
        // Four packets of 12 kbit in 4 s.
        assert!((s.columns[0].mean_mbps - 0.012).abs() < 1e-9);
        assert_eq!(s.columns[0].max_mbps, 0.036);
    }

    #[test]
    fn a_dead_link_has_no_variation() {
        let s = Trace::parse(b"0,0\n1,0\n", None)
            .unwrap()
            .summary(&Options::default())
            .unwrap();
        assert_eq!(s.columns[0].variation, None);
        assert_eq!(s.columns[0].outages.longest_s, 2.0);
    }
}
