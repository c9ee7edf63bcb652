//! The receive window overrun on the virtual clock: buffers that make mainline
//! kernels crawl do no harm with
//! `kernel/patches/0012-mptcp-count-the-peer-s-window-from-the-data-ack.patch`.
//! Without it this very run comes to 1 Mbit/s (docs/mptcp.md, Buffers).

use crate::support::{self, lab, summary};

const SCENARIO: &str = r#"
name = "overrun"
duration = "3 s"
warmup = "1 s"
[network]
tcp_rmem = [4096, 4194304, 33554432]
tcp_wmem = [4096, 4194304, 33554432]
[access.nr]
kind = "5g"
down = { rate = "354.28 Mbit/s", delay = "10.06 ms", queue = "30 ms" }
up = { rate = "60 Mbit/s", delay = "10.06 ms", queue = "100 ms" }
[access.wifi]
kind = "wifi"
down = { rate = "1232.7 Mbit/s", delay = "1.24 ms", queue = "20 ms" }
up = { rate = "600 Mbit/s", delay = "1.24 ms", queue = "20 ms" }
[access.lifi]
kind = "lifi"
down = { rate = "12.535 Mbit/s", delay = "1.04 ms", queue = "60 ms" }
[[case]]
name = "reno"
engine = "mptcp"
cc = "reno"
traffic = "bulk"
"#;

#[test]
fn large_send_buffers_do_not_overrun_the_window() {
    let dir = support::folder();
    let mut run = lab::of_text(dir.path(), SCENARIO);
    if lab::on_the_virtual_clock(dir.path(), &mut run).is_none() {
        return;
    }
    let case = summary(&dir.path().join("out")).cases.remove(0);
    assert_eq!(case.intact, Some(true));
    let overruns: Vec<&String> = case
        .notes
        .iter()
        .filter(|n| n.contains("overrun"))
        .collect();
    assert!(overruns.is_empty(), "{overruns:?}");
    assert!(case.efficiency > Some(0.9), "{case:?}");
}
