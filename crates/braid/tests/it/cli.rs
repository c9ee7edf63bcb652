//! The command line as a script sees it: output, exit status, nothing left behind.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support;

fn braid(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the lab can run here; says why where it cannot.
fn lab_works(dir: &Path) -> bool {
    std::fs::write(dir.join("probe.toml"), small("1 s", "", "")).unwrap();
    let out = braid(dir, &["lab", "run", "probe.toml", "--out", "probe"]);
    if out.status.code() == Some(3) {
        println!("skipped: {}", text(&out.stderr));
        return false;
    }
    true
}

/// Two slow accesses and one case.
fn small(duration: &str, link: &str, more: &str) -> String {
    format!(
        r#"# Two small links.
name = "small"
duration = "{duration}"
[access.a]
kind = "5g"
down = {{ rate = "20 Mbit/s", delay = "5 ms"{link} }}
[access.b]
kind = "wifi"
down = {{ rate = "10 Mbit/s", delay = "2 ms" }}
[[case]]
name = "TCP on a"
engine = "tcp"
access = "a"
cc = "cubic"
traffic = "bulk"
{more}"#
    )
}

const MPTCP: &str = r#"
[[case]]
name = "MPTCP"
engine = "mptcp"
cc = "cubic"
traffic = "bulk"
"#;

/// Processes that a lab marked as its own.
fn marked() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ
            .split(|b| *b == 0)
            .any(|v| v.starts_with(b"BRAID_LAB_RUN="))
        {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn usage_errors_end_with_2() {
    let dir = support::folder();
    for args in [
        &["lab", "run"][..],
        &["lab", "run", "static", "--repeat", "0"],
        &["lab", "run", "static", "--duration", "-3"],
        &["lab", "run", "static", "--duration", "soon"],
        &["lab", "run", "recovery", "--duration", "10"],
        &["lab", "run", "static", "--scale", "0"],
        &["lab", "run", "static", "--clock", "sundial"],
        &["lab", "run", "static", "--only", "no such case"],
        &["lab", "run", "sttic"],
        &["lab", "run", "missing/file.toml"],
        &["lab", "run", "static", "--jobs", "2"],
        &["lab", "report", "missing-folder"],
        &["lab", "report", "probe.toml"],
        &["set", "weights", "nr=1", "nr=2"],
        &["set", "priority", "nr=1", "nr=2"],
        &["set", "expect", "nr=1", "nr=2"],
        &["frobnicate"],
    ] {
        let out = braid(dir.path(), args);
        assert_eq!(
            out.status.code(),
            Some(2),
            "{args:?}: {}",
            text(&out.stderr)
        );
        assert!(!out.stderr.is_empty(), "{args:?} says nothing");
        assert!(!text(&out.stderr).contains("panicked"), "{args:?}");
    }
}

/// Neither a device that never ends nor a program is read to its end, or taken for anything.
#[test]
fn files_that_are_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let commands: [&[&str]; 8] = [
        &["lab", "run"],
        &["lab", "campaign"],
        &["replay"],
        &["trace", "info"],
        &["trace", "import"],
        &["trace", "energy", "--model", "affine"],
        &["up", "--config"],
        &["proxy", "--config"],
    ];
    for command in commands {
        for file in ["/dev/zero", "/bin/ls", "/etc", "/nonexistent"] {
            let out = braid(dir.path(), &[command, &[file]].concat());
            let said = text(&out.stderr);
            assert_eq!(out.status.code(), Some(2), "{command:?} {file}: {said}");
            assert!(said.contains(file), "{command:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
            if file == "/dev/zero" {
                assert!(said.contains("too large: expected at most"), "{said}");
            }
        }
    }
    // Nor is one that is there said not to be.
    std::fs::write(dir.path().join("binary"), b"\xff").unwrap();
    let said = text(&braid(dir.path(), &["lab", "run", "binary"]).stderr);
    assert_eq!(
        said,
        "braid: binary: cannot read the scenario: not text: expected UTF-8\n"
    );
}

/// A full disk below the streams is a failure with a message, and costs nothing that was measured.
#[test]
fn streams_that_cannot_be_written_end_no_command() {
    let dir = tempfile::tempdir().unwrap();
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let command = |args: &[&str]| {
        let mut braid = Command::new(env!("CARGO_BIN_EXE_braid"));
        braid
            .args(args)
            .current_dir(dir.path())
            .stdin(Stdio::null());
        braid
    };
    for args in [
        &["lab", "list"][..],
        &["lab", "run", "--check", "static"],
        &["--version"],
        &["lab", "--help"],
    ] {
        let out = command(args).stdout(full()).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
        assert!(
            said.starts_with("braid: write to standard output: No space"),
            "{said}"
        );
        // A reader that has gone.
        let mut child = command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert!(
            out.status.success() && out.stderr.is_empty(),
            "{}",
            text(&out.stderr)
        );
    }
    if !lab_works(dir.path()) {
        return;
    }
    let out = command(&["lab", "run", "probe.toml", "--out", "kept"])
        .stderr(full())
        .output();
    assert_eq!(out.unwrap().status.code(), Some(0));
    assert!(dir.path().join("kept/summary.json").exists());
}

#[test]
fn a_bad_scenario_is_pointed_at() {
    let dir = support::folder();
    std::fs::write(
        dir.path().join("bad.toml"),
        small("2 s", ", dealy = \"3 ms\"", ""),
    )
    .unwrap();
    let out = braid(dir.path(), &["lab", "run", "bad.toml"]);
    assert_eq!(out.status.code(), Some(2));
    let err = text(&out.stderr);
    assert!(
        err.contains("bad.toml:6:") && err.contains("did you mean `delay`?"),
        "{err}"
    );
}

#[test]
fn a_shipped_scenario_is_printed_and_one_of_ours_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let out = braid(dir.path(), &[&["lab", "run"], args].concat());
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let (code, scenario, note) = run(&["--print", "walk"]);
    assert_eq!(code, Some(0), "{note}");
    assert!(scenario.starts_with("# Wi-Fi fades"), "{scenario}");
    assert!(
        note.contains("braid lab run --print traces/walk.csv"),
        "{note}"
    );
    std::fs::write(dir.path().join("mine.toml"), &scenario).unwrap();
    // Without its trace it is not whole.
    assert_eq!(run(&["--check", "mine.toml"]).0, Some(2));
    let (_, trace, _) = run(&["--print", "traces/walk.csv"]);
    std::fs::create_dir(dir.path().join("traces")).unwrap();
    std::fs::write(dir.path().join("traces/walk.csv"), trace).unwrap();
    let (code, said, _) = run(&["--check", "mine.toml", "--duration", "10"]);
    assert_eq!(code, Some(0));
    assert!(said.starts_with("mine.toml is right: "), "{said}");
    let (_, said, _) = run(&["--check", "schedulers"]);
    assert!(said.contains("run it with --clock virtual"), "{said}");
    let (code, _, e) = run(&["--print", "wlak"]);
    assert_eq!(
        (code, e.contains("did you mean walk?")),
        (Some(2), true),
        "{e}"
    );
    assert!(!dir.path().join("out").exists());
}

#[test]
fn tables_in_a_pipe_are_lines_of_text() {
    let dir = support::folder();
    let signal = "t_s,a_mbps\n0,10\n1,20\n2,10\n";
    std::fs::write(dir.path().join("a.csv"), signal).unwrap();
    let out = braid(dir.path(), &["trace", "info", "a.csv"]);
    let shown = text(&out.stdout);
    assert!(
        shown.lines().any(|l| l.trim_start().starts_with("link ")),
        "{shown}"
    );
    assert!(!shown.contains(['─', '═', '\u{1b}']), "{shown}");
}

/// Energy of a log by a named set: text in a pipe, JSON by wish, and the sets by name.
#[test]
fn energy_of_a_log_is_computed() {
    let dir = tempfile::tempdir().unwrap();
    let log = "t_s,down_mbps,power_mw\n0,10,2900\n1,10,2900\n2,0,2700\n";
    std::fs::write(dir.path().join("log.csv"), log).unwrap();
    let energy = |more: &[&str]| {
        let set = ["trace", "energy", "log.csv", "--set", "sigcomm21-lte"];
        let args = [&set[..], more].concat();
        let out = braid(dir.path(), &args);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let said = energy(&["--after", "20 s"]);
    assert!(
        said.contains("set      sigcomm21-lte (LTE)") && !said.contains('\u{1b}'),
        "{said}"
    );
    let json: serde_json::Value = serde_json::from_str(&energy(&["--json"])).unwrap();
    let total = &json["total"];
    let parts = ["active", "promotion", "tail", "idle"];
    let parts = parts.map(|p| total[format!("{p}_joules")].as_f64().unwrap());
    let sum: f64 = parts.iter().sum();
    assert!(
        (total["total_joules"].as_f64().unwrap() - sum).abs() < 1e-9,
        "{json}"
    );
    assert!(
        parts[..3].iter().all(|p| *p > 0.0) && parts[3] == 0.0,
        "{json}"
    );
    assert!(
        total["measured"]["mape_percent"].as_f64().unwrap() < 20.0,
        "{json}"
    );
    let list = text(&braid(dir.path(), &["trace", "energy", "--list"]).stdout);
    assert!(
        list.contains("nr38840") && list.contains("paper002-wifi"),
        "{list}"
    );
    let out = braid(
        dir.path(),
        &["trace", "energy", "log.csv", "--model", "affin"],
    );
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).ends_with("did you mean \"affine\"?\n"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn the_shipped_scenarios_are_listed() {
    let out = braid(Path::new("."), &["lab", "list"]);
    assert!(out.status.success());
    let text = text(&out.stdout);
    for name in [
        "static",
        "latency",
        "interruption",
        "recovery",
        "walk",
        "pairs",
        "contention",
    ] {
        assert!(
            text.lines().any(|l| l.starts_with(name)),
            "{name} is missing in\n{text}"
        );
    }
}

#[test]
fn a_run_measures_and_leaves_its_files() {
    let dir = support::folder();
    if !lab_works(dir.path()) {
        return;
    }
    std::fs::write(dir.path().join("small.toml"), small("4 s", "", MPTCP)).unwrap();
    let out = braid(
        dir.path(),
        &["lab", "run", "small.toml", "--out", "o", "--json"],
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let case = |name: &str| {
        summary["cases"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["name"] == name)
            .unwrap()
            .clone()
    };
    let (tcp, mptcp) = (case("TCP on a"), case("MPTCP"));
    for c in [&tcp, &mptcp] {
        assert_eq!(c["intact"], true, "{c}");
        let efficiency = c["efficiency"].as_f64().unwrap();
        assert!((0.5..=1.01).contains(&efficiency), "{c}");
    }
    // Aggregation is proved twice: more than one link can carry, and a share on each.
    assert!(
        mptcp["goodput_mbps"].as_f64().unwrap() > 20.0 * 1448.0 / 1500.0,
        "{mptcp}"
    );
    assert!(mptcp["share"]["b"].as_f64().unwrap() > 0.15, "{mptcp}");
    assert!(tcp["share"]["b"].as_f64().unwrap_or(0.0) < 0.01, "{tcp}");
    for file in [
        "summary.json",
        "timeline.csv",
        "events.csv",
        "run.log",
        "report.html",
        "scenario.toml",
    ] {
        assert!(
            dir.path().join("o").join(file).metadata().unwrap().len() > 0,
            "{file}"
        );
    }
    assert!(!text(&std::fs::read(dir.path().join("o/timeline.csv")).unwrap()).is_empty());
    let again = braid(dir.path(), &["lab", "report", "o"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
}

#[test]
fn an_interrupted_run_ends_with_130_and_leaves_nothing() {
    let dir = support::folder();
    if !lab_works(dir.path()) {
        return;
    }
    std::fs::write(dir.path().join("long.toml"), small("30 s", "", MPTCP)).unwrap();
    for (signal, more) in [
        ("INT", None),
        ("TERM", Some("--json")),
        ("HUP", None),
        ("QUIT", None),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_braid"))
            .args(["lab", "run", "long.toml", "--out", signal])
            .args(more)
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let asked = Instant::now();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "SIG{signal}");
        assert!(
            asked.elapsed() < Duration::from_secs(10),
            "SIG{signal} took {:?}",
            asked.elapsed()
        );
        assert!(dir.path().join(signal).join("run.log").exists());
        let mut said = String::new();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(
            said.contains(&format!("{signal} has the log so far")),
            "{said}"
        );
        let mut printed = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut printed).unwrap();
        assert_eq!(printed, "");
    }
    let left = marked_below(dir.path());
    assert!(left.is_empty(), "processes left: {left:?}");
}

/// Runs cases of `file`, of 20 s each, and kills the first process whose command line
/// contains `what` two seconds after it was seen.
fn killed(dir: &Path, file: &str, only: &str, what: &str) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(["lab", "run", file, "--out", "o", "--only", only])
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let parent = child.id();
    let until = Instant::now() + Duration::from_secs(10);
    let victim = loop {
        assert!(Instant::now() < until, "no {what} was started");
        let all = children_of(parent);
        if let Some(pid) = all.into_iter().find(|p| command_line(*p).contains(what)) {
            break pid;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    std::thread::sleep(Duration::from_secs(2));
    let mut kill = Command::new("kill");
    let kill = kill.args(["-s", "KILL", &victim.to_string()]);
    assert!(kill.status().unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn a_dead_child_fails_the_case_and_is_named() {
    let dir = support::folder();
    if !lab_works(dir.path()) {
        return;
    }
    let text_of = small(
        "20 s",
        "",
        &MPTCP.replace("MPTCP", "QUIC").replace("mptcp", "mpquic"),
    );
    std::fs::write(dir.path().join("long.toml"), text_of).unwrap();
    for (only, what, said) in [
        ("TCP on a", "__radio", "the emulator ended during the run"),
        ("QUIC", "\0up\0", "the daemon of cpe ended during the run"),
        (
            "QUIC",
            "\0proxy\0",
            "the daemon of proxy ended during the run",
        ),
    ] {
        let begun = Instant::now();
        let out = killed(dir.path(), "long.toml", only, what);
        assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
        let all = text(&out.stdout) + &text(&out.stderr);
        assert!(all.contains(said), "{all}");
        assert!(begun.elapsed() < Duration::from_secs(15), "said too late");
    }
}

#[test]
fn a_full_disk_is_named() {
    let dir = support::folder();
    if !lab_works(dir.path()) {
        return;
    }
    let full = dir.path().join("full");
    std::fs::create_dir(&full).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&full)
        .status();
    if !mounted.is_ok_and(|s| s.success()) {
        println!("skipped: no right to mount a small tmpfs");
        return;
    }
    std::fs::write(full.join("filler"), vec![0; 8 << 10]).ok();
    std::fs::write(dir.path().join("small.toml"), small("2 s", "", MPTCP)).unwrap();
    let out = braid(dir.path(), &["lab", "run", "small.toml", "--out", "full/o"]);
    let unmounted = Command::new("umount").arg(&full).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("full/o"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn a_users_command_runs_over_mptcp_unchanged() {
    let dir = support::folder();
    if !lab_works(dir.path()) {
        return;
    }
    if Command::new("iperf3").arg("--version").output().is_err() {
        println!("skipped: iperf3 is not installed");
        return;
    }
    let case = "\n[[case]]\nname = \"iperf3\"\nengine = \"mptcp\"\ncc = \"cubic\"\n\
        traffic = { kind = \"command\", run = \"iperf3 -c {proxy} -t 4 -R\", server = \"iperf3 -s -1\", time_limit = \"10 s\" }\n";
    std::fs::write(dir.path().join("small.toml"), small("4 s", "", case)).unwrap();
    let out = braid(
        dir.path(),
        &[
            "lab",
            "run",
            "small.toml",
            "--only",
            "iperf3",
            "--out",
            "o",
            "--json",
        ],
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let case = &summary["cases"][0];
    assert!(case["share"]["a"].as_f64().unwrap() > 0.2, "{case}");
    assert!(case["share"]["b"].as_f64().unwrap() > 0.1, "{case}");
}

fn children_of(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task");
    let mut found = Vec::new();
    for task in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            list.split_whitespace()
                .filter_map(|p| p.parse::<u32>().ok()),
        );
    }
    found
}

fn command_line(pid: u32) -> String {
    text(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
}

/// Marked processes whose working directory is below `dir`: ours, not those of
/// a test beside us.
fn marked_below(dir: &Path) -> Vec<String> {
    marked()
        .into_iter()
        .filter(|p| std::fs::read_link(format!("/proc/{p}/cwd")).is_ok_and(|c| c.starts_with(dir)))
        .collect()
}

#[test]
fn a_daemons_configuration_is_checked_and_nothing_is_changed() {
    let dir = support::folder();
    let good = "proxy = \"192.0.2.1\"\n[access.nr]\ninterface = \"wwan*\"\n";
    std::fs::write(dir.path().join("good.toml"), good).unwrap();
    std::fs::write(
        dir.path().join("bad.toml"),
        good.replace("interface", "interfaec"),
    )
    .unwrap();
    let check = |file| braid(dir.path(), &["up", "--check", "--config", file]);
    let out = check("good.toml");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let said = "good.toml is right: accesses nr; what is not bonded leaves by those that work\n";
    assert_eq!(text(&out.stdout), said);
    // The machine of a test has no modem.
    let warned = text(&out.stderr);
    let mut lines = warned.lines();
    assert!(
        lines.all(|l| l.starts_with("braid: warning: good.toml:")),
        "{warned}"
    );
    assert!(
        warned.contains("good.toml:3:1: access \"nr\"") || warned.is_empty(),
        "{warned}"
    );
    let unknown = format!("{good}[scheduler]\nname = \"wr\"\n");
    std::fs::write(dir.path().join("unknown.toml"), unknown).unwrap();
    let out = check("unknown.toml");
    let err = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{err}");
    assert!(
        err.contains("unknown.toml:5:1: ") && err.contains("did you mean \"wrr\"?"),
        "{err}"
    );
    let out = check("bad.toml");
    assert_eq!(out.status.code(), Some(2));
    let err = text(&out.stderr);
    assert!(
        err.contains("bad.toml:3:") && err.contains("interface"),
        "{err}"
    );
    assert_eq!(check("none.toml").status.code(), Some(2));
    let proxy = braid(dir.path(), &["proxy", "--check", "--config", "good.toml"]);
    assert_eq!(proxy.status.code(), Some(2), "an interface is a device's");
}
