//! The path manager of `braid up` over veth pairs, with traffic that is verified.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::traffic::{
    DEVICE, PROXY, Traffic, addresses, endpoints, is_over, runs_on, subflows,
};
use braid_api::{AccessState, EventKind, Status};
use braid_mptcp::buffers;
use braid_mptcp::pm::Endpoint;
use braid_mptcp::{socket, support};
use braid_netns::world::{SERVICE6, World, ask, device4, eventually, fetch, service};
use nix::sys::signal::Signal;

#[test]
fn a_link_that_went_is_used_again_when_it_is_back() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let first = w.device.run(|| support::sysctl(buffers::RECEIVE));
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let buffers = w.device.run(|| support::sysctl(buffers::RECEIVE));
    let traffic = Traffic::start(&w, service(80));
    let both = [device4(1), device4(2)];
    runs_on(&device, &both);
    // The first one is where the connection began.
    for k in [1, 2] {
        let (name, other) = (["nr", "wifi"][usize::from(k - 1)], device4(3 - k));
        w.set_link(k, false);
        let why = device.becomes(name, AccessState::Down);
        assert!(why.contains(&format!("d{k} is down")), "{why}");
        runs_on(&device, &[other]);
        assert_eq!(addresses(&w), BTreeSet::from([other]));
        traffic.goes_on();
        // Nobody but the daemon restores the routes.
        w.set_link(k, true);
        device.becomes(name, AccessState::Active);
        runs_on(&device, &both);
        traffic.goes_on();
        assert_eq!(w.device.run(|| support::sysctl(buffers::RECEIVE)), buffers);
    }
    let down = |e: &braid_api::Event| {
        e.what
            == EventKind::LinkDown {
                interface: "d1".into(),
            }
    };
    assert_eq!(
        device.event("a link down", down).access.as_deref(),
        Some("nr")
    );
    traffic.stop();
    is_over(&w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(endpoints(&w), []);
    assert_eq!(w.device.run(|| support::sysctl(buffers::RECEIVE)), first);
}

#[test]
fn endpoints_follow_an_address_with_routes_of_their_own() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &[device4(1), device4(2)]);
    w.move_to_another_network(2);
    let moved = IpAddr::from([10, 78, 2, 2]);
    eventually("an endpoint at the new address", || {
        (addresses(&w) == BTreeSet::from([device4(1), moved])).then_some(())
    });
    // The joins leave by it, for which there was no rule.
    runs_on(&device, &[device4(1), moved]);
    traffic.goes_on();
    let s: Status = device.get("/v1/status");
    assert_eq!(s.accesses[1].address, Some(moved));
    assert_eq!(w.rules_of_ours(), 1);
    traffic.stop();
    is_over(&w);
    assert_eq!(device.end(Signal::SIGINT), Some(130));
    assert_eq!((endpoints(&w), w.rules_of_ours()), (vec![], 0));
}

#[test]
fn rules_and_routes_that_others_delete_are_restored() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    w.move_to_another_network(2);
    let both = [device4(1), IpAddr::from([10, 78, 2, 2])];
    for round in 0..2 {
        eventually("a rule of ours", || (w.rules_of_ours() == 1).then_some(()));
        w.flush(2);
        eventually("the rule again", || (w.rules_of_ours() == 1).then_some(()));
        // By it leave what joins, and the route that goes with it.
        let traffic = Traffic::start(&w, service(80 + round));
        runs_on(&device, &both);
        traffic.goes_on();
        traffic.stop();
    }
}

#[test]
fn a_renewed_lease_changes_nothing_and_a_lost_one_comes_back() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    let both = [device4(1), device4(2)];
    runs_on(&device, &both);
    let before = (subflows(&device), endpoints(&w));
    for seconds in [600, 1200, 3600] {
        for k in [1, 2] {
            w.renew(k, seconds);
        }
        traffic.goes_on();
    }
    // Longer than events are gathered for.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!((subflows(&device), endpoints(&w)), before);
    for k in [1, 2] {
        w.expire(k);
        runs_on(&device, &[device4(3 - k)]);
        traffic.goes_on();
        w.lease(k);
        runs_on(&device, &both);
        traffic.goes_on();
    }
    traffic.stop();
    is_over(&w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!((endpoints(&w), w.rules_of_ours()), (vec![], 0));
}

#[test]
fn several_addresses_and_both_families_serve() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let config = DEVICE
        .replace("interface = 1", "interface = 2")
        .replace("\"10.77.0.1\"", "[\"10.77.0.1\", \"fd77::1\"]");
    let device = Daemon::start(&w.device, t.path(), "up", &config);
    let six = |k: u16| IpAddr::from([0xfd77, 0, k, 0, 0, 0, 0, 2]);
    let all = BTreeSet::from([device4(1), device4(2), six(1), six(2)]);
    eventually("four endpoints", || (addresses(&w) == all).then_some(()));
    let traffic = Traffic::start(&w, SocketAddr::new(SERVICE6.into(), 80));
    runs_on(&device, &[six(1), six(2)]);
    // IPv6 loses its addresses with the link.
    w.set_link(1, false);
    runs_on(&device, &[six(2)]);
    traffic.goes_on();
    w.set_link(1, true);
    w.restore6(1);
    runs_on(&device, &[six(1), six(2)]);
    traffic.goes_on();
    traffic.stop();
}

/// Until they are, on each access.
fn probes_are_answered(device: &Daemon) {
    eventually("probes are answered", || {
        let s: Status = device.get("/v1/status");
        let answered = s.accesses.iter().all(|a| a.probe_rtt_ms.is_some());
        answered.then_some(())
    });
}

#[test]
fn a_silent_access_is_taken_out_and_comes_back() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    let both = [device4(1), device4(2)];
    runs_on(&device, &both);
    probes_are_answered(&device);
    for k in [2, 1] {
        let name = ["nr", "wifi"][usize::from(k - 1)];
        w.silence(k, true);
        let why = device.becomes(name, AccessState::Silent);
        assert!(
            why.contains(&format!("nothing comes back on d{k}")),
            "{why}"
        );
        traffic.goes_on();
        runs_on(&device, &[device4(3 - k)]);
        w.silence(k, false);
        device.becomes(name, AccessState::Active);
        runs_on(&device, &both);
        traffic.goes_on();
    }
    traffic.stop();
}

#[test]
fn the_last_access_stays_though_it_is_silent() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let config = DEVICE.split("[access.wifi]").next().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", config);
    let traffic = Traffic::start(&w, service(80));
    probes_are_answered(&device);
    w.silence(1, true);
    let why = device.becomes("nr", AccessState::Silent);
    assert!(why.contains("no other access is left"), "{why}");
    assert_eq!(addresses(&w), BTreeSet::from([device4(1)]));
    w.silence(1, false);
    device.becomes("nr", AccessState::Active);
    traffic.goes_on();
    traffic.stop();
}

#[test]
fn idle_accesses_are_kept_while_nobody_answers_at_the_proxy() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let mut proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let listener = w
        .proxy
        .run(|| socket::listen(service(80), true, None).unwrap());
    let server = w.serve(listener);
    let mut stream = w
        .device
        .run(|| socket::connect(None, service(80), true, None).unwrap());
    fetch(&mut stream, 100_000);
    let both = [device4(1), device4(2)];
    runs_on(&device, &both);
    probes_are_answered(&device);
    // Nothing flows, and nobody answers: longer than an idle access takes to be found dead.
    proxy.end(Signal::SIGKILL);
    std::thread::sleep(Duration::from_secs(4));
    device.was_never(AccessState::Silent);
    runs_on(&device, &both);
    fetch(&mut stream, 100_000);
    ask(&mut stream, 0);
    server.join().unwrap();
}

/// Ends the subflows from an address as a peer's reset does; says whether this
/// machine can (CONFIG_INET_DIAG_DESTROY, and the program `ss`).
fn reset_subflows(w: &World, from: IpAddr) -> bool {
    let killed = w.device.run(|| {
        std::process::Command::new("ss")
            .args(["-K", "-t", "src", &from.to_string()])
            .output()
    });
    killed.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("ESTAB"))
}

#[test]
fn a_subflow_that_was_reset_is_opened_again() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    let both = [device4(1), device4(2)];
    runs_on(&device, &both);
    if !reset_subflows(&w, device4(2)) {
        eprintln!("skipped: this machine cannot end single sockets (ss -K)");
        traffic.stop();
        return;
    }
    eventually("a second join on wifi", || {
        let all: braid_api::Events = device.get("/v1/events");
        let joined = all.events.iter().filter(|e| {
            matches!(e.what, EventKind::SubflowEstablished(_))
                && e.access.as_deref() == Some("wifi")
        });
        (joined.count() == 2).then_some(())
    });
    runs_on(&device, &both);
    traffic.goes_on();
    assert_eq!(device.state("wifi").0, AccessState::Active);
    traffic.stop();
}

#[test]
fn a_burst_of_changes_is_no_harm() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let before = endpoints(&w);
    w.churn(500);
    w.set_link(2, false);
    device.becomes("wifi", AccessState::Down);
    w.churn(500);
    w.set_link(2, true);
    device.uses("wifi");
    let kept = |all: &[Endpoint]| all.iter().find(|e| e.address == device4(1)).cloned();
    assert_eq!(kept(&endpoints(&w)), kept(&before));
}
