//! Runs of the lab with a host behind the device, whose traffic the daemons divert.

use braid_lab::summary::CaseResult;

use crate::support::{self, lab, summary};

const LINKS: &str = r#"
name = "hosts"
duration = "5 s"
warmup = "2 s"
[access.nr]
kind = "5g"
down = { rate = "12 Mbit/s", delay = "5 ms", queue = "60 ms" }
[access.wifi]
kind = "wifi"
down = { rate = "8 Mbit/s", delay = "10 ms", queue = "60 ms" }
"#;

/// Runs cases over both accesses; `None` where the machine cannot.
fn run(cases: &str) -> Option<Vec<CaseResult>> {
    let dir = support::folder();
    let said = lab::real(&mut lab::of_text(dir.path(), &format!("{LINKS}{cases}")))?;
    let cases = summary(&dir.path().join("out")).cases;
    for case in &cases {
        assert_eq!((case.intact, &case.failed), (Some(true), &None), "{said}");
    }
    Some(cases)
}

#[test]
fn a_connection_of_a_host_gets_the_sum_of_the_accesses() {
    let bulk = r#"traffic = { kind = "bulk", from = "lan", direction = "WAY" }"#;
    let case = |way: &str| {
        let bulk = bulk.replace("WAY", way);
        format!(
            "[[case]]\nname = \"nr, {way}\"\nengine = \"tcp\"\naccess = \"nr\"\n{bulk}\n\
             [[case]]\nname = \"bond, {way}\"\nengine = \"mpquic\"\n{bulk}\n"
        )
    };
    let Some(cases) = run(&(case("down") + &case("up"))) else {
        return;
    };
    let [alone, bond, alone_up, bond_up] = &cases[..] else {
        panic!("{cases:?}")
    };
    for (alone, bond) in [(alone, bond), (alone_up, bond_up)] {
        // Routed by the access that it names, and by no other.
        assert_eq!(alone.share["nr"], 1.0, "{alone:?}");
        assert!(alone.efficiency > Some(0.85), "{alone:?}");
        assert!(bond.efficiency > Some(0.85), "{bond:?}");
        assert!(bond.share["wifi"] > 0.2, "{bond:?}");
        assert_eq!(bond.best_single_mbps, Some(alone.goodput_mbps));
    }
}

#[test]
fn datagrams_and_calls_of_a_host_go_over_the_bond() {
    let cases = r#"
[[case]]
name = "flow"
engine = "mpquic"
traffic = { kind = "cbr", rate = "14 Mbit/s", transport = "udp", from = "lan" }
[[case]]
name = "call beside it"
engine = "mpquic"
traffic = { kind = "cbr", rate = "2 Mbit/s", transport = "udp", from = "lan" }
beside = { kind = "voip", from = "lan" }
[[case]]
name = "download of the device beside a call"
engine = "mpquic"
traffic = { kind = "voip", from = "lan" }
beside = { kind = "bulk", bytes = "100 kB" }
"#;
    let Some(cases) = run(cases) else { return };
    let [flow, call, bulk] = &cases[..] else {
        panic!("{cases:?}")
    };
    let packets = flow.packets.expect("counts of datagrams");
    assert!(packets.due > 4000, "{flow:?}");
    // More than the better access carries alone.
    assert!(flow.goodput_mbps > 12.0, "{flow:?}");
    assert!(packets.reordered * 50 < packets.due, "{flow:?}");
    let beside = call.beside.as_ref().expect("the call");
    assert_eq!((&*beside.traffic, &*beside.direction), ("voip", "both"));
    let voice = beside.voice.expect("a score");
    assert!(voice.worst_mos > 3.5 && voice.mos <= 4.5, "{call:?}");
    // 3 s at both ends.
    assert_eq!(beside.packets.expect("counts").due, 2 * 150, "{call:?}");
    let own = call.packets.expect("counts of its own");
    assert!(own.due > 500 && own.lost * 20 < own.due, "{call:?}");
    assert!(bulk.voice.is_some_and(|v| v.mos > 3.5), "{bulk:?}");
    let download = bulk.beside.as_ref().expect("the download");
    assert!(
        download.goodput_mbps > 0.1 && download.voice.is_none(),
        "{bulk:?}"
    );
}
