//! The round trips of messages.

use braid_core::stats::{Percentiles, median};

use super::Measured;
use crate::report::{Comparison, Report};

/// One of the percentiles.
type At = fn(&Percentiles) -> f64;

impl Measured {
    pub(super) fn latencies(&self, report: &mut Report) {
        let mut rows = Vec::new();
        for lossy in [false, true] {
            let part = |name: &str, at: At| {
                let mine = self
                    .latency
                    .iter()
                    .filter(|(l, c)| *l == lossy && c.name == name);
                let values: Vec<f64> = mine
                    .filter_map(|(_, c)| c.latency_ms.as_ref().map(at))
                    .collect();
                (!values.is_empty()).then(|| median(&values))
            };
            let fastest = |at: At| {
                let each = ["nr", "wifi", "lifi"]
                    .into_iter()
                    .filter_map(|a| part(a, at));
                each.reduce(f64::min)
            };
            let what = if lossy {
                "each access loses 1 %"
            } else {
                "no loss"
            };
            let ats: [(&str, At); 3] = [("p50", |p| p.p50), ("p90", |p| p.p90), ("p99", |p| p.p99)];
            for (label, at) in ats {
                let (Some(ours), Some(alone)) = (part("redundant", at), fastest(at)) else {
                    continue;
                };
                rows.push(vec![
                    what.to_owned(),
                    label.to_owned(),
                    format!("{alone:.3}"),
                    format!("{ours:.3}"),
                ]);
                let (bar, met) = match (lossy, label) {
                    (false, "p99") => continue,
                    (true, "p99") => ("below the fastest access's own", ours < alone),
                    (true, _) => continue,
                    _ => (
                        "at most the fastest access's own and 5 %",
                        ours <= 1.05 * alone,
                    ),
                };
                report.bar(
                    &format!("virtual clock: redundant, {what}: {label}"),
                    bar,
                    format!("{ours:.3} ms, the fastest alone {alone:.3} ms"),
                    met,
                );
            }
        }
        if !rows.is_empty() {
            report.comparisons.push(Comparison::new(
                "Half the round trip of messages, ms, medians of the runs",
                ["loss", "percentile", "fastest access alone", "redundant"],
                rows,
            ));
        }
    }
}
