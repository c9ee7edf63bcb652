//! Constant bit rate over every transport: latency, loss, order.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use braid_core::Rate;
use braid_lab::traffic::{Direction, Kind, TrafficReport, TrafficSpec, Transport};

use super::Test;
use super::middle;
use super::pair::{client, run, server, spec};

pub(crate) const TESTS: &[Test] = &[
    ("cbr::every_message_arrives", every_message_arrives),
    (
        "cbr::a_pause_is_latency_and_gap",
        a_pause_is_latency_and_gap,
    ),
    (
        "cbr::udp_counts_what_the_path_did",
        udp_counts_what_the_path_did,
    ),
    ("cbr::udp_sees_damage", udp_sees_damage),
    (
        "cbr::udp_asks_again_when_the_answer_is_lost",
        udp_asks_again_when_the_answer_is_lost,
    ),
    ("cbr::udp_without_listener", udp_without_listener),
];

/// 1000 messages a second.
fn cbr() -> TrafficSpec {
    let mut s = spec(Kind::Cbr {
        rate: Rate::from_mbps(4.0),
        message_bytes: 500,
    });
    s.grace = Duration::from_secs(5);
    s
}

fn check(r: &TrafficReport, sends: bool, receives: bool) {
    let m = r.messages.unwrap();
    assert_eq!(m.due, 400);
    assert_eq!(m.sent, if sends { 400 } else { 0 }, "{r:#?}");
    assert_eq!(m.received, if receives { 400 } else { 0 }, "{r:#?}");
    assert_eq!((m.lost, m.duplicated, m.reordered), (0, 0, 0), "{r:#?}");
    assert_eq!(r.latency_ms.is_some(), receives);
    assert_eq!(r.gap_ms.is_some(), receives);
    if receives {
        assert_eq!(r.latency_samples, 400, "{r:#?}");
        assert_eq!(r.bytes_received, 500 * 500);
    }
}

fn every_message_arrives() {
    for transport in [Transport::Tcp, Transport::Mptcp, Transport::Udp] {
        for direction in [Direction::Down, Direction::Up, Direction::Both] {
            let mut s = cbr();
            s.transport = transport;
            s.direction = direction;
            let (client, server) = run(&s);
            let (down, up) = (direction != Direction::Up, direction != Direction::Down);
            check(&client, up, down);
            check(&server, down, up);
        }
    }
}

fn a_pause_is_latency_and_gap() {
    let s = cbr();
    let (server, address) = server(&s);
    let mut paused = false;
    let (address, job) = middle::tcp(address, move |offset, _| {
        if offset > 150_000 && !paused {
            paused = true;
            thread::sleep(Duration::from_millis(150));
        }
    });
    let (report, status) = client(&s, address).end();
    assert_eq!(
        (status, report.messages.unwrap().received),
        (0, 400),
        "{report:#?}"
    );
    let pause = 140.0;
    assert!(report.latency_ms.unwrap().max > pause, "{report:#?}");
    assert!(
        report.gap_ms.unwrap() > pause && !report.gaps.is_empty(),
        "{report:#?}"
    );
    drop(server);
    job.join().unwrap();
}

fn through(
    s: &TrafficSpec,
    edit: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
) -> (TrafficReport, i32) {
    let (server, address) = server(s);
    let (address, job) = middle::udp(address, Duration::from_secs(3), edit);
    let result = client(s, address).end();
    drop(server);
    job.join().unwrap();
    result
}

fn udp() -> TrafficSpec {
    let mut s = cbr();
    s.transport = Transport::Udp;
    s.warmup = Duration::ZERO;
    s.grace = Duration::from_secs(1);
    s
}

fn udp_counts_what_the_path_did() {
    let mut held = Vec::new();
    // Number 0 is the server's hello; message i is datagram i + 1.
    let (report, status) = through(&udp(), move |number, datagram| match number {
        0 => vec![datagram],
        n if n % 10 == 1 => Vec::new(),
        n if n % 10 == 2 => vec![datagram.clone(), datagram],
        n if n % 10 == 3 => {
            held.push(datagram);
            Vec::new()
        }
        n if n % 10 == 4 => vec![datagram, held.pop().unwrap()],
        _ => vec![datagram],
    });
    assert_eq!(status, 0, "{report:#?}");
    let m = report.messages.unwrap();
    assert_eq!((m.due, m.received, m.lost), (500, 450, 50), "{report:#?}");
    assert_eq!((m.duplicated, m.reordered), (50, 50), "{report:#?}");
    assert!(report.intact);
}

fn udp_sees_damage() {
    let (report, status) = through(&udp(), |number, mut datagram| {
        if number == 100 {
            datagram[321] ^= 1;
        }
        vec![datagram]
    });
    let c = report.corruption.unwrap();
    assert_eq!(
        (status, c.offset, c.expected ^ c.found),
        (1, 99 * 500 + 321, 1)
    );
}

fn udp_asks_again_when_the_answer_is_lost() {
    let mut s = udp();
    s.duration = Duration::from_secs(1);
    let (report, status) = through(&s, |number, datagram| {
        if number < 200 {
            Vec::new()
        } else {
            vec![datagram]
        }
    });
    assert_eq!(status, 0, "{report:#?}");
    let m = report.messages.unwrap();
    assert!(
        m.received > 0 && m.lost >= 199 && report.intact,
        "{report:#?}"
    );
}

fn udp_without_listener() {
    let mut s = udp();
    s.setup = Duration::from_millis(300);
    let address: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let (report, status) = client(&s, address).end();
    assert_eq!(status, 1);
    assert!(
        report.errors[0].contains("nothing listens there"),
        "{report:?}"
    );
}
