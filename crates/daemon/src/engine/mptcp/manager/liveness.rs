//! Liveness of the addresses that serve: probes, what they find, and whether MPTCP passes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_access::liveness::Detector;
use braid_access::probe::client::Prober;
use braid_access::probe::contact::Contact;
use braid_access::probe::tcp::TcpProber;
use braid_access::settings::Condition;
use braid_core::Time;
use braid_mptcp::socket;
use tokio::net::TcpStream;

use super::Heard;
use crate::config::Config;
use crate::mptcp_check::Checker;
use crate::state::now;

/// Probes and judges addresses.
pub(super) struct Liveness {
    pub(super) detector: Detector,
    pub(super) prober: Prober,
    pub(super) contact: Contact,
    tcp_prober: TcpProber,
    checker: Checker,
    /// Addresses that are watched, with their interfaces.
    probed: BTreeMap<IpAddr, String>,
    stripped: BTreeSet<IpAddr>,
}

impl Liveness {
    pub(super) fn new() -> (Self, Heard) {
        let (prober, answers) = Prober::new();
        let (checker, verdicts) = Checker::new();
        let liveness = Self {
            detector: Detector::default(),
            contact: Contact::default(),
            tcp_prober: TcpProber::new(prober.tells(), rtt),
            prober,
            checker,
            probed: BTreeMap::new(),
            stripped: BTreeSet::new(),
        };
        (liveness, Heard { answers, verdicts })
    }

    /// Watches these addresses, each with its interface, and no others. One that another
    /// interface has taken over is watched anew. Returns the addresses.
    pub(super) fn watch(
        &mut self,
        probed: BTreeMap<IpAddr, String>,
        config: &Config,
    ) -> BTreeSet<IpAddr> {
        let asked = match config.probe.enabled {
            true => probed.clone(),
            false => BTreeMap::new(),
        };
        let (to, port) = (&config.proxy, config.probe.port);
        self.prober.serve(&asked, to, port);
        self.checker.serve(&asked, to, port);
        let moved = self.moved(&probed);
        let mut addresses: BTreeSet<_> = probed.into_keys().collect();
        addresses.retain(|a| !moved.contains(a));
        self.detector.watch(&addresses, Time::from_nanos(now()));
        addresses.extend(moved);
        self.detector.watch(&addresses, Time::from_nanos(now()));
        self.stripped.retain(|a| addresses.contains(a));
        addresses
    }

    /// Returns the addresses that another interface has taken over.
    fn moved(&mut self, now: &BTreeMap<IpAddr, String>) -> BTreeSet<IpAddr> {
        let before = std::mem::replace(&mut self.probed, now.clone());
        let elsewhere = |(a, i): &(&IpAddr, &String)| before.get(a).is_some_and(|b| b != *i);
        now.iter().filter(elsewhere).map(|(a, _)| *a).collect()
    }

    /// Returns what is wrong with addresses.
    pub(super) fn conditions(&self) -> BTreeMap<IpAddr, Condition> {
        let silent = self.detector.silent().into_iter();
        let mut all: BTreeMap<_, _> = silent
            .map(|(a, since)| (a, Condition::Silent { since }))
            .collect();
        all.extend(self.stripped.iter().map(|a| (*a, Condition::Stripped)));
        all
    }

    /// Takes what was found out about MPTCP on an address; returns whether that is news.
    pub(super) fn verdict(&mut self, address: IpAddr, stripped: bool) -> bool {
        match stripped {
            true => self.stripped.insert(address),
            false => self.stripped.remove(&address),
        }
    }

    /// Sends a probe by TCP.
    pub(super) fn probe_by_tcp(
        &mut self,
        address: IpAddr,
        interface: &str,
        to: SocketAddr,
        number: u32,
    ) {
        self.tcp_prober.send(address, interface, to, number);
    }
}

/// Returns the round trip that the kernel has measured on a TCP connection, if it has.
fn rtt(stream: &TcpStream) -> Option<Duration> {
    let rtt = socket::tcp_info(stream).map_or(0, |i| i.rtt_us);
    (rtt > 0).then(|| Duration::from_micros(rtt.into()))
}
