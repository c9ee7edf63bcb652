//! Constant bit rate over every transport: latency, loss, order.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use braid_core::Rate;
use braid_traffic::{Cbr, Direction, Kind, TrafficReport, TrafficSpec, Transport};

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

/// 250 messages a second.
fn cbr() -> TrafficSpec {
    let mut s = spec(Kind::Cbr(Cbr {
        rate: Rate::from_mbps(1.0),
        message_bytes: 500,
    }));
    s.grace = Duration::from_secs(20);
    s
}

fn check(r: &TrafficReport, sends: bool, receives: bool) {
    let m = r.messages.unwrap();
    assert_eq!(m.due, 100);
    assert_eq!(m.sent, if sends { 100 } else { 0 }, "{r:#?}");
    assert_eq!(m.received, if receives { 100 } else { 0 }, "{r:#?}");
    assert_eq!((m.lost, m.duplicated, m.reordered), (0, 0, 0), "{r:#?}");
    assert_eq!(r.latency_ms.is_some(), receives);
    assert_eq!(r.gap_ms.is_some(), receives);
    if receives {
        assert_eq!(r.latency_samples, 100, "{r:#?}");
        assert_eq!(r.bytes_received, 125 * 500);
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
        if offset > 35_000 && !paused {
            paused = true;
            thread::sleep(Duration::from_millis(150));
        }
    });
    let (report, status) = client(&s, address).end();
    assert_eq!(
        (status, report.messages.unwrap().received),
        (0, 100),
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
    lost_answers: u32,
    edit: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
) -> (TrafficReport, i32) {
    let (_server, address) = server(s);
    let (address, _middle) = middle::udp(address, lost_answers, edit);
    client(s, address).end()
}

fn udp() -> TrafficSpec {
    let mut s = cbr();
    s.transport = Transport::Udp;
    s.warmup = Duration::ZERO;
    s.grace = Duration::from_secs(2);
    s
}

fn udp_counts_what_the_path_did() {
    let mut held = Vec::new();
    let edit = move |number, datagram: Vec<u8>| match number % 10 {
        1 => Vec::new(),
        2 => vec![datagram.clone(), datagram],
        3 => {
            held.push(datagram);
            Vec::new()
        }
        4 => vec![datagram, held.pop().unwrap()],
        _ => vec![datagram],
    };
    let (report, status) = through(&udp(), 0, edit);
    assert_eq!(status, 0, "{report:#?}");
    let m = report.messages.unwrap();
    let counts = (m.due, m.received, m.lost);
    assert_eq!(counts, (125, 112, 13), "{report:#?}");
    assert_eq!((m.duplicated, m.reordered), (13, 13), "{report:#?}");
    assert!(report.intact);
}

fn udp_sees_damage() {
    let (report, status) = through(&udp(), 0, |number, mut datagram| {
        if number == 80 {
            datagram[321] ^= 1;
        }
        vec![datagram]
    });
    let c = report.corruption.unwrap();
    let damage = (c.offset, c.expected ^ c.found);
    assert_eq!((status, damage), (1, (80 * 500 + 321, 1)));
}

fn udp_asks_again_when_the_answer_is_lost() {
    let mut s = udp();
    s.duration = Duration::from_secs(2);
    let (report, status) = through(&s, 2, |_, datagram| vec![datagram]);
    assert_eq!(status, 0, "{report:#?}");
    let m = report.messages.unwrap();
    // Two repetitions, 100 ms apart, in which 4 ms a message passed.
    assert!(
        m.received > 0 && m.lost >= 45 && report.intact,
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
