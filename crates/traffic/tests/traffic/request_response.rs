//! Request-response: every round trip recorded, contents checked.

use braid_traffic::{Kind, RequestResponse, Transport};

use super::Test;
use super::pair::{run, spec};

pub(crate) const TESTS: &[Test] = &[
    (
        "request_response::records_every_round_trip",
        records_every_round_trip,
    ),
    ("request_response::carries_any_sizes", carries_any_sizes),
];

fn records_every_round_trip() {
    for transport in [Transport::Tcp, Transport::Mptcp] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rtt.csv");
        let mut s = spec(Kind::RequestResponse(RequestResponse {
            request_bytes: 1,
            response_bytes: 1,
        }));
        s.transport = transport;
        s.csv = Some(path.clone());
        let (client, server) = run(&s);
        let p = client.latency_ms.expect("round trips were measured");
        assert!(p.p50 > 0.0 && p.p50 <= p.p90 && p.p90 <= p.p99 && p.p99 <= p.max);
        assert!((2..=200).contains(&client.latency_cdf.len()));
        // One byte per round trip, and only those of the window count.
        assert!(client.latency_samples <= client.bytes_received);
        assert!(client.bytes_received.abs_diff(server.bytes_received) <= 1);
        assert!(
            client
                .latency_samples
                .abs_diff(client.window_bytes_received)
                <= 1
        );
        let rows = std::fs::read_to_string(path).unwrap().lines().count() as u64;
        assert_eq!(rows, client.latency_samples + 1);
        assert!(server.gap_ms.is_none() && client.gap_ms.is_some());
    }
}

fn carries_any_sizes() {
    let (client, server) = run(&spec(Kind::RequestResponse(RequestResponse {
        request_bytes: 100,
        response_bytes: 1_000_000,
    })));
    assert!(client.bytes_received >= 1_000_000);
    assert!(server.bytes_received >= 100);
}
