//! Scenarios in which accesses share a line, and other devices use it too.

use std::path::Path;
use std::time::Duration;

use braid_lab::scenario::{Diagnostic, Overrides, Scenario};
use braid_radio::model::{DelaySpec, QueueSpec, RateSpec};

const GOOD: &str = r#"name = "b"
duration = "5 s"
[network.module_parameters]
"tcp_vegas.alpha" = 10
[backhaul.core]
down = { rate = "40 Mbit/s", queue = "40 ms" }
[access.a]
kind = "5g"
backhaul = "core"
down = { delay = "20 ms" }
up = { delay = "5 ms" }
[access.b]
kind = "wifi"
down = { rate = "10 Mbit/s" }
[device.tcp]
count = 2
cc = "reno"
engine = "mptcp"
traffic = "bulk"
[device.tcp.access.x]
kind = "lte"
backhaul = "core"
[[event]]
at = "1 s"
access = "a"
set = { delay = "9 ms" }
[[case]]
name = "m"
engine = "mptcp"
traffic = "bulk"
"#;

fn parse(text: &str) -> Result<Scenario, Diagnostic> {
    let dir = Path::new("/nonexistent");
    Scenario::parse(text, Path::new("b.toml"), dir, &Overrides::default())
}

#[test]
fn accesses_take_rate_and_queue_of_their_backhaul() {
    let s = parse(GOOD).unwrap();
    let case = &s.cases[0];
    let (a, b) = (&case.accesses[0], &case.accesses[1]);
    let tcp = &case.bystanders[0];
    assert_eq!(a.backhaul.as_deref(), Some("core"));
    assert_eq!(b.backhaul, None);
    for link in [&a.down, &a.up, &tcp.accesses[0].down] {
        assert!(matches!(link.rate, RateSpec::Constant(r) if r.as_bps() == 40_000_000));
        assert_eq!(link.queue, QueueSpec::Time(Duration::from_millis(40)));
    }
    assert_eq!(a.down.delay, DelaySpec::Constant(Duration::from_millis(20)));
    assert_eq!(a.up.delay, DelaySpec::Constant(Duration::from_millis(5)));
    assert!(tcp.mptcp && tcp.cc.as_deref() == Some("reno") && tcp.count == 2);
    assert_eq!(s.network.module_parameters["tcp_vegas.alpha"], 10);
}

#[test]
fn other_devices_can_take_the_congestion_control_of_the_case() {
    let text = GOOD.replace("count = 2\ncc = \"reno\"", "count = 2\ncc = \"case\"");
    let text =
        text + "[[case]]\nname = \"l\"\nengine = \"mptcp\"\ncc = \"lia\"\ntraffic = \"bulk\"\n";
    let s = parse(&text).unwrap();
    let cc: Vec<_> = s
        .cases
        .iter()
        .map(|c| c.bystanders[0].cc.as_deref())
        .collect();
    assert_eq!(cc, [None, Some("lia")]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (from, to, place, hint) in [
        (
            "[access.a]\nkind = \"5g\"\nbackhaul = \"core\"",
            "[access.a]\nkind = \"5g\"\nbackhaul = \"cord\"",
            "b.toml:9:",
            "did you mean \"core\"?",
        ),
        (
            "down = { delay = \"20 ms\" }",
            "down = { delay = \"20 ms\", queue = \"9 ms\" }",
            "b.toml:9:",
            "sets `queue`",
        ),
        (
            "up = { delay = \"5 ms\" }",
            "up = { rate = \"5 Mbit/s\" }",
            "b.toml:9:",
            "sets `rate`",
        ),
        (
            "queue = \"40 ms\"",
            "delay = \"40 ms\"",
            "b.toml:5:",
            "`delay` belongs to each access",
        ),
        (
            "down = { rate = \"40 Mbit/s\", queue",
            "down = { queue",
            "b.toml:5:",
            "needs a rate",
        ),
        (
            "set = { delay = \"9 ms\" }",
            "set = { rate = \"9 Mbit/s\" }",
            "b.toml:26:",
            "which sets `rate`",
        ),
        (
            "engine = \"mptcp\"\ntraffic = \"bulk\"\n[device.tcp.access.x]",
            "engine = \"quic\"\ntraffic = \"bulk\"\n[device.tcp.access.x]",
            "b.toml:18:",
            "expected tcp, mptcp",
        ),
        (
            "traffic = \"bulk\"\n[device.tcp.access.x]",
            "traffic = { kind = \"command\", run = \"iperf3 -c {proxy}\" }\n[device.tcp.access.x]",
            "b.toml:19:",
            "give other devices traffic of the lab's own",
        ),
        (
            "\"tcp_vegas.alpha\"",
            "vegas",
            "b.toml:4:",
            "a module and its parameter",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let message = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.starts_with(place), "{to}: {message}");
        assert!(message.contains(hint), "{to}: {message}");
    }
    let both = GOOD.replacen(
        "backhaul = \"core\"",
        "backhaul = \"core\"\nmedium = \"air\"",
        1,
    ) + "[medium.air]\nstandard = \"802.11g\"\n";
    let message = parse(&both).unwrap_err().to_string();
    assert!(message.contains("keep one"), "{message}");
}
