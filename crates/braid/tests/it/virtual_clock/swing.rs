//! Paths that hold each other up, and links whose rate swings, over Multipath TCP on the virtual
//! clock, where each figure is the same every time.

use braid_lab::summary::CaseResult;

use crate::support::{self, lab, summary};

fn run(scenario: &str) -> Option<Vec<CaseResult>> {
    let dir = support::folder();
    lab::on_the_virtual_clock(dir.path(), &mut lab::of_text(dir.path(), scenario))?;
    let cases = summary(&dir.path().join("out")).cases;
    for case in &cases {
        assert!(
            case.failed.is_none() && case.intact == Some(true),
            "{case:?}"
        );
    }
    Some(cases)
}

/// Part of what its links carry that a case does.
fn of_wire(cases: &[CaseResult], name: &str) -> f64 {
    let case = cases.iter().find(|c| c.name == name);
    case.and_then(|c| c.efficiency).unwrap()
}

const SLOW: &str = r#"
name = "slow"
duration = "6 s"
warmup = "1 s"
[access.nr]
kind = "5g"
down = { rate = "100 Mbit/s", delay = "10 ms", queue = "60 ms" }
up = { rate = "20 Mbit/s", delay = "10 ms" }
[access.slow]
kind = "other"
down = { rate = "1 Mbit/s", delay = "150 ms", queue = "1 s" }
up = { rate = "50 kbit/s", delay = "150 ms", queue = "1 s" }
[[case]]
name = "short"
engine = "mptcp"
cc = "cubic"
tcp_wmem = [4096, 8388608, 8388608]
traffic = "bulk"
[[case]]
name = "long"
engine = "mptcp"
cc = "cubic"
tcp_wmem = [4096, 8388608, 8388608]
short_queues = false
traffic = "bulk"
[[case]]
name = "swing"
engine = "mptcp"
cc = "swing"
traffic = "bulk"
"#;

#[test]
fn a_slow_line_with_a_short_queue_holds_up_no_fast_one() {
    let Some(cases) = run(SLOW) else { return };
    let [short, long, swing] = ["short", "long", "swing"].map(|c| of_wire(&cases, c));
    assert!(short > 0.93, "{short}");
    // It sees to the room by itself.
    assert!(swing > 0.93, "{swing}");
    // Else this is no test of it.
    assert!(long < 0.8, "{long}");
}

const SWINGING: &str = r#"
name = "swinging"
duration = "15 s"
warmup = "2 s"
seed = 3
[access.a]
kind = "5g"
up = { rate = "50 Mbit/s", delay = "10 ms", queue = "80 ms" }
[access.a.down]
rate = [
  ["0 ms", "60 Mbit/s"], ["2000 ms", "10 Mbit/s"], ["4000 ms", "120 Mbit/s"], ["6000 ms", "30 Mbit/s"],
  ["8000 ms", "120 Mbit/s"], ["10000 ms", "15 Mbit/s"], ["12000 ms", "100 Mbit/s"],
]
delay = "10 ms"
queue = "80 ms"
[access.b]
kind = "lte"
up = { rate = "50 Mbit/s", delay = "25 ms", queue = "80 ms" }
[access.b.down]
rate = [
  ["0 ms", "10 Mbit/s"], ["3000 ms", "40 Mbit/s"], ["5000 ms", "8 Mbit/s"], ["7000 ms", "50 Mbit/s"],
  ["9000 ms", "10 Mbit/s"], ["11000 ms", "40 Mbit/s"],
]
delay = "25 ms"
queue = "80 ms"
loss = 2e-4
[[case]]
name = "cubic"
engine = "mptcp"
cc = "cubic"
traffic = "bulk"
[[case]]
name = "swing"
engine = "mptcp"
cc = "swing"
traffic = "bulk"
"#;

#[test]
fn swing_follows_links_whose_rate_swings() {
    let Some(cases) = run(SWINGING) else { return };
    let [cubic, swing] = ["cubic", "swing"].map(|c| of_wire(&cases, c));
    assert!(swing > 0.9 && swing > cubic + 0.15, "{swing} {cubic}");
}
