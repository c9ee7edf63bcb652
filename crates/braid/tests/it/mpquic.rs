//! Both ends of Multipath QUIC, in namespaces of their own: a program's connection goes
//! over all accesses, steered and watched by the control API.

use crate::support::request;
use braid_netns::world;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::quic::configs;
use braid_api::{AccessState, AccessStatus, Connections, Events, Role, Status, Weights};
use braid_daemon::{DaemonError, run_until};
use braid_mpquic::tls::Identity;
use braid_netns::world::{Ns, SERVICE, World, eventually, fetch};
use serde::de::DeserializeOwned;

struct End {
    control: PathBuf,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Result<(), DaemonError>>>,
}

impl End {
    fn start(ns: &Ns, role: Role, config: PathBuf) -> Result<Self, DaemonError> {
        let control = config.with_extension("sock");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let at = control.clone();
        let thread = ns.spawn(move || {
            run_until(role, &config, &at, async move {
                let _ = ready.send(());
                let _ = stopped.await;
            })
        });
        // The sender is dropped when the end fails to start.
        match is_ready.recv() {
            Ok(()) => Ok(Self {
                control,
                stop: Some(stop),
                thread: Some(thread),
            }),
            Err(_) => Err(thread.join().unwrap().unwrap_err()),
        }
    }

    fn ask<T: DeserializeOwned>(&self, path: &str) -> T {
        let (head, body) = request::request(&self.control, "GET", path, "");
        assert!(head.contains("200"), "{head} {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn put(&self, path: &str, body: &str) -> (String, String) {
        request::request(&self.control, "PUT", path, body)
    }

    fn delete(&self, path: &str) -> (String, String) {
        request::request(&self.control, "DELETE", path, "")
    }

    fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_connection_goes_over_all_accesses_and_is_steered() {
    for lane in ["lane = \"stream\"\n", ""] {
        let Some(w) = World::new(2) else { return };
        let dir = tempfile::tempdir().unwrap();
        let (at_device, at_proxy) = configs(dir.path(), lane);
        let proxy = End::start(&w.proxy, Role::Proxy, at_proxy).unwrap();
        let device = End::start(&w.device, Role::Device, at_device.clone()).unwrap();
        let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
        let server = w.serve(listener);
        let active = |end: &End| {
            let status: Status = end.ask("/v1/status");
            let all = status.accesses.iter();
            all.filter(|a| a.state == AccessState::Active).count()
        };
        eventually("both are active", || {
            (active(&device) == 2 && active(&proxy) == 2).then_some(())
        });
        let strict = r#"{"name": "wrr", "wrr_mode": "strict"}"#;
        let (head, body) = proxy.put("/v1/scheduler", strict);
        assert!(head.contains("200"), "{body}");
        let (head, body) = proxy.put("/v1/weights", r#"{"nr": 3}"#);
        let now: Weights = serde_json::from_str(&body).unwrap();
        assert!(head.contains("200") && now.0["nr"] == 3.0 && now.0["wifi"] == 1.0);
        let mut tcp = w
            .device
            .run(|| TcpStream::connect("127.0.0.1:5001").unwrap());
        fetch(&mut tcp, 8_000_000);
        let told: Connections = proxy.ask("/v1/connections");
        let sent = |name: &str| {
            let all = told.connections[0].subflows.iter();
            let mine = all.filter(|s| s.access.as_deref() == Some(name));
            mine.map(|s| s.sent_bytes).sum::<u64>() as f64
        };
        let share = sent("nr") / (sent("nr") + sent("wifi"));
        assert!((share - 0.75).abs() < 0.02, "{share}");
        // Weights of its own, which those of all do not touch, until they are given back.
        let own = format!(
            "/v1/connections/{}/weights",
            told.connections[0].token.unwrap()
        );
        let (head, body) = proxy.put(&own, r#"{"nr": 1, "wifi": 3}"#);
        assert!(head.contains("200"), "{body}");
        proxy.put("/v1/weights", r#"{"nr": 2}"#);
        let before = [sent("nr"), sent("wifi")];
        fetch(&mut tcp, 8_000_000);
        let told: Connections = proxy.ask("/v1/connections");
        assert_eq!(told.connections[0].weights.as_ref().unwrap()["wifi"], 3.0);
        let sent = |name: &str| {
            let all = told.connections[0].subflows.iter();
            let mine = all.filter(|s| s.access.as_deref() == Some(name));
            mine.map(|s| s.sent_bytes).sum::<u64>() as f64
        };
        let [nr, wifi] = [sent("nr") - before[0], sent("wifi") - before[1]];
        assert!((nr / (nr + wifi) - 0.25).abs() < 0.03, "{nr} {wifi}");
        let (head, body) = proxy.delete(&own);
        let now: Weights = serde_json::from_str(&body).unwrap();
        assert!(head.contains("200") && now.0["nr"] == 2.0 && now.0["wifi"] == 1.0);
        let (head, body) = device.put(
            "/v1/accesses/nr",
            r#"{"expected": {"down_bps": 300000000}}"#,
        );
        if lane.is_empty() {
            let status: AccessStatus = serde_json::from_str(&body).unwrap();
            let down = status.expected.down.map(|r| r.as_mbps());
            assert!(head.contains("200") && down == Some(300.0), "{body}");
        } else {
            assert!(
                head.contains("409") && body.contains("datagram lane"),
                "{body}"
            );
        }
        let (head, body) = device.put("/v1/accesses/nr", r#"{"expected": {"up_bps": 7}}"#);
        assert!(
            head.contains("400") && body.contains("not from 1 kbit/s"),
            "{body}"
        );
        // Left out, and taken in again.
        let (head, body) = device.put("/v1/accesses/wifi", r#"{"enabled": false}"#);
        let status: AccessStatus = serde_json::from_str(&body).unwrap();
        assert!(
            head.contains("200") && status.state == AccessState::Ignored,
            "{body}"
        );
        let (head, _) = proxy.put("/v1/scheduler", r#"{"name": "minrtt"}"#);
        assert!(head.contains("200"));
        fetch(&mut tcp, 1_000_000);
        device.put("/v1/accesses/wifi", r#"{"enabled": true}"#);
        eventually("both are active again", || {
            (active(&device) == 2).then_some(())
        });
        for (path, body, status) in [
            ("/v1/scheduler", r#"{"name": "fifo"}"#, "400"),
            ("/v1/scheduler", r#"{"num_segments": 3}"#, "400"),
            ("/v1/weights", r#"{"lte": 1}"#, "404"),
            ("/v1/weights", r#"{"nr": 0, "wifi": 0}"#, "400"),
            (
                "/v1/connections/1/weights",
                r#"{"nr": 0, "wifi": 0}"#,
                "400",
            ),
            ("/v1/connections/77/weights", r#"{"nr": 1}"#, "404"),
        ] {
            let (head, text) = proxy.put(path, body);
            assert!(head.contains(status), "{path} {body}: {head} {text}");
        }
        let run = |by: &str| {
            let mut braid = Command::new(env!("CARGO_BIN_EXE_braid"));
            braid.args(["run", "--by", by, "--control"]);
            braid.arg(&device.control).args(["--", "true"]);
            let out = braid.output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            (out.status.code(), said)
        };
        let (status, said) = run("auto");
        assert!(
            status == Some(2) && said.contains("[mpquic] forward"),
            "{said}"
        );
        assert_eq!(run("preload").0, Some(0));
        // The proxy starts again, and the device finds it.
        let config = dir.path().join("p.toml");
        proxy.stop();
        let proxy = End::start(&w.proxy, Role::Proxy, config).unwrap();
        let begun = std::time::Instant::now();
        while active(&device) < 2 || active(&proxy) < 2 {
            assert!(
                begun.elapsed().as_secs() < 20,
                "the device did not connect again"
            );
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let events: Events = device.ask("/v1/events");
        assert!(!events.events.is_empty());
        let mut tcp = w
            .device
            .run(|| TcpStream::connect("127.0.0.1:5001").unwrap());
        world::ask(&mut tcp, 0);
        server.join().unwrap();
        device.stop();
        proxy.stop();
    }
}

#[test]
fn a_program_that_speaks_socks_goes_over_the_bond() {
    let Some(w) = World::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (at_device, at_proxy) = configs(dir.path(), "");
    let text = std::fs::read_to_string(&at_device).unwrap();
    let socks = "socks = \"127.0.0.1:1080\"\nforward";
    std::fs::write(&at_device, text.replacen("forward", socks, 1)).unwrap();
    let proxy = End::start(&w.proxy, Role::Proxy, at_proxy).unwrap();
    let device = End::start(&w.device, Role::Device, at_device).unwrap();
    // Not to one that the configuration forwards to.
    let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5009)).unwrap());
    let server = w.serve(listener);
    let mut tcp = w
        .device
        .run(|| TcpStream::connect("127.0.0.1:1080").unwrap());
    let mut request = vec![5, 1, 0, 5, 1, 0, 1];
    request.extend(SERVICE.octets());
    request.extend(5009u16.to_be_bytes());
    tcp.write_all(&request).unwrap();
    let mut replies = [0; 2 + 10];
    tcp.read_exact(&mut replies).unwrap();
    assert_eq!(replies[..4], [5, 0, 5, 0]);
    fetch(&mut tcp, 3_000_000);
    world::ask(&mut tcp, 0);
    server.join().unwrap();
    device.stop();
    proxy.stop();
}

#[test]
fn what_cannot_be_is_said_at_once() {
    let Some(w) = World::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (at_device, _) = configs(dir.path(), "");
    let text = std::fs::read_to_string(&at_device).unwrap();
    let refuse = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let path = dir.path().join("bad.toml");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let refused = End::start(&w.device, Role::Device, path);
        let e = refused.err().expect("it is refused");
        (e.exit_code(), e.to_string())
    };
    let pin = text.lines().find(|l| l.starts_with("pins")).unwrap();
    for (from, to, why) in [
        (pin, "", "whom to trust is not said"),
        (pin, "pins = [\"sha256/abc\"]", "44 characters of base64"),
        (pin, "anyone = true", "must know its proxy"),
        (
            "forward",
            "cc = \"vegas\"\nforward",
            "unknown congestion control \"vegas\"",
        ),
        (
            "forward",
            "socks = \"127.0.0.1\"\nforward",
            "invalid socket address",
        ),
        (
            "forward",
            "send_window = 65535\nforward",
            "expected bytes, 65536 or more",
        ),
        (
            "forward",
            "lane = \"stream\"\nsend_window = 65536\nforward",
            "only the datagram lane has this",
        ),
        (
            "forward",
            "lane = \"stream\"\nacks = \"in-turn\"\nforward",
            "only the datagram lane has this",
        ),
        (
            "forward",
            "acks = \"slowest\"\nforward",
            "unknown value `slowest`",
        ),
        (
            "interface = \"d1\"",
            "interface = \"d*\"",
            "\"wifi\" never has an interface",
        ),
        (
            "[mpquic]",
            "[scheduler]\nname = \"fifo\"\n[mpquic]",
            "unknown packet scheduler",
        ),
        (
            "[mpquic]",
            "[scheduler]\nname = \"ecf\"\n[mpquic]\nlane = \"stream\"",
            "cannot steer the stream lane",
        ),
        (
            "interface = \"d1\"",
            "interface = \"d1\"\nexpected = { down = \"fast\" }",
            "down: ",
        ),
        (
            "engine = \"mpquic\"",
            "engine = \"mptcp\"",
            "only engine = \"mpquic\" has [mpquic]",
        ),
    ] {
        let (code, said) = refuse(from, to);
        assert!(code == 2 && said.contains(why), "{code} {said}");
        assert!(said.contains("bad.toml:"), "{said}");
    }
    let key = dir.path().join("device.key");
    let (code, said) = refuse(&format!("{key:?}"), "\"/nonexistent/key\"");
    assert!(
        code == 2 && said.contains("read the private key /nonexistent/key"),
        "{said}"
    );
    assert!(said.contains("bad.toml: [mpquic]"), "{said}");
}

#[test]
fn why_there_is_no_session_is_told() {
    let Some(w) = World::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (at_device, at_proxy) = configs(dir.path(), "");
    let text = std::fs::read_to_string(&at_device).unwrap();
    // Its own pin in place of the proxy's, and an interface that there is not.
    let own = Identity::load(
        &dir.path().join("device.crt"),
        &dir.path().join("device.key"),
    );
    let pin = text.lines().find(|l| l.starts_with("pins")).unwrap();
    let text = text.replace(pin, &format!("pins = [\"{}\"]", own.unwrap().pin()));
    std::fs::write(&at_device, text).unwrap();
    let proxy = End::start(&w.proxy, Role::Proxy, at_proxy).unwrap();
    let device = End::start(&w.device, Role::Device, at_device).unwrap();
    let status = eventually("it is told", || {
        let status: Status = device.ask("/v1/status");
        let told = status.notes.iter().any(|n| n.starts_with("no session: "));
        told.then_some(status)
    });
    let trouble = status.notes.iter().find(|n| n.starts_with("no session"));
    let trouble = trouble.unwrap();
    assert!(trouble.contains("is none of the pins"), "{trouble}");
    assert_eq!(status.config_error, None);
    let wifi = status.accesses.iter().find(|a| a.name == "wifi").unwrap();
    assert!(
        wifi.state == AccessState::Down && wifi.why.contains("there is no interface"),
        "{wifi:?}"
    );
    device.stop();
    proxy.stop();
}

/// A daemon in a process of its own, which can be killed.
struct Process(std::process::Child);

impl Process {
    fn proxy(ns: &Ns, config: &Path) -> Self {
        let mut braid = Command::new(env!("CARGO_BIN_EXE_braid"));
        braid.arg("proxy").arg("--config").arg(config);
        braid.arg("--control").arg(config.with_extension("sock"));
        braid.stderr(std::process::Stdio::null());
        Self(ns.run(|| braid.spawn().unwrap()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The session's first path is gone when the proxy dies, and with it the only token by which the
/// QUIC library recognises a stateless reset.
#[test]
fn a_proxy_that_was_killed_is_found_again_within_seconds() {
    use std::io::Read;
    use std::time::{Duration, Instant};
    for lane in ["lane = \"stream\"\n", ""] {
        let Some(w) = World::new(2) else { return };
        let dir = tempfile::tempdir().unwrap();
        let (at_device, at_proxy) = configs(dir.path(), lane);
        let proxy = Process::proxy(&w.proxy, &at_proxy);
        let device = End::start(&w.device, Role::Device, at_device).unwrap();
        let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let _ = std::io::Write::write_all(&mut connection.unwrap(), b"!");
            }
        });
        let is_served = || {
            w.device.run(|| {
                let mut tcp = TcpStream::connect("127.0.0.1:5001").unwrap();
                tcp.set_read_timeout(Some(Duration::from_millis(300)))
                    .unwrap();
                tcp.read(&mut [0]).is_ok_and(|n| n == 1)
            })
        };
        let state = |name: &str| {
            let status: Status = device.ask("/v1/status");
            let found = status.accesses.into_iter().find(|a| a.name == name);
            found.unwrap().state
        };
        let active = |name: &str| (state(name) == AccessState::Active).then_some(());
        eventually("both are active", || active("nr").and(active("wifi")));
        eventually("it serves", || is_served().then_some(()));
        w.set_link(1, false);
        eventually("the other is used alone", || {
            (state("nr") == AccessState::Down).then_some(())
        });
        eventually("it serves", || is_served().then_some(()));
        drop(proxy);
        let begun = Instant::now();
        let note = eventually("the outage is told", || {
            let status: Status = device.ask("/v1/status");
            let told = |n: &String| n.contains("nothing comes back") || n.contains("no session");
            status.notes.into_iter().find(told)
        });
        assert!(begun.elapsed() < Duration::from_secs(6), "{note}");
        let _proxy = Process::proxy(&w.proxy, &at_proxy);
        let begun = Instant::now();
        while !is_served() {
            // Three seconds, and those that a busy machine takes to start it.
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(6), "no service: {lane}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let status: Status = device.ask("/v1/status");
        assert!(!status.notes.iter().any(|n| n.contains("no session")));
        device.stop();
    }
}

/// Neither access answers with ICMP when a packet is too long: it is lost.
#[test]
fn what_each_access_carries_is_found_and_told() {
    for (lane, mtus) in [
        ("", [1280, 1280]),
        ("", [1500, 1400]),
        ("lane = \"stream\"\n", [1500, 1400]),
    ] {
        println!("{lane:?}, {mtus:?}");
        let Some(w) = World::new(2) else { return };
        for (k, mtu) in (1..).zip(mtus) {
            for (ns, end) in [(&w.device, "d"), (&w.proxy, "p")] {
                let words = format!("link set {end}{k} mtu {mtu}");
                let ip = || Command::new("ip").args(words.split(' ')).status();
                assert!(ns.run(ip).is_ok_and(|s| s.success()), "ip {words}");
            }
        }
        if !w.limited(2) {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (at_device, at_proxy) = configs(dir.path(), lane);
        let proxy = End::start(&w.proxy, Role::Proxy, at_proxy).unwrap();
        let device = End::start(&w.device, Role::Device, at_device).unwrap();
        let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
        let server = w.serve(listener);
        eventually("both are active", || {
            let status: Status = device.ask("/v1/status");
            let active = |a: &AccessStatus| a.state == AccessState::Active;
            status.accesses.iter().all(active).then_some(())
        });
        let mut tcp = w
            .device
            .run(|| TcpStream::connect("127.0.0.1:5001").unwrap());
        fetch(&mut tcp, 20_000_000);
        let wanted = |name: &str, mtu: u64| {
            let status: Status = proxy.ask("/v1/status");
            let note = status.accesses.into_iter().find(|a| a.name == name);
            let note = note.unwrap().note.unwrap_or_default();
            let bytes = note.split(' ').find_map(|w| w.parse::<u64>().ok());
            match mtu {
                1500 => bytes.is_none(),
                _ => bytes.is_some_and(|b| b <= mtu && b + 40 >= mtu),
            }
        };
        eventually("what they carry is told", || {
            fetch(&mut tcp, 200_000);
            let found = wanted("nr", mtus[0]) && wanted("wifi", mtus[1]);
            found.then_some(())
        });
        let told: Connections = proxy.ask("/v1/connections");
        for s in &told.connections[0].subflows {
            assert!(s.sent_bytes > 1_000_000, "{lane} {mtus:?}: {s:?}");
        }
        world::ask(&mut tcp, 0);
        server.join().unwrap();
        device.stop();
        proxy.stop();
    }
}
