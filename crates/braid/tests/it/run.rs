//! `braid run`: unchanged programs over MPTCP, as a script sees it.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use braid_mptcp::socket::{self, OnTheWire};
use braid_mptcp::support;
use braid_netns::world::{Ns, World, eventually, service};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn braid(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
    command.arg("run").args(args).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn output(ns: &Ns, args: &[&str]) -> Output {
    ns.run(|| braid(args).output().unwrap())
}

/// A server of one HTTP request at the proxy; tells what the connection spoke.
fn answer_one(w: &World) -> std::thread::JoinHandle<OnTheWire> {
    let listener = w
        .proxy
        .run(|| socket::listen(service(80), true, None).unwrap());
    w.proxy.spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream
            .write_all(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .unwrap();
        socket::on_the_wire(&stream).unwrap()
    })
}

/// Whether there is a `curl`; says so where there is none.
fn has_curl() -> bool {
    let is = Command::new("curl").arg("--version").output().is_ok();
    if !is {
        println!("skipped: there is no curl");
    }
    is
}

const CURL: [&str; 5] = ["--", "curl", "-s", "-S", "http://10.77.0.1/"];

#[test]
fn an_unchanged_program_speaks_mptcp() {
    let Some(w) = World::new(1) else { return };
    if !has_curl() {
        return;
    }
    for by in ["auto", "preload"] {
        let server = answer_one(&w);
        let args = [&["--by", by][..], &CURL].concat();
        let out = output(&w.device, &args);
        assert_eq!(
            (out.status.code(), text(&out.stdout)),
            (Some(0), "ok".into()),
            "{by}: {}",
            text(&out.stderr)
        );
        assert_eq!(text(&out.stderr), "", "{by}");
        assert_eq!(server.join().unwrap(), OnTheWire::Mptcp, "{by}");
    }
    // Without it, the same program speaks TCP.
    let server = answer_one(&w);
    w.device
        .run(|| Command::new(CURL[1]).args(&CURL[2..]).output().unwrap());
    assert_eq!(server.join().unwrap(), OnTheWire::Fallback);
}

#[test]
fn what_was_chosen_is_said_and_can_be_forced() {
    let Some(w) = World::new(1) else { return };
    let out = output(&w.device, &["-v", "true"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let bpf = output(&w.device, &["--by", "bpf", "true"]);
    if said.contains("by eBPF") {
        assert_eq!(bpf.status.code(), Some(0), "{}", text(&bpf.stderr));
    } else {
        // With the reason, which is that of the refusal as well.
        let reason = said.split_once("library: ").unwrap().1.trim();
        assert_eq!(bpf.status.code(), Some(3));
        assert!(text(&bpf.stderr).contains(reason), "{said}");
    }
}

#[test]
fn where_mptcp_is_off_nothing_is_started() {
    let Some(w) = World::new(1) else { return };
    w.device
        .run(|| support::set_sysctl("net.mptcp.enabled", "0").unwrap());
    let out = output(&w.device, &["echo", "started"]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(3), "".into()));
    let e = text(&out.stderr);
    assert!(e.contains("sysctl -w net.mptcp.enabled=1"), "{e}");
}

/// Ways to run a program: with a congestion control that the run keeps, or with none.
/// The first has a process that waits, the other becomes the program.
fn ways(w: &World) -> Vec<Vec<&'static str>> {
    let mut ways = vec![vec![]];
    let out = output(&w.device, &["--cc", "lia", "true"]);
    match out.status.code() {
        Some(0) => ways.push(vec!["--cc", "lia"]),
        Some(3) => println!("skipped: --cc lia: {}", text(&out.stderr)),
        other => panic!("{other:?}: {}", text(&out.stderr)),
    }
    ways
}

#[test]
fn the_status_is_that_of_the_program() {
    let Some(w) = World::new(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    std::fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
    let plain = script.to_str().unwrap();
    for way in ways(&w) {
        let run = |command: &[&str]| {
            let out = output(&w.device, &[&way[..], &["--"], command].concat());
            // What was killed after braid became it is killed itself.
            let status = out.status.code().or(out.status.signal().map(|s| 128 + s));
            (status.unwrap(), text(&out.stderr))
        };
        assert_eq!(run(&["sh", "-c", "exit 7"]).0, 7);
        assert_eq!(run(&["sh", "-c", "kill -KILL $$"]).0, 137);
        let (status, said) = run(&["no-such-program"]);
        assert!(status == 127 && said.contains("no such program"), "{said}");
        let (status, said) = run(&[plain]);
        assert!(status == 126 && said.contains("chmod +x"), "{said}");
        let mut executable = std::fs::metadata(&script).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut executable, 0o755);
        std::fs::set_permissions(&script, executable).unwrap();
        let (status, said) = run(&[plain]);
        assert!(status == 127 && said.contains("interpreter"), "{said}");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .unwrap();
    }
}

#[test]
fn signals_reach_the_program() {
    let Some(w) = World::new(1) else { return };
    for way in ways(&w) {
        let program = "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
        let args = [&way[..], &["--", "sh", "-c", program]].concat();
        let mut child = w
            .device
            .run(|| braid(&args).stdout(Stdio::piped()).spawn().unwrap());
        let mut out = child.stdout.take().unwrap();
        let mut ready = [0; 6];
        out.read_exact(&mut ready).unwrap();
        kill(
            Pid::from_raw(i32::try_from(child.id()).unwrap()),
            Signal::SIGTERM,
        )
        .unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!((child.wait().unwrap().code(), &*rest), (Some(5), "told\n"));

        // A program that does nothing about signals is ended by one.
        let args = [&way[..], &["--", "cat"]].concat();
        let mut command = braid(&args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = w.device.run(|| command.spawn().unwrap());
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"x").unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        kill(
            Pid::from_raw(i32::try_from(child.id()).unwrap()),
            Signal::SIGTERM,
        )
        .unwrap();
        let status = child.wait().unwrap();
        let status = status.code().or(status.signal().map(|s| 128 + s));
        assert_eq!(status, Some(143));
    }
}

/// The congestion controls of this kernel that stand for run `id`.
fn registered(id: u32) -> bool {
    let all = support::sysctl("net.ipv4.tcp_available_congestion_control").unwrap();
    all.split(' ').any(|n| n.ends_with(&format!("_{id:x}")))
}

#[test]
fn a_congestion_control_holds_for_every_connection_and_is_taken_back() {
    let Some(w) = World::new(1) else { return };
    let Ok(python) = which::which("python3") else {
        println!("skipped: there is no python3");
        return;
    };
    const ASK: &str = "import socket; s = socket.create_connection(('10.77.0.1', 80)); \
        print(s.getsockopt(6, 13, 16).rstrip(bytes(1)).decode()); s.sendall(b'x')";
    let names = ways(&w).into_iter().filter_map(|way| way.get(1).copied());
    for name in names.chain(["reno"]) {
        let server = answer_one(&w);
        let out = output(
            &w.device,
            &["--cc", name, python.to_str().unwrap(), "-c", ASK],
        );
        let has = text(&out.stdout);
        assert!(has.starts_with(name), "{has} {}", text(&out.stderr));
        assert_eq!(server.join().unwrap(), OnTheWire::Mptcp);
        let id = has
            .trim()
            .split_once('_')
            .map_or(0, |(_, id)| u32::from_str_radix(id, 16).unwrap());
        // The socket that had it is gone with the program.
        eventually("nothing is left", || (!registered(id)).then_some(()));
    }
}

#[test]
fn usage_errors_end_with_2() {
    for args in [
        &[][..],
        &["--by", "magic", "true"],
        &["--engine", "mpquic", "true"],
        &["--cc", "no_such_one", "true"],
        &["--cgroup", "/proc"],
        &["--cgroup", "/sys/fs/cgroup", "--by", "preload"],
        &["--cgroup", "/sys/fs/cgroup", "true"],
    ] {
        let out = braid(args).output().unwrap();
        let e = text(&out.stderr);
        if out.status.code() == Some(3) && e.contains("MPTCP is switched off") {
            println!("skipped: {e}");
            return;
        }
        assert_eq!(out.status.code(), Some(2), "{args:?}: {e}");
        assert!(!e.is_empty() && !e.contains("panicked"), "{args:?}: {e}");
    }
}
