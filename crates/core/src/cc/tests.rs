//! The rules against the vectors and against what their authors claim.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn vectors(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("vectors/cc/{name}.json"));
    let text =
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("read {}: {e}", file.display()));
    let mut json: Value = serde_json::from_str(&text).unwrap();
    let cases = json["cases"].take().as_array().unwrap().clone();
    assert!(cases.len() > 100, "{name} has vectors");
    cases
}

fn close(got: f64, want: &Value, what: &str) {
    let want = want["value"].as_f64().unwrap();
    // The sum that OLIA's two terms may cancel in is at most 1.
    let slack = 1e-12 * want.abs() + 1e-18;
    assert!((got - want).abs() <= slack, "{what}: {got}, not {want}");
}

fn facts(case: &Value) -> (Vec<Facts>, usize) {
    let of = |p: &Value| {
        let between = p["l1_bytes"].as_u64().unwrap();
        let since = p["l2_bytes"].as_u64().unwrap();
        Facts {
            interval_bytes: Interval::new(between, since).bytes(),
            ..Facts::new(
                p["cwnd"].as_f64().unwrap(),
                p["srtt_us"].as_f64().unwrap() / 1e6,
            )
        }
    };
    let paths = case["paths"].as_array().unwrap().iter().map(of).collect();
    (paths, case["self"].as_u64().unwrap() as usize)
}

#[test]
fn ack_and_loss_follow_the_vectors() {
    for name in ["reno", "lia", "olia", "balia"] {
        let rule = by_name(name).unwrap();
        for case in vectors(name) {
            let (paths, me) = facts(&case);
            let what = format!("{name}, {}", case["name"]);
            let increase = rule.increase(&paths, me);
            close(increase, &case["increase_per_acked_packet"], &what);
            close(
                rule.after_loss(&paths, me),
                &case["window_after_loss"],
                &what,
            );
        }
    }
}

#[test]
fn alphas_follow_the_vectors() {
    for case in vectors("olia") {
        let (paths, me) = facts(&case);
        close(Olia::alpha(&paths, me), &case["alpha"], "OLIA's alpha");
    }
    for case in vectors("balia") {
        let (paths, me) = facts(&case);
        close(Balia::alpha(&paths, me), &case["alpha"], "BALIA's alpha");
    }
}

#[test]
fn wvegas_rounds_follow_the_vectors() {
    for case in vectors("wvegas") {
        let (s, after) = (&case["state"], &case["after"]);
        let us = |v: &Value| v.as_f64().unwrap();
        let round = Round {
            // Microseconds throughout: the rule has no unit of its own.
            state: RoundState {
                window: us(&s["cwnd"]),
                ssthresh: us(&s["ssthresh"]),
                alpha: us(&s["alpha"]["value"]),
                queue_delay: us(&s["queue_delay_us"]),
                rate: 0.0,
            },
            base_rtt: us(&s["base_rtt_us"]),
            rtt: us(&s["rtt_us"]),
        };
        let mut paths = vec![Facts::new(round.state.window, round.rtt)];
        paths.extend(
            s["sibling_rates"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| Facts {
                    rate: r["value"].as_f64().unwrap(),
                    ..Facts::new(1.0, 1.0)
                }),
        );
        let rule = Wvegas {
            total_alpha: us(&s["total_alpha"]),
        };
        let got = rule.end_of_round(&paths, 0, &round).unwrap();
        let what = format!("wvegas, {}", case["name"]);
        close(got.window, &after["cwnd"], &what);
        close(got.ssthresh, &after["ssthresh"], &what);
        close(got.alpha, &after["alpha"], &what);
        assert_eq!(got.queue_delay, us(&after["queue_delay_us"]), "{what}");
        match &after["rate"] {
            Value::Null => assert_eq!(got.rate, 0.0, "{what}"),
            rate => close(got.rate, rate, &what),
        }
    }
}

/// The files are what the generator computes, and not edited by hand.
#[test]
fn vectors_are_the_generators() {
    let script: PathBuf = [env!("CARGO_MANIFEST_DIR"), "vectors/generate.py"]
        .iter()
        .collect();
    match std::process::Command::new("python3")
        .arg(&script)
        .arg("--check")
        .output()
    {
        Err(e) => eprintln!("skipped: python3 cannot be started: {e}"),
        Ok(out) => assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        ),
    }
}

fn any_paths() -> impl Strategy<Value = Vec<Facts>> {
    let path = (1.0..1e6f64, 10e-6..10.0f64, 0u64..1 << 40).prop_map(|(w, srtt, l)| Facts {
        interval_bytes: l,
        ..Facts::new(w, srtt)
    });
    proptest::collection::vec(path, 1..9)
}

/// Windows at which growth and losses balance where every path loses a packet
/// in `1 / p` of them: w grows by `increase` per delivered packet, and loses
/// `w - after_loss` for each lost one.
fn equilibrium(rule: &dyn Rule, srtt: &[f64], loss: &[f64]) -> Vec<f64> {
    let mut paths: Vec<Facts> = srtt.iter().map(|&t| Facts::new(10.0, t)).collect();
    for (f, p) in paths.iter_mut().zip(loss) {
        f.interval_bytes = (1500.0 / p) as u64;
    }
    for _ in 0..400_000 {
        let step: Vec<f64> = (0..paths.len())
            .map(|i| {
                let drop = paths[i].window - rule.after_loss(&paths, i);
                let drift = (1.0 - loss[i]) * rule.increase(&paths, i) - loss[i] * drop;
                // Packets of one millisecond, so that time is the same on all.
                drift * paths[i].window / paths[i].srtt * 1e-3
            })
            .collect();
        for (f, d) in paths.iter_mut().zip(step) {
            f.window = (f.window + d).max(1.0);
        }
    }
    paths.iter().map(|p| p.window).collect()
}

fn rate(windows: &[f64], srtt: &[f64]) -> f64 {
    windows.iter().zip(srtt).map(|(w, t)| w / t).sum()
}

/// RFC 6356 goals 1 and 2 in equilibrium: as much as TCP on the best path,
/// and over one bottleneck no more than it.
#[test]
fn coupled_rules_take_one_share() {
    let (srtt, loss) = ([0.02, 0.02], [1e-3, 1e-3]);
    let tcp = rate(&equilibrium(&Reno, &srtt[..1], &loss[..1]), &srtt[..1]);
    let of = |rule: &dyn Rule| rate(&equilibrium(rule, &srtt, &loss), &srtt) / tcp;
    assert!((of(&Reno) - 2.0).abs() < 0.01, "uncoupled: {}", of(&Reno));
    for rule in [&Lia as &dyn Rule, &Olia, &Balia] {
        let share = of(rule);
        assert!((0.97..1.03).contains(&share), "{}: {share}", rule.name());
    }
}

#[test]
fn traffic_moves_to_the_better_path() {
    let (srtt, loss) = ([0.02, 0.02], [1e-4, 4e-3]);
    let best = rate(&equilibrium(&Reno, &srtt[..1], &loss[..1]), &srtt[..1]);
    for rule in [&Lia as &dyn Rule, &Olia, &Balia] {
        let w = equilibrium(rule, &srtt, &loss);
        let name = rule.name();
        assert!(w[0] > 5.0 * w[1], "{name}: {w:?}, where reno has 6.3");
        let got = rate(&w, &srtt) / best;
        assert!(
            (0.95..1.05).contains(&got),
            "{name} has {got} of its best path"
        );
    }
}

proptest! {
    /// On a path alone every rule is Reno.
    #[test]
    fn alone_all_are_reno(w in 4.0..1e6f64, srtt in 10e-6..10.0f64, l in 0u64..1 << 40) {
        let alone = [Facts { interval_bytes: l, ..Facts::new(w, srtt) }];
        for rule in [&Lia as &dyn Rule, &Olia, &Balia] {
            let got = rule.increase(&alone, 0) * w;
            prop_assert!((got - 1.0).abs() < 1e-9, "{}: {got}", rule.name());
            prop_assert_eq!(rule.after_loss(&alone, 0), w / 2.0);
        }
    }

    /// Goal 2 of RFC 6356 by construction: no path outgrows a TCP on it, and
    /// no loss takes less than TCP's half.
    #[test]
    fn no_path_outgrows_tcp(paths in any_paths()) {
        for (i, p) in paths.iter().enumerate() {
            let tcp = 1.0 / p.window * (1.0 + 1e-9);
            prop_assert!(Lia.increase(&paths, i) <= tcp);
            prop_assert!(Lia.increase(&paths, i) > 0.0);
            prop_assert!(Balia.increase(&paths, i) <= tcp);
            prop_assert!(Balia.increase(&paths, i) > 0.0);
            prop_assert!(Olia.increase(&paths, i).abs() <= 2.0 * tcp);
            let floor = Reno.after_loss(&paths, i);
            prop_assert!(Balia.after_loss(&paths, i) <= floor);
            prop_assert!(Balia.after_loss(&paths, i) >= (p.window / 4.0 * (1.0 - 1e-9)).min(floor));
        }
    }

    /// "Note that the sum of all alpha_r is equal to 0" (the draft, section 3).
    #[test]
    fn olias_alphas_cancel(paths in any_paths()) {
        let sum: f64 = (0..paths.len()).map(|i| Olia::alpha(&paths, i)).sum();
        prop_assert!(sum.abs() < 1e-12);
    }

    /// The unit of time cancels in all of them.
    #[test]
    fn time_has_no_unit(paths in any_paths(), scale in 1e-3..1e3f64) {
        let scaled: Vec<Facts> =
            paths.iter().map(|p| Facts { srtt: p.srtt * scale, ..*p }).collect();
        for rule in [&Lia as &dyn Rule, &Balia] {
            let (a, b) = (rule.increase(&paths, 0), rule.increase(&scaled, 0));
            prop_assert!((a - b).abs() <= 1e-9 * a.abs(), "{}: {a} {b}", rule.name());
        }
    }

    #[test]
    fn wvegas_keeps_its_bounds(
        window in 2.0..1e6f64, over in 0.0..0.5f64, base in 10e-6..5.0f64,
        alpha in 1.0..10.0f64, queue in 0.0..1.0f64, slow in any::<bool>(), rate in 0.0..1e6f64,
    ) {
        let ssthresh = if slow { window * 2.0 } else { window / 2.0 };
        let state = RoundState { window, ssthresh, alpha, queue_delay: queue, rate: 0.0 };
        let round = Round { state, base_rtt: base, rtt: base * (1.0 + over) };
        let paths = [Facts::new(window, base), Facts { rate, ..Facts::new(1.0, base) }];
        let after = Wvegas::DEFAULT.end_of_round(&paths, 0, &round).unwrap();
        prop_assert!(after.window >= 2.0 && after.window <= window + 1.0);
        prop_assert!(after.alpha >= 1.0 && after.alpha <= 10.0);
        prop_assert!(after.queue_delay >= 0.0);
    }

    /// Slow start doubles per round up to the threshold and then obeys the rule.
    #[test]
    fn windows_stay_finite(acks in proptest::collection::vec((1.0..100.0f64, 0u8..20), 1..200)) {
        for rule in RULES {
            let mut w = Window::new(10.0);
            for &(acked, what) in &acks {
                let paths = [Facts::new(w.size(), 0.02), Facts::new(7.0, 0.03)];
                match what {
                    0 => w.on_loss(*rule, &paths, 0),
                    1 => w.undo_loss(),
                    _ => {
                        let before = w;
                        w.on_ack(*rule, &paths, 0, acked);
                        prop_assert!(w.size() <= before.size() + acked * 2.0);
                    }
                }
                prop_assert!(w.size().is_finite() && w.size() >= 1.0);
            }
        }
    }
}
