//! Finds out from connections that are there where something on a path removes the options of
//! MPTCP for some servers or ports only: performance-enhancing proxies take ports 80 and 443,
//! and leave alone the port that the access is checked on.
//!
//! A connection that fell back to TCP (RFC 8684 3.7) may have met a server without MPTCP. It
//! is the path where the same server speaks MPTCP over another access.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_core::Time;

/// How long what a connection showed counts after it was last seen.
const KEPT: Duration = Duration::from_secs(600);
/// Servers that are remembered; those seen longest ago are forgotten first.
const SERVERS: usize = 256;

/// How a subflow that is connected began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// This end's address.
    pub local: IpAddr,
    /// The server.
    pub remote: SocketAddr,
    /// Protocol: MPTCP, else fallback to TCP.
    pub mptcp: bool,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    mptcp: bool,
    at: Time,
}

/// Protocols that connections spoke with servers, by the address these were reached from.
#[derive(Clone, Debug, Default)]
pub struct Stripping {
    servers: BTreeMap<SocketAddr, BTreeMap<IpAddr, Shown>>,
    told: BTreeSet<(IpAddr, SocketAddr)>,
}

impl Stripping {
    /// Takes all subflows that are there.
    pub fn look(&mut self, handshakes: &[Handshake], now: Time) {
        for h in handshakes {
            let shown = self.servers.entry(h.remote).or_default();
            let at = shown.entry(h.local).or_insert(Shown {
                mptcp: h.mptcp,
                at: now,
            });
            // Of connections side by side, one that fell back counts.
            at.mptcp = h.mptcp && (at.mptcp || at.at < now);
            at.at = now;
        }
        self.servers.retain(|_, shown| {
            shown.retain(|_, s| now.since(s.at) < KEPT);
            !shown.is_empty()
        });
        while self.servers.len() > SERVERS {
            let last = |shown: &BTreeMap<IpAddr, Shown>| shown.values().map(|s| s.at).max();
            let oldest = self.servers.iter().min_by_key(|(_, shown)| last(shown));
            let Some(oldest) = oldest.map(|(server, _)| *server) else {
                return;
            };
            self.servers.remove(&oldest);
        }
    }

    /// Addresses, and servers to which MPTCP does not pass from them, that were not told of.
    pub fn news(&mut self) -> Vec<(IpAddr, SocketAddr)> {
        let locals: BTreeSet<IpAddr> = self
            .servers
            .values()
            .flat_map(|s| s.keys().copied())
            .collect();
        let of = |a: IpAddr| self.of(a).into_iter().map(move |server| (a, server));
        let all: BTreeSet<_> = locals.into_iter().flat_map(of).collect();
        let news = all.difference(&self.told).copied().collect();
        self.told = all;
        news
    }

    /// The servers to which MPTCP does not pass from an address.
    pub fn of(&self, local: IpAddr) -> Vec<SocketAddr> {
        let removed = |shown: &BTreeMap<IpAddr, Shown>| {
            shown.get(&local).is_some_and(|s| !s.mptcp)
                && shown.iter().any(|(a, s)| *a != local && s.mptcp)
        };
        let servers = self.servers.iter().filter(|(_, shown)| removed(shown));
        servers.map(|(server, _)| *server).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn a(k: u8) -> IpAddr {
        IpAddr::from([10, 77, k, 2])
    }

    fn server(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 77, 0, 1], port))
    }

    fn seen(k: u8, port: u16, mptcp: bool) -> Handshake {
        Handshake {
            local: a(k),
            remote: server(port),
            mptcp,
        }
    }

    fn seconds(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000_000)
    }

    #[test]
    fn one_port_on_one_path() {
        let mut s = Stripping::default();
        s.look(&[seen(1, 443, false), seen(1, 7724, true)], seconds(1));
        assert_eq!(s.of(a(1)), [], "the server may have no MPTCP");
        s.look(&[seen(2, 443, true)], seconds(5));
        assert_eq!(s.of(a(1)), [server(443)]);
        assert_eq!(s.of(a(2)), []);
        assert_eq!(s.news(), [(a(1), server(443))]);
        assert_eq!(s.news(), []);
        // One that passes later, and one beside it that does not.
        s.look(&[seen(1, 443, true), seen(1, 443, false)], seconds(6));
        assert_eq!(s.of(a(1)), [server(443)]);
        s.look(&[seen(1, 443, false), seen(1, 443, true)], seconds(7));
        assert_eq!(s.of(a(1)), [server(443)]);
        s.look(&[seen(1, 443, true)], seconds(8));
        assert_eq!(s.of(a(1)), []);
    }

    #[test]
    fn what_was_seen_long_ago_is_forgotten() {
        let mut s = Stripping::default();
        s.look(&[seen(1, 443, false), seen(2, 443, true)], seconds(1));
        s.look(&[], seconds(599));
        assert_eq!(s.of(a(1)), [server(443)]);
        s.look(&[], seconds(602));
        assert_eq!((s.of(a(1)), s.servers.len()), (vec![], 0));
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_nobody_is_blamed_without_a_witness(
            all in prop::collection::vec((0u8..3, any::<u16>(), any::<bool>(), 0u64..30), 0..600),
        ) {
            let mut s = Stripping::default();
            let mut t = 0;
            for (k, port, mptcp, dt) in &all {
                t += dt;
                s.look(&[seen(*k, *port, *mptcp)], seconds(t));
            }
            prop_assert!(s.servers.len() <= SERVERS);
            for k in 0..3 {
                for blamed in s.of(a(k)) {
                    let witness = all.iter().any(|(j, p, mptcp, _)| *j != k && *p == blamed.port() && *mptcp);
                    prop_assert!(witness, "{}", blamed);
                }
            }
        }
    }
}
