//! Weighted round robin on the kernel that runs here: shares, live weights, an
//! access that is left out, what an application leaves unused, nothing left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::support::{self, lab, summary};

const SCENARIO: &str = r#"
name = "shares"
duration = "9 s"
warmup = "2 s"
[access.a]
kind = "5g"
down = { rate = "40 Mbit/s", delay = "10 ms", queue = "60 ms" }
[access.b]
kind = "wifi"
down = { rate = "60 Mbit/s", delay = "2 ms", queue = "60 ms" }
[access.c]
kind = "lifi"
down = { rate = "10 Mbit/s", delay = "1 ms", queue = "60 ms" }
[[event]]
at = "5 s"
weights = { a = 4, b = 5, c = 1 }
[[case]]
name = "strict"
engine = "mptcp"
scheduler = "wrr"
wrr_mode = "strict"
weights = { a = 1, b = 1, c = 1 }
traffic = "bulk"
[[case]]
name = "work-conserving"
engine = "mptcp"
scheduler = "wrr"
wrr_mode = "work-conserving"
weights = { a = 1, b = 1, c = 1 }
traffic = "bulk"
[[case]]
name = "paced"
engine = "mptcp"
scheduler = "wrr"
weights = { a = 1, b = 1, c = 1 }
traffic = { kind = "cbr", rate = "10 Mbit/s" }
"#;

const WITHOUT: &str = r#"
name = "without"
duration = "4 s"
warmup = "2 s"
[access.a]
kind = "5g"
down = { rate = "40 Mbit/s", delay = "10 ms" }
[access.b]
kind = "wifi"
down = { rate = "60 Mbit/s", delay = "2 ms" }
[[case]]
name = "without a"
engine = "mptcp"
scheduler = "wrr"
weights = { a = 0, b = 1 }
traffic = "bulk"
"#;

/// The accesses of `static`, of which LiFi lets little through.
const BEGIN: &str = r#"
name = "begin"
duration = "2 s"
warmup = "0 s"
[access.a]
kind = "5g"
down = { rate = "350 Mbit/s", delay = "10 ms", queue = "30 ms" }
[access.b]
kind = "wifi"
down = { rate = "1200 Mbit/s", delay = "1 ms", queue = "20 ms" }
[access.c]
kind = "lifi"
down = { rate = "12 Mbit/s", delay = "1 ms", queue = "60 ms" }
[[case]]
name = "begin"
engine = "mptcp"
scheduler = "wrr"
wrr_mode = "strict"
weights = { a = 1, b = 1, c = 1 }
traffic = "bulk"
"#;

/// A radio that scans, six times.
const PAUSES: &str = r#"
name = "pauses"
duration = "8 s"
warmup = "2 s"
[access.a]
kind = "5g"
down = { rate = "40 Mbit/s", delay = "10 ms", queue = "500 kB" }
[access.b]
kind = "wifi"
down = { rate = "60 Mbit/s", delay = "2 ms", queue = "500 kB" }
[[event]]
at = "2 s"
every = "1 s"
times = 6
access = "b"
set = { rate = "1 Mbit/s" }
direction = "down"
[[event]]
at = "2060 ms"
every = "1 s"
times = 6
access = "b"
set = { rate = "60 Mbit/s" }
direction = "down"
[[case]]
name = "pauses"
engine = "mptcp"
scheduler = "wrr"
wrr_mode = "work-conserving"
weights = { a = 1, b = 1 }
traffic = "bulk"
"#;

/// Mbit/s of each access in this part of a case.
fn rates(out: &Path, case: &str, part: std::ops::Range<f64>) -> BTreeMap<String, f64> {
    let mut rates = BTreeMap::new();
    for row in lab::timeline(out) {
        if row.case == case && part.contains(&row.t_s) {
            let mbit = row.bytes as f64 * 8e-6;
            *rates.entry(row.access).or_default() += mbit / (part.end - part.start);
        }
    }
    rates
}

fn assert_shares(rates: &BTreeMap<String, f64>, percent: [f64; 3], within: f64) {
    let sum: f64 = rates.values().sum();
    for (mbps, expected) in rates.values().zip(percent) {
        let share = 100.0 * mbps / sum;
        assert!((share - expected).abs() < within, "{rates:?}: {percent:?}");
    }
}

/// Runs on the real clock disturb each other: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Points that shares may be off. Measured: 0.5 at gigabits on a busy machine,
/// within a second; a single long pause of it must not fail the test.
const WITHIN: f64 = 2.5;

#[test]
fn weights_are_shares_and_change_live() {
    let _alone = alone();
    let dir = support::folder();
    if lab::real(&mut lab::of_text(dir.path(), SCENARIO)).is_none() {
        return;
    }
    let out = &dir.path().join("out");
    for case in &summary(out).cases {
        assert_eq!(case.intact, Some(true), "{case:?}");
    }
    let equal = rates(out, "strict", 2.0..5.0);
    assert_shares(&equal, [33.3, 33.3, 33.3], WITHIN);
    // 10 Mbit/s each: the slowest limits them all, and is used.
    let sum: f64 = equal.values().sum();
    assert!((24.0..33.0).contains(&sum), "{equal:?}");
    let changed = rates(out, "strict", 6.0..9.0);
    assert_shares(&changed, [40.0, 50.0, 10.0], WITHIN);
    let sum: f64 = changed.values().sum();
    assert!(sum > 80.0, "{changed:?}");
    // Weights do not hold anything back here: all of 110 Mbit/s, where strict ones leave 30 in
    // the first part. Pauses of the host cost some of it.
    for part in [2.0..5.0, 6.0..9.0] {
        let all = rates(out, "work-conserving", part);
        let sum: f64 = all.values().sum();
        assert!(sum > 93.0, "{all:?}");
    }
    // What an application sends is shared, too: 3.3 Mbit/s fit everywhere.
    assert_shares(&rates(out, "paced", 2.0..5.0), [33.3, 33.3, 33.3], 8.0);
    let left = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    assert!(!left.unwrap().contains("wrr_"), "of a run that has ended");
}

#[test]
fn the_first_path_is_not_given_all_that_there_is() {
    let _alone = alone();
    let dir = support::folder();
    if lab::real(&mut lab::of_text(dir.path(), BEGIN)).is_none() {
        return;
    }
    let out = &dir.path().join("out");
    // The rates of all are doubled until the slowest is full, now and then once too often:
    // 31 to 34 % in most of 150 runs, 38 to 40 in some.
    let first = rates(out, "begin", 0.0..0.5);
    let share = 100.0 * first["a"] / first.values().sum::<f64>();
    assert!(share < 46.0, "{first:?}: {share} %");
    // And the slowest has all that it can carry: 10.2 to 10.6.
    let slowest = rates(out, "begin", 0.0..1.0)["c"];
    assert!(slowest > 9.0, "{slowest}");
}

#[test]
fn an_access_of_weight_0_is_left_out() {
    let _alone = alone();
    let dir = support::folder();
    if lab::real(&mut lab::of_text(dir.path(), WITHOUT)).is_none() {
        return;
    }
    let out = &dir.path().join("out");
    let rates = rates(out, "without a", 2.0..4.0);
    assert!(rates["a"] < 1.0 && rates["b"] > 50.0, "{rates:?}");
}

#[test]
fn a_pause_of_a_radio_costs_little_more_than_itself() {
    let _alone = alone();
    // A host that pauses as long as the radio does costs as much: one run of three is enough,
    // as a fault shows in all of them.
    let mut all = Vec::new();
    for _ in 0..3 {
        let dir = support::folder();
        if lab::real(&mut lab::of_text(dir.path(), PAUSES)).is_none() {
            return;
        }
        let rates = rates(&dir.path().join("out"), "pauses", 2.0..8.0);
        // The pauses take 6 % of the time, 56 are left of b: 52 to 56 in each three were
        // measured. A window with a pause in it that is taken for the path's rate: 24 to 49.
        if rates["a"] > 36.0 && rates["b"] > 49.0 {
            return;
        }
        all.push(rates);
    }
    panic!("{all:?}");
}
