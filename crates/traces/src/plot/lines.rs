//! Lines drawn of each column of a trace.

use plotters::style::RGBColor;

use super::super::stats::{self, Segment, quantile};
use super::super::{LineError, Trace};

/// Distinguishable also with a colour vision deficiency; repeats after the last.
pub(crate) const COLOURS: [RGBColor; 8] = [
    RGBColor(0x1f, 0x6f, 0xd6),
    RGBColor(0xe0, 0x6c, 0x00),
    RGBColor(0x0b, 0x8a, 0x62),
    RGBColor(0xa8, 0x32, 0x8f),
    RGBColor(0xb0, 0x8c, 0x00),
    RGBColor(0xc4, 0x2b, 0x2b),
    RGBColor(0x3a, 0x9f, 0xbf),
    RGBColor(0x5b, 0x54, 0x4a),
];

/// Most points drawn of one line; longer traces are drawn as means.
pub(super) const MAX_POINTS: usize = 1500;
/// Fewest samples over which a spread is drawn.
const MIN_SPREAD: usize = 5;
/// Largest part of the trace over which a spread is drawn.
const MAX_SPREAD: f64 = 0.2;

/// Line and statistics drawn of one column.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) colour: RGBColor,
    /// Points of the rate over time, at most [`MAX_POINTS`].
    pub(super) shown: Vec<Segment>,
    /// Time, 5th and 95th percentile around it.
    pub(super) spread: Vec<(f64, f64, f64)>,
    /// All of it, ascending by rate.
    pub(super) sorted: Vec<Segment>,
    pub(super) outages: Vec<(f64, f64)>,
}

/// Seconds over which the spread at one time is taken.
pub(super) fn spread_window(trace: &Trace, options: &stats::Options) -> f64 {
    let span = trace.span().as_secs_f64();
    let step = trace.step(options.window).as_secs_f64();
    (span / 30.0).max(step * 10.0)
}

/// Prepares the columns; spreads are taken over `around` seconds.
pub(super) fn lines(
    trace: &Trace,
    options: &stats::Options,
    around: f64,
) -> Result<Vec<Line>, LineError> {
    let span = trace.span().as_secs_f64();
    let names = trace.columns().into_iter().enumerate();
    let line = |(i, name): (usize, &str)| {
        let segments = trace.segments(i, options.window)?;
        let mut sorted = segments.clone();
        sorted.sort_by(|a, b| a.mbps.total_cmp(&b.mbps));
        Ok(Line {
            name: name.to_owned(),
            colour: COLOURS[i % COLOURS.len()],
            shown: thinned(&segments, span),
            spread: spread(&segments, span, around),
            sorted,
            outages: trace.outages(i, options),
        })
    };
    names.map(line).collect()
}

/// Means over at most [`MAX_POINTS`] equal windows.
fn thinned(segments: &[Segment], span: f64) -> Vec<Segment> {
    if segments.len() <= MAX_POINTS {
        return segments.to_vec();
    }
    let width = span / MAX_POINTS as f64;
    let mut sums = vec![0.0; MAX_POINTS];
    for s in segments {
        let (mut at, end) = (s.start_s, s.start_s + s.length_s);
        let mut w = (at / width) as usize;
        while w < MAX_POINTS && at < end {
            let until = end.min((w + 1) as f64 * width);
            sums[w] += s.mbps * (until - at).max(0.0);
            at = until;
            w += 1;
        }
    }
    let window = |(i, sum): (usize, &f64)| Segment {
        start_s: i as f64 * width,
        length_s: width,
        mbps: sum / width,
    };
    sums.iter().enumerate().map(window).collect()
}

/// 5th and 95th percentile within `around` seconds of times over the span.
fn spread(segments: &[Segment], span: f64, around: f64) -> Vec<(f64, f64, f64)> {
    let at = |i: usize| span * i as f64 / 240.0;
    if around > span * MAX_SPREAD {
        return Vec::new(); // too few samples to tell spread from change
    }
    let window = |i: usize| {
        let (from, to) = (at(i) - around / 2.0, at(i) + around / 2.0);
        let first = segments.partition_point(|s| s.start_s + s.length_s <= from);
        let last = segments.partition_point(|s| s.start_s < to);
        let mut near = segments[first..last].to_vec();
        near.sort_by(|a, b| a.mbps.total_cmp(&b.mbps));
        (near.len() >= MIN_SPREAD).then(|| (at(i), quantile(&near, 0.05), quantile(&near, 0.95)))
    };
    (0..=240).filter_map(window).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_mean() {
        let segments: Vec<Segment> = (0..10_000)
            .map(|i| Segment {
                start_s: f64::from(i) * 0.1,
                length_s: 0.1,
                mbps: f64::from(i % 17),
            })
            .collect();
        let mean = |s: &[Segment]| s.iter().map(|s| s.mbps * s.length_s).sum::<f64>();
        let t = thinned(&segments, 1000.0);
        assert_eq!(t.len(), MAX_POINTS);
        assert!((mean(&t) - mean(&segments)).abs() < 1e-6 * mean(&segments));
    }
}
