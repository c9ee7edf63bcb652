//! The bars of the coupled congestion controls, on the virtual clock, where each
//! figure is the same every time.

use braid_lab::summary::CaseResult;

use crate::support::{self, lab, summary};

/// Runs cases of a shipped scenario.
fn run(scenario: &str, only: &str) -> Option<Vec<CaseResult>> {
    let dir = support::folder();
    let mut run = lab::command(dir.path(), scenario);
    lab::on_the_virtual_clock(dir.path(), run.args(["--only", only]))?;
    Some(summary(&dir.path().join("out")).cases)
}

fn percent(c: &CaseResult) -> f64 {
    assert!(c.failed.is_none() && c.intact == Some(true), "{c:?}");
    let others: f64 = c.others_mbps.values().sum();
    assert!(c.goodput_mbps + others > 9.0, "the line is used: {c:?}");
    100.0 * c.share_of_all.unwrap()
}

const CONTROLS: [&str; 4] = ["reno", "lia", "olia", "balia"];

/// Holds an engine to its share. The bar is 40 to 53 %, of the median of several seeds, which
/// docs/congestion-control.md has; a single minute strays by up to 5 points.
fn takes_what_one_tcp_takes(engine: &str) {
    let only = CONTROLS.map(|cc| format!("{engine} {cc}"));
    let Some(cases) = run("fairness", &only.join(",")) else {
        return;
    };
    assert_eq!(cases.len(), only.len());
    for case in &cases {
        let share = percent(case);
        let bar = match case.name.ends_with(" reno") {
            true => 62.0..=74.0,
            false => 36.0..=57.0,
        };
        assert!(bar.contains(&share), "{}: {share:.1} %", case.name);
    }
}

// Two tests, for two guests at a time.

#[test]
fn two_coupled_subflows_take_what_one_tcp_takes() {
    takes_what_one_tcp_takes("MPTCP");
}

#[test]
fn two_coupled_paths_take_what_one_tcp_takes() {
    takes_what_one_tcp_takes("MP-QUIC");
}
