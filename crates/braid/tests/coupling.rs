//! That the eBPF congestion controls are coupled: beside two TCP connections on one of two
//! lines they move to the other one, further than uncoupled subflows do (RFC 6356, section 2,
//! third goal). Real clock, the kernel's own scheduler; the bars are `make bench-fairness`.

use braid_lab::summary::CaseResult;

use support::{lab, summary};

mod support;

/// `fairness-stock-load` with its load `2 + 0`, shorter, for one congestion control.
fn scenario(cc: &str) -> String {
    let access = |name: &str, kind: &str| {
        format!(
            "kind = \"{kind}\"\nbackhaul = \"{name}\"\n\
             down = {{ delay = \"20 ms\", jitter = \"1.2 ms\" }}\n"
        )
    };
    let (a, b) = (access("a", "5g"), access("b", "lte"));
    format!(
        r#"
name = "coupling"
duration = "26 s"
warmup = "6 s"
[network]
tcp_wmem = [4096, 4194304, 8388608]
[backhaul.a]
down = {{ rate = "10 Mbit/s", queue = "40 ms" }}
[backhaul.b]
down = {{ rate = "10 Mbit/s", queue = "40 ms" }}
[access.a]
{a}
[access.b]
{b}
[device.a]
count = 2
traffic = "bulk"
cc = "reno"
[device.a.access.a]
{a}
[[case]]
name = "{cc}"
engine = "mptcp"
cc = "{cc}"
traffic = "bulk"
"#
    )
}

/// Where the lines are used, percent sent on the one that nobody shares.
fn moved(c: &CaseResult) -> f64 {
    assert!(c.failed.is_none() && c.intact == Some(true), "{c:?}");
    let others: f64 = c.others_mbps.values().sum();
    assert!(c.goodput_mbps + others > 14.0, "the lines are used: {c:?}");
    100.0 * c.share["b"]
}

/// Three runs of each, which are at least 85 and at most 77 %: the line between them lies in
/// the middle.
#[test]
fn coupled_subflows_leave_the_shared_line_and_uncoupled_ones_do_not() {
    let begun: Vec<_> = ["reno", "lia", "olia", "balia"]
        .into_iter()
        .map(|cc| {
            let dir = tempfile::tempdir().unwrap();
            let mut run = lab::of_text(dir.path(), &scenario(cc));
            let run = std::thread::spawn(move || lab::real(&mut run));
            (cc, dir, run)
        })
        .collect();
    for (cc, dir, run) in begun {
        if run.join().unwrap().is_none() {
            continue;
        }
        let moved = moved(&summary(&dir.path().join("out")).cases[0]);
        println!("{cc}: {moved:.1} %");
        assert_eq!(
            moved > 80.5,
            cc != "reno",
            "{cc}: {moved:.1} % on the free line"
        );
    }
}
