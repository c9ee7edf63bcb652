//! Samples from the sockets of each address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_access::liveness::Sample;
use braid_access::probe::query::Subject;
use braid_access::trial::Attempt;
use braid_mptcp::diag::{TcpSocket, UlpInfo};
use braid_mptcp::repair::priority_repeat::Subflow;
use braid_mptcp::repair::receive_window::Look;
use braid_mptcp::repair::stalls::{self, Ends, Progress};
use braid_mptcp::repair::stripping::Handshake;
use braid_mptcp::repair::subflow_reopen::Paths;

/// TCP states in which a subflow carries data or may get answers (RFC 9293):
/// established, FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, LAST-ACK, CLOSING.
const LIVE: [u8; 6] = [1, 4, 5, 8, 9, 11];

/// States of `LIVE` in which what is outstanding tells of the path (established, CLOSE-WAIT):
/// a subflow that was given up has its end outstanding for minutes.
const OPEN: [u8; 2] = [1, 8];

/// The TCP state in which a subflow waits for the answer to its SYN.
const OPENING: u8 = 2;

/// The subflows by their local address. Sockets count time in ticks (jiffies) up to the last
/// one, which was `since_tick` ago: with it, looks at the same packet tell the same time.
pub(crate) fn samples(sockets: &[TcpSocket], since_tick: Duration) -> BTreeMap<IpAddr, Sample> {
    let mut all: BTreeMap<IpAddr, Sample> = BTreeMap::new();
    for s in sockets {
        if s.ulp.is_none() || !LIVE.contains(&s.state) {
            continue;
        }
        let t = &s.tcp;
        let open = OPEN.contains(&s.state);
        let (unacked, timeouts) = match open {
            true => (t.unacked > 0, t.retransmits),
            false => (false, 0),
        };
        let ms = t.last_ack_recv_ms.min(t.last_data_recv_ms);
        let quiet = Duration::from_millis(ms.into()) + since_tick;
        let rtt = (t.min_rtt_us != u32::MAX && t.min_rtt_us > 0)
            .then(|| Duration::from_micros(t.min_rtt_us.into()));
        let remote = open.then_some(s.remote);
        all.entry(s.local.ip())
            .and_modify(|a| {
                a.subflows += 1;
                if a.remote.is_none() || quiet < a.quiet {
                    a.remote = remote.or(a.remote);
                }
                a.quiet = a.quiet.min(quiet);
                a.unacked |= unacked;
                a.timeouts = a.timeouts.max(timeouts);
                a.min_rtt = [a.min_rtt, rtt].into_iter().flatten().min();
            })
            .or_insert(Sample {
                subflows: 1,
                quiet,
                unacked,
                timeouts,
                min_rtt: rtt,
                remote,
            });
    }
    all
}

/// How the subflows that this end has opened began. Left out are those that the kernel itself
/// began as plain TCP (its blackhole detection).
pub(crate) fn handshakes(sockets: &[TcpSocket]) -> Vec<Handshake> {
    let open = sockets.iter().filter(|s| OPEN.contains(&s.state));
    let asked = |u: &UlpInfo| u.connected() && (u.asked() || u.by_handshake());
    let connected = open.filter(|s| s.ulp.as_ref().is_some_and(asked));
    connected
        .map(|s| Handshake {
            local: s.local.ip(),
            remote: s.remote,
            mptcp: s.ulp.is_some_and(|u| u.by_handshake()),
        })
        .collect()
}

/// Returns the bytes that each subflow has received, with its round-trip time.
pub(crate) fn looks(sockets: &[TcpSocket]) -> Vec<Look> {
    let subflows = sockets.iter().filter(|s| s.ulp.is_some());
    subflows
        .map(|s| Look {
            ends: (s.local, s.remote),
            received: s.tcp.bytes_received,
            rtt: Duration::from_micros(s.tcp.rtt_us.into()),
        })
        .collect()
}

/// The subflows over which data may flow, and how they are to be used.
pub(crate) fn subflows(sockets: &[TcpSocket]) -> Vec<Subflow> {
    let open = sockets.iter().filter(|s| OPEN.contains(&s.state));
    open.filter_map(|s| {
        let ulp = s.ulp.filter(UlpInfo::fully_established)?;
        Some(Subflow {
            token: s.token()?,
            ends: (s.local, s.remote),
            backup: ulp.backup_local(),
            received: s.tcp.bytes_received,
        })
    })
    .collect()
}

/// The subflows that are open, and those that are being opened.
pub(crate) fn attempts(sockets: &[TcpSocket]) -> Vec<Attempt> {
    let subflows = sockets.iter().filter(|s| s.ulp.is_some());
    let counts = subflows.filter(|s| s.state == OPENING || OPEN.contains(&s.state));
    counts
        .map(|s| Attempt {
            local: s.local.ip(),
            remote: s.remote,
            open: s.state != OPENING,
            retransmissions: s.tcp.retransmits,
        })
        .collect()
}

/// The subflows over which data may flow, and how each fares. The other end can be asked about
/// those of connections to one of the addresses of the `proxy`.
pub(crate) fn progress(
    sockets: &[TcpSocket],
    since_tick: Duration,
    proxy: &[IpAddr],
) -> Vec<stalls::Look> {
    let open = || sockets.iter().filter(|s| OPEN.contains(&s.state));
    let to_proxy = |s: &&TcpSocket| proxy.contains(&s.remote.ip());
    let asked: BTreeSet<u32> = open().filter(to_proxy).filter_map(|s| s.token()).collect();
    // The kernel tells the peer's token of those that have joined, not of the first.
    let peer = |s: &TcpSocket| Some((s.token()?, s.ulp?.token_remote)).filter(|(_, t)| *t != 0);
    let peers: BTreeMap<u32, u32> = sockets.iter().filter_map(peer).collect();
    open()
        .filter_map(|s| {
            let ulp = s.ulp?;
            let token = s.token()?;
            let subject = peers.get(&token).map(|peer| Subject {
                token: *peer,
                asker_id: ulp.local_id,
                asked_id: ulp.remote_id,
            });
            Some(stalls::Look {
                token,
                subject: subject.filter(|_| asked.contains(&token)),
                ends: (s.local, s.remote),
                backup: ulp.backup_local() || ulp.backup_remote(),
                progress: Progress::of(s, since_tick),
            })
        })
        .collect()
}

/// Time in which the peer hears that the first subflow of a connection, which is on this
/// address, has gone: the round trip of the others. `None` where no first one is.
pub(crate) fn pause_of_first(sockets: &[TcpSocket], address: IpAddr) -> Option<Duration> {
    const LEAST: Duration = Duration::from_millis(20);
    const MOST: Duration = Duration::from_millis(300);
    let open = || sockets.iter().filter(|s| OPEN.contains(&s.state));
    let is_first = |s: &&TcpSocket| {
        s.local.ip() == address && s.token().is_some() && s.ulp.is_some_and(|u| u.local_id == 0)
    };
    let of: BTreeSet<u32> = open().filter(is_first).filter_map(|s| s.token()).collect();
    let others = open().filter(|s| s.local.ip() != address);
    let others = others.filter(|s| s.token().is_some_and(|t| of.contains(&t)));
    let rtt = others
        .map(|s| Duration::from_micros(s.tcp.rtt_us.into()))
        .max();
    (!of.is_empty()).then(|| rtt.unwrap_or_default().clamp(LEAST, MOST))
}

/// Where the connections have subflows, or are opening them, by token; those `stalled` apart.
/// Left out are connections that moved no data yet, and those that end: the kernel joins none to
/// them.
pub(crate) fn paths(sockets: &[TcpSocket], stalled: &BTreeSet<Ends>) -> BTreeMap<u32, Paths> {
    let mut all: BTreeMap<u32, (Paths, bool)> = BTreeMap::new();
    for s in sockets {
        let (Some(token), Some(ulp)) = (s.token(), s.ulp) else {
            continue;
        };
        // One that is closing does not come back, though its end may be outstanding for minutes.
        if !OPEN.contains(&s.state) && s.state != OPENING {
            continue;
        }
        let (paths, moved) = all.entry(token).or_default();
        paths.v4 = s.remote.is_ipv4();
        match stalled.contains(&(s.local, s.remote)) {
            true => paths.stalled.insert(s.local.ip()),
            false => paths.on.insert(s.local.ip()),
        };
        paths.moved += s.tcp.bytes_received + s.tcp.bytes_acked;
        let open = OPEN.contains(&s.state);
        *moved |= open && ulp.fully_established() && s.tcp.bytes_received + s.tcp.bytes_acked > 1;
    }
    let moved = all.into_iter().filter(|(_, (_, moved))| *moved);
    moved.map(|(token, (paths, _))| (token, paths)).collect()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use braid_mptcp::socket::TcpInfo;

    fn subflow(local: &str, state: u8, ack_ms: u32, data_ms: u32, unacked: u32) -> TcpSocket {
        TcpSocket {
            cookie: 0,
            local: local.parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            state,
            inode: 0,
            tcp: TcpInfo {
                last_ack_recv_ms: ack_ms,
                last_data_recv_ms: data_ms,
                unacked,
                min_rtt_us: ack_ms * 100,
                ..TcpInfo::default()
            },
            congestion_control: "cubic".into(),
            queued_bytes: 0,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            ulp: Some(UlpInfo::default()),
        }
    }

    #[test]
    fn any_sign_of_life_of_any_subflow_counts() {
        let mut plain = subflow("10.77.1.2:9", 1, 0, 0, 0);
        plain.ulp = None;
        let all = [
            subflow("10.77.1.2:1", 1, 900, 30, 0),
            subflow("10.77.1.2:2", 1, 70, 800, 4),
            subflow("10.77.2.2:1", 1, 500, 600, 0),
            subflow("10.77.2.2:2", 2, 1, 1, 1),
            // Given up, its end never acknowledged.
            subflow("10.77.2.2:3", 4, 700, 800, 1),
            plain,
        ];
        let all = samples(&all, Duration::from_millis(3));
        let first = all[&IpAddr::from([10, 77, 1, 2])];
        assert_eq!((first.subflows, first.quiet.as_millis()), (2, 33));
        assert!(first.unacked && first.min_rtt == Some(Duration::from_millis(7)));
        let second = all[&IpAddr::from([10, 77, 2, 2])];
        assert_eq!((second.subflows, second.quiet.as_millis()), (2, 503));
        assert!(!second.unacked);
    }

    #[test]
    fn the_liveliest_subflow_that_is_open_tells_where_a_path_leads() {
        let to = |port: u16, state, ms| TcpSocket {
            remote: SocketAddr::from(([10, 77, 0, 1], port)),
            ..subflow("10.77.1.2:1", state, ms, ms, 0)
        };
        let leads =
            |all: &[TcpSocket]| samples(all, Duration::ZERO)[&IpAddr::from([10, 77, 1, 2])].remote;
        let all = [to(80, 1, 50), to(81, 1, 20), to(82, 1, 90), to(83, 4, 1)];
        assert_eq!(leads(&all), Some(all[1].remote));
        assert_eq!(leads(&all[3..]), None, "what was given up leads nowhere");
    }

    #[test]
    fn connections_are_told_by_where_they_are() {
        let of = |local: &str, state, token: u32, acked| {
            let mut s = subflow(local, state, 0, 0, 0);
            s.ulp = Some(UlpInfo {
                token_local: token,
                flags: 1 << 6,
                ..UlpInfo::default()
            });
            s.tcp.bytes_acked = acked;
            s
        };
        let stalls = "10.77.2.2:7".parse().unwrap();
        let stalled = BTreeSet::from([(stalls, "10.77.0.1:80".parse().unwrap())]);
        let all = paths(
            &[
                of("10.77.1.2:1", 1, 5, 100),
                of("10.77.2.2:2", 2, 5, 0),
                of("10.77.3.2:3", 7, 5, 100),
                // Given up, and its end is not acknowledged.
                of("10.77.4.2:3", 4, 5, 100),
                // Nothing moved yet but the handshake.
                of("10.77.1.2:4", 1, 6, 1),
                of("10.77.1.2:5", 1, 0, 100),
                // About to end.
                of("10.77.1.2:6", 4, 7, 100),
                // The only one of its connection, and it stalls.
                of("10.77.2.2:7", 1, 8, 100),
            ],
            &stalled,
        );
        assert_eq!(all.keys().collect::<Vec<_>>(), [&5, &8]);
        assert!(all[&8].on.is_empty() && all[&8].stalled.len() == 1);
        let on: Vec<String> = all[&5].on.iter().map(ToString::to_string).collect();
        assert!(all[&5].v4 && on == ["10.77.1.2", "10.77.2.2"]);
    }
}
