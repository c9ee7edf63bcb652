//! An engine end on each side of two accesses, spoken to over its control socket.

use crate::support::end::{ACCESSES, End};
use braid_api::{
    Connections, Counters, Engine, Event, EventKind, Events, PathLimits, Role, SchedulerChange,
    Status, Weights,
};
use braid_daemon::run_until;
use braid_mptcp::pm::PathManager;
use braid_mptcp::{socket, support};
use braid_netns::world;
use braid_netns::world::{World, ask, device4, eventually, fetch, service};

const DEFAULT: &str = support::CONGESTION_CONTROL;

#[test]
fn an_end_sets_up_observes_changes_and_cleans_up() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let before = w
        .device
        .run(|| PathManager::open().unwrap().limits().unwrap());
    w.device
        .run(|| support::set_sysctl("net.mptcp.enabled", "0").unwrap());
    let mut device = End::start(&w.device, t.path(), Role::Device, "mptcp").unwrap();
    let proxy = End::start(&w.proxy, t.path(), Role::Proxy, "mptcp").unwrap();

    let s: Status = device.get("/v1/status");
    assert_eq!((s.role, s.engine), (Role::Device, Engine::Mptcp));
    let limits = PathLimits {
        subflows: 8,
        add_addr_accepted: 8,
    };
    assert_eq!(s.limits, Some(limits));
    for (k, (a, name)) in (1..).zip(s.accesses.iter().zip(ACCESSES)) {
        assert_eq!((a.name.as_str(), a.address), (name, Some(device4(k))));
        assert!(a.up && a.has_address && a.enabled && !a.backup, "{a:?}");
        assert!(a.ifindex.is_some() && a.endpoint_id.is_some(), "{a:?}");
    }
    let s: Status = proxy.get("/v1/status");
    assert_eq!((s.role, s.limits), (Role::Proxy, Some(limits)));
    assert!(
        s.accesses
            .iter()
            .all(|a| a.up && a.interface.is_none() && a.endpoint_id.is_none())
    );

    // A connection is seen at both ends, its subflows by the names of the accesses.
    let (mut stream, server) = world::mptcp::connected(&w, 80, None);
    fetch(&mut stream, 1_000_000);
    let subflows = |end: &End| -> Vec<(String, bool)> {
        let mut all: Connections = end.get("/v1/connections");
        let c = all.connections.pop().unwrap();
        assert!(all.connections.is_empty() && c.token.is_some());
        let mut of: Vec<_> = c
            .subflows
            .iter()
            .filter(|s| s.fully_established)
            .map(|s| (s.access.clone().unwrap(), s.backup_local || s.backup_remote))
            .collect();
        of.sort();
        of
    };
    let expect = |what: &str, wanted: &[(&str, bool)]| {
        for end in [&device, &proxy] {
            eventually(what, || {
                let is = subflows(end);
                is.iter()
                    .map(|(n, b)| (n.as_str(), *b))
                    .eq(wanted.iter().copied())
                    .then_some(())
            });
        }
    };
    expect("both accesses", &[("nr", false), ("wifi", false)]);
    let joined = |e: &Event| matches!(&e.what, EventKind::SubflowEstablished(_));
    assert_eq!(
        device.event("a joined subflow", joined).access.as_deref(),
        Some("wifi")
    );
    assert_eq!(
        proxy.event("a joined subflow", joined).access.as_deref(),
        Some("wifi")
    );
    let c: Counters = device.get("/v1/counters");
    assert!(c.counters["MPTcpExt.MPJoinSynTx"] >= 1, "{c:?}");

    // Changes take effect on the connection that exists.
    assert!(device.put("wifi", "{\"backup\": true}").unwrap().backup);
    expect("wifi as a backup", &[("nr", false), ("wifi", true)]);
    assert!(!device.put("wifi", "{\"backup\": false}").unwrap().backup);
    expect("wifi as a primary", &[("nr", false), ("wifi", false)]);
    let a = device.put("nr", "{\"enabled\": false}").unwrap();
    assert!(!a.enabled && a.endpoint_id.is_none());
    expect("without nr", &[("wifi", false)]);
    fetch(&mut stream, 1_000_000);
    assert!(
        device
            .put("nr", "{\"enabled\": true}")
            .unwrap()
            .endpoint_id
            .is_some()
    );
    expect("nr again", &[("nr", false), ("wifi", false)]);

    // Links are watched, and what the kernel leaves is not repaired.
    w.set_link(2, false);
    let down = |e: &Event| {
        e.what
            == EventKind::LinkDown {
                interface: "d2".into(),
            }
    };
    assert_eq!(
        device.event("link down", down).access.as_deref(),
        Some("wifi")
    );
    let s: Status = device.get("/v1/status");
    assert!(!s.accesses[1].up && s.accesses[1].enabled && s.accesses[0].up);
    w.set_link(2, true);
    let up = |e: &Event| {
        e.what
            == EventKind::LinkUp {
                interface: "d2".into(),
            }
    };
    device.event("link up", up);

    // Only newer events are told again.
    let all: Events = device.get("/v1/events");
    assert!(all.missed == 0 && all.events.iter().is_sorted_by_key(|e| (e.seq, e.t_ns)));
    let none: Events = device.get(&format!("/v1/events?after={}", all.next));
    assert_eq!((none.events.len(), none.next), (0, all.next));

    ask(&mut stream, 0);
    server.join().unwrap();
    drop(stream);
    // Addresses of connections stay.
    eventually("no connection", || {
        let all: Connections = device.get("/v1/connections");
        all.connections.is_empty().then_some(())
    });
    device.stop();
    w.device.run(|| {
        let mut pm = PathManager::open().unwrap();
        assert_eq!(pm.endpoints().unwrap(), []);
        assert_eq!(pm.limits().unwrap(), before);
        assert_eq!(support::sysctl("net.mptcp.enabled").unwrap(), "0");
    });
    assert!(!device.control.exists(), "the socket is left behind");
}

#[test]
fn requests_that_make_no_sense_are_refused_with_a_reason() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = End::start(&w.device, t.path(), Role::Device, "mptcp").unwrap();
    let proxy = End::start(&w.proxy, t.path(), Role::Proxy, "mptcp").unwrap();
    let refused = |end: &End, access: &str, body: &str, code: u16, word: &str| {
        let (status, e) = end.put(access, body).unwrap_err();
        assert!(
            status == code && e.contains(word),
            "{access} {body}: {status} {e}"
        );
    };
    refused(&device, "lifi", "{}", 404, "nr, wifi");
    refused(&device, "nr", "{\"bakup\": true}", 400, "bakup");
    refused(&device, "nr", "nonsense", 400, "");
    refused(&proxy, "nr", "{\"backup\": true}", 409, "at the device");
    assert_eq!(device.request("GET", "/v1/nothing", "").0, 404);
    assert_eq!(device.request("GET", "/v1/events?after=x", "").0, 400);
    // None of it did harm.
    let s: Status = device.get("/v1/status");
    assert!(s.accesses.iter().all(|a| a.enabled && !a.backup));
}

#[test]
fn scheduler_and_weights_are_set() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let end = End::start(&w.proxy, t.path(), Role::Proxy, "mptcp").unwrap();
    let put = |path: &str, body: &str| {
        let (status, answer) = end.request("PUT", path, body);
        (status, answer)
    };
    // Every kernel has the default, and a word is checked before anything is done.
    let (status, answer) = put("/v1/scheduler", "{\"name\": \"default\"}");
    assert_eq!(status, 200, "{answer}");
    let now: SchedulerChange = serde_json::from_str(&answer).unwrap();
    assert_eq!(now.name.as_deref(), Some("default"));
    assert_eq!(put("/v1/scheduler", "{\"nmae\": \"default\"}").0, 400);
    let (status, answer) = put("/v1/scheduler", "{\"name\": \"no-such-one\"}");
    assert!(
        status == 400 && answer.contains(" has default") && !answer.contains("--clock"),
        "{status} {answer}"
    );
    let (status, answer) = put("/v1/scheduler", "{\"name\": \"blesst\"}");
    assert!(
        status == 400 && answer.contains("did you mean \\\"blest\\\"?"),
        "{status} {answer}"
    );
    assert_eq!(put("/v1/weights", "{\"lifi\": 1}").0, 404);
    for wrong in ["-1", "99999999999"] {
        let (status, answer) = put("/v1/weights", &format!("{{\"nr\": {wrong}}}"));
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains("0 to 1000000"), "{answer}");
    }
    // A stock kernel takes them by eBPF; what is not named is kept.
    let (status, answer) = put("/v1/weights", "{\"nr\": 2.5}");
    if status == 501 {
        assert!(answer.contains("eBPF"), "{answer}");
        println!("skipped: {answer}");
        return;
    }
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        put("/v1/weights", "{\"wifi\": 1}").1,
        "{\"nr\":2.5,\"wifi\":1.0}"
    );
    // What is refused for one part changes nothing of the others.
    let before = put("/v1/scheduler", "{}").1;
    let (status, answer) = put(
        "/v1/scheduler",
        "{\"name\": \"default\", \"penalise\": true}",
    );
    if status != 200 {
        assert!(
            status == 501 && answer.contains("penalise"),
            "{status} {answer}"
        );
        assert_eq!(put("/v1/scheduler", "{}").1, before);
    }
    if let Some(text) = w.proxy.run(|| support::sysctl("net.mptcp.weights")) {
        assert_eq!(text.matches(';').count(), 1, "{text}");
    }
}

#[test]
fn an_end_with_tcp_sets_nothing_up() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = End::start(&w.device, t.path(), Role::Device, "tcp").unwrap();
    let s: Status = device.get("/v1/status");
    assert_eq!((s.engine, s.limits), (Engine::Tcp, None));
    w.device
        .run(|| assert_eq!(PathManager::open().unwrap().endpoints().unwrap(), []));
    let listener = w
        .proxy
        .run(|| socket::listen(service(80), false, None).unwrap());
    let server = w.serve(listener);
    let from = std::net::SocketAddr::new(device4(2), 0);
    let mut stream = w
        .device
        .run(|| socket::connect(Some(from), service(80), false, None).unwrap());
    fetch(&mut stream, 100_000);
    let c: Connections = device.get("/v1/connections");
    assert_eq!(c.connections.len(), 1);
    assert_eq!(c.connections[0].subflows[0].access.as_deref(), Some("wifi"));
    assert_eq!(device.put("nr", "{\"enabled\": false}").unwrap_err().0, 409);
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn an_end_that_cannot_start_says_why() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    // The second access's interface does not exist: what was set up goes again.
    let e = End::start(&w.device, t.path(), Role::Device, "mptcp")
        .err()
        .unwrap();
    assert!(
        e.exit_code() == 1 && e.to_string().contains("\"d2\""),
        "{e}"
    );
    w.device
        .run(|| assert_eq!(PathManager::open().unwrap().endpoints().unwrap(), []));

    let wrong = t.path().join("wrong.toml");
    std::fs::write(&wrong, "engine = \"mptcp\"\n\nacesses = []\n").unwrap();
    let e = run_until(Role::Device, &wrong, &t.path().join("s"), async {}).unwrap_err();
    assert_eq!(e.exit_code(), 2);
    assert!(e.to_string().contains("wrong.toml:3:1:"), "{e}");

    // A live socket is not taken over, a dead one is.
    let first = End::start(&w.proxy, t.path(), Role::Proxy, "mptcp").unwrap();
    let e = End::start(&w.proxy, t.path(), Role::Proxy, "mptcp")
        .err()
        .unwrap();
    assert!(e.to_string().contains("another process"), "{e}");
    drop(first);
    drop(std::os::unix::net::UnixListener::bind(t.path().join("Proxy.sock")).unwrap());
    drop(End::start(&w.proxy, t.path(), Role::Proxy, "mptcp").unwrap());
}

/// Weights by eBPF on a stock kernel: as configured, until the daemon ends.
#[test]
fn a_configured_scheduler_serves_until_the_daemon_ends() {
    let Some(w) = World::new(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let default = || w.proxy.run(|| support::sysctl(DEFAULT).unwrap());
    let before = default();
    let more = "[scheduler]\nname = \"wrr\"\nwrr_mode = \"strict\"\n";
    let end = End::start_with(&w.proxy, directory.path(), Role::Proxy, "mptcp", more).unwrap();
    let status: Status = end.get("/v1/status");
    if let Some(why) = status.config_error {
        // Without the right to load eBPF it works without weights, and says so.
        println!("skipped: {why}");
        assert_eq!(default(), before);
        return;
    }
    assert!(default().starts_with("wrr_"), "{}", default());
    let put = |body| end.request("PUT", "/v1/weights", body);
    assert_eq!(put("{\"nr\": 30, \"wifi\": 2}").0, 200);
    for (bad, code) in [
        ("{\"nr\": -1}", 400),
        ("{\"lifi\": 1}", 404),
        ("7", 400),
        // That would be MP_PRIO, which the end with the address sends.
        ("{\"nr\": 1, \"wifi\": 0}", 409),
    ] {
        assert_eq!(put(bad).0, code, "{bad}");
    }
    let now: Weights = serde_json::from_str(&put("{}").1).unwrap();
    assert_eq!((now.0["nr"], now.0["wifi"]), (30.0, 2.0));
    drop(end);
    assert_eq!(default(), before);
}

#[test]
fn a_congestion_control_is_that_of_the_namespace_while_it_runs() {
    let Some(w) = World::new(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let default = || w.proxy.run(|| support::sysctl(DEFAULT).unwrap());
    let before = default();
    for (cc, expected) in [("lia", "lia_"), ("reno", "reno"), ("none", &before)] {
        let more = format!("[scheduler]\ncc = \"{cc}\"\n");
        let end = End::start_with(&w.proxy, directory.path(), Role::Proxy, "mptcp", &more).unwrap();
        let status: Status = end.get("/v1/status");
        match (cc, status.config_error) {
            ("none", why) => assert!(why.unwrap().contains("\"none\""), "it goes on and says so"),
            // The right to load eBPF.
            (_, Some(why)) => println!("skipped: {why}"),
            (_, None) => assert!(default().starts_with(expected), "{}", default()),
        }
        drop(end);
        assert_eq!(default(), before);
    }
}
