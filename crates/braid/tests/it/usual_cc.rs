//! The congestion control of Multipath TCP where a configuration names none: the one for links
//! whose rate swings, for as long as the daemon is there, and for Multipath TCP alone.

use braid_api::{Connections, Status};
use braid_netns::world::{World, device4, eventually, service};
use nix::sys::signal::Signal;

use crate::support::daemon::Daemon;
use crate::support::pins::{self, BEFORE, registered};
use crate::support::traffic::{DEVICE, PROXY, Traffic, runs_on};

/// Starts the proxy's daemon with these lines in `[scheduler]`.
fn proxy(w: &World, dir: &tempfile::TempDir, scheduler: &str) -> Daemon {
    let section = format!("[scheduler]\n{scheduler}\n[access.nr]");
    let config = PROXY.replacen("[access.nr]", &section, 1);
    Daemon::start(&w.proxy, dir.path(), "proxy", &config)
}

#[test]
fn multipath_tcp_has_swing_and_plain_tcp_what_it_had() {
    let Some(w) = pins::world() else { return };
    let dir = tempfile::tempdir().unwrap();
    let default = || pins::default(&w.proxy);
    let mut end = proxy(&w, &dir, "");
    let name = default();
    assert!(name.starts_with("swing_"), "{name}");
    let status: Status = end.get("/v1/status");
    assert_eq!(
        (status.default_congestion_control, status.notes),
        (name.clone(), vec![])
    );

    let device = Daemon::start(&w.device, dir.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &[device4(1), device4(2)]);
    let used = pins::in_use(&w.proxy, 80);
    assert!(
        used.len() >= 2 && used.iter().all(|u| *u == name),
        "{used:?}"
    );
    let (_server, _client) = plain(&w, 81);
    assert_eq!(pins::in_use(&w.proxy, 81), [BEFORE]);
    let all: Connections = end.get("/v1/connections");
    assert!(!all.connections.is_empty());

    // Killed, it leaves nothing pinned; the next has its own, and takes it away.
    assert_eq!(end.end(Signal::SIGKILL), None);
    assert!(pins::place(&w.proxy, "proxycc").is_none());
    let mut end = proxy(&w, &dir, "");
    let second = default();
    assert!(second.starts_with("swing_") && second != name, "{second}");
    traffic.goes_on();
    traffic.stop();
    assert_eq!(
        (end.end(Signal::SIGTERM), default()),
        (Some(0), BEFORE.into())
    );
    for name in [&name, &second] {
        eventually("it is gone", || (!registered(name)).then_some(()));
    }
}

#[test]
fn the_namespaces_own_can_be_had() {
    let Some(w) = pins::world() else { return };
    let dir = tempfile::tempdir().unwrap();
    let default = || pins::default(&w.proxy);
    let end = proxy(&w, &dir, "cc = \"default\"");
    assert_eq!(default(), BEFORE);
    // A reload brings the usual one, and takes it away.
    let text = std::fs::read_to_string(&end.config).unwrap();
    let reload = |text: &str, prefix: &str| {
        std::fs::write(&end.config, text).unwrap();
        end.signal(Signal::SIGHUP);
        eventually(prefix, || default().starts_with(prefix).then_some(()));
    };
    reload(&text.replace("cc = \"default\"", ""), "swing_");
    // Named, it outlives a daemon that is killed; not named, nothing is left of it.
    let pinned = || pins::place(&w.proxy, "proxycc").is_some();
    for (cc, pins) in [("cc = \"swing\"", true), ("", false)] {
        reload(&text.replace("cc = \"default\"", cc), "swing_");
        eventually(cc, || (pinned() == pins).then_some(()));
    }
    reload(&text, BEFORE);
    // Weights by eBPF take its place, and leave it behind.
    reload(&text.replace("cc = \"default\"", "name = \"wrr\""), "wrr_");
    reload(
        &text.replace("cc = \"default\"", "name = \"default\""),
        "swing_",
    );
    let status: Status = end.get("/v1/status");
    assert_eq!(status.notes, Vec::<String>::new());
}

/// A connection of plain TCP to the port `to` of the proxy: both ends.
fn plain(w: &World, to: u16) -> (std::net::TcpStream, std::net::TcpStream) {
    let at = service(to);
    let listener = w.proxy.run(|| std::net::TcpListener::bind(at).unwrap());
    let client = w.device.run(|| std::net::TcpStream::connect(at).unwrap());
    (listener.accept().unwrap().0, client)
}
