//! Rules about the hosts of a LAN: by which access their flows leave, and what an operator sees.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use braid_api::{EventKind, Events, Rules, Status};
use braid_netns::world::eventually;
use braid_netns::world::home::asked;
use braid_netns::world::lan::SERVER;
use nix::sys::signal::Signal;

use crate::support::daemon::Daemon;
use crate::support::lan::{
    DNS, Ends, PORT, PROXY, begin, of_packets, of_packets_to, of_packets_within, origin,
};
use crate::support::request::request;

const RULES: &str = r#"
[[rule]]
name = "by wifi"
to = "45.11.0.10"
port = 5001
direct = ["wifi", "nr"]

[[rule]]
to = "2a0f:45::/64"
protocol = "udp"
port = 53
block = true
"#;

/// Addresses of the device on its accesses.
const NR: &str = "10.77.1.2";
const WIFI: &str = "10.77.2.2";

fn is_at(seen: std::io::Result<IpAddr>, from: &str) -> bool {
    seen.is_ok_and(|seen| seen.to_string() == from)
}

/// Waits until the host's IPv4 comes from an address, and its IPv6 over the bond.
fn comes_from(e: &Ends, from: &str) {
    eventually(&format!("IPv4 comes from {from}"), || {
        let all = [
            is_at(origin(&e.lan.host, SERVER[0]), from),
            is_at(of_packets(&e.lan.host, SERVER[0]), from),
            is_at(origin(&e.lan.host, SERVER[1]), PROXY[1]),
            is_at(of_packets(&e.lan.host, SERVER[1]), PROXY[1]),
        ];
        (all == [true; 4]).then_some(())
    });
}

/// Runs `braid rules` at the device; gives its exit status and what it printed.
fn rules(device: &Daemon, more: &[&str]) -> (Option<i32>, String) {
    let mut rules = Command::new(env!("CARGO_BIN_EXE_braid"));
    rules
        .arg("rules")
        .args(more)
        .arg("--control")
        .arg(&device.control);
    let out = rules.output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8(text).unwrap())
}

fn turned(device: &Daemon) -> Vec<(bool, Option<String>)> {
    let all: Events = device.get("/v1/events");
    let turned = all.events.into_iter().filter_map(|e| match e.what {
        EventKind::DirectRoute { ipv6, by, .. } => Some((ipv6, by)),
        _ => None,
    });
    turned.collect()
}

#[test]
fn flows_leave_as_the_rules_say_and_never_elsewhere() {
    let Some(e) = begin(RULES) else { return };
    let mut device = e.start();
    comes_from(&e, WIFI);
    // What is blocked is refused at once, and the other family is not.
    let dns = |at| of_packets_to(&e.lan.host, at, DNS);
    let since = Instant::now();
    let refused = dns(SERVER[1]).unwrap_err();
    assert_ne!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
    assert!(since.elapsed() < Duration::from_secs(1));
    assert!(is_at(dns(SERVER[0]), PROXY[0]));

    let seen: Rules = device.get("/v1/rules");
    assert_eq!(seen.rules[0].by, [Some("wifi".into()), Some("wifi".into())]);
    let counts = [seen.rules[0].count, seen.rules[1].count, seen.default];
    assert!(counts[0].flows >= 2 && counts[0].down_bytes > 0, "{seen:?}");
    assert!(counts[1].flows >= 1 && counts[1].up_bytes > 1400 && counts[1].down_bytes == 0);
    assert!(
        counts[2].flows >= 3 && counts[2].up_bytes > 1400,
        "{seen:?}"
    );
    let (code, table) = rules(&device, &[]);
    assert_eq!(code, Some(0), "{table}");
    for words in [
        "by wifi",
        "direct by wifi, else nr",
        "to 2a0f:45::/64; protocol udp; port 53",
        "all else",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let test = [
        "test",
        "--dst",
        "45.11.0.10",
        "--protocol",
        "tcp",
        "--port",
        "5001",
    ];
    assert_eq!(
        rules(&device, &test),
        (
            Some(0),
            "by wifi: direct by wifi, else nr (now wifi)\n".into()
        )
    );
    let (code, said) = rules(&device, &["test", "--dst", "45.11.0.10", "--port", "0"]);
    assert_eq!(code, Some(2), "{said}");
    let (_, page) = request(&device.control, "GET", "/metrics", "");
    for line in [
        "braid_rule_flows_total{rule=\"by wifi\"} ",
        "braid_rule_bytes_total{direction=\"up\",rule=\"rule 2\"} ",
    ] {
        assert!(page.lines().any(|l| l.starts_with(line)), "{line}: {page}");
    }

    // An access dies: flows leave by the next, also those that were there; then they come back.
    e.w.set_link(2, false);
    comes_from(&e, NR);
    e.w.set_link(1, false);
    eventually("none works, and they are refused", || {
        let refused = origin(&e.lan.host, SERVER[0]).unwrap_err();
        let seen: Rules = device.get("/v1/rules");
        let said = seen.rules[0].note.as_ref()?;
        let is_refused = refused.kind() == ErrorKind::ConnectionRefused;
        (is_refused && said.contains("none of wifi, nr works")).then_some(())
    });
    for k in [1, 2] {
        e.w.set_link(k, true);
        e.w.route(k);
        e.w.restore6(k);
    }
    comes_from(&e, WIFI);
    let by: Vec<_> = turned(&device)
        .into_iter()
        .filter(|(v6, _)| !v6)
        .map(|(_, by)| by)
        .collect();
    let names = ["wifi", "nr"].map(|n| Some(n.to_owned()));
    assert!(
        by.contains(&names[0]) && by.contains(&names[1]) && by.contains(&None),
        "{by:?}"
    );

    // Other rules count for what begins, wrong ones not at all.
    let more = format!(
        "{}\n[[rule]]\nto = \"2a0f:45::10\"\nprotocol = \"tcp\"\nblock = true\n",
        e.device
    );
    assert_eq!(device.reload(&more), None);
    assert!(origin(&e.lan.host, SERVER[1]).is_err());
    assert!(is_at(origin(&e.lan.host, SERVER[0]), WIFI));
    let kept: Rules = device.get("/v1/rules");
    assert!(
        kept.rules.len() == 3 && kept.rules[0].count.flows > counts[0].flows,
        "{kept:?}"
    );
    let wrong = more.replace("\"nr\"]", "\"wify\"]");
    let said = device.reload(&wrong).unwrap();
    assert!(
        said.contains("no access is called \"wify\": did you mean \"wifi\"?"),
        "{said}"
    );
    assert!(origin(&e.lan.host, SERVER[1]).is_err());
    assert_eq!(device.reload(&e.device), None);
    comes_from(&e, WIFI);

    // Killed: nothing leaves. The next one goes on with what is left.
    assert_eq!(device.end(Signal::SIGKILL), None);
    e.is_cut_off();
    let mut device = e.start();
    comes_from(&e, WIFI);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    e.is_cut_off();
    assert_eq!(e.in_the_clear(), 0);
    for family in ["-4", "-6"] {
        let left = asked(&e.w.device, &format!("{family} rule"));
        assert!(!left.contains("fwmark"), "{left}");
    }
    let (code, said) = e.down();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn new_flows_follow_the_death_of_an_access_at_once() {
    let Some(e) = begin(RULES) else { return };
    let device = e.start();
    comes_from(&e, WIFI);
    eventually("both serve", || {
        let s: Status = device.get("/v1/status");
        s.accesses.iter().all(|a| a.subflows > 0).then_some(())
    });
    e.w.set_link(2, false);
    let since = Instant::now();
    let host = &e.lan.host;
    eventually("a new flow leaves by the other", || {
        // What was sent before has no answer.
        let seen = of_packets_within(host, SERVER[0], PORT, Duration::from_millis(50));
        is_at(seen, NR).then_some(())
    });
    println!(
        "a new flow left by the other access after {:?}",
        since.elapsed()
    );
    eventually("it is told", || {
        let turned = turned(&device).pop()?.1;
        (turned.as_deref() == Some("nr")).then_some(())
    });
}
