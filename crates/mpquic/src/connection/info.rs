//! State of the paths, as programs are told of it.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::Connection;
use super::paths::Path;
use crate::access::labelled;
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
    /// UDP payload bytes of a full packet.
    pub mtu: u64,
    /// The path carries no longer ones, as was found, though other paths may.
    pub short: bool,
}

impl Connection {
    /// The paths.
    pub fn path_infos(&mut self, now: Instant) -> Vec<PathInfo> {
        let slots: Vec<_> = {
            let all = self.shared.lock();
            self.paths.iter().map(|p| all[p.slot].clone()).collect()
        };
        let behind = self.one_way_behind();
        let mut infos = Vec::new();
        for ((p, slot), one_way_behind) in self.paths.iter().zip(slots).zip(behind) {
            let stats = self.quic.path_stats(p.id).unwrap_or_default();
            let own = self.lane.as_ref().and_then(|l| l.rtt(p.number));
            let (srtt, rttvar) = own.unwrap_or((slot.srtt, slot.rttvar));
            let access = p.access.map(|i| &self.accesses[i]);
            let found = match &self.lane {
                Some(lane) => lane.found(p.number).map(|f| f as u64 + AROUND),
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
                access: access.map(|a| a.name.clone()),
                local,
                remote: p.network.remote(),
                usable: p.established && !p.held && slot.alive,
                silent: p.held,
                backup: access.is_some_and(|a| a.backup),
                srtt,
                rttvar,
                min_rtt: self.lane.as_ref().and_then(|l| l.min_rtt(p.number)),
                one_way_behind,
                window: slot.window,
                in_flight: slot.in_flight,
                sent_bytes: stats.udp_tx.bytes,
                received_bytes: stats.udp_rx.bytes,
                sent_packets: stats.sent_packets,
                lost_packets: stats.lost_packets,
                mtu: found.unwrap_or(slot.mtu),
                short: found.is_some(),
            });
        }
        infos
    }

    /// Clocks of two ends tell one-way delays up to the same unknown difference.
    fn one_way_behind(&self) -> Vec<Option<Duration>> {
        let of = |p: &Path| self.lane.as_ref()?.one_way(p.number);
        let all: Vec<Option<u32>> = self.paths.iter().map(of).collect();
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
}
