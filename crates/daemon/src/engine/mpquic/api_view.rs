//! Sessions and their paths in the words of the control API.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use braid_api::{Connection, EventKind, Subflow, SubflowEvent};
use braid_mpquic::{PathChange, PathEvent, PathInfo};

use super::Mpquic;
use crate::meter::{Bytes, Flow, Key};

fn ms(d: std::time::Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// A session as the API tells connections: what it has no word for is zero.
pub(super) fn connection(token: u32, paths: &[PathInfo], cc: &str) -> Connection {
    Connection {
        token: Some(token),
        engine: None,
        fallback: false,
        fallback_at: None,
        inode: 0,
        mptcp: None,
        subflows: paths.iter().map(|p| subflow(p, cc)).collect(),
        weights: None,
    }
}

fn subflow(p: &PathInfo, cc: &str) -> Subflow {
    let unspecified = match p.remote {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let mtu = p.mtu.max(1);
    Subflow {
        access: p.access.clone(),
        local: SocketAddr::new(p.local.unwrap_or(unspecified), 0),
        remote: p.remote,
        local_id: u8::try_from(p.number).unwrap_or(u8::MAX),
        remote_id: 0,
        state: match p.usable {
            true => "established".to_owned(),
            false if p.silent => "silent".to_owned(),
            false => "validating".to_owned(),
        },
        backup_local: p.backup,
        backup_remote: p.peer_backup,
        fully_established: p.usable || p.silent,
        stale: p.silent,
        congestion_control: cc.to_owned(),
        srtt_ms: ms(p.srtt),
        rttvar_ms: ms(p.rttvar),
        min_rtt_ms: p.min_rtt.map(ms),
        one_way_behind_ms: p.one_way_behind.map(ms),
        rto_ms: 0.0,
        cwnd_segments: u32::try_from(p.window / mtu).unwrap_or(u32::MAX),
        ssthresh_segments: None,
        mss_bytes: u32::try_from(mtu).unwrap_or(u32::MAX),
        pacing_mbps: None,
        delivery_mbps: p.delivery_rate.unwrap_or(0.0) * 8e-6,
        delivery_app_limited: false,
        sent_bytes: p.sent_bytes,
        retransmitted_bytes: p.lost_bytes,
        acked_bytes: p.delivered_bytes,
        received_bytes: p.received_bytes,
        notsent_bytes: 0,
        queued_bytes: 0,
        send_buffer_bytes: 0,
        receive_buffer_bytes: 0,
        retransmits: u32::try_from(p.lost_packets).unwrap_or(u32::MAX),
        unacked_segments: u32::try_from(p.in_flight / mtu).unwrap_or(u32::MAX),
        lost_segments: 0,
        timeouts: 0,
        last_sent_ms: 0,
        last_ack_ms: 0,
        pmtu_bytes: u32::try_from(mtu + 28).unwrap_or(u32::MAX),
    }
}

/// Notes that a path has come or gone.
pub(super) fn log(state: &Mpquic, change: &PathChange) {
    let subflow = SubflowEvent {
        token: 0,
        local_id: 0,
        remote_id: 0,
        local: None,
        remote: None,
        backup: false,
        error: None,
    };
    let what = match change.what {
        PathEvent::Up => EventKind::SubflowEstablished(subflow),
        PathEvent::Down => EventKind::SubflowClosed(subflow),
        // The state of its access tells.
        PathEvent::Silent | PathEvent::Heard => return,
    };
    state.log(change.access.clone(), what);
}

/// Returns what paths have carried, by the number of each and of its session.
pub(super) fn flows(sessions: &[(u32, Vec<PathInfo>)]) -> Vec<Flow> {
    let paths = sessions
        .iter()
        .flat_map(|(token, paths)| paths.iter().map(|p| (*token, p)));
    let flow = |(token, p): (u32, &PathInfo)| Flow {
        key: Key::Path(token, p.number),
        access: p.access.clone(),
        bytes: Bytes {
            sent: p.sent_bytes,
            retransmitted: p.lost_packets * p.mtu.max(1),
            received: p.received_bytes,
        },
    };
    paths.map(flow).collect()
}

/// Combined figures of the paths of one access.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    pub(super) paths: u32,
    pub(super) usable: u32,
    /// Usable ones that the peer has asked to leave.
    pub(super) left: u32,
    pub(super) srtt_ms: Option<f64>,
    pub(super) loss: Option<f64>,
    /// IP bytes of the longest packet that a path of it carries, where that is less than full.
    pub(super) longest: Option<u64>,
}

/// Sums up the paths of each access.
pub(super) fn traffic(sessions: &[(u32, Vec<PathInfo>)]) -> BTreeMap<String, Traffic> {
    let mut all: BTreeMap<String, (Traffic, u64, u64)> = BTreeMap::new();
    for p in sessions.iter().flat_map(|(_, paths)| paths) {
        let Some(name) = p.access.clone() else {
            continue;
        };
        let (traffic, sent, lost) = all.entry(name).or_default();
        traffic.paths += 1;
        traffic.usable += u32::from(p.usable);
        traffic.left += u32::from(p.usable && p.peer_backup);
        if p.short {
            let headers = if p.remote.is_ipv4() { 28 } else { 48 };
            let bytes = p.mtu + headers;
            traffic.longest = Some(traffic.longest.map_or(bytes, |l| l.min(bytes)));
        }
        if !p.srtt.is_zero() {
            let least = traffic.srtt_ms.map_or(ms(p.srtt), |s| s.min(ms(p.srtt)));
            traffic.srtt_ms = Some(least);
        }
        *sent += p.sent_packets;
        *lost += p.lost_packets;
    }
    let one = |(name, (mut traffic, sent, lost)): (String, (Traffic, u64, u64))| {
        traffic.loss = (sent > 0).then(|| lost as f64 / sent as f64);
        (name, traffic)
    };
    all.into_iter().map(one).collect()
}
