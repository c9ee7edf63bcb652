//! Events that daemons meet: an end by force, other configurations, garbage.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY, Traffic, addresses, endpoints, is_over, runs_on};
use braid_access::probe::{self, Kind, Probe};
use braid_api::{AccessState, EventKind, Status};
use braid_mptcp::pm::{Endpoint, EndpointFlags, PathManager};
use braid_mptcp::{buffers, support};
use braid_netns::world::{World, device4, eventually, service};
use nix::sys::signal::Signal;

#[test]
fn a_killed_daemon_is_followed_by_one_that_takes_over() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    // Somebody else's endpoint stays as it is.
    let foreign = Endpoint::new("10.99.0.1".parse().unwrap(), None, EndpointFlags::SIGNAL);
    w.device
        .run(|| PathManager::open().unwrap().add(&foreign).unwrap());
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    w.move_to_another_network(2);
    eventually("a rule of ours", || (w.rules_of_ours() == 1).then_some(()));
    let traffic = Traffic::start(&w, service(80));
    let both = [device4(1), IpAddr::from([10, 78, 2, 2])];
    runs_on(&device, &both);
    let before = endpoints(&w);
    assert_eq!(device.end(Signal::SIGKILL), None);
    traffic.goes_on();
    assert_eq!((endpoints(&w), w.rules_of_ours()), (before.clone(), 1));
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    runs_on(&device, &both);
    assert_eq!((endpoints(&w), w.rules_of_ours()), (before, 1));
    traffic.goes_on();
    traffic.stop();
    is_over(&w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(addresses(&w), BTreeSet::from([foreign.address]));
    assert_eq!(w.rules_of_ours(), 0);
}

/// `subflow laminar`, since 1.56.
#[test]
fn endpoints_as_network_manager_sets_them_are_used_and_taken_out() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let theirs = || {
        let flags = EndpointFlags::SUBFLOW | EndpointFlags::LAMINAR;
        let e = Endpoint::new(device4(2), Some(w.ifindex(2)), flags);
        w.device.run(|| PathManager::open().unwrap().add(&e))
    };
    let kept = |id| endpoints(&w).iter().any(|e| e.id == id);
    let both = [device4(1), device4(2)];
    let id = theirs().unwrap();
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &both);
    assert!(kept(id), "{:?}", endpoints(&w));
    w.set_link(2, false);
    runs_on(&device, &both[..1]);
    assert_eq!(addresses(&w), BTreeSet::from([device4(1)]));
    w.set_link(2, true);
    runs_on(&device, &both);
    // As it does where the flags are not those that it wants. The daemon may be quicker.
    let id = eventually("theirs takes the place of ours", || {
        let there = endpoints(&w).into_iter();
        for ours in there.filter(|e| e.address == device4(2)) {
            let _ = w
                .device
                .run(|| PathManager::open().unwrap().delete(ours.id));
        }
        theirs().ok()
    });
    runs_on(&device, &both);
    assert!(kept(id), "{:?}", endpoints(&w));
    traffic.stop();
    is_over(&w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(endpoints(&w), []);
}

/// As `systemctl restart` does it.
#[test]
fn one_that_ends_in_order_while_an_interface_is_down_leaves_its_next_hop() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let kept = || {
        let mut names = std::fs::read_dir(t.path())
            .unwrap()
            .map(|f| f.unwrap().path());
        names.any(|n| n.extension().is_some_and(|e| e == "routes"))
    };
    let both = [device4(1), device4(2)];
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &both);
    w.set_link(2, false);
    runs_on(&device, &both[..1]);
    assert_eq!((device.end(Signal::SIGTERM), kept()), (Some(0), true));
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    w.set_link(2, true);
    runs_on(&device, &both);
    traffic.goes_on();
    traffic.stop();
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
}

/// While it deals with a lost access, or with one that comes back. Nobody else puts routes back.
#[test]
fn killed_at_any_moment_of_its_work_it_loses_no_byte() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let both = [device4(1), device4(2)];
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    for ms in [0, 2, 5, 10, 20, 40, 80, 160] {
        runs_on(&device, &both);
        w.set_link(2, false);
        std::thread::sleep(Duration::from_millis(ms));
        assert_eq!(device.end(Signal::SIGKILL), None);
        traffic.goes_on();
        device = Daemon::start(&w.device, t.path(), "up", DEVICE);
        traffic.goes_on();
        w.set_link(2, true);
        std::thread::sleep(Duration::from_millis(ms));
        assert_eq!(device.end(Signal::SIGKILL), None);
        device = Daemon::start(&w.device, t.path(), "up", DEVICE);
        traffic.goes_on();
    }
    runs_on(&device, &both);
    traffic.stop();
    is_over(&w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(endpoints(&w), []);
}

#[test]
fn an_end_in_order_leaves_connections_running() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let both = [device4(1), device4(2)];
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &both);
    for _ in 0..2 {
        assert_eq!(device.end(Signal::SIGTERM), Some(0));
        traffic.goes_on();
        device = Daemon::start(&w.device, t.path(), "up", DEVICE);
        runs_on(&device, &both);
        traffic.goes_on();
    }
    traffic.stop();
}

#[test]
fn what_requests_changed_outlives_a_killed_daemon() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let kept = || {
        let all = std::fs::read_dir(t.path()).unwrap();
        let mut names = all.map(|e| e.unwrap().file_name().into_string().unwrap());
        names.any(|n| n.ends_with(".requests"))
    };
    let backups = || {
        let all = endpoints(&w).into_iter();
        let backup = all.filter(|e| e.flags.contains(EndpointFlags::BACKUP));
        backup.map(|e| e.address).collect::<Vec<_>>()
    };
    device.uses("wifi");
    assert!(!kept());
    let put = |device: &Daemon, backup: bool| {
        let body = format!("{{\"backup\": {backup}}}");
        let (head, _) = device.request("PUT", "/v1/accesses/wifi", &body);
        assert!(head.contains(" 200 "), "{head}");
    };
    put(&device, true);
    device.becomes("wifi", AccessState::Backup);
    assert_eq!(device.end(Signal::SIGKILL), None);
    assert_eq!((backups(), kept()), (vec![device4(2)], true));
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    device.becomes("wifi", AccessState::Backup);
    assert_eq!(backups(), [device4(2)]);
    // As configured again: nothing to keep.
    put(&device, false);
    assert!(!kept());
    put(&device, true);
    assert_eq!(device.end(Signal::SIGKILL), None);
    // The file says something else of the accesses now.
    let other = DEVICE.replace("kind = \"5g\"", "kind = \"5g\"\nbackup = true");
    let mut device = Daemon::start(&w.device, t.path(), "up", &other);
    device.uses("wifi");
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert!(!kept());
}

#[test]
fn what_the_namespace_had_is_given_back_after_a_kill_too() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let set = |name: &str, value: &str| {
        w.device.run(|| support::set_sysctl(name, value).unwrap());
    };
    set(support::CONGESTION_CONTROL, "reno");
    set(buffers::RECEIVE, "4096 100000 200000");
    let had = || {
        w.device.run(|| {
            let names = [support::CONGESTION_CONTROL, buffers::RECEIVE, buffers::SEND];
            let limits = PathManager::open().unwrap().limits().unwrap();
            (names.map(support::sysctl), limits)
        })
    };
    let before = had();
    // Where eBPF may not be loaded this stays as it was.
    let config = format!("scheduler = {{ cc = \"lia\" }}\n{DEVICE}");
    for _ in 0..2 {
        let mut device = Daemon::start(&w.device, t.path(), "up", &config);
        assert_ne!(had(), before);
        assert_eq!(device.end(Signal::SIGKILL), None);
        assert_ne!(had(), before);
    }
    let mut device = Daemon::start(&w.device, t.path(), "up", &config);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(had(), before);
}

#[test]
fn without_the_right_to_load_ebpf_it_works_without_weights_and_says_so() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let wrr = "[scheduler]\nname = \"wrr\"\n[access.nr]";
    let proxy = PROXY.replacen("[access.nr]", wrr, 1);
    let mut proxy = Daemon::start_without_bpf(&w.proxy, t.path(), "proxy", &proxy);
    let mut device = Daemon::start_without_bpf(&w.device, t.path(), "up", DEVICE);
    let s: Status = proxy.get("/v1/status");
    let why = s.config_error.expect("said in the status");
    // Also where the kernel or the build has none at all.
    assert!(why.contains("eBPF"), "{why}");
    let (head, said) = proxy.request("PUT", "/v1/weights", r#"{"nr": 3}"#);
    assert!(head.contains(" 501 "), "{head} {said}");
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &[device4(1), device4(2)]);
    traffic.goes_on();
    traffic.stop();
    for daemon in [&mut device, &mut proxy] {
        assert_eq!(daemon.end(Signal::SIGTERM), Some(0));
    }
}

#[test]
fn a_configuration_is_read_again_and_a_bad_one_changes_nothing() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &[device4(1), device4(2)]);
    let configured = |n: usize| {
        eventually("the file is read", || {
            let all: braid_api::Events = device.get("/v1/events");
            let mut read = all.events.into_iter().filter_map(|e| match e.what {
                EventKind::Configured { error } => Some(error),
                _ => None,
            });
            read.nth(n)
        })
    };
    std::fs::write(&device.config, DEVICE.replace("\"d2\"", "\"d 2\"")).unwrap();
    device.signal(Signal::SIGHUP);
    let error = configured(0).expect("an error");
    assert!(error.contains("up.toml:11:13:"), "{error}");
    let s: Status = device.get("/v1/status");
    assert_eq!(s.config_error, Some(error));
    assert_eq!(addresses(&w), BTreeSet::from([device4(1), device4(2)]));

    let other = DEVICE.replace("\"wifi\"", "\"wifi\"\nbackup = true");
    std::fs::write(
        &device.config,
        other + "[access.third]\ninterface = \"wwan*\"\n",
    )
    .unwrap();
    device.signal(Signal::SIGHUP);
    assert_eq!(configured(1), None);
    device.becomes("wifi", AccessState::Backup);
    let why = device.becomes("third", AccessState::Down);
    assert!(why.contains("wwan*"), "{why}");
    let s: Status = device.get("/v1/status");
    assert_eq!((s.config_error, s.accesses.len()), (None, 3));

    let without = DEVICE.replace("[manager]", "[manager]\nignore = [\"d2\"]");
    std::fs::write(&device.config, without).unwrap();
    device.signal(Signal::SIGHUP);
    assert_eq!(configured(2), None);
    let why = device.becomes("wifi", AccessState::Ignored);
    assert!(why.contains("`ignore`"), "{why}");
    assert_eq!(addresses(&w), BTreeSet::from([device4(1)]));
    runs_on(&device, &[device4(1)]);
    traffic.goes_on();
    traffic.stop();
}

#[test]
fn garbage_at_the_probe_port_is_not_answered() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    w.device.run(|| {
        let socket = UdpSocket::bind((device4(1), 0)).unwrap();
        socket
            .connect(service(braid_api::config::Probe::PORT))
            .unwrap();
        let good = Probe {
            kind: Kind::Request,
            session: 3,
            number: 4,
            sent_ns: 5,
        };
        let mut wrong = good.emit();
        wrong[5] = 2;
        let long = [&good.emit()[..], b"more"].concat();
        for garbage in [
            &b""[..],
            b"x",
            &[0xff; 1400],
            &wrong,
            &long,
            &good.emit()[..31],
        ] {
            socket.send(garbage).unwrap();
        }
        socket.send(&good.emit()).unwrap();
        // What comes first is the answer to the good one.
        let mut buffer = [0; 2000];
        let n = socket.recv(&mut buffer).unwrap();
        assert_eq!(Probe::parse(&buffer[..n]), Some(good.response()));
        assert_eq!(n, probe::LEN);
    });
}
