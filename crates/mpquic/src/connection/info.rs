//! State of the paths, as programs are told of it.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use noq_proto::Connection as Quic;

use super::access_set::AccessSet;
use super::path_names;
use super::path_set::{Path, PathSet};
use crate::access::labelled;
use crate::congestion::CongestionSet;
use crate::lane::Lane;
use crate::transport;

/// Bytes of QUIC around a datagram of the lane, at least: flags, connection id, packet number and
/// tag (1, 8, 1, 16), type and length of the frame (3).
const AROUND: u64 = 29;
/// The library has searched for what a path carries after this.
const SEARCHED: Duration = Duration::from_secs(5);

/// One path, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct PathInfo {
    /// Counts the paths of a connection; never used again.
    pub number: u32,
    /// Path identifier of QUIC, by which the other end knows it too.
    pub id: u32,
    /// The access; none if it is none of those that are known.
    pub access: Option<String>,
    /// This end's address, where it is known.
    pub local: Option<IpAddr>,
    /// The other end.
    pub remote: SocketAddr,
    /// Whether it may carry data: validated, and not silent.
    pub usable: bool,
    /// Nothing comes back on it.
    pub silent: bool,
    /// Used only while no other can be.
    pub backup: bool,
    /// Whether the peer has asked for that (PATH_STATUS_BACKUP): nothing comes back to it there,
    /// or it was told to leave it.
    pub peer_backup: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Its mean deviation.
    pub rttvar: Duration,
    /// The least round-trip time, on the datagram lane.
    pub min_rtt: Option<Duration>,
    /// How much longer the latest datagram took to the peer than on the path where it took
    /// least; on the datagram lane, once data was sent here.
    pub one_way_behind: Option<Duration>,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes on their way.
    pub in_flight: u64,
    /// UDP payload bytes sent and received.
    pub sent_bytes: u64,
    /// See `sent_bytes`.
    pub received_bytes: u64,
    /// Packets sent and taken for lost.
    pub sent_packets: u64,
    /// See `sent_packets`.
    pub lost_packets: u64,
    /// Bytes of packets that the peer has acknowledged, without those that only acknowledge.
    /// They count from 0 again where the path has moved to another address.
    pub delivered_bytes: u64,
    /// Bytes of packets taken for lost.
    pub lost_bytes: u64,
    /// Rate of what was acknowledged, bytes per second, over a round trip and 50 ms at least;
    /// none before the first.
    pub delivery_rate: Option<f64>,
    /// Time since the path began for which the connection had data to send.
    pub waited: Duration,
    /// Part of it in which this path had no room for it.
    pub full: Duration,
    /// UDP payload bytes of a full packet.
    pub mtu: u64,
    /// The path carries no longer ones, as was found, though other paths may.
    pub short: bool,
}

/// Returns the state of all paths.
pub(super) fn path_infos(
    paths: &PathSet,
    accesses: &AccessSet,
    congestion: &CongestionSet,
    lane: Option<&Lane>,
    quic: &mut Quic,
    now: Instant,
) -> Vec<PathInfo> {
    let slots: Vec<_> = {
        let all = congestion.lock();
        paths.iter().map(|p| all[p.slot].clone()).collect()
    };
    let behind = one_way_behind(paths, lane);
    let mut infos = Vec::new();
    for ((p, slot), one_way_behind) in paths.iter().zip(slots).zip(behind) {
        let stats = quic.path_stats(p.id).unwrap_or_default();
        let own = lane.and_then(|l| l.paths().rtt(p.number));
        let (srtt, rttvar) = own.unwrap_or((slot.srtt, slot.rttvar));
        let access = p.access.map(|i| &accesses[i]);
        let found = match lane {
            Some(lane) => lane.paths().found(p.number).map(|f| f as u64 + AROUND),
            None => Some(slot.mtu).filter(|_| p.began + SEARCHED <= now),
        };
        let found = found.filter(|f| *f < u64::from(transport::PAYLOAD));
        // At the device, QUIC has been told a label.
        let local = match p.network.local_ip() {
            Some(ip) => match labelled(ip) {
                Some(_) => access.and_then(|a| Some(a.address?.addr())),
                None => Some(ip),
            },
            None => None,
        };
        infos.push(PathInfo {
            number: p.number,
            id: path_names::number(p.id),
            access: access.map(|a| a.name.clone()),
            local,
            remote: p.network.remote(),
            usable: p.established && !p.held && slot.alive,
            silent: p.held,
            backup: access.is_some_and(|a| a.backup),
            peer_backup: p.status.is_following_peer(),
            srtt,
            rttvar,
            min_rtt: lane.and_then(|l| l.min_rtt(p.number)),
            one_way_behind,
            window: slot.window,
            in_flight: slot.in_flight,
            sent_bytes: stats.udp_tx.bytes,
            received_bytes: stats.udp_rx.bytes,
            sent_packets: stats.sent_packets,
            lost_packets: stats.lost_packets,
            delivered_bytes: slot.delivery.bytes,
            lost_bytes: stats.lost_bytes,
            delivery_rate: slot.delivery.rate,
            waited: p.load.waited,
            full: p.load.full,
            mtu: found.unwrap_or(slot.mtu),
            short: found.is_some(),
        });
    }
    infos
}

/// Returns how much longer than on the fastest path the latest datagram took on each: clocks of
/// two ends tell one-way delays up to the same unknown difference.
fn one_way_behind(paths: &PathSet, lane: Option<&Lane>) -> Vec<Option<Duration>> {
    let of = |p: &Path| lane?.one_way(p.number);
    let all: Vec<Option<u32>> = paths.iter().map(of).collect();
    let first = all.iter().flatten().next().copied().unwrap_or_default();
    // They wrap every 71 minutes; paths differ by far less than half of that.
    let more: Vec<Option<i64>> = all
        .iter()
        .map(|o| Some(i64::from(o.as_ref()?.wrapping_sub(first).cast_signed())))
        .collect();
    let least = more.iter().flatten().min().copied().unwrap_or_default();
    more.into_iter()
        .map(|m| Some(Duration::from_micros(m?.abs_diff(least))))
        .collect()
}
