//! Every latency of a transfer: a histogram, and a file on request.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_core::Time;
use braid_core::stats::Percentiles;
use hdrhistogram::Histogram;

use super::error::{Result, TrafficError};
use super::meter::Plan;

/// Points of a distribution in a report.
const CDF_POINTS: u32 = 200;
/// The largest value told apart, ns: an hour.
const MOST: u64 = 3_600_000_000_000;

/// Records durations; those that began in the measured window count.
pub(crate) struct Recorder {
    plan: Plan,
    /// Reported value per recorded one: 0.5 makes a one-way latency of an RTT.
    factor: f64,
    histogram: Histogram<u64>,
    sum_ns: f64,
    max_ns: u64,
    file: Option<(csv::Writer<BufWriter<File>>, PathBuf)>,
}

impl Recorder {
    /// A recorder whose percentiles are `factor` times what it is given; the
    /// file gets what it is given, in a column named `column`.
    pub(crate) fn new(plan: Plan, factor: f64, file: Option<&Path>, column: &str) -> Result<Self> {
        let file = file
            .map(|path| {
                let fail = |e| TrafficError::io(format!("write {}", path.display()), e);
                let mut w =
                    csv::Writer::from_writer(BufWriter::new(File::create(path).map_err(fail)?));
                w.write_record(["t_s", column])
                    .map_err(|e| fail(e.into()))?;
                Ok::<_, TrafficError>((w, path.to_owned()))
            })
            .transpose()?;
        Ok(Self {
            plan,
            factor,
            histogram: Histogram::new_with_bounds(1, MOST, 3)
                .expect("constant bounds and digits are in range"),
            sum_ns: 0.0,
            max_ns: 0,
            file,
        })
    }

    /// Takes a duration that began at `begin`.
    ///
    /// # Errors
    /// The file cannot be written; it is then given up, the histogram goes on.
    pub(crate) fn record(&mut self, begin: Time, value: Duration) -> Result<()> {
        if begin < self.plan.window || begin >= self.plan.end {
            return Ok(());
        }
        let ns = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(ns.clamp(1, MOST));
        self.sum_ns += ns as f64;
        self.max_ns = self.max_ns.max(ns);
        let Some((w, path)) = &mut self.file else {
            return Ok(());
        };
        let t = begin.since(self.plan.start).as_secs_f64();
        let row = [format!("{t:.6}"), format!("{:.6}", ns as f64 / 1e6)];
        let Err(e) = w.write_record(row) else {
            return Ok(());
        };
        let error = TrafficError::io(format!("write {}", path.display()), e);
        self.file = None;
        Err(error)
    }

    /// Number of values recorded.
    pub(crate) fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Writes what the file still lacks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match self.file.take() {
            Some((mut w, path)) => w
                .flush()
                .map_err(|e| TrafficError::io(format!("write {}", path.display()), e)),
            None => Ok(()),
        }
    }

    /// Percentiles, ms, of the values times the factor. The mean and the
    /// largest are exact, the others to three digits.
    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        let n = self.len();
        (n > 0).then(|| Percentiles {
            mean: self.sum_ns / n as f64 / 1e6 * self.factor,
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            max: self.max_ns as f64 / 1e6 * self.factor,
        })
    }

    fn quantile(&self, q: f64) -> f64 {
        // A bucket's upper edge may lie above the largest value in it.
        let ns = self.histogram.value_at_quantile(q).min(self.max_ns);
        ns as f64 / 1e6 * self.factor
    }

    /// The cumulative distribution: (ms, fraction), ascending, at most 200 points.
    pub(crate) fn cdf(&self) -> Vec<(f64, f64)> {
        if self.len() == 0 {
            return Vec::new();
        }
        let mut points: Vec<(f64, f64)> = Vec::new();
        for k in 1..=CDF_POINTS {
            let q = f64::from(k) / f64::from(CDF_POINTS);
            let v = self.quantile(q);
            match points.last_mut() {
                Some(last) if last.0 >= v => last.1 = q,
                _ => points.push((v, q)),
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        start: Time::ZERO,
        window: Time::from_nanos(1_000),
        end: Time::from_nanos(1_000_000),
    };

    #[test]
    fn halves_round_trips_of_the_window() {
        let mut r = Recorder::new(PLAN, 0.5, None, "rtt_ms").unwrap();
        r.record(Time::from_nanos(999), Duration::from_secs(1))
            .unwrap();
        for k in 1..=1000u64 {
            r.record(Time::from_nanos(1000 + k), Duration::from_micros(20 * k))
                .unwrap();
        }
        r.record(PLAN.end, Duration::from_secs(1)).unwrap();
        let p = r.percentiles().unwrap();
        assert_eq!(r.len(), 1000);
        assert!((p.mean - 5.005).abs() < 1e-9, "{p:?}");
        assert!(
            (p.p50 - 5.0).abs() < 0.005 && (p.p99 - 9.9).abs() < 0.01,
            "{p:?}"
        );
        assert_eq!(p.max, 10.0);
        let cdf = r.cdf();
        assert!(cdf.len() <= 200 && cdf.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        assert_eq!(cdf.last().unwrap(), &(10.0, 1.0));
    }

    #[test]
    fn nothing_recorded_is_nothing_reported() {
        let r = Recorder::new(PLAN, 1.0, None, "latency_ms").unwrap();
        assert!(r.percentiles().is_none() && r.cdf().is_empty());
    }

    #[test]
    fn file_holds_every_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rtt.csv");
        let mut r = Recorder::new(PLAN, 0.5, Some(&path), "rtt_ms").unwrap();
        for k in 0..3 {
            r.record(Time::from_nanos(2000 + k), Duration::from_micros(250))
                .unwrap();
        }
        r.flush().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(
            text.starts_with("t_s,rtt_ms\n0.000002,0.250000\n"),
            "{text}"
        );
        let missing = dir.path().join("none/rtt.csv");
        assert!(Recorder::new(PLAN, 0.5, Some(&missing), "rtt_ms").is_err());
    }
}
