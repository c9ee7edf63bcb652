//! The schedulers against `vectors/sched/*.json`.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::super::*;

fn cases(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("vectors/sched/{name}.json"));
    let text =
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("read {}: {e}", file.display()));
    let mut json: Value = serde_json::from_str(&text).unwrap();
    let cases = json["cases"].take().as_array().unwrap().clone();
    assert!(cases.len() > 100, "{name} has vectors");
    cases
}

fn whole(v: &Value) -> u64 {
    v.as_u64()
        .unwrap_or_else(|| panic!("{v} is no whole number"))
}

fn micros(v: &Value) -> Duration {
    Duration::from_micros(whole(v))
}

fn view(p: &Value) -> PathView {
    let segment = whole(&p["segment_bytes"]);
    PathView {
        id: whole(&p["id"]) as u32,
        usable: p["usable"].as_bool().unwrap_or(true),
        backup: p["backup"].as_bool().unwrap_or(false),
        priority: 0,
        weight: 1.0,
        window: whole(&p["cwnd"]) * segment,
        in_flight: whole(&p["in_flight"]) * segment,
        segment,
        srtt: micros(&p["srtt_us"]),
        rttvar: micros(&p["rttvar_us"]),
        lost: whole(&p["lost"]),
        exceeds: false,
    }
}

/// Each step of each case, through one scheduler a case.
fn follow<S: Scheduler + Default>(name: &str, told: impl Fn(&S, &Value, &str)) {
    for case in cases(name) {
        let mut s = S::default();
        for (k, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let what = format!("{name}, {}, step {k}", case["name"]);
            let paths: Vec<PathView> = step["paths"].as_array().unwrap().iter().map(view).collect();
            let flow = Flow {
                waiting: whole(&step["waiting_bytes"]),
                send_window: whole(&step["send_window_bytes"]),
            };
            let decision = s.decide(micros(&step["now_us"]).into(), &flow, &paths);
            let got = match decision {
                Decision::Send { path, .. } => Some(path as u64),
                Decision::Wait(_) => None,
                Decision::Copies(_) => panic!("{what}: {decision:?}"),
            };
            assert_eq!(got, step["send"].as_u64(), "{what}");
            told(&s, step, &what);
        }
    }
}

#[test]
fn minrtt_follows_the_vectors() {
    follow::<MinRtt>("minrtt", |_, _, _| {});
}

#[test]
fn blest_follows_the_vectors() {
    follow::<Blest>("blest", |s, step, what| {
        if let Some(wanted) = step["lambda_thousandths"].as_u64() {
            assert_eq!(s.lambda, wanted, "{what}: lambda");
        }
    });
}

#[test]
fn ecf_follows_the_vectors() {
    follow::<Ecf>("ecf", |s, step, what| {
        if let Some(wanted) = step["waiting"].as_bool() {
            assert_eq!(s.waiting, wanted, "{what}: waiting");
        }
    });
}

#[test]
fn wrr_follows_the_vectors() {
    for (case, mode) in cases("wrr")
        .iter()
        .flat_map(|c| [(c, WrrMode::Strict), (c, WrrMode::WorkConserving)])
    {
        let segment = whole(&case["segment_bytes"]);
        let weights = case["weights"].as_array().unwrap().iter();
        let view = |(weight, id): (&Value, u32)| PathView {
            id,
            weight: weight.as_f64().unwrap(),
            segment,
            window: 1000 * segment,
            ..super::path(id, 0, 0, 10)
        };
        let paths: Vec<PathView> = weights.zip(1..).map(view).collect();
        let mut s = WeightedRoundRobin::new(mode);
        for (k, turn) in case["turns"].as_array().unwrap().iter().enumerate() {
            let decision = s.decide(Time::ZERO, &super::flow(1, 1), &paths);
            let Decision::Send { path, most } = decision else {
                panic!("wrr, {}, turn {k}: {decision:?}", case["name"]);
            };
            assert_eq!(path as u64, whole(turn), "wrr, {}, turn {k}", case["name"]);
            s.sent(&paths, path, most);
        }
    }
}
