//! Both engines in one daemon: MPTCP connections and streams of Multipath QUIC over the same
//! accesses at the same time, steered by one request.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};

use braid_api::{AccessState, Connections, Engine, EventKind, Status};
use braid_mptcp::support::Support;
use braid_netns::world::{SERVICE, World, eventually, service};

use crate::support::daemon::Daemon;
use crate::support::quic::configs;
use crate::support::traffic::Traffic;

/// Accesses on which an engine has established subflows or paths.
fn used(device: &Daemon, engine: Engine) -> BTreeSet<String> {
    let all: Connections = device.get("/v1/connections");
    let mine = all.connections.into_iter();
    let mine = mine.filter(|c| c.engine == Some(engine) && c.token.is_some());
    let subflows = mine.flat_map(|c| c.subflows);
    let open = subflows.filter(|s| s.is_established() && s.fully_established);
    open.filter_map(|s| s.access).collect()
}

/// Waits until both engines use these accesses and no others, and data goes on over both.
fn both_use(device: &Daemon, traffic: [&Traffic; 2], accesses: &[&str]) {
    let wanted: BTreeSet<String> = accesses.iter().map(|a| (*a).to_owned()).collect();
    for engine in [Engine::Mptcp, Engine::Mpquic] {
        let what = format!("{} uses {accesses:?}", engine.as_str());
        eventually(&what, || (used(device, engine) == wanted).then_some(()));
    }
    traffic.into_iter().for_each(Traffic::goes_on);
}

#[test]
fn two_engines_share_the_accesses_and_one_request_switches_one_off_for_both() {
    if let Err(e) = Support::detect().require() {
        println!("skipped: {e}");
        return;
    }
    let Some(w) = World::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let _ = configs(dir.path(), "");
    let text = |end: &str| {
        let text = std::fs::read_to_string(dir.path().join(format!("{end}.toml"))).unwrap();
        let both = "engines = [\"mptcp\", \"mpquic\"]";
        text.replacen("engine = \"mpquic\"", both, 1)
    };
    let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
    let server = w.serve(listener);
    let proxy = Daemon::start(&w.proxy, dir.path(), "proxy", &text("p"));
    let device = Daemon::start(&w.device, dir.path(), "up", &text("d"));
    eventually("a session", || {
        (!used(&device, Engine::Mpquic).is_empty()).then_some(())
    });
    let mptcp = Traffic::start(&w, service(80));
    let forwarded = w
        .device
        .run(|| TcpStream::connect("127.0.0.1:5001").unwrap());
    let mpquic = Traffic::over(forwarded, server, 200_000);
    let both = [&mptcp, &mpquic];
    both_use(&device, both, &["nr", "wifi"]);

    for end in [&device, &proxy] {
        let status: Status = end.get("/v1/status");
        assert_eq!(status.engines, [Engine::Mptcp, Engine::Mpquic]);
        assert_eq!(status.engine, Engine::Mptcp);
        let all: Connections = end.get("/v1/connections");
        let tokens: Vec<u32> = all.connections.iter().filter_map(|c| c.token).collect();
        let unique: BTreeSet<_> = tokens.iter().collect();
        assert_eq!(unique.len(), tokens.len(), "{tokens:?}");
    }
    let status: Status = device.get("/v1/status");
    for a in &status.accesses {
        assert_eq!(a.state, AccessState::Active, "{a:?}");
        assert!(a.received_bytes > 0 && a.subflows >= 2, "{a:?}");
    }

    let (head, body) = device.request("PUT", "/v1/accesses/wifi", r#"{"enabled": false}"#);
    assert!(head.contains(" 200 "), "{head} {body}");
    both_use(&device, both, &["nr"]);
    let status: Status = device.get("/v1/status");
    let wifi = &status.accesses[1];
    assert_eq!((wifi.state, wifi.enabled), (AccessState::Ignored, false));
    device.event("it was changed", |e| {
        e.access.as_deref() == Some("wifi")
            && matches!(e.what, EventKind::AccessChanged { enabled: false, .. })
    });
    // What an engine cannot do is refused for both, and changes neither.
    let body = r#"{"name": "smallest-delay"}"#;
    let (head, body) = device.request("PUT", "/v1/scheduler", body);
    assert!(!head.contains(" 200 "), "{head} {body}");
    both_use(&device, both, &["nr"]);

    let (head, body) = device.request("PUT", "/v1/accesses/wifi", r#"{"enabled": true}"#);
    assert!(head.contains(" 200 "), "{head} {body}");
    both_use(&device, both, &["nr", "wifi"]);
    mptcp.stop();
    mpquic.stop();
}
