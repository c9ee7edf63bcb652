//! Outages: the application's longest wait, and when an access is used again.

use super::Measured;
use crate::figures::{Worst, show};
use crate::mptcp::recovery::LEAST_GAP_MS;
use crate::report::{Comparison, Report};

/// A sort of outage, and its bar, ms.
pub(in crate::mpquic) struct Sort {
    pub(in crate::mpquic) set: &'static str,
    title: &'static str,
    gap_ms: f64,
}

/// Three round trips of the longest path, 5G's 20.12 ms, and 100 ms.
const SILENT_MS: f64 = 3.0 * 20.12 + 100.0;
/// Data has to flow within this after the return.
const REUSE_MS: f64 = 300.0;

pub(in crate::mpquic) const SORTS: [Sort; 2] = [
    Sort {
        set: "down",
        title: "interface down",
        gap_ms: 50.0,
    },
    Sort {
        set: "blackhole",
        title: "silent",
        gap_ms: SILENT_MS,
    },
];

impl Measured {
    pub(super) fn interruptions(&self, report: &mut Report) {
        let mut rows = Vec::new();
        for (sort, access) in SORTS
            .iter()
            .flat_map(|s| ["nr", "wifi", "lifi"].map(|a| (s, a)))
        {
            let runs = self.outages.iter().filter(|(set, _)| *set == sort.set);
            let seen: Vec<_> = runs
                .flat_map(|(_, c)| &c.recoveries)
                .filter(|r| r.access == access)
                .collect();
            let gaps: Vec<f64> = seen
                .iter()
                .map(|r| r.gap_ms.unwrap_or(LEAST_GAP_MS))
                .collect();
            let reuse: Vec<f64> = seen
                .iter()
                .map(|r| r.reuse_ms.unwrap_or(f64::INFINITY))
                .collect();
            let (Some(gap), Some(used)) = (Worst::of(&gaps), Worst::of(&reuse)) else {
                continue;
            };
            let name = format!("virtual clock: {}, {access}", sort.title);
            let text = |w: Worst| {
                format!(
                    "{} / {} / {} ms of {}",
                    show(w.median),
                    show(w.p95),
                    show(w.worst),
                    w.n
                )
            };
            report.bar(
                &format!("{name}: longest gap, median / p95 / worst"),
                &format!("worst at most {:.0} ms", sort.gap_ms),
                text(gap),
                gap.worst <= sort.gap_ms,
            );
            report.bar(
                &format!("{name}: used again, median / p95 / worst"),
                &format!("worst at most {REUSE_MS} ms"),
                text(used),
                used.worst <= REUSE_MS,
            );
            rows.push(vec![
                sort.title.to_owned(),
                access.to_owned(),
                text(gap),
                text(used),
            ]);
        }
        if !rows.is_empty() {
            report.comparisons.push(Comparison::new(
                "Outages of 1 s, datagram lane, by capacity: median / p95 / worst",
                [
                    "outage",
                    "access",
                    "application's longest gap",
                    "used again after",
                ],
                rows,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use braid_lab::summary::Recovery;

    use super::super::tests::{case, verdicts};
    use super::*;

    #[test]
    fn one_outage_that_is_too_long_misses() {
        let of = |gap_ms: Option<f64>, reuse_ms: Option<f64>| Recovery {
            access: "lifi".to_owned(),
            up_s: 1.0,
            reuse_ms,
            gap_ms,
            out_ms: None,
        };
        for (last, verdict) in [
            (of(None, Some(299.0)), [true, true]),
            (of(Some(51.0), Some(299.0)), [false, true]),
            (of(None, None), [true, false]),
        ] {
            let mut case = case("datagram");
            case.recoveries = vec![of(None, Some(1.0)), last];
            let m = Measured {
                outages: vec![("down", case)],
                ..Measured::default()
            };
            assert_eq!(verdicts(&m)[..2], verdict);
        }
    }
}
