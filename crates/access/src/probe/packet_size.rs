//! Finds the largest packet that passes on a path in both directions, by probes of that size:
//! where routers drop what is too large and the ICMP messages about it are lost as well, data
//! never arrives although small probes do (RFC 8899 1.1, packetization layer path MTU discovery).
//!
//! A size probe is a datagram with "do not fragment" whose first 32 bytes are those of a
//! [`super`], with 5 (request) or 6 (response) as byte 5; zeros follow up to the
//! size. The response is as long as the request, so that one answer is about both directions.
//!
//! A path that carries what its interface allows costs three packets in ten minutes. Below that,
//! what lies between the largest size that passed and the smallest that did not is searched in
//! rounds of `SIZES`, each sent twice. Every round ends with probes of the least size, which no
//! router answers before the larger ones that went out before: a round in which these were lost
//! says nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_core::Time;

use super::{self as probe, Head, Kind};

/// Sizes of a round of the search, and probes of the least size at its end.
const SIZES: u32 = 8;
const LAST: usize = 2;
/// The least size that is asked for (RFC 1122 3.3.3, RFC 8200 5), bytes.
const LEAST_V4: u32 = 576;
const LEAST_V6: u32 = 1280;
/// The largest one: a jumbo frame's.
const MOST: u32 = 9_000;
/// Bytes of IP and UDP headers.
const HEADERS_V4: u32 = 28;
const HEADERS_V6: u32 = 48;
/// Length of a size probe's datagram at most, bytes.
pub const LEN_MAX: usize = (MOST - HEADERS_V4) as usize;
/// Time for the last answer of a round: three round trips, and at least and at most this.
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Extra time, beside a quarter of a round trip, for answers that the last one has overtaken.
const OVERTAKEN: Duration = Duration::from_millis(20);
/// Round trip that is assumed before one was measured.
const UNKNOWN_RTT: Duration = Duration::from_millis(300);
/// Interval of looks at a path that carries all.
const CONFIRM: Duration = Duration::from_secs(600);
/// First and longest interval of looks whether a path that carries less has grown: a full
/// queue may drop large packets and take small ones.
const GROWN: Duration = Duration::from_secs(3);
const GROWN_MAX: Duration = Duration::from_secs(300);
/// First and longest interval of attempts where nobody answered.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(600);

/// A size probe on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeProbe {
    /// Request or response.
    pub kind: Kind,
    /// Session number, drawn by the asker.
    pub session: u64,
    /// Counts up.
    pub number: u32,
    /// Length of the datagram, 33 to [`LEN_MAX`] bytes.
    pub length: usize,
}

impl SizeProbe {
    /// Returns the bytes on the wire.
    pub fn emit(&self) -> Vec<u8> {
        let head = Head {
            kind: match self.kind {
                Kind::Request => 5,
                Kind::Response => 6,
            },
            session: self.session,
            number: self.number,
            sent_ns: 0,
        };
        let mut b = head.emit().to_vec();
        b.resize(self.length.clamp(probe::LEN + 1, LEN_MAX), 0);
        b
    }

    /// Reads a datagram; `None` for whatever is not exactly a size probe.
    pub fn parse(b: &[u8]) -> Option<Self> {
        let (head, rest) = Head::parse(b)?;
        let kind = match head.kind {
            5 => Kind::Request,
            6 => Kind::Response,
            _ => return None,
        };
        let sound = !rest.is_empty() && b.len() <= LEN_MAX && head.sent_ns == 0;
        (sound && rest.iter().all(|b| *b == 0)).then_some(Self {
            kind,
            session: head.session,
            number: head.number,
            length: b.len(),
        })
    }

    /// Returns the response to a request.
    pub fn response(&self) -> Self {
        Self {
            kind: Kind::Response,
            ..*self
        }
    }
}

/// State of an address that is not silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Round trip, zero if it is not known.
    pub rtt: Duration,
    /// Data flows on it: its packets are no larger than what passes, and a queue that they fill
    /// drops probes.
    pub flows: bool,
}

/// A probe to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// From this address.
    pub address: IpAddr,
    /// To be found in the response.
    pub number: u32,
    /// Length of the datagram, bytes: that of the packet without its headers.
    pub length: usize,
}

/// Limit of a path below what its interface allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The largest packet that passes, IP header included, bytes.
    pub bytes: u32,
    /// Maximum that the interface allows, bytes.
    pub interface: u32,
    /// When that was found.
    pub since: Time,
}

/// A search: what is between `least` and `most` is not known.
#[derive(Clone, Debug)]
struct Round {
    /// The largest size that passed, or the least one.
    least: u32,
    /// The largest one that may pass.
    most: u32,
    /// Packet sizes of this round, bytes.
    sizes: BTreeSet<u32>,
    /// Numbers of the probes that went out last, and whether one was answered.
    last: BTreeSet<u32>,
    over: bool,
    /// When it ends.
    until: Time,
    /// The first: the largest size alone.
    first: bool,
}

#[derive(Debug)]
struct Path {
    floor: u32,
    ceiling: u32,
    headers: u32,
    /// Liveness of the path: not silent, as far as is known.
    lives: bool,
    /// Round trip of the last answer.
    rtt: Duration,
    /// Sizes that were sent in this search, and when, by number.
    sent: BTreeMap<u32, (u32, Time)>,
    passed: BTreeSet<u32>,
    round: Option<Round>,
    /// When the next search begins.
    next: Time,
    /// When the last one that was not broken off began.
    began: Option<Time>,
    retry: Duration,
    grown: Duration,
    limit: Option<Limit>,
}

impl Path {
    fn new(address: IpAddr, mtu: u32, now: Time) -> Self {
        let (floor, headers) = match address.is_ipv4() {
            true => (LEAST_V4, HEADERS_V4),
            false => (LEAST_V6, HEADERS_V6),
        };
        Self {
            floor,
            ceiling: mtu.min(MOST),
            headers,
            lives: false,
            rtt: UNKNOWN_RTT,
            sent: BTreeMap::new(),
            passed: BTreeSet::new(),
            round: None,
            next: now,
            began: None,
            retry: RETRY,
            grown: GROWN,
            limit: None,
        }
    }

    /// Begins a round; returns the sizes to be sent, in order.
    fn begin(&mut self, least: u32, most: u32, until: Time, first: bool) -> Vec<u32> {
        let steps = (1..=SIZES).map(|i| least + ((most - least) * i).div_ceil(SIZES));
        let sizes: BTreeSet<u32> = match first {
            true => BTreeSet::from([most]),
            false => steps.filter(|s| *s > least).collect(),
        };
        self.passed.clear();
        let mut all: Vec<u32> = sizes.iter().rev().copied().collect();
        if !first {
            all.extend(sizes.iter().rev());
        }
        all.extend([self.floor; LAST]);
        self.round = Some(Round {
            least,
            most,
            sizes,
            last: BTreeSet::new(),
            over: false,
            until,
            first,
        });
        all
    }

    /// Ends the search, and looks again after `wait`.
    fn end(&mut self, now: Time, wait: Duration) {
        self.round = None;
        self.next = now + wait;
        self.sent.clear();
    }

    fn found(&mut self, bytes: u32, flows: bool, now: Time) {
        self.retry = RETRY;
        let least = self.limit.filter(|_| flows).map_or(0, |l| l.bytes);
        let bytes = bytes.max(least);
        if bytes >= self.ceiling {
            self.limit = None;
            self.grown = GROWN;
            return self.end(now, CONFIRM);
        }
        let known = self.limit.filter(|l| l.bytes == bytes);
        let (grown, since) = match known {
            Some(l) => ((self.grown * 2).min(GROWN_MAX), l.since),
            None => (GROWN, now),
        };
        self.grown = grown;
        self.limit = Some(Limit {
            bytes,
            interface: self.ceiling,
            since,
        });
        self.end(now, grown);
    }

    /// When [`Path::tick`] is wanted next.
    fn due(&self) -> Time {
        match &self.round {
            _ if !self.lives || self.ceiling <= self.floor => Time::MAX,
            Some(round) => round.until,
            None => self.next,
        }
    }

    /// Returns the sizes to be sent now.
    fn tick(&mut self, wait: Duration, flows: bool, now: Time) -> Vec<u32> {
        if flows && self.limit.is_none() && self.round.is_some() {
            self.end(now, GROWN);
            self.began = None;
        }
        let Some(round) = &self.round else {
            if now < self.due() {
                return vec![];
            }
            if flows && self.limit.is_none() {
                self.next = now + GROWN;
                return vec![];
            }
            // Whether the path still carries what it did comes first: one packet.
            let first = self.limit.is_none();
            self.began = Some(now);
            return self.begin(self.floor, self.ceiling, now + wait, first);
        };
        let best = self.passed.last().copied().unwrap_or(0);
        if best >= round.most {
            self.found(best, flows, now);
            return vec![];
        }
        if now < round.until {
            return vec![];
        }
        if !round.over {
            // Not even the least size: the path is gone or very slow, or nobody answers.
            let retry = self.retry;
            self.retry = (retry * 2).min(RETRY_MAX);
            self.end(now, retry);
            return vec![];
        }
        let least = round.least.max(best);
        let refused = round.sizes.iter().find(|s| **s > least);
        let most = match (round.first, refused) {
            (true, _) => round.most,
            (false, Some(s)) => s - 1,
            (false, None) => round.most,
        };
        if most <= least {
            self.found(least, flows, now);
            return vec![];
        }
        self.begin(least, most, now + wait, false)
    }
}

/// The sizes that the paths of all addresses carry.
#[derive(Debug, Default)]
pub struct Sizes {
    paths: BTreeMap<IpAddr, Path>,
    number: u32,
}

impl Sizes {
    /// Watches these addresses, whose interfaces have this MTU, and forgets others. One whose
    /// MTU changes is new.
    pub fn watch(&mut self, addresses: &BTreeMap<IpAddr, u32>, now: Time) {
        let same = |a: &IpAddr, p: &mut Path| {
            let mtu = addresses.get(a);
            mtu.is_some_and(|mtu| p.ceiling == (*mtu).min(MOST))
        };
        self.paths.retain(same);
        for (a, mtu) in addresses {
            let new = || Path::new(*a, *mtu, now);
            self.paths.entry(*a).or_insert_with(new);
        }
    }

    /// Returns what is to be sent now. `reach` is absent for an address that is silent.
    pub fn tick(&mut self, reach: &dyn Fn(IpAddr) -> Option<Reach>, now: Time) -> Vec<Ask> {
        let mut asks = Vec::new();
        for (&address, path) in &mut self.paths {
            let reach = reach(address);
            path.lives = reach.is_some();
            let Some(Reach { rtt, flows }) = reach else {
                if path.round.take().is_some() {
                    path.began = None;
                }
                continue;
            };
            if !rtt.is_zero() {
                path.rtt = rtt;
            }
            let wait = (path.rtt * 3).clamp(WAIT, WAIT_MAX);
            let sizes = path.tick(wait, flows, now);
            let last = sizes.len().saturating_sub(LAST);
            for (i, size) in sizes.into_iter().enumerate() {
                self.number = self.number.wrapping_add(1);
                let number = self.number;
                path.sent.insert(number, (size, now));
                if let Some(round) = path.round.as_mut().filter(|_| i >= last) {
                    round.last.insert(number);
                }
                asks.push(Ask {
                    address,
                    number,
                    length: (size - path.headers) as usize,
                });
            }
        }
        asks
    }

    /// Takes the response to a probe; returns whether [`Sizes::tick`] has something to do.
    pub fn answer(&mut self, address: IpAddr, number: u32, length: usize, now: Time) -> bool {
        let Some(path) = self.paths.get_mut(&address) else {
            return false;
        };
        let Some((size, at)) = path.sent.remove(&number) else {
            return false;
        };
        path.rtt = now.since(at);
        if length != (size - path.headers) as usize {
            return false;
        }
        path.passed.insert(size);
        let soon = now + OVERTAKEN + path.rtt / 4;
        path.round.as_mut().is_some_and(|r| {
            if r.last.contains(&number) {
                r.over = true;
                r.until = r.until.min(soon);
            }
            size >= r.most
        })
    }

    /// Searches now: data on this address makes no progress `since` then. A search that began
    /// later has found what there is to find.
    pub fn suspect(&mut self, address: IpAddr, since: Time, now: Time) {
        if let Some(p) = self.paths.get_mut(&address)
            && p.round.is_none()
            && p.began.is_none_or(|t| t < since)
        {
            p.next = now;
        }
    }

    /// Whether the path of an address is being searched, or about to be.
    pub fn searches(&self, address: IpAddr, now: Time) -> bool {
        let path = self.paths.get(&address);
        path.is_some_and(|p| p.lives && (p.round.is_some() || p.due() <= now))
    }

    /// When [`Sizes::tick`] is wanted next.
    pub fn due(&self) -> Time {
        let all = self.paths.values().map(Path::due);
        all.min().unwrap_or(Time::MAX)
    }

    /// Returns the limit of the path of an address, where it is below its interface's.
    pub fn limit(&self, address: IpAddr) -> Option<Limit> {
        self.paths.get(&address)?.limit
    }
}

#[cfg(test)]
mod tests;
