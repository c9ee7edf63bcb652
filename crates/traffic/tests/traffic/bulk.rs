//! Bulk in every direction, by time and by size.

use braid_traffic::{Bulk, Direction, Kind, TrafficReport, Transport};

use super::Test;
use super::pair::{run, spec};

pub(crate) const TESTS: &[Test] = &[
    ("bulk::for_a_time", for_a_time),
    ("bulk::up_to_a_size", up_to_a_size),
    (
        "bulk::over_ipv6_with_a_local_address",
        over_ipv6_with_a_local_address,
    ),
    ("bulk::starts_when_told", starts_when_told),
];

const STREAMS: [Transport; 2] = [Transport::Tcp, Transport::Mptcp];
const WAYS: [Direction; 3] = [Direction::Down, Direction::Up, Direction::Both];

fn check_flow(from: &TrafficReport, to: &TrafficReport, flows: bool) {
    assert_eq!(to.window_bytes_received > 0, flows, "{to:#?}");
    assert_eq!(to.gap_ms.is_some(), flows);
    assert_eq!(from.window_bytes_sent > 0, flows);
    assert!(to.bytes_received <= from.bytes_sent);
}

fn for_a_time() {
    for transport in STREAMS {
        for direction in WAYS {
            let mut s = spec(Kind::Bulk(Bulk { bytes: None }));
            s.transport = transport;
            s.direction = direction;
            let (client, server) = run(&s);
            check_flow(&server, &client, direction != Direction::Up);
            check_flow(&client, &server, direction != Direction::Down);
            for r in [&client, &server] {
                assert!((r.seconds - 0.4).abs() < 1e-6, "{r:#?}");
                let bits = r.window_bytes_received as f64 * 8.0;
                assert!((r.goodput_mbps - bits / 0.4e6).abs() < 1.0, "{r:#?}");
                assert!(r.completion_s.is_none());
                let facts = r.facts.as_ref().unwrap();
                assert_eq!(
                    facts.fallback,
                    (transport == Transport::Mptcp).then_some(false)
                );
                assert!(facts.retransmitted_bytes.is_some());
            }
        }
    }
}

fn up_to_a_size() {
    // Not a multiple of any buffer, and more than all of them.
    const SIZE: u64 = 6_000_003;
    for transport in STREAMS {
        for direction in WAYS {
            let mut s = spec(Kind::Bulk(Bulk { bytes: Some(SIZE) }));
            s.duration = std::time::Duration::from_secs(60);
            s.transport = transport;
            s.direction = direction;
            let (client, server) = run(&s);
            let ends = [
                (&client, &server, direction != Direction::Down),
                (&server, &client, direction != Direction::Up),
            ];
            for (from, to, flows) in ends {
                let size = if flows { SIZE } else { 0 };
                assert_eq!((from.bytes_sent, to.bytes_received), (size, size));
                assert_eq!(to.window_bytes_received, size);
                assert!(from.completion_s.is_some() && to.completion_s.is_some());
            }
        }
    }
}

fn over_ipv6_with_a_local_address() {
    let mut s = spec(Kind::Bulk(Bulk { bytes: Some(1000) }));
    s.address = "[::1]:0".parse().unwrap();
    s.local = Some("::1".parse().unwrap());
    let (client, _) = run(&s);
    assert_eq!(client.bytes_received, 1000);
}

fn starts_when_told() {
    let mut s = spec(Kind::Bulk(Bulk { bytes: None }));
    let (_, server) = run(&s);
    // Well after both ends can have met.
    let start = server.window_end_ns.unwrap() + std::time::Duration::from_millis(1500);
    s.start_ns = Some(start);
    let (client, server) = run(&s);
    for r in [client, server] {
        assert_eq!(r.start_ns, Some(start));
        assert_eq!(r.window_start_ns, Some(start + s.warmup));
        assert_eq!(r.window_end_ns, Some(start + s.duration));
    }
}
