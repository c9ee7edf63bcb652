//! Rates, round-trip times and losses of accesses, from two readings of the
//! connections.

use std::collections::HashMap;
use std::net::SocketAddr;

use braid_api::{Connections, Subflow};
use serde::Serialize;

/// How an access fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Fares {
    /// Established subflows and plain TCP connections on it now.
    pub(super) subflows: u32,
    /// Payload that this end sent on it, retransmissions included; absent where
    /// there is one reading only.
    pub(super) sent_mbps: Option<f64>,
    /// Payload that it received on it, in order.
    pub(super) received_mbps: Option<f64>,
    /// Least smoothed round-trip time of its subflows.
    pub(super) srtt_ms: Option<f64>,
    /// Share of the bytes sent between the readings that were sent again, 0 to 1;
    /// absent if none were sent.
    pub(super) loss: Option<f64>,
}

/// Byte counts of all subflows of an access.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    sent: u64,
    again: u64,
    received: u64,
}

type Ends = (SocketAddr, SocketAddr);

/// Every access that has subflows in `now`, by name; those of accesses that the
/// daemon could not name are left out. `before` is an earlier reading.
pub(super) fn fares(before: Option<&Connections>, now: &Connections) -> HashMap<String, Fares> {
    let known: Option<HashMap<Ends, Bytes>> =
        before.map(|b| subflows(b).map(|s| (ends(s), bytes(s))).collect());
    let seconds = before.map(|b| now.t_ns.saturating_sub(b.t_ns) as f64 / 1e9);
    let mut all: HashMap<String, (Fares, Bytes)> = HashMap::new();
    for s in subflows(now) {
        let Some(name) = &s.access else { continue };
        let (fares, sum) = all.entry(name.clone()).or_default();
        fares.subflows += u32::from(s.is_established());
        if s.srtt_ms > 0.0 {
            fares.srtt_ms = Some(fares.srtt_ms.map_or(s.srtt_ms, |t| t.min(s.srtt_ms)));
        }
        if let Some(known) = &known {
            let (count, was) = (bytes(s), known.get(&ends(s)).copied().unwrap_or_default());
            // Less than before: another subflow between the same ports.
            let since = |now: u64, was: u64| now.checked_sub(was).unwrap_or(now);
            sum.sent += since(count.sent, was.sent);
            sum.again += since(count.again, was.again);
            sum.received += since(count.received, was.received);
        }
    }
    let mbps = |bytes: u64, seconds: f64| bytes as f64 * 8.0 / 1e6 / seconds;
    all.into_iter()
        .map(|(name, (mut fares, sum))| {
            if let Some(seconds) = seconds.filter(|s| *s > 0.0) {
                fares.sent_mbps = Some(mbps(sum.sent, seconds));
                fares.received_mbps = Some(mbps(sum.received, seconds));
                fares.loss = (sum.sent > 0).then(|| (sum.again as f64 / sum.sent as f64).min(1.0));
            }
            (name, fares)
        })
        .collect()
}

fn subflows(c: &Connections) -> impl Iterator<Item = &Subflow> {
    c.connections.iter().flat_map(|c| &c.subflows)
}

fn ends(s: &Subflow) -> Ends {
    (s.local, s.remote)
}

fn bytes(s: &Subflow) -> Bytes {
    Bytes {
        sent: s.sent_bytes,
        again: s.retransmitted_bytes,
        received: s.received_bytes,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use braid_api::Connection;
    use proptest::prelude::*;

    /// A reading at `t` seconds of subflows: access, local port, sent, sent again,
    /// received, srtt.
    pub(crate) fn reading(t: f64, subflows: &[(&str, u16, u64, u64, u64, f64)]) -> Connections {
        let subflow =
            |&(access, port, sent, again, received, srtt): &(&str, u16, u64, u64, u64, f64)| {
                serde_json::from_value(serde_json::json!({
                    "access": if access.is_empty() { None } else { Some(access) },
                    "local": format!("10.0.0.2:{port}"), "remote": "10.0.0.1:80",
                    "local_id": 0, "remote_id": 0, "state": "established",
                    "backup_local": false, "backup_remote": false, "fully_established": true,
                    "stale": false, "congestion_control": "cubic",
                    "srtt_ms": srtt, "rttvar_ms": 0.0, "min_rtt_ms": null, "rto_ms": 200.0,
                    "cwnd_segments": 10, "ssthresh_segments": null, "mss_bytes": 1400,
                    "pacing_mbps": null, "delivery_mbps": 0.0, "delivery_app_limited": false,
                    "sent_bytes": sent, "retransmitted_bytes": again, "acked_bytes": 0,
                    "received_bytes": received, "notsent_bytes": 0, "queued_bytes": 0,
                    "send_buffer_bytes": 0, "receive_buffer_bytes": 0,
                    "retransmits": 0, "unacked_segments": 0, "lost_segments": 0, "timeouts": 0,
                    "last_sent_ms": 0, "last_ack_ms": 0, "pmtu_bytes": 1500,
                }))
                .unwrap()
            };
        Connections {
            t_ns: (t * 1e9) as u64,
            took_us: 0,
            connections: vec![Connection {
                weights: None,
                token: Some(1),
                engine: None,
                fallback: false,
                fallback_at: None,
                inode: 0,
                mptcp: None,
                subflows: subflows.iter().map(subflow).collect(),
            }],
        }
    }

    #[test]
    fn rates_are_what_passed_between_the_readings() {
        let before = reading(
            1.0,
            &[
                ("nr", 1, 1_000_000, 0, 500, 20.0),
                ("wifi", 2, 7_000, 0, 0, 0.0),
                ("nr", 9, 5_000_000, 0, 0, 1.0), // has gone since
            ],
        );
        let now = reading(
            1.5,
            &[
                ("nr", 1, 2_000_000, 50_000, 500, 20.0),
                ("nr", 3, 250_000, 0, 62_500, 12.0), // new
                ("wifi", 2, 500, 0, 0, 0.0),         // the ports were used again
                ("", 4, 1_000_000, 0, 0, 5.0),       // of no access
            ],
        );
        let all = fares(Some(&before), &now);
        assert_eq!(all.len(), 2);
        let nr = all["nr"];
        // 1.25 MB in half a second.
        assert_eq!((nr.subflows, nr.sent_mbps), (2, Some(20.0)));
        assert_eq!((nr.received_mbps, nr.srtt_ms), (Some(1.0), Some(12.0)));
        assert_eq!(nr.loss, Some(0.04));
        let wifi = all["wifi"];
        assert_eq!((wifi.sent_mbps, wifi.srtt_ms), (Some(0.008), None));
    }

    #[test]
    fn one_reading_gives_no_rates() {
        let now = reading(1.0, &[("nr", 1, 10, 0, 0, 20.0)]);
        for before in [None, Some(&now)] {
            let nr = fares(before, &now)["nr"];
            assert_eq!(
                (nr.sent_mbps, nr.loss, nr.srtt_ms),
                (None, None, Some(20.0))
            );
        }
        assert!(fares(None, &Connections::default()).is_empty());
    }

    proptest! {
        #[test]
        fn rates_are_finite_and_losses_shares(
            t in 0u8..4, u in 0u8..4,
            a in any::<[u32; 3]>(), b in any::<[u32; 3]>(),
        ) {
            let at = |t: u8, v: [u32; 3]| {
                reading(f64::from(t), &[("x", 1, v[0].into(), v[1].into(), v[2].into(), 1.0)])
            };
            let f = fares(Some(&at(t, a)), &at(u, b))["x"];
            for rate in [f.sent_mbps, f.received_mbps].into_iter().flatten() {
                prop_assert!(rate.is_finite() && rate >= 0.0);
            }
            prop_assert!(f.loss.is_none_or(|l| (0.0..=1.0).contains(&l)));
            prop_assert_eq!(f.sent_mbps.is_some(), u > t);
        }
    }
}
