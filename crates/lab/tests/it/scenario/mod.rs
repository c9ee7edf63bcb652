//! Reading scenarios: what is accepted, what is refused, and what is said then.

mod kinds;
mod policy;
mod refused;
mod values;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use braid_core::Rate;
use braid_core::sched::WrrMode;
use braid_lab::scenario::{
    Action, Bulk, Case, Diagnostic, Engine, Overrides, Scenario, Tcp, Traffic, shipped,
};
use braid_mptcp::buffers::TCP_WMEM;
use braid_radio::model::{DelaySpec, LinkChange, LossSpec, QueueSpec, RateSpec};

const GOOD: &str = r#"# What it is about.
name = "t"
duration = "20 s"
warmup = "2 s"

[access.nr]
kind = "5g"
down = { rate = "300 Mbit/s", delay = "10 ms", queue = "60 ms", loss = 1e-3 }
up = { rate = "60 Mbit/s", delay = "10 ms" }

[access.wifi]
kind = "wifi"
down = { rate = [["0 s", "600 Mbit/s"], ["5 s", "50 Mbit/s"]], queue = "500 packets" }

[[event]]
at = "8 s"
access = "wifi"
set = { rate = "50 Mbit/s" }
direction = "down"

[[event]]
at = "3 s"
access = "nr"
set = "down"
every = "5 s"
times = 4

[[case]]
name = "tcp"
engine = "tcp"
access = "nr"
traffic = { kind = "bulk", bytes = "16 MB", direction = "up" }

[[case]]
name = "mptcp"
engine = "mptcp"
cc = "bbr"
traffic = "request-response"
"#;

fn parse_with(text: &str, o: &Overrides) -> Result<Scenario, Diagnostic> {
    Scenario::parse(text, Path::new("t.toml"), Path::new("/nonexistent"), o)
}

fn parse(text: &str) -> Result<Scenario, Diagnostic> {
    parse_with(text, &Overrides::default())
}

#[test]
fn a_whole_scenario_is_read() {
    let s = parse(GOOD).unwrap();
    assert_eq!(s.description, "What it is about.");
    assert_eq!(s.cases.len(), 2);
    let c = &s.cases[0];
    assert_eq!(
        c.engine,
        Engine::Tcp(Tcp {
            access: "nr".into()
        })
    );
    assert!(matches!(
        c.traffic,
        Traffic::Bulk(Bulk {
            bytes: Some(16_000_000),
            ..
        })
    ));
    assert_eq!(
        (c.duration, c.warmup),
        (Duration::from_secs(20), Duration::from_secs(2))
    );
    let nr = &c.accesses[0];
    assert_eq!(
        nr.down.rate,
        RateSpec::Constant(Rate::from_bps(300_000_000))
    );
    assert_eq!(nr.down.loss, LossSpec::Bernoulli(1e-3));
    assert_eq!(nr.down.queue, QueueSpec::Time(Duration::from_millis(60)));
    // An uplink that is not described mirrors the downlink.
    assert_eq!(c.accesses[1].up, c.accesses[1].down);
    assert_ne!(nr.up.rate, nr.down.rate);
}

#[test]
fn events_repeat_in_order_of_time() {
    let s = parse(GOOD).unwrap();
    let at: Vec<u64> = s.cases[0].events.iter().map(|e| e.at.as_secs()).collect();
    assert_eq!(at, [3, 8, 8, 13, 18]);
    let change = s.cases[0]
        .events
        .iter()
        .find(|e| e.access == "wifi")
        .unwrap();
    assert_eq!(change.label, "rate 50 Mbit/s");
    match &change.action {
        Action::Change { down, up } => {
            assert_eq!(down.len(), 1);
            assert!(matches!(down[0], LinkChange::Rate(_)));
            assert!(up.is_empty());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn schedulers_and_weights_are_read() {
    let text = GOOD.replace(
        "cc = \"bbr\"",
        "scheduler = \"wrr\"\nwrr_mode = \"work-conserving\"\nnum_segments = 4\n\
         weights = { nr = 30, wifi = 2.5 }",
    ) + "\n[[event]]\nat = \"3 s\"\nweights = { nr = 1 }\n";
    let s = parse(&text).unwrap();
    let weighted = s.cases.iter().find(|c| c.weights.is_some()).unwrap();
    assert_eq!(weighted.scheduler.as_deref(), Some("wrr"));
    assert_eq!(weighted.wrr_mode, Some(WrrMode::WorkConserving));
    assert_eq!(weighted.num_segments, Some(4));
    let weights = BTreeMap::from([("nr".to_owned(), 30.0), ("wifi".to_owned(), 2.5)]);
    assert_eq!(weighted.weights.as_ref(), Some(&weights));
    let changes = |c: &Case| {
        let of = c
            .events
            .iter()
            .filter(|e| matches!(e.action, Action::Weights(_)));
        of.map(|e| (e.at, e.label.clone())).collect::<Vec<_>>()
    };
    assert_eq!(
        changes(weighted),
        [(Duration::from_secs(3), "weights nr=1".to_owned())]
    );
    // It concerns nobody else.
    for c in s.cases.iter().filter(|c| c.weights.is_none()) {
        assert_eq!(changes(c), []);
    }
    // What a guest is told is what was read.
    let told = serde_json::to_string(&s).unwrap();
    let heard: Scenario = serde_json::from_str(&told).unwrap();
    assert_eq!(heard.cases, s.cases);
    assert_eq!(heard.media, s.media);
}

#[test]
fn events_may_concern_some_cases_alone() {
    let weighted = |name: &str| {
        format!(
            "[[case]]\nname = \"{name}\"\nengine = \"mptcp\"\nscheduler = \"wrr\"\n\
             weights = {{ nr = 1 }}\ntraffic = \"bulk\"\n"
        )
    };
    let event = "[[event]]\nat = \"4 s\"\nweights = { nr = 2 }\ncases = [\"follows\"]\n";
    let text = format!(
        "{GOOD}\n{}{}{event}",
        weighted("stays"),
        weighted("follows")
    );
    let s = parse(&text).unwrap();
    let changes = |name: &str| {
        let case = s.cases.iter().find(|c| c.name == name).unwrap();
        let mut events = case.events.iter();
        events.any(|e| matches!(e.action, Action::Weights(_)))
    };
    assert_eq!((changes("follows"), changes("stays")), (true, false));
    let wrong = text.replace("[\"follows\"]", "[\"folows\"]");
    let m = parse(&wrong).unwrap_err().to_string();
    assert!(
        m.starts_with("t.toml:55:10: unknown case \"folows\""),
        "{m}"
    );
    assert!(m.contains("did you mean \"follows\"?"), "{m}");
}

#[test]
fn variants_change_links_and_name_cases() {
    let text = format!(
        "{GOOD}\n[[variant]]\nname = \"slow\"\naccess.nr.down = {{ rate = \"1 Mbit/s\" }}\n[[variant]]\nname = \"as is\"\n"
    );
    let s = parse(&text).unwrap();
    assert_eq!(s.cases.len(), 4);
    assert_eq!(s.cases[0].name, "slow: tcp");
    assert_eq!(
        s.cases[0].accesses[0].down.rate,
        RateSpec::Constant(Rate::from_bps(1_000_000))
    );
    // What the variant does not name stays.
    assert_eq!(
        s.cases[0].accesses[0].down.delay,
        s.cases[2].accesses[0].down.delay
    );
    let only = Overrides {
        only: vec!["as is".into()],
        ..Overrides::default()
    };
    assert_eq!(parse_with(&text, &only).unwrap().cases.len(), 2);
    let wrong = Overrides {
        only: vec!["as was".into()],
        ..Overrides::default()
    };
    let m = parse_with(&text, &wrong).unwrap_err().to_string();
    assert!(m.contains("as was") && m.contains("slow: tcp"), "{m}");
}

#[test]
fn a_variant_may_take_longer() {
    let text =
        format!("{GOOD}\n[[variant]]\nname = \"far\"\nduration = \"40 s\"\nwarmup = \"10 s\"\n");
    let s = parse(&text).unwrap();
    assert_eq!(s.cases[0].duration, Duration::from_secs(40));
    assert_eq!(s.cases[0].warmup, Duration::from_secs(10));
}

#[test]
fn buffers_of_sockets_are_three_rising_sizes() {
    let text = |sizes: &str| format!("{GOOD}\n[network]\ntcp_rmem = {sizes}\n");
    let s = parse(&text("[4096, 131072, 6291456]")).unwrap();
    assert_eq!(s.network.tcp_rmem, Some([4096, 131_072, 6_291_456]));
    assert_eq!(s.cases[0].tcp_rmem, s.network.tcp_rmem);
    // Send buffers begin as the accesses' rates ask.
    assert_eq!(s.network.tcp_wmem, None);
    let [least, initial, greatest] = s.cases[0].tcp_wmem;
    assert_eq!([least, greatest], [TCP_WMEM[0], TCP_WMEM[2]]);
    assert!((262_144..=TCP_WMEM[1]).contains(&initial), "{initial}");
    for wrong in [
        "[4096, 16, 6291456]",
        "[0, 1, 2]",
        "[4096, 4096, 2147483648]",
    ] {
        let m = parse(&text(wrong)).unwrap_err().to_string();
        assert!(m.contains("rising, from 4096"), "{m}");
    }
    assert!(parse(&text("[4096, 4096]")).is_err());
}

#[test]
fn names_of_cases_may_have_commas() {
    let text = GOOD.replacen("name = \"mptcp\"", "name = \"mptcp, all of it\"", 1);
    assert_ne!(text, GOOD);
    let only = |given: &str| {
        let o = Overrides {
            only: vec![given.to_owned()],
            ..Overrides::default()
        };
        parse_with(&text, &o).map(|s| s.cases.iter().map(|c| c.name.clone()).collect::<Vec<_>>())
    };
    let all: Vec<_> = parse(&text).unwrap().cases;
    let other = all.iter().find(|c| !c.name.contains(',')).unwrap();
    assert_eq!(only("mptcp, all of it").unwrap(), ["mptcp, all of it"]);
    let both = only(&format!("{}, mptcp, all of it", other.name)).unwrap();
    assert_eq!(both.len(), 2, "{both:?}");
    let e = only("mptcp, all of them").unwrap_err().to_string();
    assert!(e.contains("no case is called \"mptcp\""), "{e}");
}

#[test]
fn the_command_line_overrides() {
    let o = Overrides {
        duration: Some(Duration::from_secs(19)),
        scale: Some(0.1),
        seed: Some(9),
        only: vec!["mptcp".into()],
    };
    let s = parse_with(GOOD, &o).unwrap();
    assert_eq!(s.seed, 9);
    assert_eq!(s.cases.len(), 1);
    let c = &s.cases[0];
    assert_eq!(
        (c.duration, c.warmup),
        (Duration::from_secs(19), Duration::from_secs(2))
    );
    assert_eq!(
        c.accesses[0].down.rate,
        RateSpec::Constant(Rate::from_bps(30_000_000))
    );
    assert_eq!(c.accesses[1].down.queue, QueueSpec::Packets(50));
    assert_eq!(c.events.len(), 5);
}

#[test]
fn delay_and_loss_follow_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let trace = "t_s,nr_mbps,nr_ms,nr_loss\n0,100,12.5,0\n1,90,20,0.01\n";
    std::fs::write(dir.path().join("nr.csv"), trace).unwrap();
    let parse = |link: &str| {
        let text = GOOD.replacen(
            "down = { rate = \"300 Mbit/s\", delay = \"10 ms\", queue = \"60 ms\", loss = 1e-3 }",
            &format!("down = {{ {link} }}"),
            1,
        );
        let o = Overrides::default();
        Scenario::parse(&text, Path::new("t.toml"), dir.path(), &o).map_err(|e| e.to_string())
    };
    let all = "trace = \"nr.csv\", delay_trace = \"nr.csv\", loss_trace = \"nr.csv\"";
    let s = parse(all).unwrap();
    let down = &s.cases[0].accesses[0].down;
    let [s0, s1, s2] = [0, 1, 2].map(Duration::from_secs);
    let ms = |us| Duration::from_micros(us);
    assert_eq!(
        down.delay,
        DelaySpec::Steps {
            points: vec![(s0, ms(12_500)), (s1, ms(20_000))],
            period: Some(s2),
        }
    );
    assert_eq!(
        down.loss,
        LossSpec::Steps {
            points: vec![(s0, 0.0), (s1, 0.01)],
            period: Some(s2),
        }
    );
    // What a guest of the virtual clock is told is what was read.
    let told = serde_json::to_string(&s).unwrap();
    let heard: Scenario = serde_json::from_str(&told).unwrap();
    assert_eq!(heard.cases, s.cases);
    for (link, says) in [
        (
            "rate = \"1 Mbit/s\", delay = \"1 ms\", delay_trace = \"nr.csv\"",
            "both `delay`",
        ),
        (
            "rate = \"1 Mbit/s\", loss = 0.1, loss_trace = \"nr.csv\"",
            "both `loss`",
        ),
        ("rate = \"1 Mbit/s\", loss_trace = \"no.csv\"", "no.csv"),
        ("rate = \"1 Mbit/s\", loss_column = \"nr\"", "`loss_trace`"),
        (
            "rate = \"1 Mbit/s\", delay_trace = \"nr.csv\", delay_column = \"x\"",
            "no column \"x\"",
        ),
    ] {
        let e = parse(link).unwrap_err();
        assert!(
            e.starts_with("t.toml:8:") && e.contains(says),
            "{link}: {e}"
        );
    }
}

#[test]
fn a_shorter_duration_shortens_the_warm_up() {
    let o = Overrides {
        duration: Some(Duration::from_secs(2)),
        ..Overrides::default()
    };
    let text = &GOOD[..GOOD.find("[[event]]").unwrap()];
    let cases = &GOOD[GOOD.find("[[case]]").unwrap()..];
    let s = parse_with(&format!("{text}{cases}"), &o).unwrap();
    assert_eq!(s.cases[0].warmup, Duration::from_secs(1));
}

#[test]
fn a_shorter_duration_drops_no_event() {
    let with = |text: &str, seconds: u64, only: &[&str]| {
        let o = Overrides {
            duration: Some(Duration::from_secs(seconds)),
            only: only.iter().map(|s| (*s).to_owned()).collect(),
            ..Overrides::default()
        };
        parse_with(text, &o).map(drop).map_err(|e| e.to_string())
    };
    // The last repetition is at 18 s; what happens at the very end never happens.
    assert_eq!(with(GOOD, 19, &[]), Ok(()));
    let e = with(GOOD, 18, &[]).unwrap_err();
    assert!(e.starts_with("t.toml:22:6: a duration of 18 s"), "{e}");
    assert!(
        e.contains("the last repetition of this event, at 18 s"),
        "{e}"
    );
    let e = with(GOOD, 5, &[]).unwrap_err();
    assert!(e.starts_with("t.toml:16:6: a duration of 5 s"), "{e}");
    assert!(e.contains("before this event, at 8 s"), "{e}");
    // An event of an access that no chosen case has is missed by nobody.
    let narrow = GOOD.replace("cc = \"bbr\"", "cc = \"bbr\"\naccesses = [\"nr\"]");
    let narrow = narrow.replace(
        "access = \"nr\"\ntraffic",
        "access = \"nr\"\naccesses = [\"nr\", \"wifi\"]\ntraffic",
    );
    let narrow = narrow.replace("every = \"5 s\"\ntimes = 4\n", "");
    assert_eq!(with(&narrow, 5, &["mptcp"]), Ok(()));
    assert!(with(&narrow, 5, &["tcp"]).is_err());
    // A case that the file itself ends earlier keeps its own end.
    let short = GOOD.replace("cc = \"bbr\"", "cc = \"bbr\"\nduration = \"4 s\"");
    assert_eq!(with(&short, 4, &["mptcp"]), Ok(()));
}

#[test]
fn what_only_braids_own_kernel_has_needs_the_virtual_clock() {
    let needs = |text: &str| parse(text).unwrap().needs_virtual_clock();
    assert_eq!(needs(GOOD), None);
    let with = |keys: &str| GOOD.replace("cc = \"bbr\"", keys);
    for stock in ["rr", "wrr", "active-standby", "default"] {
        assert_eq!(needs(&with(&format!("scheduler = \"{stock}\""))), None);
    }
    for (keys, what) in [
        ("scheduler = \"minrtt\"", "the scheduler \"minrtt\""),
        ("scheduler = \"rr\"\nnum_segments = 4", "`num_segments`"),
    ] {
        let why = needs(&with(keys)).unwrap();
        assert_eq!(why, format!("case \"mptcp\" has {what}"));
    }
    let quic = with("scheduler = \"minrtt\"").replace("\"mptcp\"", "\"mpquic\"");
    assert_eq!(needs(&quic), None);
    let parameters = format!("{GOOD}\n[network.module_parameters]\n\"tcp_vegas.alpha\" = 10\n");
    assert!(needs(&parameters).unwrap().contains("tcp_vegas.alpha"));
}

#[test]
fn every_shipped_scenario_is_valid_and_says_what_it_is() {
    for s in shipped() {
        let read = Scenario::load(s.name, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(read.name, s.name);
        let summary = s.summary();
        assert!(summary.len() > 20, "{}: {summary}", s.name);
        assert!(summary.ends_with(['.', '?']), "{}: {summary}", s.name);
        for p in &read.paper {
            let ours = read
                .cases
                .iter()
                .any(|c| c.name == p.case || c.base_name == p.case);
            assert!(
                ours || p.case.starts_with("MPTCP v0.96"),
                "{}: paper case {}",
                s.name,
                p.case
            );
        }
    }
}
