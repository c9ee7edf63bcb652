//! The kernel's decisions of BLEST and ECF (`kernel/mptcp/sched_math.h`) against the
//! vectors. What it walks lists of subflows for stays there: which is the fastest and
//! which the next is chosen here.

use serde_json::Value;

use super::ask;

/// The usable paths, the fastest first, backups only where there are no others.
fn by_rtt(step: &Value) -> Vec<&Value> {
    let all = step["paths"].as_array().unwrap().iter();
    let usable: Vec<&Value> = all.filter(|p| p["usable"] != false).collect();
    let primaries: Vec<&Value> = usable
        .iter()
        .filter(|p| p["backup"] != true)
        .copied()
        .collect();
    let mut paths = if primaries.is_empty() {
        usable
    } else {
        primaries
    };
    paths.sort_by_key(|p| p["srtt_us"].as_u64());
    paths
}

fn fact(p: &Value) -> String {
    let keys = ["segment_bytes", "cwnd", "in_flight", "srtt_us", "rttvar_us"];
    keys.map(|k| p[k].to_string()).join(" ")
}

/// Asks about each step in which the fastest has no room and another has; says which
/// steps those are.
fn follow(name: &str, told: impl Fn(&Value, &Value) -> String, check: fn(&Value, &[i128], &str)) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = file.join(format!("vectors/sched/{name}.json"));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let (mut lines, mut steps) = (Vec::new(), Vec::new());
    for case in json["cases"].as_array().unwrap() {
        let mut first = 1;
        for step in case["steps"].as_array().unwrap() {
            let paths = by_rtt(step);
            let has_room = |p: &&&Value| p["in_flight"].as_u64() < p["cwnd"].as_u64();
            let Some(next) = paths.iter().find(has_room).filter(|n| **n != paths[0]) else {
                continue;
            };
            let (told, fast, slow) = (told(step, next), fact(paths[0]), fact(next));
            lines.push(format!("{name} {first} {told} {fast} {slow}"));
            steps.push((step, format!("{name}, {}", case["name"])));
            first = 0;
        }
    }
    assert!(steps.len() > 100, "{name} has steps that it decides");
    let Some(answers) = ask(&lines) else { return };
    for ((step, what), answer) in steps.into_iter().zip(answers) {
        assert_eq!(answer[0] == 1, step["send"].is_null(), "{what}");
        check(step, &answer, &what);
    }
}

#[test]
fn blest_follows_the_vectors() {
    let told = |step: &Value, slow: &Value| {
        let keys = ["now_us", "send_window_bytes"].map(|k| step[k].to_string());
        format!("{} {} {} {}", keys[0], keys[1], slow["id"], slow["lost"])
    };
    follow("blest", told, |step, answer, what| {
        let wanted = ["lambda_thousandths", "fast_bytes"].map(|k| step[k].as_i64().unwrap());
        assert_eq!(answer[1..], wanted.map(i128::from), "{what}");
    });
}

#[test]
fn ecf_follows_the_vectors() {
    let told = |step: &Value, _: &Value| step["waiting_bytes"].to_string();
    follow("ecf", told, |step, answer, what| {
        assert_eq!(Some(answer[1] == 1), step["waiting"].as_bool(), "{what}");
    });
}
