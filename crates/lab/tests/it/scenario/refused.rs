//! Errors in a scenario point at their place.

use braid_lab::scenario::{Overrides, Scenario};
use proptest::prelude::*;

use super::{GOOD, parse};

/// The message for `GOOD` with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from} is not in the scenario");
    let text = GOOD.replacen(from, to, 1);
    match parse(&text) {
        Ok(_) => panic!("accepted: {to}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let cases = [
        (
            "delay = \"10 ms\", queue",
            "dealy = \"10 ms\", queue",
            "t.toml:8:",
            "did you mean `delay`?",
        ),
        ("kind = \"5g\"", "kind = \"6g\"", "t.toml:7:", "`5g`"),
        ("\"300 Mbit/s\"", "\"300 MB/s\"", "t.toml:8:", "Mbit/s"),
        ("\"300 Mbit/s\"", "300", "t.toml:8:", "in quotes"),
        (
            "\"300 Mbit/s\"",
            "\"0 bit/s\"",
            "t.toml:8:",
            "set = \"down\"",
        ),
        ("loss = 1e-3", "loss = 1.5", "t.toml:8:", "0 to 1"),
        (
            "queue = \"60 ms\"",
            "queue = \"60 apples\"",
            "t.toml:8:",
            "packets",
        ),
        (
            "[\"5 s\", \"50 Mbit/s\"]",
            "[\"0 s\", \"50 Mbit/s\"]",
            "t.toml:13:",
            "ascend",
        ),
        (
            "access = \"wifi\"",
            "access = \"wlan\"",
            "t.toml:17:",
            "no access \"wlan\"",
        ),
        (
            "set = \"down\"",
            "set = \"dwon\"",
            "t.toml:24:",
            "did you mean \"down\"?",
        ),
        (
            "times = 4",
            "times = 4\nuntil = 3",
            "t.toml:27:",
            "unknown key",
        ),
        ("every = \"5 s\"\n", "", "t.toml:25:", "`every`"),
        (
            "at = \"8 s\"",
            "at = \"20 s\"",
            "t.toml:16:",
            "after the end",
        ),
        (
            "at = \"3 s\"",
            "at = \"21 s\"",
            "t.toml:22:",
            "after the end",
        ),
        (
            "engine = \"tcp\"\naccess = \"nr\"",
            "engine = \"tcp\"",
            "t.toml:30:",
            "`access`",
        ),
        (
            "engine = \"mptcp\"",
            "engine = \"mtcp\"",
            "t.toml:36:",
            "did you mean \"mptcp\"?",
        ),
        (
            "traffic = \"request-response\"",
            "traffic = \"ping\"",
            "t.toml:38:",
            "request-response",
        ),
        (
            "bytes = \"16 MB\"",
            "rate = \"1 Mbit/s\"",
            "t.toml:32:",
            "no key `rate`",
        ),
        (
            "warmup = \"2 s\"",
            "warmup = \"20 s\"",
            "t.toml:4:",
            "shorter",
        ),
        ("name = \"t\"", "name = \"a/b\"", "t.toml:2:", "letters"),
        (
            "cc = \"bbr\"",
            "weights = { nr = 1 }",
            "t.toml:37:",
            "weights",
        ),
        (
            "cc = \"bbr\"",
            "scheduler = \"default\"\nweights = { nr = 1 }",
            "t.toml:38:",
            "wrr",
        ),
        (
            "cc = \"bbr\"",
            "scheduler = \"wrr\"\nweights = { wlan = 1 }",
            "t.toml:38:",
            "no access \"wlan\"",
        ),
        (
            "cc = \"bbr\"",
            "scheduler = \"wrr\"\nwrr_mode = \"strikt\"",
            "t.toml:38:",
            "did you mean \"strict\"?",
        ),
        (
            "cc = \"bbr\"",
            "scheduler = \"redundant\"\nwrr_mode = \"strict\"",
            "t.toml:38:",
            "only the schedulers \"rr\" and \"wrr\"",
        ),
        (
            "cc = \"bbr\"",
            "scheduler = \"rr\"\nnum_segments = 0",
            "t.toml:38:",
            "1 to 255",
        ),
        (
            "cc = \"bbr\"",
            "scheduler = \"rr\"\npenalise = true",
            "t.toml:38:",
            "only the scheduler \"minrtt\"",
        ),
        (
            "cc = \"bbr\"",
            "scheduler = \"a scheduler of mine\"",
            "t.toml:37:",
            "15 letters",
        ),
        (
            "set = \"down\"",
            "weights = { nr = 1 }",
            "t.toml:",
            "`weights` alone",
        ),
        (
            "name = \"mptcp\"",
            "name = \"tcp\"",
            "t.toml:35:",
            "two cases",
        ),
        (
            "rate = \"300 Mbit/s\"",
            "trace = \"no.csv\"",
            "t.toml:8:",
            "no.csv",
        ),
        ("duration = \"20 s\"", "duration = 20 s", "t.toml:3:", ""),
    ];
    for (from, to, place, hint) in cases {
        let message = refused(from, to);
        assert!(message.starts_with(place), "{to}: {message}");
        assert!(message.contains(hint), "{to}: {message}");
    }
}

#[test]
fn both_a_rate_and_a_trace_are_refused() {
    let m = refused(
        "rate = \"300 Mbit/s\"",
        "rate = \"1 Mbit/s\", trace = \"x.csv\"",
    );
    assert!(m.contains("both"), "{m}");
}

#[test]
fn an_unknown_scenario_names_the_shipped_ones() {
    let e = Scenario::load("sttic", &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(e.contains("did you mean static?"), "{e}");
    let e = Scenario::load("no/such.toml", &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("no/such.toml") && e.contains("No such file"),
        "{e}"
    );
}

#[test]
fn an_unreadable_trace_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("bad.csv"),
        "t_s,a_mbps\n0,10\n1,ten\n2,10\n",
    )
    .unwrap();
    let text = GOOD.replacen("rate = \"300 Mbit/s\"", "trace = \"bad.csv\"", 1);
    let path = dir.path().join("s.toml");
    std::fs::write(&path, text).unwrap();
    let e = Scenario::load(path.to_str().unwrap(), &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(e.contains("s.toml:8:") && e.contains("bad.csv:3"), "{e}");
}

proptest! {
    #[test]
    fn mangled_scenarios_never_panic(at in 0usize..GOOD.len(), cut in 0usize..40, insert in "[ -~\n]{0,12}") {
        let mut text = GOOD.to_owned();
        let end = (at + cut).min(text.len());
        text.replace_range(at..end, &insert);
        let _ = parse(&text);
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,300}") {
        let _ = parse(&text);
    }
}
