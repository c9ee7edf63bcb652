//! Policies and estimators of cases.

use std::collections::BTreeMap;

use braid_api::config::{Estimator, Policy};
use braid_lab::scenario::{Case, Scenario};

use super::{GOOD, parse};

/// `GOOD` with `keys` in its case over MPTCP, and `top` at the top.
fn text(top: &str, keys: &str) -> String {
    GOOD.replacen("warmup", &format!("{top}\nwarmup"), 1)
        .replacen("cc = \"bbr\"", keys, 1)
}

fn mptcp(s: &Scenario) -> &Case {
    s.cases.iter().find(|c| c.name == "mptcp").unwrap()
}

#[test]
fn a_policy_brings_the_scheduler_that_follows_it() {
    let s = parse(&text("", "policy = \"capacity\"")).unwrap();
    let (tcp, capacity) = (&s.cases[0], mptcp(&s));
    assert_eq!(
        (tcp.policy, capacity.policy),
        (Policy::Static, Policy::Capacity)
    );
    assert_eq!(capacity.scheduler.as_deref(), Some("wrr"));
    // What it begins with is a table.
    let keys = "policy = \"capacity\"\nwrr_mode = \"strict\"\nweights = { nr = 30 }";
    let s = parse(&text("", keys)).unwrap();
    let weights = BTreeMap::from([("nr".to_owned(), 30.0)]);
    assert_eq!(mptcp(&s).weights.as_ref(), Some(&weights));
    // What a guest is told is what was read.
    let told = serde_json::to_string(&s).unwrap();
    let heard: Scenario = serde_json::from_str(&told).unwrap();
    assert_eq!(heard.cases, s.cases);
}

#[test]
fn the_policy_of_the_scenario_is_that_of_cases_with_weights() {
    let policies = |keys: &str| {
        let s = parse(&text("policy = \"capacity\"", keys)).unwrap();
        (s.cases[0].policy, mptcp(&s).policy)
    };
    assert_eq!(policies(""), (Policy::Static, Policy::Capacity));
    let none = "policy = \"static\"\nscheduler = \"rr\"";
    assert_eq!(policies(none), (Policy::Static, Policy::Static));
}

#[test]
fn an_access_has_the_estimator_of_the_case_before_its_own() {
    let up = |keys: &str, access: &str| {
        let all = text("", &format!("policy = \"capacity\"\nexpect = 0.9\n{keys}"));
        let all = all.replacen(
            "traffic = \"request-response\"",
            "traffic = { kind = \"bulk\", direction = \"up\" }",
            1,
        );
        let s = parse(&all.replacen("kind = \"wifi\"", &format!("kind = \"wifi\"\n{access}"), 1))
            .unwrap();
        let of = |a: &braid_lab::scenario::AccessSetup| a.estimator;
        (of(&mptcp(&s).accesses[0]), of(&mptcp(&s).accesses[1]))
    };
    use Estimator::{Expected, Passive};
    assert_eq!(up("", ""), (Passive, Passive));
    assert_eq!(up("", "estimator = \"expected\""), (Passive, Expected));
    assert_eq!(
        up("estimator = \"passive\"", "estimator = \"expected\""),
        (Passive, Passive)
    );
    assert_eq!(up("estimator = \"expected\"", ""), (Expected, Expected));
}

#[test]
fn probed_accesses_have_the_transfers_of_the_case() {
    let of = |keys: &str| {
        let s = parse(&text("", &format!("policy = \"capacity\"\n{keys}"))).unwrap();
        let probed = mptcp(&s)
            .accesses
            .iter()
            .all(|a| a.estimator == Estimator::Probe);
        (probed, mptcp(&s).probes.clone())
    };
    assert_eq!(of(""), (false, None));
    let (probed, transfers) = of("estimator = \"probe\"");
    assert!(probed && transfers.is_some());
    let given = "probes = { flows = 4, duration = \"500 ms\", interval = \"5 s\" }";
    let (_, transfers) = of(&format!("estimator = \"probe\"\n{given}"));
    let transfers = transfers.unwrap();
    let ms = |d: std::time::Duration| d.as_millis();
    assert_eq!(
        (
            transfers.flows,
            ms(transfers.duration),
            ms(transfers.interval)
        ),
        (4, 500, 5000)
    );
}

#[test]
fn what_no_policy_reaches_is_refused_at_its_place() {
    let refused = |text: String, place: &str, hint: &str| {
        let m = parse(&text).map(drop).unwrap_err().to_string();
        assert!(m.starts_with(place) && m.contains(hint), "{m}");
    };
    let case = |keys: &str| text("", keys);
    refused(
        case("policy = \"capasity\""),
        "t.toml:38:10:",
        "did you mean \"capacity\"?",
    );
    refused(
        text("policy = \"dynamic\"", ""),
        "t.toml:4:10:",
        "expected static, capacity",
    );
    refused(
        GOOD.replacen(
            "access = \"nr\"\ntraffic",
            "access = \"nr\"\npolicy = \"capacity\"\ntraffic",
            1,
        ),
        "t.toml:32:10:",
        "plain TCP has one: expected engine = \"mptcp\" or \"mpquic\"",
    );
    refused(
        case("policy = \"capacity\"\nscheduler = \"rr\""),
        "t.toml:39:13:",
        "which scheduler \"rr\" does not follow: write scheduler = \"wrr\"",
    );
    refused(
        text("policy = \"capacity\"", "scheduler = \"blest\""),
        "t.toml:38:13:",
        "or policy = \"static\" in this case",
    );
    refused(
        case("policy = \"capacity\"\nweights = \"plan\""),
        "t.toml:39:11:",
        "decides the weights: expected a table",
    );
    refused(
        case("estimator = \"passive\""),
        "t.toml:38:13:",
        "add policy = \"capacity\"",
    );
    let expected = |keys: &str| case(&format!("policy = \"capacity\"\nestimator = \"{keys}"));
    refused(
        expected("pasive\""),
        "t.toml:39:13:",
        "did you mean \"passive\"?",
    );
    let with = |text: String, traffic: &str| text.replacen("\"request-response\"", traffic, 1);
    let up = |text: String| with(text, "{ kind = \"bulk\", direction = \"up\" }");
    let down = |text: String| with(text, "\"bulk\"");
    refused(up(expected("expected\"")), "t.toml:39:13:", "add `expect`");
    refused(
        down(expected("expected\"")),
        "t.toml:39:13:",
        "the proxy decides",
    );
    refused(
        down(expected("passive\"\nexpect = 1.0")),
        "t.toml:40:10:",
        "does not tell the proxy",
    );
    refused(
        case("expect = 1.0"),
        "t.toml:38:10:",
        "or policy = \"capacity\" in the case",
    );
    let probes = |keys: &str| case(&format!("policy = \"capacity\"\n{keys}"));
    refused(
        probes("probes = { flows = 4 }"),
        "t.toml:39:10:",
        "no access of this case has the estimator \"probe\"",
    );
    refused(
        probes("estimator = \"probe\"\nprobes = { flows = 40 }"),
        "t.toml:40:10:",
        "expected 1 to 32 flows",
    );
    refused(
        probes("estimator = \"probe\"\nprobes = { duration = \"5 s\", interval = \"6 s\" }"),
        "t.toml:40:10:",
        "an interval of the duration and 3 s",
    );
    refused(
        probes("estimator = \"probe\"\nprobes = { every = \"6 s\" }"),
        "t.toml:40:12:",
        "interval",
    );
    let at_access = GOOD.replacen("kind = \"5g\"", "kind = \"5g\"\nestimator = \"passive\"", 1);
    refused(at_access, "t.toml:8:13:", "no case has one that decides");
}

#[test]
fn other_devices_have_no_estimators() {
    let device = "\n[device.other]\n[device.other.access.nr]\nkind = \"5g\"\n\
                  estimator = \"passive\"\ndown = { rate = \"1 Mbit/s\" }\n";
    let m = parse(&format!("{GOOD}{device}")).unwrap_err().to_string();
    assert!(m.contains("other devices have no policy"), "{m}");
}
