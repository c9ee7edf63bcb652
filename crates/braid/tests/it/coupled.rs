//! The coupled congestion controls on the kernel that runs here: registered for
//! a run, gone with it, however it ends.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{self, lab, summary};

const SCENARIO: &str = r#"
name = "coupled"
duration = "3 s"
warmup = "1 s"
[access.a]
kind = "5g"
down = { rate = "20 Mbit/s", delay = "5 ms" }
[access.b]
kind = "wifi"
down = { rate = "10 Mbit/s", delay = "2 ms" }
[[case]]
name = "LIA"
engine = "mptcp"
cc = "lia"
traffic = "bulk"
"#;

/// Congestion controls that a run of process `id` has registered.
fn registered(id: u32) -> Vec<String> {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let end = format!("_{id:x}");
    let all = all.unwrap();
    let ours = all.split_whitespace().filter(|n| n.ends_with(&end));
    ours.map(str::to_owned).collect()
}

#[test]
fn cases_run_and_nothing_is_left() {
    let dir = support::folder();
    let child = lab::of_text(dir.path(), SCENARIO)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let out = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    if out.status.code() == Some(3) {
        println!("skipped: {err}");
        return;
    }
    assert_eq!(out.status.code(), Some(0), "{err}");
    let summary = summary(&dir.path().join("out"));
    let lia = &summary.cases[0];
    assert_eq!(lia.cc.as_deref(), Some("lia"));
    assert_eq!(lia.intact, Some(true));
    // Both paths: the better one alone carries 19.
    assert!(lia.goodput_mbps > 22.0, "{lia:?}");
    assert_eq!(registered(id), [""; 0]);
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    let dir = support::folder();
    let mut child = lab::of_text(dir.path(), SCENARIO)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while registered(child.id()).is_empty() && Instant::now() < end {
        if child
            .try_wait()
            .unwrap()
            .is_some_and(|s| s.code() == Some(3))
        {
            println!("skipped: see the other test");
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(registered(child.id()).len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    // Sockets of its children hold them until they end, too.
    let end = Instant::now() + Duration::from_secs(10);
    while !registered(child.id()).is_empty() {
        assert!(Instant::now() < end, "{:?}", registered(child.id()));
        std::thread::sleep(Duration::from_millis(20));
    }
}
