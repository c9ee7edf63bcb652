//! Figures of samples, and how they are written.

use braid_core::stats::{median, quantile};

/// Median, 95th percentile (nearest rank) and worst of samples where more is
/// worse; infinite is what never happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Worst {
    pub(crate) n: usize,
    pub(crate) median: f64,
    pub(crate) p95: f64,
    pub(crate) worst: f64,
}

impl Worst {
    /// `None` without samples.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            n: sorted.len(),
            median: median(&sorted),
            p95: quantile(&sorted, 0.95),
            worst: *sorted.last()?,
        })
    }
}

/// Median, least and greatest.
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    n: usize,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let least = values.iter().copied().reduce(f64::min)?;
        Some(Self {
            median: median(&values),
            least,
            most: values.iter().copied().fold(least, f64::max),
            n: values.len(),
        })
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{} ({} to {}, {} runs)",
            show(self.median),
            show(self.least),
            show(self.most),
            self.n
        )
    }
}

/// The interval that holds the median of what `samples` were drawn from in at
/// least 95 of 100 cases, whatever its distribution (order statistics); `None`
/// for fewer than six.
pub(crate) fn median_interval(samples: &[f64]) -> Option<(f64, f64)> {
    let n = samples.len();
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The median is below the k-th least if fewer than k samples are below it,
    // each with a chance of one half.
    let mut below = 0.0;
    let mut term = 0.5f64.powi(i32::try_from(n).ok()?);
    let mut k = 0;
    while k < n / 2 && below + term <= 0.025 {
        below += term;
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    (k > 0).then(|| (sorted[k - 1], sorted[n - k]))
}

/// Three digits, or "never".
pub(crate) fn show(v: f64) -> String {
    let a = v.abs();
    if !v.is_finite() {
        "never".to_owned()
    } else if a >= 100.0 {
        format!("{v:.0}")
    } else if a >= 10.0 {
        format!("{v:.1}")
    } else {
        format!("{v:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_never_happened_is_the_worst() {
        let mut v: Vec<f64> = (1..=99).map(f64::from).collect();
        v.push(f64::INFINITY);
        let w = Worst::of(&v).unwrap();
        assert_eq!((w.n, w.median, w.p95), (100, 50.5, 95.0));
        assert_eq!(show(w.worst), "never");
        assert_eq!(Worst::of(&[]), None);
    }

    /// Ranks from tables of the sign test (n: rank of the lower end).
    #[test]
    fn the_interval_has_the_ranks_of_the_tables() {
        for (n, rank) in [(6, 1), (9, 2), (10, 2), (12, 3), (20, 6), (30, 10)] {
            let v: Vec<f64> = (1..=n).map(f64::from).collect();
            let wanted = (f64::from(rank), f64::from(n + 1 - rank));
            assert_eq!(median_interval(&v), Some(wanted), "{n}");
        }
        assert_eq!(median_interval(&[1.0; 5]), None);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_samples_median(v in prop::collection::vec(-1e6f64..1e6, 6..60)) {
            let (low, high) = median_interval(&v).unwrap();
            prop_assert!(low <= median(&v) && median(&v) <= high);
        }
    }
}
