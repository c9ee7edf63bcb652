//! An access is active once something has come back on it, and what keeps every access from reaching
//! the proxy is told.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::quic::configs;
use crate::support::traffic::{DEVICE, PROXY, Traffic};
use braid_api::{AccessState, EventKind, Status};
use braid_netns::world::home::ip;
use braid_netns::world::{World, device4, eventually_within, service};

/// Longest time until a proxy that does not answer is told.
const LIMIT: Duration = Duration::from_secs(20);

/// Exit status and output of `braid status --check`.
fn check(control: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
    command
        .args(["status", "--check", "--control"])
        .arg(control);
    let out = command.output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    (out.status.code(), said)
}

fn unreachable(device: &Daemon) -> Option<String> {
    device.get::<Status>("/v1/status").proxy_unreachable
}

/// Waits until it is told why the proxy is not reached.
fn told(device: &Daemon) -> String {
    eventually_within(LIMIT, "it is told", || unreachable(device))
}

fn is_reached(device: &Daemon) {
    eventually_within(LIMIT, "the proxy is reached", || {
        unreachable(device).is_none().then_some(())
    });
}

/// Loses whatever the proxy sends on both accesses.
fn swallow(w: &World, on: bool) {
    for k in [1, 2] {
        let host = device4(k);
        let line = match on {
            true => format!("neigh replace {host} lladdr 02:00:00:00:00:99 dev p{k} nud permanent"),
            false => format!("neigh del {host} dev p{k}"),
        };
        ip(&w.proxy, &[&line]);
    }
}

#[test]
fn a_proxy_that_does_not_run_is_told_until_it_answers() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    for access in ["nr", "wifi"] {
        let why = device.becomes(access, AccessState::Init);
        assert!(why.contains("nothing has come back on d"), "{why}");
    }
    // Its host is there, and says that nobody listens.
    let why = told(&device);
    assert!(
        why.contains("10.77.0.1 refuses") && why.contains("probe port 7724"),
        "{why}"
    );
    let (code, said) = check(&t.path().join("up.sock"));
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.starts_with("BRAID CRITICAL - 0 of 2 accesses work; the proxy"),
        "{said}"
    );

    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    for access in ["nr", "wifi"] {
        assert_eq!(device.becomes(access, AccessState::Active), "used");
    }
    is_reached(&device);
    for end in ["up", "proxy"] {
        let (code, said) = check(&t.path().join(format!("{end}.sock")));
        assert_eq!(code, Some(0), "{said}");
        assert!(said.starts_with("BRAID OK - "), "{said}");
    }
    // Traffic of a device proves accesses at the proxy.
    let traffic = Traffic::start(&w, service(80));
    for access in ["nr", "wifi"] {
        assert_eq!(
            proxy.becomes(access, AccessState::Active),
            "served by the peer"
        );
    }
    traffic.stop();
    w.set_link(2, false);
    device.becomes("wifi", AccessState::Down);
    let (code, said) = check(&t.path().join("up.sock"));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("1 of 2 accesses work; wifi down (d2 is down)"),
        "{said}"
    );
    drop(device);
    let (code, said) = check(&t.path().join("up.sock"));
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.starts_with("BRAID CRITICAL - ") && said.contains("braid up"),
        "{said}"
    );
}

#[test]
fn a_proxy_behind_a_firewall_is_told_with_the_port() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    swallow(&w, true);
    assert_eq!(
        proxy.becomes("nr", AccessState::Init),
        "no device has used it yet"
    );
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let why = told(&device);
    assert!(
        why.starts_with(
            "the proxy 10.77.0.1 does not answer on any access (nothing came back from"
        ) && why.ends_with("does its firewall let udp/7724 in?"),
        "{why}"
    );
    assert_eq!(device.state("nr").0, AccessState::Init);
    swallow(&w, false);
    device.becomes("nr", AccessState::Active);
    device.becomes("wifi", AccessState::Active);
    is_reached(&device);
}

#[test]
fn a_proxy_of_another_family_than_every_access_is_told() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let four = |k: u8| format!("interface = \"d{k}\"\naddress = \"{}\"", device4(k));
    let config = DEVICE
        .replace("10.77.0.1", "fd77::1")
        .replace("interface = \"d1\"", &four(1))
        .replace("interface = \"d2\"", &four(2));
    let device = Daemon::start(&w.device, t.path(), "up", &config);
    let why = told(&device);
    assert!(
        why.contains("no access reaches the proxy fd77::1") && why.contains("has an IPv6 address"),
        "{why}"
    );
    device.becomes("nr", AccessState::Init);
    // Traffic with others proves the access all the same.
    let traffic = Traffic::start(&w, service(80));
    device.becomes("nr", AccessState::Active);
    traffic.stop();
}

#[test]
fn without_probes_traffic_alone_proves_an_access() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let config = format!("{DEVICE}[probe]\nenabled = false\n");
    let device = Daemon::start(&w.device, t.path(), "up", &config);
    std::thread::sleep(Duration::from_secs(3));
    for access in ["nr", "wifi"] {
        assert_eq!(device.state(access).0, AccessState::Init);
    }
    assert_eq!(unreachable(&device), None, "nobody has asked");
    let traffic = Traffic::start(&w, service(80));
    for access in ["nr", "wifi"] {
        device.becomes(access, AccessState::Active);
    }
    traffic.goes_on();
    traffic.stop();
}

#[test]
fn with_multipath_quic_a_session_proves_the_accesses() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let (up, proxy) = configs(t.path(), "");
    let text = |file| std::fs::read_to_string(file).unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", &text(up));
    for access in ["nr", "wifi"] {
        let why = device.becomes(access, AccessState::Init);
        assert!(why.contains("nothing has come back"), "{why}");
    }
    let why = told(&device);
    assert!(
        why.contains("10.77.0.1 does not answer") && why.contains("udp/4433"),
        "{why}"
    );
    assert_eq!(check(&t.path().join("up.sock")).0, Some(2));
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &text(proxy));
    for access in ["nr", "wifi"] {
        device.becomes(access, AccessState::Active);
        proxy.becomes(access, AccessState::Active);
    }
    is_reached(&device);
    assert_eq!(check(&t.path().join("up.sock")).0, Some(0));
    // Whoever was reached is silent once it has gone.
    drop(proxy);
    eventually_within(LIMIT, "no access works", || {
        let silent = |a| device.state(a).0 == AccessState::Silent;
        (silent("nr") && silent("wifi")).then_some(())
    });
    // Each change is an event, and a line of the log.
    for access in ["nr", "wifi"] {
        for wanted in [AccessState::Init, AccessState::Active, AccessState::Silent] {
            device.event(&format!("{access} became {wanted}"), |e| {
                let is = |s: &AccessState| *s == wanted;
                let state = matches!(&e.what, EventKind::AccessState { state, .. } if is(state));
                e.access.as_deref() == Some(access) && state
            });
        }
    }
}
