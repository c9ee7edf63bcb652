//! Scenarios whose accesses follow a path plan.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use braid_core::Rate;
use braid_lab::scenario::{Action, Case, Diagnostic, Overrides, Scenario};
use braid_radio::model::{DelaySpec, RateSpec};

const PLAN: &str = "t_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address
0,1,up,op1,1800,A,10,20,1
0,2,down,,,,,,
0,3,down,,,,,,
2,1,up,op1,1800,A,8,18,1
4,1,handover,op2,2100,B,40,30,2
4.05,1,up,op2,2100,B,40,30,2
5,2,up,op1,800,C,5,15,1
6,2,handover,op1,800,D,6,16,1
6.05,2,up,op1,800,D,6,16,1
8,2,down,,,,,,
20,,end,,,,,,
";
const IDEAL: &str = "t_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address
0,1,up,op1,1800,A,10,20,1
4,1,up,op2,2100,B,40,30,1
20,,end,,,,,,
";
const GOOD: &str = r#"name = "p"
duration = "10 s"
[plan]
file = "two.plan.csv"
ideal = "sp.plan.csv"
down = { queue = "50 ms" }
[[variant]]
name = "2"
[[variant]]
name = "sp"
plan = "sp.plan.csv"
[[case]]
name = "q"
engine = "mpquic"
traffic = "bulk"
[[case]]
name = "w"
variants = ["2"]
engine = "mpquic"
scheduler = "wrr"
weights = { if1 = 1, if2 = 1 }
traffic = "bulk"
"#;

fn parse(text: &str) -> Result<Scenario, Diagnostic> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("two.plan.csv"), PLAN).unwrap();
    std::fs::write(dir.path().join("sp.plan.csv"), IDEAL).unwrap();
    Scenario::parse(text, Path::new("p.toml"), dir.path(), &Overrides::default())
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn mbps(n: f64) -> Rate {
    Rate::from_mbps(n)
}

fn what(case: &Case) -> Vec<(u64, &str, &Action)> {
    let all = case.events.iter();
    all.map(|e| (e.at.as_millis() as u64, e.access.as_str(), &e.action))
        .collect()
}

#[test]
fn every_interface_is_an_access_and_every_change_an_event() {
    let s = parse(GOOD).unwrap();
    let names: Vec<_> = s.cases.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["2: q", "2: w", "sp: q"]);
    let case = &s.cases[0];
    let accesses: Vec<_> = case.accesses.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(accesses, ["if1", "if2"], "interface 3 never has a cell");
    let RateSpec::Steps { points, period } = &case.accesses[0].down.rate else {
        panic!("steps");
    };
    assert_eq!(*period, None);
    let rates = [(0, 10.0), (2000, 8.0), (4000, 0.0), (4050, 40.0)];
    assert_eq!(*points, rates.map(|(t, r)| (ms(t), mbps(r))));
    assert_eq!(case.accesses[0].up.rate, case.accesses[0].down.rate);
    // 46 Mbit/s need no send buffers of 4 MB.
    assert!(case.tcp_wmem[1] < 2_000_000, "{:?}", case.tcp_wmem);
    let DelaySpec::Steps { points, .. } = &case.accesses[0].up.delay else {
        panic!("steps");
    };
    let delays = [(0, 20), (2000, 18), (4000, 30)];
    assert_eq!(*points, delays.map(|(t, d)| (ms(t), ms(d))));
    // A new address takes the link down, a new cell alone only pauses it.
    let expected = [
        (0, "if2", &Action::Down),
        (4000, "if1", &Action::Down),
        (4050, "if1", &Action::Address(2)),
        (4050, "if1", &Action::Up),
        (5000, "if2", &Action::Up),
        (6000, "if2", &Action::Blackhole),
        (6050, "if2", &Action::Up),
        (8000, "if2", &Action::Down),
    ];
    assert_eq!(what(case), expected);
    assert!(what(&s.cases[2]).is_empty());
    let Some(RateSpec::Steps { points, .. }) = &case.ideal else {
        panic!("an ideal path");
    };
    assert_eq!(*points, [(ms(0), mbps(10.0)), (ms(4000), mbps(40.0))]);
}

#[test]
fn a_later_start_counts_from_there() {
    let text = GOOD.replace("[plan]\n", "[plan]\nstart = \"5500 ms\"\n");
    let case = &parse(&text).unwrap().cases[0];
    let accesses: Vec<_> = case.accesses.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(accesses, ["if1", "if2"]);
    let expected = [
        (500, "if2", &Action::Blackhole),
        (550, "if2", &Action::Up),
        (2500, "if2", &Action::Down),
    ];
    assert_eq!(what(case), expected);
    let RateSpec::Steps { points, .. } = &case.accesses[0].down.rate else {
        panic!("steps");
    };
    assert_eq!(*points, [(ms(0), mbps(40.0))]);

    // In the middle of a handover: the interface comes up with the first address that the
    // run knows.
    let text = GOOD.replace("[plan]\n", "[plan]\nstart = \"4020 ms\"\n");
    let case = &parse(&text).unwrap().cases[0];
    assert_eq!(
        what(case)[..2],
        [(0, "if1", &Action::Down), (0, "if2", &Action::Down),]
    );
    assert_eq!(what(case)[2], (30, "if1", &Action::Up));
}

#[test]
fn weights_can_be_those_of_the_plan() {
    let text = GOOD.replace("{ if1 = 1, if2 = 1 }", "\"plan\"");
    let scenario = parse(&text).unwrap();
    let case = scenario.cases.iter().find(|c| c.base_name == "w").unwrap();
    let of = |all: &[(&str, f64)]| all.iter().map(|(a, w)| ((*a).to_owned(), *w)).collect();
    assert_eq!(case.weights, Some(of(&[("if1", 10.0), ("if2", 5.0)])));
    let changes = case.events.iter().filter_map(|e| match &e.action {
        Action::Weights(w) => Some((e.at, w.clone())),
        _ => None,
    });
    // None where an interface has no cell: it comes back with what it can do then.
    let expected = [
        (ms(2000), of(&[("if1", 8.0)])),
        (ms(4050), of(&[("if1", 40.0)])),
        (ms(5000), of(&[("if2", 5.0)])),
        (ms(6050), of(&[("if2", 6.0)])),
    ];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
    let given = parse(GOOD).unwrap();
    let constant = given.cases.iter().find(|c| c.base_name == "w").unwrap();
    assert_eq!(constant.events.len() + expected.len(), case.events.len());
}

/// `campaigns/downloads` has every scheduler that takes part in both engines.
#[test]
fn the_shipped_campaign_is_a_scenario() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/downloads");
    let text = std::fs::read_to_string(root.join("scenario.toml")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("plans")).unwrap();
    for (case, plan) in [
        ("sp", IDEAL),
        ("1", IDEAL),
        ("2", PLAN),
        ("3", PLAN),
        ("4", PLAN),
    ] {
        let name = format!("plans/drive.{case}.plan.csv");
        std::fs::write(dir.path().join(name), plan).unwrap();
    }
    let overrides = Overrides {
        duration: Some(ms(10_000)),
        ..Overrides::default()
    };
    let scenario = Scenario::parse(&text, Path::new("d.toml"), dir.path(), &overrides).unwrap();
    let names: BTreeSet<&str> = scenario.cases.iter().map(|c| &*c.name).collect();
    let has = |interfaces: &str, engine: &str, what: &str| {
        let name = format!("{interfaces}: {engine}{what}");
        assert!(names.contains(&*name), "{name}");
    };
    for interfaces in ["sp", "1", "2", "3", "4"] {
        let controls = ["reno", "cubic", "cubic, expecting", "bbr"];
        controls
            .iter()
            .for_each(|cc| has(interfaces, "MP-QUIC ", cc));
        has(interfaces, "MPTCP", "");
    }
    // `minrtt` is what Multipath QUIC has without a word.
    let both = [
        "rr",
        "wrr",
        "redundant",
        "active-standby",
        "priority-based",
        "blest",
        "ecf",
    ];
    for interfaces in ["2", "3", "4"] {
        both.iter().for_each(|s| has(interfaces, "MP-QUIC ", s));
        both.iter().for_each(|s| has(interfaces, "MPTCP ", s));
        has(interfaces, "MP-QUIC ", "smallest-delay");
        has(interfaces, "MPTCP ", "minrtt");
    }
    for case in &scenario.cases {
        let named = both.iter().find(|s| case.name.ends_with(&format!(" {s}")));
        assert!(
            named.is_none_or(|s| case.scheduler.as_deref() == Some(*s)),
            "{}",
            case.name
        );
    }
}

#[test]
fn an_uplink_can_have_a_rate_of_its_own() {
    let text = GOOD.replace(
        "[[variant]]\nname = \"2\"",
        "up = { rate = \"5 Mbit/s\" }\n[[variant]]\nname = \"2\"",
    );
    let case = &parse(&text).unwrap().cases[0];
    assert_eq!(case.accesses[0].up.rate, RateSpec::Constant(mbps(5.0)));
    assert!(matches!(case.accesses[0].up.delay, DelaySpec::Steps { .. }));
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (from, to, place, hint) in [
        ("\"two.plan.csv\"", "\"no.csv\"", "4:8", "cannot read"),
        ("file = \"two.plan.csv\"\n", "", "p.toml", "names no `file`"),
        ("\"10 s\"", "\"21 s\"", "2:12", "20s are left"),
        ("[plan]\n", "[plan]\nstart = \"20 s\"\n", "4:9", "ends at"),
        ("queue =", "delay = \"1 ms\", queue =", "6:8", "`delay`"),
        ("queue =", "rate = \"1 Mbit/s\", queue =", "6:8", "`rate`"),
        ("ideal = \"sp", "ideal = \"two", "5:9", "one interface"),
        ("if2 = 1", "if3 = 1", "21:11", "no access \"if3\""),
        (
            "{ if1 = 1, if2 = 1 }",
            "\"plans\"",
            "21:11",
            "\"plan\" or a table",
        ),
        ("[\"2\"]", "[\"3\"]", "18:13", "unknown variant \"3\""),
        ("[plan]\n", "[plan]\nfil = \"x\"\n", "4:1", "did you mean"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let e = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        let at = e.contains(place) && e.contains(hint);
        assert!(at, "{from} -> {to}: {e}");
    }
    let without = GOOD.replace(
        "[plan]\nfile = \"two.plan.csv\"\nideal = \"sp.plan.csv\"\ndown = { queue = \"50 ms\" }\n",
        "[access]\nif1 = { kind = \"lte\", down = { rate = \"1 Mbit/s\" } }\n\
         if2 = { kind = \"lte\", down = { rate = \"1 Mbit/s\" } }\n",
    );
    let e = parse(&without).unwrap_err().to_string();
    assert!(e.contains("no [plan]"), "{e}");
    let weighed = without.replace("plan = \"sp.plan.csv\"\n", "");
    let weighed = weighed.replace("{ if1 = 1, if2 = 1 }", "\"plan\"");
    let e = parse(&weighed).unwrap_err().to_string();
    assert!(e.contains("no [plan] whose rates"), "{e}");
    let broken = GOOD.replace("ideal = \"sp.plan.csv\"", "ideal = \"p.toml\"");
    assert!(parse(&broken).is_err());
}
