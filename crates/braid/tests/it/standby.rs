//! Runs of the lab on the real clock: active-standby by an order of accesses, and
//! what is said about an access that is too slow beside the others.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{self, lab, summary};

const STANDBY: &str = r#"
name = "standby"
duration = "15 s"
[access.a]
kind = "5g"
down = { rate = "20 Mbit/s", delay = "5 ms" }
backup = true
[access.b]
kind = "wifi"
down = { rate = "30 Mbit/s", delay = "2 ms" }
[access.c]
kind = "lifi"
down = { rate = "10 Mbit/s", delay = "2 ms" }
[[event]]
at = "3 s"
access = "b"
set = "down"
[[event]]
at = "5 s"
access = "b"
set = "up"
[[case]]
name = "standby"
engine = "mptcp"
scheduler = "active-standby"
path_manager = "braid"
traffic = "bulk"
"#;

const SLOW: &str = r#"
name = "slow"
duration = "9 s"
network = { tcp_rmem = [4096, 1048576, 4194304] }
[access.a]
kind = "5g"
down = { rate = "100 Mbit/s", delay = "5 ms" }
[access.b]
kind = "lifi"
down = { rate = "500 kbit/s", delay = "5 ms" }
[[case]]
name = "slow"
engine = "mptcp"
scheduler = "wrr"
weights = { a = 200, b = 1 }
traffic = "bulk"
"#;

/// The share of each access in this part of the run.
fn shares(out: &Path, part: std::ops::Range<f64>) -> BTreeMap<String, f64> {
    let mut bytes = BTreeMap::new();
    for row in lab::timeline(out) {
        if part.contains(&row.t_s) {
            *bytes.entry(row.access).or_insert(0.0) += row.bytes as f64;
        }
    }
    let sum: f64 = bytes.values().sum();
    bytes.into_iter().map(|(a, b)| (a, b / sum)).collect()
}

#[test]
fn the_standby_carries_while_the_active_is_away() {
    let dir = support::folder();
    if lab::real(&mut lab::of_text(dir.path(), STANDBY)).is_none() {
        return;
    }
    let out = &dir.path().join("out");
    assert!(summary(out).cases.iter().all(|c| c.intact == Some(true)));
    // In the order of the file, backups last. What was queued on the one that carried
    // meanwhile leaves by it: up to its send buffer, seconds at 10 Mbit/s.
    for (part, carries) in [(1.0..3.0, "b"), (4.0..5.0, "c"), (13.0..15.0, "b")] {
        let all = shares(out, part.clone());
        assert!(all[carries] > 0.9, "{part:?}: {all:?}");
    }
}

#[test]
fn an_access_that_limits_the_sum_is_named_under_the_table() {
    let dir = support::folder();
    let Some(said) = lab::real(&mut lab::of_text(dir.path(), SLOW)) else {
        return;
    };
    let notes = summary(&dir.path().join("out")).cases[0].notes.join("\n");
    for text in [&said, &notes] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("b: ") && words.contains("Mbit/s beside a sum"),
            "{words}"
        );
    }
}
