//! Active-standby without a standby, and the forms of `redundant` with a primary access and with
//! thresholds.

use super::*;

fn bulk(class: u8) -> Load {
    Load {
        channels: [(1, class)].into(),
        ..Load::default()
    }
}

fn mbps(outcome: &Outcome, seconds: f64) -> f64 {
    outcome.bytes.get(&1).copied().unwrap_or(0) as f64 * 8.0 / 1e6 / seconds
}

#[test]
fn without_a_standby_a_class_waits_for_its_access() {
    let options = steered(&[(
        1,
        r#"{"mode": "active-standby", "order": ["a1"], "standby": false, "reinject": true}"#,
    )]);
    let mut run = Run::new(&like(), &options, bulk(1));
    run.go(1000);
    let before = run.go(2000);
    assert!(before.share(1) > 0.98, "{before:?}");
    run.world.pass(1, false);
    // What is under way is lost, and the death is noticed.
    run.go(2000);
    let during = run.go(3000);
    // Pings and acknowledgements alone leave.
    assert!(during.carried[0] < 20_000, "{during:?}");
    assert!(during.bytes.is_empty(), "{during:?}");
    run.world.pass(1, true);
    run.go(2000);
    let after = run.go(3000);
    assert!(after.share(1) > 0.98, "{after:?}");
    assert!(mbps(&after, 3.0) > 17.0, "{after:?}");
}

#[test]
fn a_class_without_a_standby_holds_up_no_other() {
    let options = steered(&[(
        1,
        r#"{"mode": "active-standby", "order": ["a1"], "standby": false}"#,
    )]);
    let load = Load {
        channels: [(1, 0), (3, 1)].into(),
        ..Load::default()
    };
    let mut run = Run::new(&like(), &options, load);
    run.go(1000);
    run.world.pass(1, false);
    run.go(2000);
    let during = run.go(3000);
    assert!(mbps(&during, 3.0) > 17.0, "{during:?}");
}

#[test]
fn with_a_primary_all_goes_at_its_pace_and_copies_where_there_is_room() {
    let options = steered(&[(1, r#"{"mode": "redundant", "primary": "a1"}"#)]);
    let radios = [radio(20.0, 10.0, 40), radio(8.0, 15.0, 40)];
    let mut run = Run::new(&radios, &options, bulk(1));
    run.go(2000);
    let outcome = run.go(4000);
    let goodput = mbps(&outcome, 4.0);
    assert!((6.5..8.2).contains(&goodput), "{goodput}: {outcome:?}");
    // Both carry all of it.
    for carried in &outcome.carried {
        let carried = *carried as f64 * 8.0 / 4e6;
        assert!(carried > 6.5, "{outcome:?}");
    }
}

#[test]
fn voice_with_a_primary_outlives_it_without_a_gap() {
    let options = steered(&[(1, r#"{"mode": "redundant", "primary": "a0"}"#)]);
    let load = Load {
        voice: Some(1),
        ..Load::default()
    };
    let mut run = Run::new(&like(), &options, load);
    run.go(2000);
    run.world.pass(0, false);
    let during = run.go(2000);
    // 100 packets, each of which the other access has a copy of, or carries alone.
    assert!(during.delays.len() >= 98, "{}", during.delays.len());
}

#[test]
fn within_its_threshold_a_primary_carries_alone() {
    for (ms, copies) in [(10.0, false), (60.0, true)] {
        let options = steered(&[(
            1,
            r#"{"mode": "redundant", "primary": "a0", "max_rtt_ms": 50}"#,
        )]);
        let load = Load {
            voice: Some(1),
            ..Load::default()
        };
        let mut run = Run::new(
            &[radio(20.0, ms, 40), radio(20.0, 30.0, 40)],
            &options,
            load,
        );
        run.go(2000);
        let mut outcome = run.go(4000);
        let ratio = outcome.carried[1] as f64 / outcome.carried[0] as f64;
        assert_eq!(ratio > 0.5, copies, "{ratio}: {outcome:?}");
        assert!(copies || ratio < 0.2, "{ratio}: {outcome:?}");
        // 200 packets; a copy by the nearer access comes first.
        assert!(outcome.delays.len() >= 198, "{outcome:?}");
        let delay = outcome.delay(50);
        let nearer = if copies { 30.0 } else { 10.0 };
        assert!((nearer..nearer + 2.0).contains(&delay), "{delay}");
    }
}

#[test]
fn copies_are_made_while_no_access_is_within_the_thresholds() {
    for (rtt_ms, copies) in [(200, false), (10, true)] {
        let text = format!(r#"{{"mode": "redundant", "max_rtt_ms": {rtt_ms}}}"#);
        let options = steered(&[(1, &text)]);
        let load = Load {
            voice: Some(1),
            ..Load::default()
        };
        let mut run = Run::new(&like(), &options, load);
        run.go(2000);
        let mut outcome = run.go(4000);
        let all: u64 = outcome.carried.iter().sum();
        let least = *outcome.carried.iter().min().expect("two");
        let share = least as f64 / all as f64;
        // 200 packets, in about 250 bytes each.
        assert!(outcome.delays.len() >= 198, "{outcome:?}");
        assert_eq!(share > 0.4, copies, "{share}: {outcome:?}");
        // By the nearer of them, or by both.
        assert!(outcome.delay(50) < 12.0, "{}", outcome.delay(50));
    }
}
