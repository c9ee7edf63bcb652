//! Every model against `vectors/energy/*.json`.

use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::*;

fn cases(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("vectors/energy/{name}.json"));
    let text =
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("read {}: {e}", file.display()));
    let mut json: Value = serde_json::from_str(&text).unwrap();
    let cases = json["cases"].take().as_array().unwrap().clone();
    assert!(cases.len() >= 40, "{name} has vectors");
    cases
}

fn whole(v: &Value) -> u64 {
    v.as_u64().unwrap_or(0)
}

fn interval(v: &Value) -> Interval {
    let us = |v: &Value| Duration::from_micros(whole(v));
    let airtime = v.get("airtime").map(|a| Airtime {
        sending: us(&a["sending_us"]),
        collided: us(&a["collided_us"]),
        receiving: us(&a["receiving_us"]),
        frames_sent: whole(&a["frames_sent"]),
        frames_received: whole(&a["frames_received"]),
    });
    Interval {
        length: Duration::from_millis(whole(&v["length_ms"])),
        down_bytes: whole(&v["down_bytes"]) as f64,
        up_bytes: whole(&v["up_bytes"]) as f64,
        signal: Signal {
            rsrp_dbm: v["rsrp_dbm"].as_f64(),
            sinr_db: v["sinr_db"].as_f64(),
        },
        airtime,
    }
}

/// Each step of each case, through one model a case.
fn follow<P: DeserializeOwned>(name: &str, parameters: impl Fn(P) -> Parameters) {
    for case in cases(name) {
        let read = serde_json::from_value(case["parameters"].clone()).unwrap();
        let parameters = parameters(read);
        assert_eq!(parameters.check(), Ok(()), "{name}, {}", case["name"]);
        let mut model = parameters.make();
        assert_eq!(model.name(), name);
        for (k, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let e = model.advance(&interval(step));
            for (key, got) in [
                ("active_joules", e.active_joules),
                ("promotion_joules", e.promotion_joules),
                ("tail_joules", e.tail_joules),
                ("idle_joules", e.idle_joules),
            ] {
                let want = step[key]["value"].as_f64().unwrap();
                let slack = 1e-9 * want.abs() + 1e-12;
                let what = format!("{name}, {}, step {k}: {key}", case["name"]);
                assert!((got - want).abs() <= slack, "{what}: {got}, not {want}");
            }
        }
    }
}

#[test]
fn affine_follows_the_vectors() {
    follow("affine", Parameters::Affine);
}

#[test]
fn drx_follows_the_vectors() {
    follow("drx", Parameters::Drx);
}

#[test]
fn nr38840_follows_the_vectors() {
    follow("nr38840", Parameters::Nr38840);
}

#[test]
fn wifi_airtime_follows_the_vectors() {
    follow("wifi-airtime", Parameters::WifiAirtime);
}

#[test]
fn paper002_follows_the_vectors() {
    follow("paper002", Parameters::Paper002);
}
