use super::*;
use crate::sched::SCHEDULERS;

fn read(text: &str) -> ClassSteering {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_is_wrong_with_a_steering_is_said_with_its_key() {
    for (text, key, words) in [
        (r#"{"mode": "fifo"}"#, "mode", "load-balancing"),
        (
            r#"{"mode": "minrtt", "weights": {"nr": 1}}"#,
            "weights",
            "minrtt has no weights: load-balancing and wrr have",
        ),
        (
            r#"{"mode": "wrr", "weights": {"nr": 0}}"#,
            "weights",
            "above 0",
        ),
        (
            r#"{"mode": "wrr", "weights": {"nr": -1}}"#,
            "weights",
            "0 to",
        ),
        (
            r#"{"mode": "wrr", "order": ["nr"]}"#,
            "order",
            "wrr has no order",
        ),
        (
            r#"{"mode": "active-standby", "order": ["nr", "nr"]}"#,
            "order",
            "\"nr\" is there twice",
        ),
        (
            r#"{"mode": "ecf", "standby": true}"#,
            "standby",
            "active-standby has",
        ),
        (
            r#"{"mode": "active-standby", "standby": false}"#,
            "standby",
            "its name alone",
        ),
        (
            r#"{"mode": "active-standby", "standby": false, "order": ["nr", "wifi"]}"#,
            "standby",
            "its name alone",
        ),
        (
            r#"{"mode": "wrr", "primary": "nr"}"#,
            "primary",
            "wrr has no primary access: redundant has",
        ),
        (
            r#"{"mode": "ecf", "wrr_mode": "strict"}"#,
            "wrr_mode",
            "no round robin",
        ),
        (
            r#"{"mode": "ecf", "max_rtt_ms": 0}"#,
            "max_rtt_ms",
            "1 to 65535",
        ),
        (
            r#"{"mode": "ecf", "max_loss_percent": 101}"#,
            "max_loss_percent",
            "up to 100",
        ),
    ] {
        let fault = read(text).check().unwrap_err();
        assert!(fault.key == key && fault.what.contains(words), "{fault:?}");
    }
    // Those of TS 23.501 first, and every scheduler.
    assert_eq!(MODES.len(), SCHEDULERS.len() + 1);
    for (name, _) in SCHEDULERS {
        let mode = format!(r#"{{"mode": "{name}", "max_rtt_ms": 80, "reinject": true}}"#);
        assert_eq!(read(&mode).check(), Ok(()));
        assert_eq!(read(&mode).scheduler(), *name);
        assert_eq!(read(&mode).make().unwrap().name(), *name);
    }
}

#[test]
fn accesses_have_the_weights_and_places_of_the_class() {
    let balanced = read(r#"{"mode": "load-balancing", "weights": {"nr": 80, "wifi": 20}}"#);
    assert_eq!(balanced.check(), Ok(()));
    assert_eq!(balanced.scheduler(), "wrr");
    let weights = ["nr", "wifi", "lifi"].map(|n| balanced.weight(n));
    assert_eq!(weights, [Some(80.0), Some(20.0), Some(0.0)]);
    assert_eq!(balanced.place("nr"), None);
    let ordered = read(r#"{"mode": "priority-based", "order": ["wifi", "nr"]}"#);
    let places = ["nr", "wifi", "lifi"].map(|n| ordered.place(n));
    assert_eq!(places, [Some(1), Some(0), Some(2)]);
    assert_eq!(ordered.weight("nr"), None);
}

#[test]
fn what_has_no_name_elsewhere_is_left_out() {
    let balanced = read(r#"{"mode": "wrr", "weights": {"nr": 1, "wifi": 0}}"#);
    let here = |only: &'static str| move |n: &str| (n == only).then(|| format!("car/{n}"));
    let weights = |only| balanced.renamed(here(only)).weights;
    assert_eq!(weights("nr"), [("car/nr".to_owned(), 1.0)].into());
    assert!(weights("wifi").is_empty(), "nobody would carry");
    let ordered = read(r#"{"mode": "active-standby", "order": ["wifi", "nr"]}"#);
    assert_eq!(ordered.renamed(here("nr")).order, ["car/nr"]);
    // Nobody stands in for the only one.
    let confined = read(r#"{"mode": "active-standby", "standby": false, "order": ["wifi"]}"#);
    assert_eq!(confined.check(), Ok(()));
    assert_eq!(confined.renamed(here("nr")).order, ["wifi"]);
    assert_eq!(confined.renamed(here("wifi")).order, ["car/wifi"]);
    assert_eq!(confined.renamed(here("nr")).check(), Ok(()));
    let redundant = read(r#"{"mode": "redundant", "primary": "wifi"}"#);
    assert_eq!(redundant.check(), Ok(()));
    let primary = |only| redundant.renamed(here(only)).primary.unwrap();
    assert_eq!([primary("nr"), primary("wifi")], ["wifi", "car/wifi"]);
    let places = ["nr", "wifi"].map(|n| redundant.place(n));
    assert_eq!(places, [Some(1), Some(0)]);
}

#[test]
fn a_class_keeps_its_number() {
    let numbers = |names: &str, before: &BTreeMap<String, u8>| {
        numbered(names.split(' ').filter(|n| !n.is_empty()), before)
    };
    let of = |all: &[(&str, u8)]| -> BTreeMap<String, u8> {
        all.iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect()
    };
    let first = numbers("voice bulk", &BTreeMap::new());
    assert_eq!(first, of(&[("voice", 1), ("bulk", 2)]));
    let second = numbers("games bulk", &first);
    assert_eq!(second, of(&[("games", 3), ("bulk", 2)]));
    let full = numbers("a b c d e f g", &BTreeMap::new());
    assert_eq!(numbers("b c d e f g h", &full)["h"], 1);
    assert_eq!(numbers("a b c d e f g h", &full).len(), 7);
}
