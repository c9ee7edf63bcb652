//! Liveness of accesses (RFC 5880): finds paths that swallow packets, of which no kernel event
//! tells.
//!
//! A path is dead when something is outstanding on it and no sign of life of any
//! kind (acknowledgement, data, answered probe) came for three times its least
//! round-trip time and 92 ms: 8 ms are left to take it out. It lives again when
//! probes are answered.
//!
//! Two probes at least have to be outstanding, so that one lost packet kills
//! nothing. Unacknowledged data counts by itself only after the kernel's own
//! retransmission timer has passed: a peer may delay an acknowledgement by 200 ms.
//! Where no one answers probes, the other ends of the subflows are asked by TCP, and where
//! they do not answer either that is all there is: a path that was taken out is tried again
//! after a while. The same holds once whoever answered has gone: data comes and no answers,
//! or a host says that nobody listens there.

mod path;
mod tcp_probe;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_core::Time;

use path::Path;

/// Multiple of the minimum round-trip time without a sign of life after which a path is dead
/// (RFC 5880 6.8.4).
const DETECT_MULT: u32 = 3;
/// Time that is added to it: the 100 ms in which a dead path is to be out of use,
/// less what timers, a look at the sockets and the end of its subflows take.
const DETECT_MARGIN: Duration = Duration::from_millis(92);
/// A path that is in use is asked when it was quiet for this long.
const TX_INTERVAL_ACTIVE: Duration = Duration::from_millis(40);
/// And one with a long queue when it was quiet for this long: the sooner it is asked, the longer a
/// queue may be whose answer still comes within the bound.
const TX_INTERVAL_EAGER: Duration = Duration::from_millis(15);
/// How often sockets are looked at while connections exist and nothing flows.
const BUSY_POLL: Duration = Duration::from_millis(250);
/// How often they are looked at otherwise.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// How long a dead path is asked often.
const FAST_RECOVERY_FOR: Duration = Duration::from_secs(30);
/// A detector that wakes up this much too late has slept, and so may have
/// everything else.
const CLOCK_GAP: Duration = Duration::from_millis(25);
/// Longer than this nobody works at a time who has not slept.
const WORK_MAX: Duration = Duration::from_millis(100);

/// State of an address as its sockets report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Subflows from it.
    pub subflows: u32,
    /// Since an acknowledgement or data last came on any of them.
    pub quiet: Duration,
    /// Data is unacknowledged on one of them.
    pub unacked: bool,
    /// Retransmission timeouts without an answer, the most of any.
    pub timeouts: u8,
    /// The least round-trip time of any.
    pub min_rtt: Option<Duration>,
    /// Where the liveliest of them leads.
    pub remote: Option<SocketAddr>,
}

/// Outcome of a tick: an action to take, or a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Send a probe with this number.
    Probe {
        /// From this address.
        address: IpAddr,
        /// To be found in the answer.
        number: u32,
    },
    /// Begin a TCP connection; one that is accepted or refused is an answer, and is to be
    /// closed at once.
    TcpProbe {
        /// From this address.
        address: IpAddr,
        /// To this one.
        to: SocketAddr,
        /// To be given back with the answer.
        number: u32,
    },
    /// Finding: the address is dead.
    Silent {
        /// The address.
        address: IpAddr,
    },
    /// Finding: the address lives again.
    Alive {
        /// The address.
        address: IpAddr,
    },
}

/// How an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Probe,
    /// With the round trip, as far as it is known.
    Tcp(Option<Duration>),
}

/// The detector of all addresses that serve.
#[derive(Debug, Default)]
pub struct Detector {
    paths: BTreeMap<IpAddr, Path>,
    /// When [`Detector::tick`] is wanted next.
    due: Time,
}

impl Detector {
    /// Watches these addresses and forgets others. A new one is taken for alive.
    pub fn watch(&mut self, addresses: &BTreeSet<IpAddr>, now: Time) {
        self.paths.retain(|a, _| addresses.contains(a));
        for a in addresses {
            if !self.paths.contains_key(a) {
                self.paths.insert(*a, Path::new(now));
                self.due = now;
            }
        }
    }

    /// Sets how often an address is asked while it has subflows and nothing flows; `None`: not at
    /// all, so that its radio may sleep.
    pub fn rest(&mut self, every: impl Fn(IpAddr) -> Option<Duration>) {
        for (a, path) in &mut self.paths {
            path.rest(every(*a));
        }
    }

    /// Sets which addresses are asked, though they have no subflow, until something has come back
    /// on them: once a second for half a minute, then each 5 s. Those that are not asked while
    /// nothing flows ([`Detector::rest`]) are left alone here, too.
    pub fn first_contact(&mut self, asked: impl Fn(IpAddr) -> bool) {
        for (a, path) in &mut self.paths {
            path.first_contact(asked(*a));
        }
    }

    /// Takes a sign of life that is no answer to a probe of the detector's.
    pub fn heard(&mut self, address: IpAddr) {
        if let Some(path) = self.paths.get_mut(&address) {
            path.proven(true);
        }
    }

    /// Takes everything that has come back for old: the proxy is another.
    pub fn unheard(&mut self) {
        for path in self.paths.values_mut() {
            path.without_answers();
            path.proven(false);
        }
    }

    /// Takes what the sockets tell; an address without a sample has no subflow.
    pub fn sample(&mut self, samples: &BTreeMap<IpAddr, Sample>, now: Time) {
        for (a, path) in &mut self.paths {
            path.sample(samples.get(a).copied().unwrap_or_default(), now);
        }
        // Whoever answered probes no longer does, while data still comes: that
        // is not the paths' fault.
        if self.paths.values().any(Path::responder_is_gone) {
            self.responder_is_gone();
        }
    }

    /// Takes a refusal of a probe (ICMP port unreachable): the path works, and nobody
    /// answers at its end. What refuses where nobody ever answered tells nothing.
    pub fn refused(&mut self, address: IpAddr, now: Time) {
        if self.paths.get(&address).is_some_and(Path::answers) {
            self.responder_is_gone();
            self.hurry(now);
        }
    }

    /// From now on the sockets alone decide, until somebody answers again; paths that were
    /// taken out for want of answers are tried again.
    fn responder_is_gone(&mut self) {
        self.paths.values_mut().for_each(Path::without_answers);
    }

    /// Takes an answer to the probe `number`; returns its round-trip time if the
    /// probe was sent and not answered before.
    pub fn answer(&mut self, address: IpAddr, number: u32, now: Time) -> Option<Duration> {
        self.answered(address, number, By::Probe, now)
    }

    /// Takes the answer to the probe `number` over TCP ([`Outcome::TcpProbe`]), a connection that was
    /// accepted or refused; returns how long that took if the probe was sent and not answered
    /// before. `rtt` is the round trip, if it is known: the kernel may have asked twice, and which
    /// of the two was answered it knows by timestamps at best (RFC 6298, 3: Karn's algorithm).
    pub fn accepted(
        &mut self,
        address: IpAddr,
        number: u32,
        rtt: Option<Duration>,
        now: Time,
    ) -> Option<Duration> {
        let took = self.answered(address, number, By::Tcp(rtt), now)?;
        for other in self.paths.values_mut() {
            // A death may have waited for this.
            if other.heard(address, number, now) {
                self.due = self.due.min(now);
            }
        }
        Some(took)
    }

    fn answered(&mut self, address: IpAddr, number: u32, by: By, now: Time) -> Option<Duration> {
        let path = self.paths.get_mut(&address)?;
        let took = path.answer(number, by, now)?;
        if path.silent_since().is_some() {
            self.due = self.due.min(now);
        }
        Some(took)
    }

    /// Decides. To be called at [`Detector::due`], after [`Detector::sample`].
    pub fn tick(&mut self, now: Time) -> Vec<Outcome> {
        if now.since(self.due) > CLOCK_GAP {
            for path in self.paths.values_mut() {
                path.forgive(now);
            }
        }
        let busy = self.paths.values().any(|p| p.subflows() > 0);
        let mut outcomes = Vec::new();
        for (&address, path) in &mut self.paths {
            match path.judge(now, busy) {
                Some(true) => outcomes.push(Outcome::Silent { address }),
                Some(false) => outcomes.push(Outcome::Alive { address }),
                None => {}
            }
            if let Some(number) = path.ask(now, busy) {
                outcomes.push(Outcome::Probe { address, number });
            }
        }
        outcomes.extend(self.tcp_probe(now, busy));
        let look = now + if busy { BUSY_POLL } else { IDLE_POLL };
        let wanted = self.paths.values().map(|p| p.due(now, busy));
        self.due = wanted
            .fold(look, Time::min)
            .max(now + Duration::from_millis(1));
        outcomes
    }

    /// Asks by TCP for paths that are quiet while another of their family is not, and on that
    /// one as well.
    fn tcp_probe(&mut self, now: Time, busy: bool) -> Vec<Outcome> {
        let carries = |(a, p): (&IpAddr, &Path)| Some((*a, p.carries()?));
        let lively: Vec<(IpAddr, Time)> = self.paths.iter().filter_map(carries).collect();
        let mut tcp_probes = Vec::new();
        let mut controls = Vec::new();
        for (&address, path) in &mut self.paths {
            let mut others = lively.clone();
            others.retain(|(a, _)| *a != address && a.is_ipv4() == address.is_ipv4());
            let other = others.into_iter().max_by_key(|(_, life)| *life);
            let Some(k) = path.tcp_probe(now, busy, other.map(|(_, life)| life)) else {
                continue;
            };
            let (number, to) = (k.number, k.to);
            tcp_probes.push(Outcome::TcpProbe {
                address,
                to,
                number,
            });
            if let (true, Some((by, _))) = (k.first, other) {
                controls.push((address, by, to));
            }
        }
        for (of, by, to) in controls {
            let Some(number) = self.paths.get_mut(&by).map(|p| p.send_control_probe(now)) else {
                continue;
            };
            if let Some(path) = self.paths.get_mut(&of) {
                path.controlled(by, number);
            }
            let address = by;
            tcp_probes.push(Outcome::TcpProbe {
                address,
                to,
                number,
            });
        }
        tcp_probes
    }

    /// When [`Detector::tick`] is wanted next.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Steps were taken from then until now, while [`Detector::tick`] had to wait: that is no
    /// sleep, and paths that are dying meanwhile die on time.
    pub fn worked(&mut self, from: Time, now: Time) {
        let waited = now.since(from.max(self.due));
        self.due += waited.min(WORK_MAX);
    }

    /// Asks for a look now: something has changed.
    pub fn hurry(&mut self, now: Time) {
        self.due = self.due.min(now);
    }

    /// Addresses that are dead, and since when.
    pub fn silent(&self) -> BTreeMap<IpAddr, Time> {
        let since = |(a, p): (&IpAddr, &Path)| Some((*a, p.silent_since()?));
        self.paths.iter().filter_map(since).collect()
    }

    /// Returns when the last packet was sent from an address that was answered; `None` while
    /// the address is silent or nothing is known of it.
    pub fn last_answered(&self, address: IpAddr) -> Option<Time> {
        self.paths.get(&address)?.answered()
    }

    /// Returns the round trip of the last question from an address that is watched and not
    /// silent; zero if it is not known.
    pub fn reaches(&self, address: IpAddr) -> Option<Duration> {
        let path = self.paths.get(&address)?;
        let lives = path.silent_since().is_none();
        lives.then(|| path.last_rtt().unwrap_or_default())
    }

    /// The round-trip time of the last answer to an address whose is known.
    pub fn probe_rtt(&self, address: IpAddr) -> Option<Duration> {
        self.paths.get(&address)?.last_rtt()
    }
}

#[cfg(test)]
mod tests;
