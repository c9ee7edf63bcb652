//! How well a step of weights is kept, from the rows of `timeline.csv`.

use std::collections::BTreeMap;

use braid_lab::summary::TimelineRow;

/// Points that a share may be off.
pub(crate) const POINTS: f64 = 0.5;
/// Part of itself that the share of an access with the least weight may be off.
pub(crate) const OF_ITSELF: f64 = 0.1;
/// A row is of a step if it ends this long after the step's end: ticks come late, s.
const LATE: f64 = 0.05;
/// Shares over less than this are not looked at: a burst of 64 kB is more than what
/// they may be off where three links share 36 Mbit/s, s.
const LEAST_SPAN: f64 = 3.0;

/// A time of constant weights, s since the start of the case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) weights: BTreeMap<String, f64>,
}

/// Shares against weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Off {
    /// The most that a share is off, points (per cent of the whole).
    pub(crate) points: f64,
    /// Error of the share of the access with the least weight, part of itself.
    pub(crate) least: f64,
}

impl Off {
    /// Compares shares or bytes with weights, by access; `None` where nothing was sent.
    pub(crate) fn of(
        sent: &BTreeMap<String, f64>,
        weights: &BTreeMap<String, f64>,
    ) -> Option<Self> {
        let (all, total) = (sent.values().sum::<f64>(), weights.values().sum::<f64>());
        if all <= 0.0 || total <= 0.0 {
            return None;
        }
        let least = weights.values().copied().fold(f64::INFINITY, f64::min);
        let mut off = Self {
            points: 0.0,
            least: 0.0,
        };
        for (access, weight) in weights {
            let is = sent.get(access).copied().unwrap_or(0.0) / all;
            let ought = weight / total;
            off.points = off.points.max((is - ought).abs() * 100.0);
            if *weight <= least {
                off.least = off.least.max((is / ought - 1.0).abs());
            }
        }
        Some(off)
    }

    /// Within the bar.
    pub(crate) fn kept(self) -> bool {
        self.points <= POINTS && self.least <= OF_ITSELF
    }
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// From the first full second after its begin on.
    pub(crate) off: Off,
    /// Shares of that time, by access.
    pub(crate) shares: BTreeMap<String, f64>,
    /// How much of its begin has to be left out for the shares of the rest to
    /// be within the bar, s; infinite: never.
    pub(crate) settled_s: f64,
    /// IP-layer rate from the first full second on, Mbit/s.
    pub(crate) mbps: f64,
}

/// Rate that the weights allow where the ratio holds: the least of rate over weight,
/// times the sum of weights.
pub(crate) fn bound(rates: &BTreeMap<String, f64>, weights: &BTreeMap<String, f64>) -> f64 {
    let per_weight = weights
        .iter()
        .filter(|(_, w)| **w > 0.0)
        .filter_map(|(access, w)| Some(rates.get(access)? / w))
        .fold(f64::INFINITY, f64::min);
    per_weight * weights.values().sum::<f64>()
}

/// How a step of one case and repeat was kept; `None` where it has no rows or
/// carried nothing.
pub(crate) fn evaluate(rows: &[TimelineRow], step: &Step) -> Option<Kept> {
    let sent = |after: f64| -> BTreeMap<String, f64> {
        let mut sent = BTreeMap::new();
        for r in rows {
            if r.t_s > after + LATE && r.t_s <= step.to_s + LATE {
                *sent.entry(r.access.clone()).or_default() += r.bytes as f64;
            }
        }
        sent
    };
    let off = |after: f64| Off::of(&sent(step.from_s + after), &step.weights);
    let kept = |tenths: u32| off(f64::from(tenths) / 10.0).is_some_and(Off::kept);
    let most = ((step.to_s - step.from_s - LEAST_SPAN) * 10.0).max(0.0) as u32;
    // The last beginning that is too early, and then one more.
    let settled_s = match (0..=most).rev().find(|t| !kept(*t)) {
        None => 0.0,
        Some(t) if t < most => f64::from(t + 1) / 10.0,
        Some(_) => f64::INFINITY,
    };
    let from = step.from_s + 1.0;
    let sent = sent(from);
    let bytes: f64 = sent.values().sum();
    let ends = |after: f64| {
        rows.iter()
            .map(|r| r.t_s)
            .filter(|t| *t <= after + LATE)
            .fold(0.0, f64::max)
    };
    let span = ends(step.to_s) - ends(from);
    Some(Kept {
        off: Off::of(&sent, &step.weights)?,
        settled_s,
        mbps: bytes * 8e-6 / span,
        shares: sent.into_iter().map(|(a, b)| (a, b / bytes)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(values: &[f64]) -> BTreeMap<String, f64> {
        let names = ["a", "b", "c"];
        let pairs = names.iter().zip(values);
        pairs.map(|(n, v)| ((*n).to_owned(), *v)).collect()
    }

    /// Rows of 100 ms that end `late` s late; `bytes` of time and access.
    fn rows(seconds: u32, late: f64, bytes: impl Fn(f64, usize) -> u64) -> Vec<TimelineRow> {
        let mut out = Vec::new();
        for t in 1..=seconds * 10 {
            let t_s = f64::from(t) / 10.0;
            for (k, access) in ["a", "b", "c"].into_iter().enumerate() {
                out.push(TimelineRow {
                    t_s: t_s + late,
                    access: access.into(),
                    bytes: bytes(t_s, k),
                    ..TimelineRow::default()
                });
            }
        }
        out
    }

    fn step(weights: &[f64]) -> Step {
        Step {
            from_s: 5.0,
            to_s: 10.0,
            weights: map(weights),
        }
    }

    #[test]
    fn the_access_with_least_for_its_weight_bounds_the_rest() {
        let rates = map(&[354.28, 1232.7, 12.535]);
        assert!((bound(&rates, &map(&[1.0, 1.0, 1.0])) - 37.605).abs() < 1e-9);
        let most = bound(&rates, &map(&[30.0, 100.0, 1.0]));
        assert!((most - 354.28 / 30.0 * 131.0).abs() < 1e-9);
        // One that is left out bounds nothing.
        let most = bound(&rates, &map(&[1.0, 1.0, 0.0]));
        assert!((most - 2.0 * 354.28).abs() < 1e-9);
    }

    #[test]
    fn what_still_settles_in_the_first_second_does_not_count() {
        let settling = |until: f64| {
            move |t: f64, k: usize| match (t > 5.0 + until, k) {
                (true, 1) => 100_000,
                (true, 2) => 1_000,
                _ => 30_000,
            }
        };
        let step = step(&[30.0, 100.0, 1.0]);
        let good = evaluate(&rows(10, 0.02, settling(0.4)), &step).unwrap();
        assert!(good.off.kept() && good.off.points < 1e-9, "{good:?}");
        assert_eq!(good.settled_s, 0.4);
        assert!((good.mbps - 131_000.0 * 8e-5).abs() < 1e-6, "{good:?}");
        let slow = evaluate(&rows(10, 0.02, settling(1.3)), &step).unwrap();
        assert!(!slow.off.kept() && slow.settled_s > 1.0, "{slow:?}");
        let never = evaluate(&rows(10, 0.02, settling(9.0)), &step).unwrap();
        assert_eq!(never.settled_s, f64::INFINITY);
        assert_eq!(evaluate(&[], &step), None);
    }

    #[test]
    fn the_least_one_is_held_against_itself() {
        let weights = map(&[30.0, 100.0, 1.0]);
        let off = Off::of(&map(&[30.0, 100.0, 1.2]), &weights).unwrap();
        assert!(off.points < POINTS && off.least > OF_ITSELF, "{off:?}");
        assert!(!off.kept());
        let none = Off::of(&map(&[30.0, 100.0]), &weights).unwrap();
        assert_eq!(none.least, 1.0);
    }

    proptest! {
        #[test]
        fn exact_shares_are_never_off(weights in prop::collection::vec(0.5f64..100.0, 3), factor in 0.1f64..1e9) {
            let weights = map(&weights);
            let sent = weights.iter().map(|(a, w)| (a.clone(), w * factor)).collect();
            let off = Off::of(&sent, &weights).unwrap();
            prop_assert!(off.points < 1e-6 && off.least < 1e-9);
        }

        #[test]
        fn any_rows_are_judged_without_a_panic(bytes in prop::collection::vec(0u64..1_000_000, 30)) {
            let rows = rows(10, 0.0, |t, k| bytes[((t * 7.0) as usize + k) % bytes.len()]);
            if let Some(kept) = evaluate(&rows, &step(&[3.0, 2.0, 1.0])) {
                let sum: f64 = kept.shares.values().sum();
                prop_assert!((sum - 1.0).abs() < 1e-9);
                prop_assert!(kept.settled_s >= 0.0);
            }
        }
    }
}
