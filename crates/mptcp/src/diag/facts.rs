//! From the kernel's sockets to connections with their subflows.

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_api::{Connection, FallbackAt, MptcpFacts, Subflow};

use super::{MptcpSocket, TcpSocket, UlpInfo};
use crate::tcp_info::MptcpInfo;

/// How long the kernel waits between two looks at a subflow, at least
/// (`TCP_RTO_MIN`).
const LOOK_MS: u32 = 200;

/// Joins subflows to their connections. `access` names the access of a local and
/// a remote address; `stale_loss_cnt` is the sysctl of that name (4 by default).
pub fn connections(
    tcp: &[TcpSocket],
    mptcp: &[MptcpSocket],
    stale_loss_cnt: u32,
    access: &dyn Fn(IpAddr, IpAddr) -> Option<String>,
) -> Vec<Connection> {
    let mut by_token: BTreeMap<u32, Connection> = mptcp
        .iter()
        .map(|m| {
            let c = Connection {
                token: Some(m.info.token),
                engine: None,
                fallback: m.info.is_fallback(),
                fallback_at: None,
                inode: m.inode,
                mptcp: Some(facts(&m.info)),
                subflows: vec![],
                weights: None,
            };
            (m.info.token, c)
        })
        .collect();
    let mut plain = Vec::new();
    for socket in tcp {
        let subflow = subflow(socket, stale_loss_cnt, access);
        match socket.ulp {
            Some(ulp) if ulp.token_local != 0 => {
                let c = by_token
                    .entry(ulp.token_local)
                    .or_insert_with(|| Connection {
                        token: Some(ulp.token_local),
                        engine: None,
                        fallback: false,
                        fallback_at: None,
                        inode: socket.inode,
                        mptcp: None,
                        subflows: vec![],
                        weights: None,
                    });
                if c.fallback {
                    c.fallback_at = Some(fallback_at(ulp));
                }
                c.subflows.push(subflow);
            }
            _ => plain.push(Connection {
                token: None,
                // A TCP socket that MPTCP left behind.
                engine: None,
                fallback: socket.ulp.is_some(),
                fallback_at: socket.ulp.map(fallback_at),
                inode: socket.inode,
                mptcp: None,
                subflows: vec![subflow],
                weights: None,
            }),
        }
    }
    let mut all: Vec<_> = by_token.into_values().collect();
    for c in &mut all {
        c.subflows
            .sort_by_key(|s| (s.local_id, s.remote_id, s.local));
    }
    all.extend(plain);
    all
}

/// Moment at which the connection of a subflow that fell back did so.
fn fallback_at(ulp: UlpInfo) -> FallbackAt {
    match (ulp.by_handshake(), ulp.asked()) {
        (true, _) => FallbackAt::Transfer,
        (false, true) => FallbackAt::Handshake,
        (false, false) => FallbackAt::Unasked,
    }
}

fn facts(i: &MptcpInfo) -> MptcpFacts {
    MptcpFacts {
        extra_subflows: i.subflows,
        subflows_total: i.subflows_total,
        unacked_bytes: i.write_seq.saturating_sub(i.snd_una),
        sent_bytes: i.bytes_sent,
        received_bytes: i.bytes_received,
        acked_bytes: i.bytes_acked,
        reinjected_bytes: i.bytes_retrans,
        retransmits: i.retransmits,
    }
}

fn subflow(
    s: &TcpSocket,
    stale_loss_cnt: u32,
    access: &dyn Fn(IpAddr, IpAddr) -> Option<String>,
) -> Subflow {
    let t = &s.tcp;
    let ulp = s.ulp.unwrap_or_default();
    let mbps = |bytes_per_second: u64| bytes_per_second as f64 * 8.0 / 1e6;
    let ms = |us: u32| f64::from(us) / 1e3;
    Subflow {
        access: access(s.local.ip(), s.remote.ip()),
        local: s.local,
        remote: s.remote,
        local_id: ulp.local_id,
        remote_id: ulp.remote_id,
        state: state(s.state).to_owned(),
        backup_local: ulp.backup_local(),
        backup_remote: ulp.backup_remote(),
        fully_established: s
            .ulp
            .map_or(s.state == 1, |u: UlpInfo| u.fully_established()),
        stale: s.ulp.is_some() && is_stale(s, stale_loss_cnt),
        congestion_control: s.congestion_control.clone(),
        srtt_ms: ms(t.rtt_us),
        rttvar_ms: ms(t.rttvar_us),
        min_rtt_ms: (t.min_rtt_us != u32::MAX).then(|| ms(t.min_rtt_us)),
        one_way_behind_ms: None,
        rto_ms: ms(t.rto_us),
        cwnd_segments: t.snd_cwnd,
        ssthresh_segments: (t.snd_ssthresh < i32::MAX as u32).then_some(t.snd_ssthresh),
        mss_bytes: t.snd_mss,
        // Not set yet, or without a limit.
        pacing_mbps: (t.pacing_rate != u64::MAX && t.pacing_rate != 0).then(|| mbps(t.pacing_rate)),
        delivery_mbps: mbps(t.delivery_rate),
        delivery_app_limited: t.delivery_app_limited,
        sent_bytes: t.bytes_sent,
        retransmitted_bytes: t.bytes_retrans,
        acked_bytes: t.bytes_acked,
        received_bytes: t.bytes_received,
        notsent_bytes: t.notsent_bytes,
        queued_bytes: s.queued_bytes,
        send_buffer_bytes: s.send_buffer_bytes,
        receive_buffer_bytes: s.receive_buffer_bytes,
        retransmits: t.total_retrans,
        unacked_segments: t.unacked,
        lost_segments: t.lost,
        timeouts: t.retransmits,
        last_sent_ms: t.last_data_sent_ms,
        last_ack_ms: t.last_ack_recv_ms,
        pmtu_bytes: t.pmtu,
    }
}

/// The kernel keeps its `stale` flag to itself. It sets it when data is
/// outstanding on a subflow and no acknowledgement came between
/// `stale_loss_cnt` looks of its MPTCP-level retransmission timer
/// (`mptcp_pm_subflow_chk_stale`), and that timer never runs faster than every
/// 200 ms: the same, seen from outside.
fn is_stale(s: &TcpSocket, stale_loss_cnt: u32) -> bool {
    stale_loss_cnt > 0
        && s.tcp.unacked > 0
        && s.tcp.retransmits > 0
        && s.tcp.last_ack_recv_ms >= stale_loss_cnt.saturating_mul(LOOK_MS)
}

/// The states in the words of RFC 9293, by the kernel's numbers.
fn state(number: u8) -> &'static str {
    match number {
        1 => "established",
        2 => "syn-sent",
        // Linux keeps a half-open socket as "new syn-received" (12).
        3 | 12 => "syn-received",
        4 => "fin-wait-1",
        5 => "fin-wait-2",
        6 => "time-wait",
        7 => "closed",
        8 => "close-wait",
        9 => "last-ack",
        10 => "listen",
        11 => "closing",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_info::TcpInfo;

    fn tcp(local: &str, ulp: Option<UlpInfo>) -> TcpSocket {
        TcpSocket {
            cookie: 0,
            local: local.parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            state: 1,
            inode: 0,
            tcp: TcpInfo {
                rtt_us: 20_000,
                pacing_rate: u64::MAX,
                min_rtt_us: u32::MAX,
                snd_ssthresh: 0x7fff_ffff,
                ..TcpInfo::default()
            },
            congestion_control: "cubic".into(),
            queued_bytes: 0,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            ulp,
        }
    }

    fn of(token_local: u32, local_id: u8) -> Option<UlpInfo> {
        Some(UlpInfo {
            token_local,
            local_id,
            ..UlpInfo::default()
        })
    }

    #[test]
    fn subflows_join_their_connection() {
        let sockets = [
            tcp("10.77.2.2:2", of(5, 2)),
            tcp("10.77.1.2:1", of(5, 0)),
            tcp("10.77.1.2:9", None),
        ];
        let mptcp = [MptcpSocket {
            local: "10.77.1.2:1".parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            inode: 42,
            info: MptcpInfo {
                token: 5,
                write_seq: 1000,
                snd_una: 400,
                ..MptcpInfo::default()
            },
        }];
        let name =
            |l: IpAddr, _: IpAddr| (l == IpAddr::from([10, 77, 2, 2])).then(|| "wifi".into());
        let c = connections(&sockets, &mptcp, 4, &name);
        assert_eq!(c.len(), 2);
        assert_eq!(
            (c[0].token, c[0].inode, c[0].subflows.len()),
            (Some(5), 42, 2)
        );
        assert_eq!(c[0].mptcp.unwrap().unacked_bytes, 600);
        assert_eq!(c[0].subflows[1].access.as_deref(), Some("wifi"));
        assert_eq!(c[0].subflows[0].access, None);
        assert_eq!((c[1].token, c[1].subflows.len()), (None, 1));
        // What the kernel marks as "none" is absent.
        let s = &c[1].subflows[0];
        assert_eq!(
            (s.pacing_mbps, s.min_rtt_ms, s.ssthresh_segments),
            (None, None, None)
        );
    }

    #[test]
    fn the_handshake_tells_when_a_connection_fell_back() {
        // MPTCP_SUBFLOW_FLAG_MCAP_REM and _LOC of linux/mptcp.h.
        for (flags, at) in [
            (0b10, FallbackAt::Handshake),
            (0b11, FallbackAt::Transfer),
            (0, FallbackAt::Unasked),
        ] {
            let ulp = UlpInfo {
                flags,
                ..UlpInfo::default()
            };
            let c = connections(&[tcp("10.77.1.2:1", Some(ulp))], &[], 4, &|_, _| None);
            assert!(c[0].fallback, "{at:?}");
            assert_eq!(c[0].fallback_at, Some(at));
        }
        let bonded = connections(&[tcp("10.77.1.2:1", of(5, 0))], &[], 4, &|_, _| None);
        assert_eq!((bonded[0].fallback, bonded[0].fallback_at), (false, None));
        let plain = connections(&[tcp("10.77.1.2:1", None)], &[], 4, &|_, _| None);
        assert_eq!((plain[0].fallback, plain[0].fallback_at), (false, None));
    }

    #[test]
    fn stale_is_outstanding_data_without_an_answer() {
        let mut s = tcp("10.77.1.2:1", of(5, 0));
        s.tcp.last_ack_recv_ms = 60_000;
        assert!(!is_stale(&s, 4), "an idle subflow is not stale");
        s.tcp.unacked = 3;
        s.tcp.retransmits = 2;
        assert!(is_stale(&s, 4));
        assert!(!is_stale(&s, 0), "the sysctl switches it off");
        s.tcp.last_ack_recv_ms = 100;
        assert!(!is_stale(&s, 4));
    }
}
