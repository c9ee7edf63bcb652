//! Paths that remove the options of MPTCP, on every port or on some.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY, Traffic, addresses, runs_on};
use braid_api::{AccessState, EventKind, Status};
use braid_mptcp::socket;
use braid_netns::world::middlebox::Segment;
use braid_netns::world::{Ns, World, device4, eventually_within, service};

/// Answers one byte on the first connection that sends one, and keeps that until the other
/// end closes.
fn answer_once(at: &Ns, listener: TcpListener) -> std::thread::JoinHandle<()> {
    at.spawn(move || {
        let mut byte = [0];
        let mut stream = loop {
            let (mut stream, _) = listener.accept().unwrap();
            // Those that ask for MPTCP and get none are reset.
            if stream.read_exact(&mut byte).is_ok() {
                break stream;
            }
        };
        stream.write_all(&byte).unwrap();
        let _ = stream.read(&mut byte);
    })
}

fn note_of(device: &Daemon, access: &str) -> Option<String> {
    let s: Status = device.get("/v1/status");
    s.accesses.into_iter().find(|a| a.name == access)?.note
}

#[test]
fn an_access_that_strips_mptcp_is_left_to_plain_tcp() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    // Beyond it stands what answers in the proxy's name and knows TCP only, as a
    // transparent proxy of an operator does.
    let impostor = w.add_impostor(2);
    let plain = impostor
        .run(|| socket::listen(service(braid_api::config::Probe::PORT), false, None).unwrap());
    let answering = answer_once(&impostor, plain);
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let why = device.becomes("wifi", AccessState::Stripped);
    assert!(why.contains("plain TCP only"), "{why}");
    answering.join().unwrap();
    device.becomes("nr", AccessState::Active);
    assert_eq!(addresses(&w), BTreeSet::from([device4(1)]));
    let traffic = Traffic::start(&w, service(80));
    traffic.goes_on();
    runs_on(&device, &[device4(1)]);
    traffic.stop();
}

/// RFC 8684 section 3.7: wherever the options go missing, what is left is TCP.
#[test]
fn an_access_that_takes_the_options_out_is_left_to_plain_tcp() {
    type Strips = fn(Segment) -> bool;
    let which: [(&str, Strips); 3] = [
        ("all", |_| true),
        ("of the answer", |s| s.syn && s.ack),
        ("but of the handshake", |s| !s.syn),
    ];
    for (what, strips) in which {
        println!("options {what}");
        let Some(w) = World::new(1) else { return };
        let t = tempfile::tempdir().unwrap();
        let _box = w.add_middlebox(2, strips);
        let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
        let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
        let why = device.becomes("wifi", AccessState::Stripped);
        assert!(why.contains("plain TCP only"), "{what}: {why}");
        device.becomes("nr", AccessState::Active);
        let traffic = Traffic::start(&w, service(80));
        traffic.goes_on();
        runs_on(&device, &[device4(1)]);
        traffic.stop();
    }
}

/// Connections may begin over it, and no other may go on there.
#[test]
fn an_access_that_takes_out_what_joins_is_named() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let _box = w.add_middlebox(2, |s| s.joins);
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    device.becomes("wifi", AccessState::Active);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &[device4(1)]);
    let why = eventually_within(Duration::from_secs(15), "a note of joins in vain", || {
        note_of(&device, "wifi")
    });
    assert!(why.contains("cannot be opened over it"), "{why}");
    traffic.goes_on();
    traffic.stop();
}

#[test]
fn an_access_that_strips_on_one_port_is_named_with_it() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    // It takes port 443, as proxies that enhance TCP do, and lets the daemon's own pass.
    let impostor = w.add_impostor(2);
    let listen = |port, mptcp| impostor.run(|| socket::listen(service(port), mptcp, None).unwrap());
    let checked = answer_once(&impostor, listen(braid_api::config::Probe::PORT, true));
    let taken = answer_once(&impostor, listen(443, false));
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    checked.join().unwrap();
    device.becomes("wifi", AccessState::Active);
    let traffic = Traffic::start(&w, service(443));
    runs_on(&device, &[device4(1)]);
    // The server speaks MPTCP, and subflows do not come about.
    let why = eventually_within(Duration::from_secs(15), "a note of joins in vain", || {
        note_of(&device, "wifi")
    });
    assert!(
        why.contains("cannot be opened over it, tried 3 times"),
        "{why}"
    );
    let from = SocketAddr::new(device4(2), 0);
    let mut stream = w
        .device
        .run(|| socket::connect(Some(from), service(443), true, None).unwrap());
    stream.write_all(b"?").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let told = device.event("a path that removes MPTCP", |e| {
        matches!(e.what, EventKind::MptcpRemoved { .. })
    });
    assert_eq!(told.access.as_deref(), Some("wifi"));
    let note = note_of(&device, "wifi").unwrap();
    assert!(note.contains("on the way to 10.77.0.1:443: "), "{note}");
    assert_eq!(note_of(&device, "nr"), None);
    assert_eq!(device.state("wifi").0, AccessState::Active);
    drop(stream);
    taken.join().unwrap();
    traffic.goes_on();
    traffic.stop();
}
