use super::super::rates::tests::reading;
use super::*;
use braid_lab::report::table::Style;

fn shown() -> Shown {
    let view = serde_json::from_str(
        r#"{"role": "device", "engine": "mptcp", "scheduler": "default",
            "default_congestion_control": "cubic",
            "accesses": [
              {"name": "nr", "kind": "5g", "interface": "wwan0", "address": "10.0.0.2",
               "up": true, "has_address": true, "enabled": true, "weight": 30.0,
               "endpoint_id": 1, "sent_bytes": 1500000, "received_bytes": 0},
              {"name": "wifi", "kind": "wifi", "interface": "wlan0", "backup": true,
               "addresses": [{"address": "10.1.0.2"}, {"address": "fd00:1234:5678::2"}],
               "state": "silent", "why": "nothing came back for 240 ms"}],
            "ignored": [{"interface": "docker0", "why": "serves containers"}]}"#,
    )
    .unwrap();
    let before = reading(1.0, &[("nr", 1, 0, 0, 0, 20.0)]);
    let now = reading(2.0, &[("nr", 1, 15_000_000, 150_000, 0, 20.0)]);
    Shown::new(&view, Some(&before), &now, true, None)
}

#[test]
fn sessions_are_no_connections_of_tcp() {
    let mut quic = shown();
    quic.engine = "mpquic".to_owned();
    quic.engines = vec!["mpquic".to_owned()];
    quic.connections.mpquic = 2;
    let text = quic.text(Output::Plain);
    assert!(text.contains("\nsessions: 2\n"), "{text}");
}

#[test]
fn the_scheduler_that_acts_is_named_with_its_mode() {
    let of = |scheduling: &str| {
        let text = format!(
            r#"{{"role": "device", "engine": "mptcp", "scheduler": "default",
                "default_congestion_control": "wrr_752f_0", "scheduling": {{{scheduling}}},
                "accesses": [{{"name": "nr", "weight": 30.0}}, {{"name": "wifi"}}]}}"#
        );
        let view = serde_json::from_str(&text).unwrap();
        Shown::new(&view, None, &reading(1.0, &[]), false, None).text(Output::Plain)
    };
    let text = of(r#""name": "wrr", "wrr_mode": "work-conserving", "weights_act": true"#);
    let head = "device with mptcp, scheduler wrr (work-conserving), weights as congestion \
                control\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains(" 30 ") && !text.contains("wrr_"), "{text}");
    let text = of(r#""name": "default", "congestion_control": "cubic""#);
    let head = "device with mptcp, scheduler default, congestion control cubic\n";
    assert!(text.starts_with(head), "{text}");
    let line = "\nweights nr=30 do not act under the scheduler default: braid set scheduler \
                wrr\n";
    assert!(text.contains(line) && !text.contains(" 30 "), "{text}");
}

#[test]
fn a_policy_that_decides_has_a_line() {
    let mut shown = shown();
    assert!(!shown.text(Output::Plain).contains("policy"));
    let control = |why: &str| {
        let text = format!(
            r#"{{"policy": "capacity", "direction": "up", {why} "accesses": [
              {{"name": "nr", "capacity_mbps": 100.0, "estimator": "passive", "weight": 100}},
              {{"name": "wifi", "capacity_mbps": 3, "estimator": "passive", "at_least": true}},
              {{"name": "lifi"}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    shown.control = Some(control(""));
    assert!(
        !shown.text(Output::Plain).contains("policy"),
        "it decides nothing"
    );
    shown.control = Some(control(r#""why": "nr carries more","#));
    let text = shown.text(Output::Plain);
    let line = "\npolicy capacity, up: nr 100 Mbit/s by passive, wifi at least 3.00 Mbit/s by \
                passive, lifi not known; nr carries more\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_table_says_who_carries_what_and_why_not() {
    let text = shown().text(Output::Plain);
    let row = |name: &str| {
        let line = text.lines().find(|l| l.trim_start().starts_with(name));
        line.unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(text.contains("\nconnections: 1 MPTCP, 0 fallen"), "{text}");
    assert_eq!(
        row("nr"),
        "nr 5g wwan0 10.0.0.2 active no 30 - 120 0 20.0 1.00 1 1.50 MB 0 B 1"
    );
    assert_eq!(
        row("wifi "),
        "wifi wifi wlan0 10.1.0.2 fd00:1234:5678::2 silent yes - - - - - - 0 - - -"
    );
    assert_eq!(row("sum"), "sum 120 0 1 1.50 MB 0 B");
    assert!(
        text.contains("wifi: silent: nothing came back for 240 ms\n"),
        "{text}"
    );
    assert!(
        text.contains("docker0: serves as no access: serves containers\n"),
        "{text}"
    );
}

#[test]
fn what_tells_least_gives_way() {
    for (width, there, gone) in [
        (170, "endpoint", None),
        (145, "received", Some("endpoint")),
        (100, "state", Some("received")),
        (80, "rx", Some("kind")),
        (75, "rx", Some("loss")),
    ] {
        let style = Style {
            width,
            colour: false,
        };
        let text = shown().text(Output::Terminal(style));
        let mut lines = text.lines().take(9);
        assert!(lines.all(|l| l.chars().count() <= width), "{text}");
        // Nothing is wrapped: the table's header is one line between two others.
        let header = text.lines().nth(3).unwrap();
        assert!(
            header.contains("Mbit/s") && header.contains("access"),
            "{text}"
        );
        assert!(text.contains(there), "{text}");
        assert!(gone.is_none_or(|g| !text.contains(g)), "{text}");
    }
}

#[test]
fn one_access_has_no_sum_beside_it() {
    let mut one = shown();
    one.accesses.pop();
    assert!(
        !one.text(Output::Plain).contains("\nsum"),
        "one row is enough"
    );
}

#[test]
fn json_has_units_in_its_names() {
    let v = serde_json::to_value(shown()).unwrap();
    assert_eq!(v["accesses"][0]["sent_mbps"], 120.0);
    assert_eq!(v["accesses"][0]["loss"], 0.01);
    assert_eq!(v["accesses"][0]["sent_bytes"], 1_500_000);
    assert_eq!(v["accesses"].as_array().unwrap().len(), 2, "{v}");
    assert_eq!(v["accesses"][1]["why"], "nothing came back for 240 ms");
    assert_eq!(v["connections"]["mptcp"], 1);
    assert!(v["list"][0]["token"].is_u64(), "{v}");
}

#[test]
fn hosts_and_programs_are_a_line() {
    let line = |text: &str| {
        let lan: LanStatus = serde_json::from_str(text).unwrap();
        hosts(&lan)
    };
    assert_eq!(
        line(r#"{"interfaces": ["lan0", "lan1"], "kill_switch": false, "connections": 1}"#),
        "hosts on lan0, lan1: 1 connection over the bond, no tunnel, kill switch off\n"
    );
    let programs = r#""programs": true, "programs_kill_switch": true"#;
    assert_eq!(
        line(&format!(
            r#"{{"interfaces": [], "kill_switch": false, "connections": 2, {programs}, "tunnel": ["10.137.0.7"],
                "no_packets": "no"}}"#
        )),
        "programs of this device: 2 connections over the bond, tunnel from 10.137.0.7, kill switch on\n\
         programs of this device: packets beside TCP: no\n"
    );
    for (hosts, switch) in [(true, "on"), (false, "on for programs alone")] {
        let text = format!(
            r#"{{"interfaces": ["lan0"], "kill_switch": {hosts}, "connections": 0, {programs}}}"#
        );
        assert_eq!(
            line(&text),
            format!(
                "hosts on lan0 and programs of this device: 0 connections over the bond, no tunnel, \
                 kill switch {switch}\n"
            )
        );
    }
}
