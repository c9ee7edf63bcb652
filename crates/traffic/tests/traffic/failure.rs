//! Tests of traffic when the other end or the path does not do its part.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use braid_core::Rate;
use braid_traffic::{Bulk, Cbr, Direction, Kind, RequestResponse, TrafficEvent, Transport};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Test;
use super::middle::{self, fake_server};
use super::pair::{End, SOON, client, server, spec};

pub(crate) const TESTS: &[Test] = &[
    ("failure::nobody_listens", nobody_listens),
    ("failure::no_client_comes", no_client_comes),
    ("failure::peer_dies_in_the_middle", peer_dies_in_the_middle),
    ("failure::server_says_nothing", server_says_nothing),
    ("failure::path_goes_silent", path_goes_silent),
    ("failure::path_dies_in_the_middle", path_dies_in_the_middle),
    ("failure::a_flipped_bit_is_seen", a_flipped_bit_is_seen),
    ("failure::different_specs", different_specs),
    ("failure::sigterm_reports", sigterm_reports),
    (
        "failure::unknown_congestion_control",
        unknown_congestion_control,
    ),
    ("failure::bad_arguments", bad_arguments),
];

const BULK: Kind = Kind::Bulk(Bulk { bytes: None });

fn unused_address() -> SocketAddr {
    let l = TcpListener::bind("127.0.0.1:0").unwrap();
    l.local_addr().unwrap()
}

fn nobody_listens() {
    let address = unused_address();
    let (report, status) = client(&spec(BULK), address).end();
    let error = &report.errors[0];
    assert_eq!(status, 1);
    for word in [
        &*address.to_string(),
        "nothing listens there",
        "start the server first",
    ] {
        assert!(error.contains(word), "{error}");
    }
}

fn no_client_comes() {
    let mut s = spec(BULK);
    s.setup = Duration::from_millis(200);
    let (report, status) = server(&s).0.end();
    assert_eq!(status, 1);
    assert!(
        report.errors[0].contains("no client connected"),
        "{report:?}"
    );
}

fn peer_dies_in_the_middle() {
    for direction in [Direction::Down, Direction::Up] {
        for kind in [
            BULK,
            Kind::Bulk(Bulk {
                bytes: Some(1 << 40),
            }),
        ] {
            let mut s = spec(kind);
            s.direction = direction;
            s.duration = Duration::from_secs(20);
            let (mut server, address) = server(&s);
            let mut client = client(&s, address);
            client.watch.connected(SOON).unwrap();
            thread::sleep(Duration::from_millis(300));
            server.child.kill().unwrap();
            let begin = Instant::now();
            let (report, status) = client.end();
            assert!(begin.elapsed() < Duration::from_secs(5));
            assert_eq!(status, 1);
            assert!(report.errors[0].contains("before the end"), "{report:?}");
            assert!(report.intact && report.bytes_received + report.bytes_sent > 0);
            assert!(report.seconds < 10.0, "{report:?}");
        }
    }
}

/// Reads until the other end closes.
fn swallow(mut stream: TcpStream) {
    let mut buf = [0; 65536];
    while matches!(stream.read(&mut buf), Ok(1..)) {}
}

fn server_says_nothing() {
    let (address, job) = fake_server(swallow);
    let mut s = spec(BULK);
    s.setup = Duration::from_millis(300);
    let (report, status) = client(&s, address).end();
    assert_eq!(status, 1);
    assert!(report.errors[0].contains("said nothing"), "{report:?}");
    job.join().unwrap();
}

fn path_goes_silent() {
    for kind in [
        BULK,
        Kind::Bulk(Bulk {
            bytes: Some(1_000_000),
        }),
        Kind::RequestResponse(RequestResponse {
            request_bytes: 1,
            response_bytes: 1,
        }),
    ] {
        // Echoes the client's hello, which has the right digest, and no more.
        let (address, job) = fake_server(|mut stream| {
            let mut hello = [0; 24];
            stream.read_exact(&mut hello).unwrap();
            hello[16..].copy_from_slice(&monotonic_ns().to_le_bytes());
            stream.write_all(&hello).unwrap();
            swallow(stream);
        });
        let s = spec(kind);
        let begin = Instant::now();
        let (report, status) = client(&s, address).end();
        assert!(begin.elapsed() < s.duration + s.grace + Duration::from_secs(2));
        assert_eq!((status, report.bytes_received), (1, 0));
        assert!(report.errors[0].contains("came from"), "{report:?}");
        // Silent for the whole window.
        let window = report.seconds * 1e3;
        assert!((report.gap_ms.unwrap() - window).abs() < 1e-6, "{report:?}");
        assert_eq!(report.gaps.len(), 1);
        job.join().unwrap();
    }
}

/// No packet passes any more, and nobody says so: all ends must still end.
fn path_dies_in_the_middle() {
    let cbr = |rate| {
        Kind::Cbr(Cbr {
            rate: Rate::from_mbps(rate),
            message_bytes: 500,
        })
    };
    let rr = Kind::RequestResponse(RequestResponse {
        request_bytes: 1,
        response_bytes: 1,
    });
    let mptcp = Transport::Mptcp;
    for (kind, transport, status) in [
        (BULK, Transport::Tcp, 0),
        (BULK, mptcp, 0),
        (
            Kind::Bulk(Bulk {
                bytes: Some(1 << 40),
            }),
            mptcp,
            1,
        ),
        (rr, mptcp, 0),
        (cbr(1.0), Transport::Tcp, 0),
        (cbr(1.0), Transport::Udp, 0),
    ] {
        let mut s = spec(kind);
        s.transport = transport;
        s.duration = Duration::from_millis(1200);
        s.grace = Duration::from_millis(500);
        let (server, address) = server(&s);
        let mut client = client(&s, address);
        client.watch.connected(SOON).unwrap();
        thread::sleep(Duration::from_millis(400));
        super::loopback(false).unwrap();
        let begin = Instant::now();
        let (c, c_status) = client.end();
        let (r, _) = server.end();
        super::loopback(true).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(5), "{c:#?}{r:#?}");
        assert_eq!(c_status, status, "{c:#?}");
        assert!(c.intact && c.bytes_received > 0, "{c:#?}");
        assert!(c.gap_ms.unwrap() > 300.0, "{c:#?}");
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    let t = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
}

/// Flips one bit of the byte at `at`.
fn flip(at: usize) -> impl FnMut(usize, &mut [u8]) {
    move |offset, bytes| {
        if let Some(b) = at.checked_sub(offset).and_then(|i| bytes.get_mut(i)) {
            *b ^= 0x10;
        }
    }
}

fn a_flipped_bit_is_seen() {
    const HELLO: usize = 24;
    const AT: usize = 123_457;
    let mut s = spec(Kind::Bulk(Bulk {
        bytes: Some(1_000_000),
    }));
    s.duration = Duration::from_secs(10);
    let (server, address) = server(&s);
    let (address, job) = middle::tcp(address, flip(HELLO + AT));
    let (report, status) = client(&s, address).end();
    let c = report.corruption.expect("the flipped bit was seen");
    assert!(!report.intact);
    assert_eq!((c.offset, c.expected ^ c.found), (AT as u64, 0x10));
    assert_eq!(report.bytes_received, 1_000_000);
    assert_eq!(status, 1, "{report:?}");
    assert!(report.errors[0].contains("byte 123457"), "{report:?}");
    drop(server);
    job.join().unwrap();
}

fn different_specs() {
    let s = spec(BULK);
    let (server, address) = server(&s);
    let mut other = s.clone();
    other.seed += 1;
    for (report, status) in [client(&other, address).end(), server.end()] {
        assert_eq!(status, 1);
        assert!(report.errors[0].contains("different traffic"), "{report:?}");
    }
}

fn sigterm_reports() {
    let mut s = spec(BULK);
    s.duration = Duration::from_secs(20);
    let (server, address) = server(&s);
    let mut client = client(&s, address);
    client.watch.connected(SOON).unwrap();
    thread::sleep(Duration::from_millis(350));
    let pid = Pid::from_raw(client.child.id() as i32);
    kill(pid, Signal::SIGTERM).unwrap();
    let begin = Instant::now();
    assert!(!client.watch.samples().unwrap().is_empty());
    let (report, status) = client.end();
    assert!(begin.elapsed() < Duration::from_secs(2));
    assert_eq!(status, 130);
    assert!(report.errors[0].contains("interrupted"), "{report:?}");
    assert!(
        report.window_bytes_received > 0 && report.seconds < 5.0,
        "{report:?}"
    );
    drop(server);
}

fn unknown_congestion_control() {
    let mut s = spec(BULK);
    s.cc = Some("nonesuch".into());
    let mut end = End::start(&s);
    let report = end.watch.report(SOON).unwrap();
    // No kernel has one of this name: the request is wrong, not the machine.
    assert_eq!(end.child.wait().unwrap().code(), Some(2));
    assert!(report.errors[0].contains("nonesuch"), "{report:?}");
}

fn bad_arguments() {
    let me = std::env::current_exe().unwrap();
    for spec in ["{", r#"{"role":"client"}"#, "/nonexistent/spec.json"] {
        let out = std::process::Command::new(&me)
            .args(["__traffic", "--spec", spec])
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2));
        assert!(!out.stderr.is_empty());
        for line in String::from_utf8(out.stdout).unwrap().lines() {
            serde_json::from_str::<TrafficEvent>(line).unwrap();
        }
    }
}
