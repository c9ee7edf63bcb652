//! The shares of round robin.

use super::*;

/// Bytes of the longest burst, and one that rounding may add.
fn quantum(paths: &[PathView]) -> f64 {
    paths.iter().map(PathView::burst).max().unwrap_or(0) as f64 + 1.0
}

/// Sends `turns` turns over paths whose windows never fill, each of `part` of what is
/// allowed; checks the shares after every turn.
fn shares(mode: WrrMode, weights: &[f64], parts: &[f64]) -> Result<(), TestCaseError> {
    let mut s = WeightedRoundRobin::new(mode);
    let of = |(id, w): (u32, &f64)| PathView {
        weight: *w,
        ..path(id, 1_000_000, 0, 10)
    };
    let paths: Vec<PathView> = (0..).zip(weights).map(of).collect();
    let all: f64 = weights.iter().sum();
    let mut sent = vec![0.0; weights.len()];
    for part in parts {
        let Decision::Send { path, most } = s.decide(at(0), &flow(1, 1), &paths) else {
            return Err(TestCaseError::fail("it waits"));
        };
        let bytes = ((most as f64 * part).ceil() as u64).max(1);
        s.sent(&paths, path, bytes);
        sent[path] += bytes as f64;
        let total: f64 = sent.iter().sum();
        for (share, w) in sent.iter().zip(weights) {
            let off = share - total * w / all;
            prop_assert!(
                off.abs() <= quantum(&paths),
                "{off} after {total}: {sent:?}"
            );
        }
    }
    Ok(())
}

fn weights() -> impl Strategy<Value = Vec<f64>> {
    let weight = prop_oneof![
        1.0f64..4.0,
        0.01f64..1000.0,
        (1u32..101).prop_map(f64::from)
    ];
    prop::collection::vec(weight, 1..7)
}

proptest! {
    #[test]
    fn they_hold_to_within_one_quantum(
        mode in mode(), weights in weights(), parts in prop::collection::vec(0.01f64..=1.0, 1..400),
    ) {
        shares(mode, &weights, &parts)?;
    }

    #[test]
    fn they_hold_in_whole_quanta(mode in mode(), weights in weights()) {
        shares(mode, &weights, &[1.0; 1000])?;
    }

    /// Windows fill and empty, paths come and go, weights change: strict shares hold
    /// from change to change.
    #[test]
    fn strict_ones_hold_whatever_windows_do(
        steps in prop::collection::vec((0usize..4, 0u8..12, 1u64..40), 1..400),
    ) {
        let mut s = WeightedRoundRobin::new(WrrMode::Strict);
        let mut paths: Vec<PathView> = (0..4).map(|id| path(id, 50, 0, 10)).collect();
        let mut sent = [0.0f64; 4];
        for (k, what, n) in steps {
            let members = |paths: &[PathView]| -> Vec<_> {
                paths.iter().filter(|p| p.usable).map(|p| (p.id, p.weight)).collect()
            };
            let before = members(&paths);
            match what {
                0 => paths[k].usable = !paths[k].usable,
                1 => paths[k].weight = n as f64,
                2 => paths[k].in_flight = n * 1400 * 2,
                _ => paths[k].in_flight = 0,
            }
            if before != members(&paths) {
                sent = [0.0; 4];
            }
            for _ in 0..n {
                let Decision::Send { path, most } = s.decide(at(0), &flow(1, 1), &paths) else { break };
                let bytes = most.min(paths[path].room());
                s.sent(&paths, path, bytes);
                paths[path].in_flight += bytes;
                sent[path] += bytes as f64;
                let all: f64 = paths.iter().filter(|p| p.usable).map(|p| p.weight).sum();
                let total: f64 = sent.iter().sum();
                for (share, p) in sent.iter().zip(&paths) {
                    let wanted = if p.usable { total * p.weight / all } else { 0.0 };
                    prop_assert!((share - wanted).abs() <= quantum(&paths), "{sent:?}");
                }
            }
        }
    }

    /// A path that had no room gets no more than a quantum for it afterwards.
    #[test]
    fn a_full_window_is_made_up_for_by_a_quantum(turns in 10usize..200) {
        let mut s = WeightedRoundRobin::new(WrrMode::WorkConserving);
        let mut paths = [path(0, 1_000_000, 0, 10), path(1, 1_000_000, 1_000_000, 10)];
        for _ in 0..turns {
            let first = sends(s.decide(at(0), &flow(1, 1), &paths));
            prop_assert_eq!(first, 0);
            s.sent(&paths, 0, paths[0].burst());
        }
        paths[1].in_flight = 0;
        let mut sent = [0.0f64; 2];
        for _ in 0..100 {
            let next = sends(s.decide(at(0), &flow(1, 1), &paths));
            s.sent(&paths, next, paths[next].burst());
            sent[next] += paths[next].burst() as f64;
            prop_assert!((sent[0] - sent[1]).abs() <= 2.0 * quantum(&paths), "{sent:?}");
        }
    }
}

#[test]
fn of_weight_0_only_when_there_is_no_other() {
    let mut s = WeightedRoundRobin::new(WrrMode::Strict);
    let mut paths = [path(0, 50, 0, 10), path(1, 50, 0, 10), path(2, 50, 0, 10)];
    (paths[0].weight, paths[2].weight) = (0.0, 0.0);
    let mut carried = |paths: &[PathView; 3]| {
        let mut seen = Paths::default();
        for _ in 0..20 {
            let i = sends(s.decide(at(0), &flow(1, 1), paths));
            s.sent(paths, i, 1400);
            seen.insert(i);
        }
        seen.iter().collect::<Vec<_>>()
    };
    assert_eq!(carried(&paths), [1]);
    // A backup with a weight comes before a primary without.
    paths[1].backup = true;
    assert_eq!(carried(&paths), [1]);
    paths[1].usable = false;
    assert_eq!(carried(&paths), [0, 2]);
}
