//! Runs on the virtual clock: the same to the byte whatever the host does, and
//! nothing left behind however they end.
//!
//! What is judged by such runs is in the files of the folder: their tests run beside each other, as
//! each guest has one core and a time of its own.

mod appearing;
mod fairness;
mod overrun;
mod swing;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use braid_lab::summary::Summary;

use crate::support::{self, parts, summary};

fn command(dir: &Path, args: &[&str], env: &[(&str, PathBuf)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
    command
        .args(args)
        .envs(env.iter().map(|(k, v)| (*k, v.as_os_str())))
        // Where runs keep their files, so that these tests see only their own.
        .env("XDG_RUNTIME_DIR", dir)
        .current_dir(dir)
        .stdin(Stdio::null());
    command
}

fn braid(dir: &Path, args: &[&str], env: &[(&str, PathBuf)]) -> Output {
    command(dir, args, env).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Loss, jitter, an outage, plain TCP and MPTCP: everything that draws random
/// numbers, or depends on who comes first.
const MIXED: &str = r#"# A little of everything.
name = "mixed"
duration = "1500 ms"
warmup = "300 ms"
[access.a]
kind = "5g"
down = { rate = "20 Mbit/s", delay = "8 ms", jitter = "1 ms", loss = 1e-3 }
[access.b]
kind = "wifi"
down = { rate = "10 Mbit/s", delay = "2 ms", loss = 1e-4 }
[[event]]
at = "900 ms"
access = "b"
set = "down"
[[event]]
at = "1100 ms"
access = "b"
set = "up"
[[case]]
name = "TCP"
engine = "tcp"
access = "a"
cc = "cubic"
traffic = "bulk"
[[case]]
name = "MPTCP"
engine = "mptcp"
cc = "reno"
traffic = "bulk"
[[case]]
name = "requests"
engine = "mptcp"
traffic = "request-response"
"#;

/// Files of every run; the journals are those of the second case, MPTCP.
const FILES: [&str; 5] = [
    "summary.json",
    "timeline.csv",
    "events.csv",
    "journal-2-device.jsonl",
    "journal-2-proxy.jsonl",
];

fn run(dir: &Path, out: &str, more: &[&str], parts: &[(&str, PathBuf)]) -> Vec<Vec<u8>> {
    let mut args = vec![
        "lab",
        "run",
        "mixed.toml",
        "--clock",
        "virtual",
        "--out",
        out,
    ];
    args.extend(more);
    let got = braid(dir, &args, parts);
    assert_eq!(got.status.code(), Some(0), "{}", text(&got.stderr));
    FILES
        .map(|f| std::fs::read(dir.join(out).join(f)).unwrap())
        .into()
}

/// Keeps every core busy while it lives.
struct Load(Arc<AtomicBool>);

impl Load {
    fn new() -> Self {
        let on = Arc::new(AtomicBool::new(true));
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let on = Arc::clone(&on);
            std::thread::spawn(move || while on.load(Ordering::Relaxed) {});
        }
        Self(on)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let Some(parts) = parts() else { return };
    let dir = support::folder();
    std::fs::write(dir.path().join("mixed.toml"), MIXED).unwrap();
    let first = run(dir.path(), "1", &["--repeat", "2"], &parts);
    let one_by_one = run(dir.path(), "2", &["--repeat", "2", "--jobs", "1"], &parts);
    let loaded = {
        let _load = Load::new();
        run(dir.path(), "3", &["--repeat", "2", "--jobs", "3"], &parts)
    };
    for (i, file) in FILES.iter().enumerate() {
        assert!(first[i] == one_by_one[i], "{file} differs with --jobs 1");
        assert!(first[i] == loaded[i], "{file} differs on a loaded machine");
    }
    let replay = ["replay", "1/journal-2-proxy.jsonl", "--json"];
    let replayed = braid(dir.path(), &replay, &[]);
    assert_eq!(
        replayed.status.code(),
        Some(0),
        "{}",
        text(&replayed.stderr)
    );
    let replayed: serde_json::Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert!(replayed["observations"].as_u64() > Some(20), "{replayed}");

    let other = run(dir.path(), "4", &["--repeat", "2", "--seed", "2"], &parts);
    assert!(first[0] != other[0] && first[1] != other[1]);

    let summary: Summary = serde_json::from_slice(&first[0]).unwrap();
    assert_eq!(
        (summary.clock.as_str(), summary.cases.len()),
        ("virtual", 6)
    );
    assert!(summary.kernel.starts_with("6.12"), "{}", summary.kernel);
    assert_eq!(summary.started, "2000-01-01T00:00:00Z");
    let of = |repeat| summary.cases.iter().filter(move |c| c.repeat == repeat);
    for (a, b) in of(1).zip(of(2)) {
        assert_eq!(a.name, b.name);
        assert!(a.failed.is_none() && a.intact == Some(true), "{a:?}");
        assert_eq!((a.cpu_seconds, a.host.late_wakes), (0.0, 0));
        assert_ne!(
            (a.goodput_mbps, &a.latency_cdf),
            (b.goodput_mbps, &b.latency_cdf),
            "repeats are independent samples"
        );
    }
    let tcp = &summary.cases[0];
    assert!(
        tcp.goodput_mbps > 5.0 && tcp.efficiency.unwrap() <= 1.0,
        "{tcp:?}"
    );
}

#[test]
fn what_is_missing_is_named_with_the_line_that_makes_it() {
    let dir = support::folder();
    std::fs::write(dir.path().join("mixed.toml"), MIXED).unwrap();
    let args = ["lab", "run", "mixed.toml", "--clock", "virtual"];
    let nowhere = [("BRAID_KERNEL", dir.path().join("none"))];
    let out = braid(dir.path(), &args, &nowhere);
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{err}");
    assert!(err.contains("make kernel"), "{err}");

    let with_command = MIXED.replace(
        "traffic = \"request-response\"",
        "traffic = { kind = \"command\", run = \"iperf3 -c {proxy}\" }",
    );
    std::fs::write(dir.path().join("mixed.toml"), with_command).unwrap();
    let out = braid(dir.path(), &args, &nowhere);
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{err}");
    assert!(
        err.contains("iperf3") && err.contains("--clock real"),
        "{err}"
    );
}

/// A kernel that is a shell script: what a stuck or broken guest looks like.
fn pretend(dir: &Path, script: &str) -> [(&'static str, PathBuf); 2] {
    let kernel = dir.join("linux");
    std::fs::write(&kernel, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&kernel, PermissionsExt::from_mode(0o755)).unwrap();
    let root = dir.join("root");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("braid"), "").unwrap();
    [("BRAID_KERNEL", kernel), ("BRAID_GUEST", root)]
}

#[test]
fn stuck_and_broken_guests_are_told_apart() {
    let dir = support::folder();
    std::fs::write(dir.path().join("mixed.toml"), MIXED).unwrap();
    for (script, more, want) in [
        (
            "echo '[ 1.0] braid: progress 700'; exec /bin/sleep 60",
            &["--stall", "1"][..],
            "wall-clock watchdog: simulated time stood at 0.7 s for 1 s",
        ),
        (
            "i=0; while :; do i=$((i+1)); echo braid: progress $i; /bin/sleep 0.2; done",
            &["--wall-limit", "1"],
            "simulated seconds after 1 s",
        ),
        (
            "echo 'Kernel panic - not syncing: Attempted to kill init!'; exit 1",
            &[],
            "the guest's kernel panicked: Attempted to kill init!",
        ),
        (
            "echo 'Kernel panic - not syncing: Out of memory: x'; exit 1",
            &[],
            "the guest ran out of memory (768 MB)",
        ),
        (
            "echo last words; exit 7",
            &[],
            "the guest ended without an answer (exit status: 7",
        ),
    ] {
        let mut args = vec!["lab", "run", "mixed.toml", "--clock", "virtual"];
        args.extend(["--only", "TCP", "--out", "x"]);
        args.extend(more);
        let out = braid(dir.path(), &args, &pretend(dir.path(), script));
        assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
        let summary = summary(&dir.path().join("x"));
        let failed = summary.cases[0].failed.as_deref().unwrap();
        assert!(failed.contains(want), "{failed}");
    }
    assert_eq!(guests(dir.path()), Vec::<String>::new());
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

/// Guests that are left of runs in `dir`, by number: each works in its run's
/// folder.
fn guests(dir: &Path) -> Vec<String> {
    let dir = dir.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|p| {
            let cwd = std::fs::read_link(p.path().join("cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(dir.join("braid")))
        })
        .map(|p| p.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Leftovers of runs in `dir`.
fn leftovers(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("braid")).unwrap().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|n| n != "lock").collect()
}

fn eventually(what: &str, done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(dir: &Path, parts: &[(&str, PathBuf)]) -> Child {
    std::fs::write(dir.join("long.toml"), MIXED.replace("1500 ms", "600 s")).unwrap();
    let args = [
        "lab",
        "run",
        "long.toml",
        "--clock",
        "virtual",
        "--jobs",
        "2",
    ];
    let mut command = command(dir, &args, parts);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.unwrap()
}

fn kill(signal: &str, child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill")
        .args([OsStr::new(signal), pid.as_ref()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn nothing_is_left_of_a_run_that_is_interrupted_or_killed() {
    let Some(parts) = parts() else { return };
    let dir = support::folder();
    let mut interrupted = start(dir.path(), &parts);
    eventually("guests start", || guests(dir.path()).len() > 2);
    kill("-INT", &interrupted);
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    assert_eq!(guests(dir.path()), Vec::<String>::new());
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());

    let mut killed = start(dir.path(), &parts);
    eventually("guests start", || guests(dir.path()).len() > 2);
    kill("-KILL", &killed);
    killed.wait().unwrap();
    eventually("the kernel kills the guests", || {
        guests(dir.path()).is_empty()
    });
    // Its files go with the next run.
    let nowhere = [("BRAID_KERNEL", dir.path().join("none"))];
    std::fs::write(dir.path().join("mixed.toml"), MIXED).unwrap();
    let args = ["lab", "run", "mixed.toml", "--clock", "virtual"];
    assert_eq!(braid(dir.path(), &args, &nowhere).status.code(), Some(3));
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn a_guest_without_memory_and_one_without_time_say_so() {
    let Some(parts) = parts() else { return };
    let dir = support::folder();
    std::fs::write(dir.path().join("mixed.toml"), MIXED).unwrap();
    for (more, want) in [
        (
            ["--guest-memory", "32", "--scale", "50"],
            "the guest ran out of memory (32 MB)",
        ),
        (
            ["--virtual-limit", "1", "--scale", "1"],
            "virtual-time limit",
        ),
    ] {
        let mut args = vec![
            "lab",
            "run",
            "mixed.toml",
            "--clock",
            "virtual",
            "--out",
            "x",
        ];
        args.extend(["--only", "MPTCP"]);
        args.extend(more);
        let out = braid(dir.path(), &args, &parts);
        assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
        let summary = summary(&dir.path().join("x"));
        let failed = summary.cases[0].failed.as_deref().unwrap();
        assert!(failed.contains(want), "{failed}");
    }
}

/// One link by the lab's emulator and by the kernel's netem.
#[test]
fn the_emulator_and_netem_agree() {
    let Some(parts) = parts() else { return };
    let dir = support::folder();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/test/run.sh");
    // Mbit/s, one-way delay in ms, packets of queue, congestion control.
    for (rate, delay, queue, cc) in [
        (10, 25, 20, "cubic"),
        (20, 5, 10, "cubic"),
        (50, 20, 100, "reno"),
        (300, 5, 1000, "bbr"),
    ] {
        let link = format!(
            r#"{{ rate = "{rate} Mbit/s", delay = "{delay} ms", queue = "{queue} packets" }}"#
        );
        let scenario = format!(
            "name = \"one-link\"\nduration = \"12 s\"\nwarmup = \"2 s\"\n\
             [access.a]\nkind = \"5g\"\ndown = {link}\nup = {link}\n\
             [[case]]\nname = \"TCP\"\nengine = \"tcp\"\naccess = \"a\"\ncc = \"{cc}\"\ntraffic = \"bulk\"\n"
        );
        std::fs::write(dir.path().join("one.toml"), scenario).unwrap();
        let args = ["lab", "run", "one.toml", "--clock", "virtual", "--out", "o"];
        let got = braid(dir.path(), &args, &parts);
        assert_eq!(got.status.code(), Some(0), "{}", text(&got.stderr));
        let summary = summary(&dir.path().join("o"));
        let ours = summary.cases[0].goodput_mbps;

        let got = Command::new(&script)
            .arg("netem")
            .args([format!("rate={rate}"), format!("delay={delay}")])
            .args([format!("queue={queue}"), format!("cc={cc}")])
            .env("KERNEL", &parts[0].1)
            .output()
            .unwrap();
        assert!(got.status.success(), "{}", text(&got.stderr));
        let theirs: f64 = text(&got.stdout).trim().parse().unwrap();
        assert!(
            (ours / theirs - 1.0).abs() < 0.01,
            "{rate} Mbit/s, {delay} ms, {queue} packets, {cc}: {ours} here, {theirs} by netem"
        );
    }
}
