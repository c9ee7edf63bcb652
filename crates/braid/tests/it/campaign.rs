//! Campaigns: interrupted, resumed, shared by processes; nothing lost, nothing twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::support;

const SCENARIO: &str = r#"# One small link.
name = "small"
duration = "1 s"
[access.a]
kind = "5g"
down = { rate = "8 Mbit/s", delay = "2 ms" }
[[case]]
name = "TCP"
engine = "tcp"
access = "a"
traffic = "bulk"
"#;

const CAMPAIGN: &str = r#"
name = "sweep"
scenario = "small.toml"
clock = "real"
repeat = 2
[axes]
cc = ["reno", "cubic"]
rate = ["4 Mbit/s", "8 Mbit/s"]
"#;

fn start(dir: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(["lab", "campaign", "sweep.toml", "--out", "out"])
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end(child: Child) -> (Option<i32>, String) {
    let out = child.wait_with_output().unwrap();
    (
        out.status.code(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

/// Every job that has run, and when its summary was written.
fn ran(dir: &Path) -> BTreeMap<String, SystemTime> {
    let Ok(jobs) = std::fs::read_dir(dir.join("out/jobs")) else {
        return BTreeMap::new();
    };
    jobs.flatten()
        .filter(|e| !e.file_name().to_string_lossy().contains('.'))
        .filter_map(|e| {
            let written = e.path().join("summary.json").metadata().ok()?;
            let name = e.file_name().to_string_lossy().into_owned();
            Some((name, written.modified().ok()?))
        })
        .collect()
}

#[test]
fn a_campaign_goes_on_where_it_was_interrupted() {
    let temporary = support::folder();
    let dir = temporary.path();
    std::fs::write(dir.join("small.toml"), SCENARIO).unwrap();
    std::fs::write(dir.join("sweep.toml"), CAMPAIGN).unwrap();

    let (code, said) = end(start(dir, &["--job", "3"]));
    if code == Some(3) {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(ran(dir).len(), 1);

    // Killed half way, as a machine that fails.
    let mut first = start(dir, &[]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while ran(dir).len() < 4 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let before = ran(dir);
    assert!((4..8).contains(&before.len()), "{}", before.len());

    // Two at once share what is left.
    let (a, b) = (start(dir, &[]), start(dir, &["--job", "8"]));
    let (b, a) = (end(b), end(a));
    assert_eq!((a.0, b.0), (Some(0), Some(0)), "{} {}", a.1, b.1);
    let after = ran(dir);
    assert_eq!(after.len(), 8);
    for (job, written) in before {
        assert_eq!(after[&job], written, "{job} ran twice");
    }

    let table = std::fs::read_to_string(dir.join("out/results.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 8, "{table}");
    assert!(
        table.starts_with("job,repeat,seed,cc,rate,case,"),
        "{table}"
    );
    let summary = std::fs::read_to_string(dir.join("out/result/summary.json")).unwrap();
    assert!(summary.contains("cc=reno, rate=4 Mbit/s: TCP"), "{summary}");
    assert!(dir.join("out/result/report.html").exists());

    // Collecting again changes nothing and runs nothing.
    let (code, said) = end(start(dir, &["--collect"]));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(ran(dir), after);
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let temporary = support::folder();
    let dir = temporary.path();
    std::fs::write(dir.join("small.toml"), SCENARIO).unwrap();
    let wrong = CAMPAIGN.replace("\"reno\"", "3");
    std::fs::write(dir.join("sweep.toml"), wrong).unwrap();
    let (code, said) = end(start(dir, &[]));
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("sweep.toml") && said.contains("cc=3"),
        "{said}"
    );
    assert!(!dir.join("out").exists());

    std::fs::write(dir.join("sweep.toml"), CAMPAIGN).unwrap();
    let (code, said) = end(start(dir, &["--job", "9"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("1 to 8"), "{said}");

    std::fs::create_dir(dir.join("out")).unwrap();
    std::fs::write(dir.join("out/thesis.tex"), "mine").unwrap();
    let (code, said) = end(start(dir, &[]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("something else"), "{said}");
}
