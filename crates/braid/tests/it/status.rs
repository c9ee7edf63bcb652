//! `braid status` and `braid set` beside a running end.

use braid_netns::world;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use braid_mptcp::pm::{Limits, PathManager};
use braid_netns::world::{World, ask, eventually, fetch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const BRAID: &str = env!("CARGO_BIN_EXE_braid");

fn braid(args: &[&str], control: &Path) -> Output {
    let mut command = Command::new(BRAID);
    command.args(args).arg("--control").arg(control);
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

/// The device's end as a process of its own; stopped when dropped.
struct End {
    child: Child,
    control: PathBuf,
}

impl End {
    fn start(w: &World, directory: &Path) -> Self {
        let config = directory.join("device.toml");
        std::fs::write(
            &config,
            "[access.nr]\nkind = \"5g\"\ninterface = \"d1\"\naddress = \"10.77.1.2\"\n\
             [access.\"wi fi\"]\ninterface = \"d2\"\naddress = \"10.77.2.2\"\n",
        )
        .unwrap();
        let control = directory.join("control.sock");
        let mut command = Command::new(BRAID);
        command.arg("up").arg("--config").arg(&config);
        command.arg("--control").arg(&control);
        command.stdout(Stdio::piped());
        let mut child = w.device.run(|| command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        Self { child, control }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        signal(&self.child, Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

fn status(control: &Path) -> Value {
    let out = braid(&["status", "--json"], control);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// A connection to a proxy that accepts all subflows, over which something has come.
fn fetching(w: &World) -> (TcpStream, JoinHandle<()>) {
    w.proxy.run(|| {
        PathManager::open()
            .unwrap()
            .set_limits(Limits::MAX)
            .unwrap()
    });
    let (mut stream, server) = world::mptcp::connected(w, 80, None);
    fetch(&mut stream, 1_000_000);
    (stream, server)
}

#[test]
fn the_state_is_shown_and_changed() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let end = End::start(&w, t.path());
    let (mut stream, server) = fetching(&w);

    let s = eventually("both accesses are used", || {
        let s = status(&end.control);
        let used = |i: usize| s["accesses"][i]["subflows"] == 1;
        (used(0) && used(1) && s["accesses"][0]["state"] == "active").then_some(s)
    });
    assert_eq!(s["connections"]["mptcp"], 1);
    let nr = &s["accesses"][0];
    assert_eq!(
        (&nr["name"], &nr["state"]),
        (&"nr".into(), &"active".into())
    );
    assert_eq!(nr["addresses"], serde_json::json!(["10.77.1.2"]));
    assert!(nr["srtt_ms"].as_f64().unwrap() > 0.0, "{nr}");
    // What was repeated may come a while after the last byte was read.
    eventually("nothing flows any more", || {
        (status(&end.control)["accesses"][0]["received_mbps"] == 0.0).then_some(())
    });

    // A table for people, a line for each access.
    let out = braid(&["status"], &end.control);
    let shown = text(&out.stdout);
    assert!(
        shown.contains("10.77.2.2") && !shown.contains('\u{1b}'),
        "{shown}"
    );

    // A name that a path cannot have as it is.
    let out = braid(&["set", "backup", "wi fi", "on"], &end.control);
    assert_eq!(
        text(&out.stdout),
        "wi fi: backup on\n",
        "{}",
        text(&out.stderr)
    );
    assert_eq!(status(&end.control)["accesses"][1]["state"], "backup");
    w.set_link(1, false);
    let nr = eventually("the link is down", || {
        let nr = status(&end.control)["accesses"][0].clone();
        (nr["state"] != "active").then_some(nr)
    });
    assert_eq!(nr["state"], "down");
    assert!(nr["why"].as_str().unwrap().contains("d1"), "{nr}");

    // Wrong requests, and one that takes another kernel.
    for wrong in [
        &["set", "backup", "lifi", "on"][..],
        &["set", "weights", "lifi=1"],
        &["set", "weights", "nr=-1"],
        &["set", "backup", "nr"],
        &["set", "access", "lifi", "off"],
        &["set", "access", "nr", "maybe"],
        &["set", "scheduler"],
        &["set", "scheduler", "wrr", "--mode", "lax"],
        &["set", "priority", "nr=x"],
        &["status", "--colour"],
    ] {
        let out = braid(wrong, &end.control);
        assert_eq!(
            out.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text(&out.stderr)
        );
    }
    let out = braid(&["set", "weights", "nr=30", "wi fi=100"], &end.control);
    let said = text(&out.stderr);
    match out.status.code() {
        // Weights take the right to load eBPF.
        Some(3) => assert!(said.contains("eBPF"), "{said}"),
        _ => assert_eq!(text(&out.stdout), "weights: nr=30 wi fi=100\n", "{said}"),
    }
    w.set_link(1, true);
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn accesses_their_order_and_the_scheduler_are_set() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let end = End::start(&w, t.path());
    let set = |args: &[&str], expected: &str| {
        let args: Vec<_> = ["set"].iter().chain(args).copied().collect();
        let out = braid(&args, &end.control);
        let said = (text(&out.stdout), text(&out.stderr));
        assert_eq!(said.0, expected, "{args:?}: {}", said.1);
    };
    let state = |i: usize| status(&end.control)["accesses"][i]["state"].clone();
    set(&["access", "nr", "off"], "nr: off\n");
    assert_eq!(state(0), "ignored");
    set(&["access", "nr", "on"], "nr: on\n");
    assert_eq!(state(0), "init", "nothing was sent yet");
    set(&["priority", "nr=2", "wi fi=1"], "priority: nr=2 wi fi=1\n");
    assert_eq!(state(0), "backup");
    set(&["priority", "nr=none"], "priority: nr=none wi fi=1\n");
    set(&["scheduler", "default"], "scheduler: default\n");

    let out = braid(
        &["set", "scheduler", "wrr", "--mode", "strict"],
        &end.control,
    );
    let said = text(&out.stderr);
    if out.status.code() == Some(3) {
        assert!(said.contains("eBPF"), "{said}");
        return println!("skipped: {said}");
    }
    assert_eq!(text(&out.stdout), "scheduler: wrr, strict\n", "{said}");
    set(
        &["scheduler", "--mode", "work-conserving"],
        "scheduler: wrr, work-conserving\n",
    );
    let s = status(&end.control);
    assert_eq!(
        (&s["scheduler"], &s["weights_act"]),
        (&"wrr".into(), &true.into())
    );
    assert_eq!(s["wrr_mode"], "work-conserving", "{s}");
    assert!(s["congestion_control"].is_null(), "an internal name: {s}");

    let (mut stream, server) = fetching(&w);
    let all = braid(&["status", "--json", "--connections"], &end.control);
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let token = all["list"][0]["token"].to_string();
    let of = ["weights", "--connection", &token];
    let own = format!("weights of {token}: nr=3 wi fi=1\n");
    set(&[&of[..], &["nr=3", "wi fi=1"]].concat(), &own);
    let out = braid(
        &["set", "weights", "--connection", &token, "--reset"],
        &end.control,
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    ask(&mut stream, 0);
    server.join().unwrap();
    set(&["scheduler", "default"], "scheduler: default\n");
    let s = status(&end.control);
    assert_eq!(
        (&s["scheduler"], &s["weights_act"]),
        (&"default".into(), &false.into())
    );
    let own = s["congestion_control"].as_str();
    assert!(own.is_some_and(|c| !c.contains("wrr")), "{s}");
}

#[test]
fn watching_goes_on_until_interrupted() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let end = End::start(&w, t.path());
    let mut command = Command::new(BRAID);
    command.args(["status", "--watch", "--json", "--control"]);
    command.arg(&end.control).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 0..2 {
        let line = lines.next().unwrap().unwrap();
        let shown: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(shown["accesses"].as_array().unwrap().len(), 2, "{n}");
    }
    signal(&child, Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Answers like a daemon that has one access, `times` requests over, and is gone.
fn answers(control: &Path, times: usize) {
    let listener = UnixListener::bind(control).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut requests = BufReader::new(stream.try_clone().unwrap()).lines();
    for _ in 0..times {
        let path = requests.next().unwrap().unwrap();
        while !requests.next().unwrap().unwrap().is_empty() {}
        let body = match path.split(' ').nth(1).unwrap() {
            // As a daemon of before: it does not have the connections there.
            "/v1/status?connections=true" => {
                "{\"role\": \"device\", \"accesses\": [{\"name\": \"nr\"}]}"
            }
            "/v1/connections" => "{\"t_ns\": 1, \"took_us\": 1, \"connections\": []}",
            "/v1/control" => "{\"policy\": \"static\", \"direction\": \"up\", \"accesses\": []}",
            other => panic!("{other} is not asked for"),
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
    }
    std::fs::remove_file(control).unwrap();
}

#[test]
fn watching_waits_while_the_daemon_restarts() {
    let t = tempfile::tempdir().unwrap();
    let control = t.path().join("s");
    let first = {
        let control = control.clone();
        std::thread::spawn(move || answers(&control, 3))
    };
    eventually("the socket is there", || control.exists().then_some(()));
    let mut child = Command::new(BRAID)
        .args(["status", "--watch", "--json", "--control"])
        .arg(&control)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = || {
        let line = lines.next().expect("it still watches").unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["accesses"][0]["name"].clone()
    };
    assert_eq!(shown(), "nr");
    first.join().unwrap();
    // It finds nobody for a while, says so once, and goes on with the next daemon.
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    assert!(
        line.starts_with("braid: ") && line.contains("waiting"),
        "{line}"
    );
    let second = {
        let control = control.clone();
        std::thread::spawn(move || answers(&control, 6))
    };
    assert_eq!((shown(), shown()), ("nr".into(), "nr".into()));
    signal(&child, Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    second.join().unwrap();
}

#[test]
fn without_a_daemon_it_is_said_what_to_do() {
    let nowhere = Path::new("/nonexistent/control.sock");
    for args in [
        &["status"][..],
        &["status", "--watch"],
        &["set", "weights", "nr=1"],
        &["set", "backup", "nr", "on"],
        &["set", "access", "nr", "off"],
        &["set", "scheduler", "wrr"],
    ] {
        let out = braid(args, nowhere);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
        assert!(
            said.contains("/nonexistent") && said.contains("braid up"),
            "{said}"
        );
    }
}
