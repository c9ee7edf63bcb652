//! Outages of each access and sort on the real clock, under the daemon:
//! that data goes on and every access is used again at once. How soon exactly is
//! for `make bench-recovery`.

use crate::support::{self, lab, summary};
use braid_core::stats::median;

/// Outages of each access.
const TIMES: usize = 3;

/// Each access is lost for 1 s and then up for 5.6 s, in turn.
fn scenario(set: &str, scheduler: &str) -> String {
    let accesses = "
[access.a]
kind = \"5g\"
down = { rate = \"40 Mbit/s\", delay = \"10 ms\", queue = \"60 ms\" }
[access.b]
kind = \"wifi\"
down = { rate = \"60 Mbit/s\", delay = \"2 ms\", queue = \"60 ms\" }
[access.c]
kind = \"lifi\"
down = { rate = \"10 Mbit/s\", delay = \"1 ms\", queue = \"60 ms\" }
[[case]]
name = \"braid\"
engine = \"mptcp\"
path_manager = \"braid\"
traffic = \"bulk\"
";
    let head = format!("name = \"{set}\"\nduration = \"24 s\"\nwarmup = \"2 s\"\n");
    let mut text = format!("{head}{accesses}{scheduler}\n");
    for (k, access) in ["a", "b", "c"].into_iter().enumerate() {
        let down = 3000 + 2200 * k;
        for (at, set) in [(down, set), (down + 1000, "up")] {
            text += &format!(
                "[[event]]\nat = \"{at} ms\"\naccess = \"{access}\"\nset = \"{set}\"\n\
                 every = \"6600 ms\"\ntimes = {TIMES}\n"
            );
        }
    }
    text
}

fn outages(set: &str, scheduler: &str) {
    let dir = support::folder();
    if lab::real(&mut lab::of_text(dir.path(), &scenario(set, scheduler))).is_none() {
        return;
    }
    let case = summary(&dir.path().join("out")).cases.remove(0);
    assert_eq!((case.intact, case.failed), (Some(true), None));
    for access in ["a", "b", "c"] {
        let of: Vec<_> = case
            .recoveries
            .iter()
            .filter(|r| r.access == access)
            .collect();
        assert_eq!(of.len(), TIMES, "{access}");
        // With nobody acting it takes 1.6 s in the middle. A machine that is
        // busy may spoil an outage, so the middle one counts.
        let used: Vec<f64> = of
            .iter()
            .map(|r| r.reuse_ms.unwrap_or(f64::INFINITY))
            .collect();
        assert!(
            median(&used) < 600.0,
            "{access}: used again after {used:?} ms"
        );
        // Gaps below 50 ms are not listed.
        let gaps: Vec<f64> = of.iter().map(|r| r.gap_ms.unwrap_or(50.0)).collect();
        assert!(median(&gaps) < 600.0, "{access}: gaps of {gaps:?} ms");
    }
}

#[test]
fn outages_of_each_interface() {
    outages("down", "cc = \"cubic\"");
}

#[test]
fn outages_of_each_interface_with_weights() {
    let weights = "scheduler = \"wrr\"\nweights = { a = 40, b = 60, c = 10 }";
    outages("down", weights);
}

#[test]
fn silent_outages_of_each_access() {
    outages("blackhole", "cc = \"cubic\"");
}
