use std::time::Duration;

use proptest::prelude::*;

use super::xlink::{Oldest, reinject};
use super::*;

mod forms;
mod shares;
mod vectors;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// A path of so many packets' window, of which so many are used.
fn path(id: u32, window: u64, used: u64, srtt_ms: u64) -> PathView {
    PathView {
        id,
        usable: true,
        backup: false,
        priority: 0,
        weight: 1.0,
        window: window * 1400,
        in_flight: used * 1400,
        segment: 1400,
        srtt: Duration::from_millis(srtt_ms),
        rttvar: Duration::ZERO,
        lost: 0,
        exceeds: false,
    }
}

fn flow(packets: u64, window: u64) -> Flow {
    Flow {
        waiting: packets * 1400,
        send_window: window * 1400,
    }
}

fn view() -> impl Strategy<Value = PathView> {
    (
        (any::<bool>(), any::<bool>(), 0u32..3, any::<bool>()),
        prop_oneof![Just(0.0), Just(1.0), 0.01f64..1000.0],
        (1u64..200, 0u64..260, 500u64..9000),
        (0u64..2_000_000, 0u64..200_000, 0u64..100),
    )
        .prop_map(
            |((usable, backup, priority, exceeds), weight, (w, used, segment), t)| PathView {
                id: 0,
                usable,
                backup,
                priority,
                weight,
                window: w * segment,
                in_flight: used * segment,
                segment,
                srtt: Duration::from_micros(t.0),
                rttvar: Duration::from_micros(t.1),
                lost: t.2,
                exceeds,
            },
        )
}

fn views() -> impl Strategy<Value = Vec<PathView>> {
    prop::collection::vec(view(), 0..7).prop_map(|mut all| {
        all.iter_mut().zip(0..).for_each(|(p, id)| p.id = id);
        all
    })
}

fn mode() -> impl Strategy<Value = WrrMode> {
    prop_oneof![Just(WrrMode::Strict), Just(WrrMode::WorkConserving)]
}

#[test]
fn names_are_those_of_the_makers() {
    for (name, _) in SCHEDULERS {
        let made = by_name(name, WrrMode::Strict).unwrap();
        assert_eq!(made.name(), *name);
    }
    assert!(by_name("fifo", WrrMode::Strict).is_none());
}

/// Whatever the paths are like, a decision can be carried out, and a wait ends.
fn check(decision: Decision, copies: bool, paths: &[PathView]) -> Result<(), TestCaseError> {
    let primaries = paths.iter().any(|p| p.usable && !p.backup);
    let serves = |i: usize| {
        let p = &paths[i];
        p.usable && p.has_room() && (!p.backup || !primaries || p.weight > 0.0)
    };
    match decision {
        Decision::Send { path, most } => {
            prop_assert!(serves(path) && most > 0);
            prop_assert!(!copies);
        }
        Decision::Copies(set) => {
            prop_assert!(copies && !set.is_empty());
            prop_assert!(set.iter().all(serves));
        }
        Decision::Wait(Until::Room(i)) => {
            // What is under way comes back and makes room.
            prop_assert!(paths[i].usable && !paths[i].has_room() && paths[i].in_flight > 0);
        }
        Decision::Wait(Until::AnyRoom) => {
            prop_assert!(paths.iter().any(|p| p.usable && p.in_flight > 0));
        }
        Decision::Wait(Until::Path) => prop_assert!(paths.iter().all(|p| !p.usable)),
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_decision_can_be_carried_out_and_every_wait_ends(
        mode in mode(),
        steps in prop::collection::vec(
            (views(), any::<bool>(), 1u64..100_000, 0u64..1_000_000, 0u64..1000), 1..30
        ),
    ) {
        for (_, make) in SCHEDULERS {
            let mut s = make(mode);
            let mut t = 0;
            for (paths, lost, waiting, send_window, dt) in &steps {
                t += dt;
                let flow = Flow { waiting: *waiting, send_window: *send_window };
                let late = (0..paths.len()).filter(|i| waiting >> i & 1 == 1).collect();
                let decision = match lost {
                    true => s.decide_lost(at(t), &flow, paths, late),
                    false => s.decide(at(t), &flow, paths),
                };
                check(decision, s.copies(), paths)?;
                match decision {
                    Decision::Send { path, most } => s.sent(paths, path, most.min(paths[path].room())),
                    Decision::Copies(all) => all.iter().for_each(|i| s.sent(paths, i, 1400)),
                    Decision::Wait(_) => {}
                }
            }
        }
    }

    #[test]
    fn with_every_window_empty_nobody_waits(mode in mode(), mut paths in views()) {
        prop_assume!(paths.iter().any(|p| p.usable));
        paths.iter_mut().for_each(|p| p.in_flight = 0);
        for (name, make) in SCHEDULERS {
            let decision = make(mode).decide(at(1), &flow(1, 0), &paths);
            prop_assert!(!matches!(decision, Decision::Wait(_)), "{name}: {decision:?}");
        }
    }
}

fn choice(name: &str, flow: Flow, paths: &[PathView]) -> Decision {
    by_name(name, WrrMode::Strict)
        .unwrap()
        .decide(at(0), &flow, paths)
}

fn sends(decision: Decision) -> usize {
    match decision {
        Decision::Send { path, .. } => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_least_delay_first_and_the_next_when_that_is_full() {
    let mut paths = [path(0, 10, 0, 30), path(1, 10, 0, 10)];
    assert_eq!(sends(choice("minrtt", flow(1, 100), &paths)), 1);
    paths[1].in_flight = paths[1].window;
    assert_eq!(sends(choice("minrtt", flow(1, 100), &paths)), 0);
    assert_eq!(
        choice("smallest-delay", flow(1, 100), &paths),
        Decision::Wait(Until::Room(1))
    );
}

/// By the path that is done with all of it first; rather than behind a long queue it waits,
/// but not for a path that may be dead.
#[test]
fn what_was_lost_is_not_sent_on_just_any_path_with_room() {
    let mut paths = [path(0, 100, 0, 50), path(1, 10, 0, 20)];
    let none = Paths::default();
    for name in ["minrtt", "rr", "wrr"] {
        let lost = |packets, paths: &[PathView], late| {
            let mut s = by_name(name, WrrMode::WorkConserving).unwrap();
            s.decide_lost(at(0), &flow(packets, 100), paths, late)
        };
        paths[1].in_flight = 0;
        assert_eq!(sends(lost(1, &paths, none)), 1, "{name}");
        assert_eq!(sends(lost(50, &paths, none)), 0, "{name}");
        paths[1].in_flight = paths[1].window;
        let waits = Decision::Wait(Until::Room(1));
        assert_eq!(lost(1, &paths, none), waits, "{name}");
        // Less room than any by far, as a loss has just cut the window.
        let (window, srtt) = (paths[1].window, paths[0].srtt);
        (paths[1].window, paths[0].srtt) = (window / 2, srtt * 3 / 5);
        assert_eq!(lost(1, &paths, none), waits, "{name}");
        (paths[1].window, paths[0].srtt) = (window, srtt);
        assert_eq!(sends(lost(13, &paths, none)), 0, "{name}");
        let all = [0, 1].into_iter().collect();
        assert_eq!(lost(1, &paths, all), waits, "{name}");
        assert_eq!(
            sends(lost(1, &paths, [1].into_iter().collect())),
            0,
            "{name}"
        );
        paths[1].usable = false;
        assert_eq!(sends(lost(1, &paths, none)), 0, "{name}");
        paths[1].usable = true;
    }
    // Strict shares hold for it, too.
    let mut s = by_name("rr", WrrMode::Strict).unwrap();
    let next = s.decide(at(0), &flow(1, 100), &paths);
    assert_eq!(s.decide_lost(at(0), &flow(1, 100), &paths, none), next);
}

#[test]
fn smallest_delay_changes_over_when_another_is_clearly_smaller() {
    let mut s = SmallestDelay::default();
    let mut on =
        |a, b| sends(s.decide(at(0), &flow(1, 100), &[path(0, 9, 0, a), path(1, 9, 0, b)]));
    assert_eq!(
        [on(10, 11), on(12, 11), on(14, 11), on(10, 11), on(8, 11)],
        [0, 0, 1, 1, 0]
    );
}

#[test]
fn orders_are_kept() {
    let mut paths = [path(0, 9, 0, 5), path(1, 9, 0, 50), path(2, 9, 0, 1)];
    (paths[0].priority, paths[1].priority) = (2, 1);
    paths[2].backup = true;
    let both = |paths: &[PathView]| {
        ["active-standby", "priority-based"].map(|n| choice(n, flow(1, 100), paths))
    };
    assert_eq!(both(&paths).map(sends), [1, 1]);
    // Full: the one waits, the other overflows.
    paths[1].in_flight = paths[1].window;
    let [a, p] = both(&paths);
    assert_eq!((a, sends(p)), (Decision::Wait(Until::Room(1)), 0));
    paths[1].usable = false;
    assert_eq!(both(&paths).map(sends), [0, 0]);
    paths[0].usable = false;
    assert_eq!(both(&paths).map(sends), [2, 2]);
}

#[test]
fn copies_go_where_there_is_room_also_where_the_fastest_has_none() {
    let mut paths = [path(0, 9, 0, 5), path(1, 9, 9, 50), path(2, 9, 0, 20)];
    let Decision::Copies(set) = choice("redundant", flow(1, 100), &paths) else {
        panic!("no copies");
    };
    assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2]);
    // It may be dead; what it lacks then the engine sends it before anything new.
    paths[0].in_flight = paths[0].window;
    assert_eq!(
        choice("redundant", flow(1, 100), &paths),
        Decision::Copies([2].into_iter().collect())
    );
    paths[2].in_flight = paths[2].window;
    assert_eq!(
        choice("redundant", flow(1, 100), &paths),
        Decision::Wait(Until::AnyRoom)
    );
}

#[test]
fn blest_spares_the_window_for_the_fast() {
    // rtts = 4: X = 1400 * (10 + 1.5) * 4 = 46 packets; the slow one would hold 3 + 1.
    let paths = [path(0, 10, 10, 10), path(1, 10, 3, 40)];
    assert_eq!(blest::twice_fast_bytes(&paths[0], &paths[1]), 2 * 46 * 1400);
    assert_eq!(
        choice("blest", flow(99, 49), &paths),
        Decision::Wait(Until::Room(0))
    );
    assert_eq!(sends(choice("blest", flow(99, 50), &paths)), 1);
    // With lambda at its greatest, 59.8 packets are spared.
    let blocks = |window: u64| blest::blocks(1300, window * 1400, &paths[0], &paths[1]);
    assert!(blocks(63) && !blocks(64));
}

#[test]
fn lambda_follows_the_losses() {
    let mut s = Blest::default();
    let mut paths = [path(0, 10, 10, 10), path(1, 10, 3, 40)];
    let mut t = 0;
    // 46 packets spared and 4 taken: 50 suffice at lambda 1 only.
    for (lost, wanted) in [
        (0, true),
        (1, false),
        (1, false),
        (1, false),
        (1, false),
        (1, true),
    ] {
        t += 41;
        paths[1].lost = lost;
        let decision = s.decide(at(t), &flow(99, 50), &paths);
        assert_eq!(
            matches!(decision, Decision::Send { .. }),
            wanted,
            "{t} {decision:?}"
        );
    }
}

#[test]
fn ecf_waits_where_the_fast_one_is_done_earlier() {
    // n * RTT_f = (1 + 20/10) * 10 = 30 < 100, and 20/10 * 100 >= 20: wait.
    let (f, s) = (path(0, 10, 10, 10), path(1, 10, 0, 100));
    let mut ecf = Ecf::default();
    assert!(ecf.wait(20 * 1400, &f, &s));
    // Now 25 % more: (1 + 110/10) * 10 = 120 < 125.
    assert!(ecf.wait(110 * 1400, &f, &s));
    assert!(!ecf.wait(116 * 1400, &f, &s));
    // And no more: 120 >= 100.
    assert!(!ecf.wait(110 * 1400, &f, &s));
    // 1/10 * 100 = 10 < 20: what is left is sent at once.
    assert!(!ecf.wait(1400, &f, &s));
    // delta counts on both sides: (1 + 20/10) * 10 = 30 < 105, 200 >= 25.
    let shaky = PathView {
        rttvar: Duration::from_millis(5),
        ..s
    };
    assert!(ecf.wait(20 * 1400, &f, &shaky));
}

#[test]
fn what_is_overdue_or_slow_is_sent_again_elsewhere() {
    let paths = [path(0, 10, 5, 10), path(1, 10, 5, 100), path(2, 10, 10, 1)];
    let oldest = |on: &[usize], sent| Oldest {
        on: on.iter().copied().collect(),
        sent: at(sent),
        bytes: 1400,
    };
    // 100 ms less 20 are left on path 1, 10 ms would be on path 0.
    assert_eq!(reinject(at(20), &oldest(&[1], 0), &paths), Some(0));
    assert_eq!(reinject(at(95), &oldest(&[1], 0), &paths), None);
    // Overdue.
    assert_eq!(reinject(at(101), &oldest(&[1], 0), &paths), Some(0));
    assert_eq!(reinject(at(5), &oldest(&[0], 0), &paths), None);
    assert_eq!(reinject(at(11), &oldest(&[0], 0), &paths), Some(1));
    assert_eq!(reinject(at(500), &oldest(&[0, 1], 0), &paths), None);
    let mut lost = paths;
    lost[1].usable = false;
    assert_eq!(reinject(at(99), &oldest(&[1], 0), &lost), Some(0));
}

proptest! {
    #[test]
    fn copies_are_bounded_and_never_beside_the_first(
        paths in views(), on in prop::collection::vec(0usize..64, 0..4), t in 0u64..1000, bytes in 1u64..9000,
    ) {
        let oldest = Oldest { on: on.into_iter().collect(), sent: at(0), bytes };
        if let Some(i) = reinject(at(t), &oldest, &paths) {
            prop_assert!(paths[i].usable && paths[i].room() >= bytes);
            prop_assert!(!oldest.on.contains(i) && oldest.on.iter().count() <= 2);
        }
    }
}

#[test]
fn a_path_above_a_threshold_is_left_out_while_another_is_within() {
    let usable = |paths: &[PathView]| paths.iter().map(|p| p.usable).collect::<Vec<_>>();
    let rtt = Thresholds {
        rtt: Some(Duration::from_millis(100)),
        loss: None,
    };
    let mut gate = ThresholdGate::default();
    let mut see = |a: u64, b: u64| {
        let mut paths = [path(0, 10, 0, a), path(1, 10, 0, b)];
        gate.apply(&rtt, &mut paths, |p| (p.srtt, 0.0));
        usable(&paths)
    };
    assert_eq!(see(100, 40), [true, true]);
    assert_eq!(see(101, 40), [false, true]);
    assert_eq!(see(81, 40), [false, true], "it is not within by enough");
    assert_eq!(see(80, 40), [true, true]);
    assert_eq!(see(300, 101), [true, true], "something has to carry");
    assert_eq!(see(300, 90), [true, true], "neither is within by enough");
    assert_eq!(see(300, 80), [false, true]);

    let loss = Thresholds {
        rtt: None,
        loss: Some(0.01),
    };
    let mut gate = ThresholdGate::default();
    let mut paths = [path(7, 10, 0, 900), path(8, 10, 0, 1)];
    let lost = |p: &PathView| (p.srtt, if p.id == 8 { 0.02 } else { 0.0 });
    gate.apply(&loss, &mut paths, lost);
    assert_eq!(usable(&paths), [true, false]);
    // A backup is no way out while there is another path, and takes part where there is none.
    let mut beside = [paths[0], path(8, 10, 0, 1)];
    beside[0].backup = true;
    gate.apply(&loss, &mut beside, lost);
    assert_eq!(usable(&beside), [true, true]);
    assert_eq!(
        MinRtt.decide(at(0), &flow(1, 9), &beside),
        Decision::Send {
            path: 1,
            most: beside[1].burst(),
        }
    );
    assert_eq!(
        MinRtt.decide(at(0), &flow(1, 9), &paths),
        Decision::Send {
            path: 0,
            most: paths[0].burst(),
        }
    );
}

proptest! {
    /// Thresholds leave something to send on wherever there was something.
    #[test]
    fn thresholds_never_leave_nothing(
        rounds in prop::collection::vec(views(), 1..5), rtt in 0u64..2000, loss in 0.0f64..1.0,
    ) {
        let thresholds = Thresholds {
            rtt: Some(Duration::from_millis(rtt)),
            loss: Some(loss),
        };
        let mut gate = ThresholdGate::default();
        for mut paths in rounds {
            let before = paths.clone();
            gate.apply(&thresholds, &mut paths, |p| (p.srtt, f64::from(p.id % 4) / 4.0));
            let any = |paths: &[PathView]| paths.iter().any(|p| p.usable);
            prop_assert_eq!(any(&paths), any(&before));
            prop_assert!(paths.iter().zip(&before).all(|(p, b)| b.usable || !p.usable));
        }
    }
}
