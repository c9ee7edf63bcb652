//! A device names its accesses to a proxy whose file names none: names, rates and weights there,
//! and weights of both directions from one command.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::time::Duration;

use braid_api::{AccessStatus, Connections, Status};
use braid_core::AccessKind;
use nix::sys::signal::Signal;

use braid_netns::world::{SERVICE, World, device4, eventually, eventually_within, service};

use crate::capacity::shape;
use crate::support::bulk::{Bulk, Way};
use crate::support::daemon::Daemon;
use crate::support::quic::configs;
use crate::support::traffic::{DEVICE, PROXY, Traffic};

/// Time of a few seconds of traffic.
const SOON: Duration = Duration::from_secs(20);

/// The device of [`DEVICE`], called `cpe`.
fn device() -> String {
    DEVICE.replacen("[manager]", "[registration]\nname = \"cpe\"\n[manager]", 1)
}

fn accesses(end: &Daemon) -> Vec<AccessStatus> {
    end.get::<Status>("/v1/status").accesses
}

fn names(end: &Daemon) -> Vec<String> {
    accesses(end).into_iter().map(|a| a.name).collect()
}

fn weights(end: &Daemon) -> Vec<Option<f64>> {
    accesses(end).into_iter().map(|a| a.weight).collect()
}

fn down_weights(device: &Daemon) -> Vec<f64> {
    let status: Status = device.get("/v1/status");
    status
        .down_weights
        .unwrap_or_default()
        .into_values()
        .collect()
}

/// Waits until the proxy knows these accesses.
fn knows(proxy: &Daemon, expected: &[&str]) {
    eventually_within(SOON, &format!("the proxy knows {expected:?}"), || {
        (names(proxy) == expected).then_some(())
    });
}

fn set(device: &Daemon, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
    let command = command.args(["set", "weights"]).args(words);
    command
        .arg("--control")
        .arg(&device.control)
        .output()
        .unwrap()
}

/// Sets weights; returns what was printed.
fn sets(device: &Daemon, words: &[&str]) -> String {
    let out = set(device, words);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{words:?}: {said}");
    String::from_utf8(out.stdout).unwrap()
}

/// Bytes that the proxy's connections have delivered over each of two accesses.
fn delivered(proxy: &Daemon, names: [&str; 2]) -> [u64; 2] {
    let all: Connections = proxy.get("/v1/connections");
    let subflows = || all.connections.iter().flat_map(|c| &c.subflows);
    names.map(|name| {
        let mine = subflows().filter(|s| s.access.as_deref() == Some(name));
        mine.map(|s| s.acked_bytes).sum()
    })
}

/// Gives both downlinks a rate below what the machine carries: a strict ratio is exact where links
/// are full. Says whether that could be done.
fn shaped(w: &World) -> bool {
    let done = shape(&w.proxy, "add", [60, 60]);
    if !done {
        println!("skipped: tc has no tbf here");
    }
    done
}

/// Makes a world in which MPTCP shares by weights; none where this machine cannot.
fn weighted() -> Option<World> {
    if let Err(e) = braid_mptcp::bpf::require() {
        println!("skipped: {e}");
        return None;
    }
    let w = World::new(2).filter(shaped)?;
    braid_netns::world::mptcp::mesh(&w, 2);
    Some(w)
}

/// Waits until the first of two accesses carries four fifths of the downlink.
fn shares_four_to_one(proxy: &Daemon, names: [&str; 2]) {
    eventually_within(SOON, "four fifths on the first", || {
        let before = delivered(proxy, names);
        std::thread::sleep(Duration::from_secs(1));
        let now = delivered(proxy, names);
        let moved = [0, 1].map(|i| now[i].saturating_sub(before[i]) as f64);
        println!("{moved:?}");
        let share = moved[0] / moved.iter().sum::<f64>();
        ((share - 0.8).abs() < 0.06).then_some(())
    });
}

#[test]
fn mptcp_accesses_have_their_names_and_weights_at_the_proxy() {
    let Some(w) = weighted() else { return };
    let t = tempfile::tempdir().unwrap();
    let blind = "proxy = \"10.77.0.1\"\n[scheduler]\nname = \"wrr\"\nwrr_mode = \"strict\"\n";
    let mut proxy = Daemon::start(&w.proxy, t.path(), "proxy", blind);
    assert_eq!(names(&proxy), [""; 0]);
    let device = Daemon::start(&w.device, t.path(), "up", &device());
    let both = ["nr@cpe", "wifi@cpe"];
    knows(&proxy, &both);
    let there = accesses(&proxy);
    for (k, a) in (1..).zip(&there) {
        assert_eq!(a.address, Some(device4(k)), "{a:?}");
    }
    assert_eq!(there[0].kind, AccessKind::Nr);

    let bulk = Bulk::start(&w, service(80), Way::Down);
    bulk.moves(&device, &["nr", "wifi"]);
    let said = sets(&device, &["nr=4", "wifi=1"]);
    assert_eq!(
        said,
        "weights: nr=4 wifi=1\nweights of downlinks: nr=4 wifi=1\n"
    );
    assert_eq!(weights(&proxy), [Some(4.0), Some(1.0)]);
    assert_eq!(weights(&device), [Some(4.0), Some(1.0)]);
    shares_four_to_one(&proxy, both);
    for a in accesses(&proxy) {
        assert!(a.sent_bytes > 100_000, "{a:?}");
    }

    // One direction alone.
    assert_eq!(sets(&device, &["--up", "nr=2"]), "weights: nr=2 wifi=1\n");
    assert_eq!(weights(&proxy), [Some(4.0), Some(1.0)]);
    let said = sets(&device, &["--down", "wifi=3"]);
    assert_eq!(said, "weights of downlinks: nr=4 wifi=3\n");
    assert_eq!(weights(&proxy), [Some(4.0), Some(3.0)]);
    assert_eq!(weights(&device), [Some(2.0), Some(1.0)]);
    assert_eq!(down_weights(&device), [4.0, 3.0]);
    let refused = set(&device, &["--down", "lte=3"]);
    assert_eq!(refused.status.code(), Some(2));
    let refused = set(&proxy, &["--up", "nr@cpe=3"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("this is the proxy"), "{said}");

    // A killed proxy knows the device again before that has said anything.
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", blind);
    knows(&proxy, &both);
    eventually("weights as before", || {
        (weights(&proxy) == [Some(4.0), Some(3.0)]).then_some(())
    });
    drop(bulk);
}

#[test]
fn weights_of_a_device_hold_for_its_own_addresses_on_an_access_of_the_file() {
    let Some(w) = weighted() else { return };
    let t = tempfile::tempdir().unwrap();
    let strict = "[scheduler]\nname = \"wrr\"\nwrr_mode = \"strict\"\n[access.nr]";
    let proxy = PROXY.replacen("[access.nr]", strict, 1);
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &proxy);
    let device = Daemon::start(&w.device, t.path(), "up", &device());
    let bulk = Bulk::start(&w, service(80), Way::Down);
    bulk.moves(&device, &["nr", "wifi"]);
    eventually("both are registered", || {
        (down_weights(&device).len() == 2).then_some(())
    });
    sets(&device, &["nr=4", "wifi=1"]);
    // Those of others on the same networks stay.
    assert_eq!(names(&proxy), ["nr", "wifi"]);
    assert!(weights(&proxy).iter().all(|w| w.is_none_or(|w| w == 1.0)));
    assert_eq!(down_weights(&device), [4.0, 1.0]);
    shares_four_to_one(&proxy, ["nr", "wifi"]);
    drop(bulk);
}

#[test]
fn sessions_of_multipath_quic_have_their_names_and_weights_at_the_proxy() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let _ = configs(t.path(), "");
    let text = |end: &str| std::fs::read_to_string(t.path().join(format!("{end}.toml"))).unwrap();
    let at_proxy = text("p");
    let (blind, _) = at_proxy.split_once("[access.nr]").unwrap();
    let at_proxy = format!("{blind}[scheduler]\nname = \"wrr\"\nwrr_mode = \"strict\"\n");
    let at_device = text("d") + "[registration]\nname = \"cpe\"\n";
    let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
    let server = w.serve(listener);
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &at_proxy);
    let device = Daemon::start(&w.device, t.path(), "up", &at_device);
    let both = ["nr@cpe", "wifi@cpe"];
    knows(&proxy, &both);
    let forwarded = w
        .device
        .run(|| TcpStream::connect("127.0.0.1:5001").unwrap());
    let traffic = Traffic::over(forwarded, server, 200_000);
    let said = sets(&device, &["nr=4", "wifi=1"]);
    assert_eq!(
        said,
        "weights: nr=4 wifi=1\nweights of downlinks: nr=4 wifi=1\n"
    );
    shares_four_to_one(&proxy, both);
    for a in accesses(&proxy) {
        assert!(a.sent_bytes > 100_000 && a.subflows == 1, "{a:?}");
    }
    // A path that comes anew is known again, with its weight.
    w.set_link(2, false);
    eventually("the path is gone", || {
        (accesses(&proxy)[1].subflows == 0).then_some(())
    });
    w.set_link(2, true);
    eventually_within(SOON, "the path is back", || {
        (accesses(&proxy)[1].subflows == 1).then_some(())
    });
    shares_four_to_one(&proxy, both);
    traffic.stop();
}

#[test]
fn a_proxy_that_takes_none_is_told_and_changes_nothing() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let off = "[registration]\nenabled = false\n[access.nr]";
    let closed = PROXY.replacen("[access.nr]", off, 1);
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &closed);
    let device = Daemon::start(&w.device, t.path(), "up", &device());
    let note = eventually("a note", || {
        let status: Status = device.get("/v1/status");
        status
            .notes
            .into_iter()
            .find(|n| n.contains("by their names"))
    });
    assert!(
        note.contains("enabled = true in its [registration]"),
        "{note}"
    );
    let refused = set(&device, &["nr=4"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing was changed (--up"), "{said}");
    assert_eq!(weights(&device), [None, None]);
    assert_eq!(names(&proxy), ["nr", "wifi"]);
}
