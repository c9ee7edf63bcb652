//! Bytes that each access has carried, for good: counters that outlive subflows and paths.
//!
//! Every reader derives its own rates; the daemon's own, in the status, are those of the last
//! second, however many ask.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Time between two readings of what flows.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// Span of a rate.
const SPAN_NS: u64 = 1_000_000_000;
/// Two readings less apart than this give no rate.
const MIN_SPAN_NS: u64 = 200_000_000;
/// Readings of the last 3.2 s.
const READINGS: usize = 16;
/// Flows that are remembered before those that were not seen lately are forgotten. One that
/// ends later than that is counted twice.
const FLOWS: usize = 50_000;

/// Payload bytes since some beginning, as the engine counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    /// Sent, retransmissions included.
    pub(crate) sent: u64,
    /// Sent again.
    pub(crate) retransmitted: u64,
    /// Received.
    pub(crate) received: u64,
}

impl Bytes {
    fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(before.sent),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            received: self.received.saturating_sub(before.received),
        }
    }

    fn plus(self, more: Self) -> Self {
        Self {
            sent: self.sent + more.sent,
            retransmitted: self.retransmitted + more.retransmitted,
            received: self.received + more.received,
        }
    }

    /// Returns what was of use: sent once, and received.
    fn useful(self) -> u64 {
        self.sent.saturating_sub(self.retransmitted) + self.received
    }
}

/// Name of a flow for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Socket of the kernel: its cookie.
    Socket(u64),
    /// Numbers of a session and its path.
    Path(u32, u32),
}

/// A flow (a subflow, a plain TCP connection, a path) at one time.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Its name.
    pub(crate) key: Key,
    /// Its access, where it has one.
    pub(crate) access: Option<String>,
    /// Its counters.
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Debug)]
struct Seen {
    access: Option<String>,
    bytes: Bytes,
    t_ns: u64,
}

/// Counters per access, from those of flows that come and go.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Whether what had flowed before has been left out.
    begun: bool,
    flows: BTreeMap<Key, Seen>,
    accesses: BTreeMap<String, Bytes>,
    readings: VecDeque<(u64, BTreeMap<String, Bytes>)>,
}

impl Meter {
    /// Takes the counters of all flows that there are. What they had carried before the first
    /// reading does not count.
    pub(crate) fn read(&mut self, t_ns: u64, flows: impl IntoIterator<Item = Flow>) {
        for flow in flows {
            match self.begun {
                true => self.count(t_ns, flow),
                false => self.remember(t_ns, flow),
            }
        }
        self.begun = true;
        if self.flows.len() > FLOWS {
            self.flows.retain(|_, seen| seen.t_ns == t_ns);
        }
        let last = self.readings.back().map(|(t, _)| *t);
        if last.is_none_or(|t| t_ns.saturating_sub(t) >= MIN_SPAN_NS) {
            if self.readings.len() == READINGS {
                self.readings.pop_front();
            }
            self.readings.push_back((t_ns, self.accesses.clone()));
        }
    }

    /// Takes the last counters of a flow that has ended.
    pub(crate) fn end(&mut self, t_ns: u64, flow: Flow) {
        if self.begun {
            let key = flow.key;
            self.count(t_ns, flow);
            self.flows.remove(&key);
        }
    }

    fn count(&mut self, t_ns: u64, flow: Flow) {
        let before = self.flows.get(&flow.key);
        let more = flow
            .bytes
            .since(before.map_or(Bytes::default(), |s| s.bytes));
        // The address of a flow that ends may be gone, and its access with it.
        let access = flow
            .access
            .clone()
            .or_else(|| before.and_then(|s| s.access.clone()));
        if let Some(access) = &access {
            let all = self.accesses.entry(access.clone()).or_default();
            *all = all.plus(more);
        }
        self.remember(t_ns, Flow { access, ..flow });
    }

    fn remember(&mut self, t_ns: u64, flow: Flow) {
        let seen = Seen {
            access: flow.access,
            bytes: flow.bytes,
            t_ns,
        };
        self.flows.insert(flow.key, seen);
    }

    /// Returns what the access has carried since the first reading, and its rate
    /// ([`Self::rate_mbps`]).
    pub(crate) fn carried(&self, access: &str) -> (Bytes, Option<f64>) {
        (self.total(access), self.rate_mbps(access))
    }

    /// Returns the payload that all accesses have carried since the first reading, bytes.
    pub(crate) fn payload(&self) -> u64 {
        let all = self.accesses.values();
        all.map(|b| b.sent + b.received)
            .fold(0, u64::saturating_add)
    }

    /// Returns what the access has carried since the first reading.
    fn total(&self, access: &str) -> Bytes {
        self.accesses.get(access).copied().unwrap_or_default()
    }

    /// Returns the rate of what was of use in both directions over the last second, Mbit/s;
    /// `None` before there are two readings.
    fn rate_mbps(&self, access: &str) -> Option<f64> {
        let (now, latest) = self.readings.back()?;
        let old = |(t, _): &&(u64, BTreeMap<String, Bytes>)| now.saturating_sub(*t) >= SPAN_NS;
        let (then, before) = self
            .readings
            .iter()
            .rev()
            .find(old)
            .or_else(|| self.readings.front())?;
        let span = now.saturating_sub(*then);
        if span < MIN_SPAN_NS {
            return None;
        }
        let before = before.get(access).copied().unwrap_or_default();
        let after = latest.get(access).copied().unwrap_or_default();
        let useful = after.useful().saturating_sub(before.useful());
        Some(useful as f64 * 8e3 / span as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn flow(key: u32, access: &str, sent: u64, received: u64) -> Flow {
        Flow {
            key: Key::Path(0, key),
            access: (!access.is_empty()).then(|| access.to_owned()),
            bytes: Bytes {
                sent,
                retransmitted: 0,
                received,
            },
        }
    }

    #[test]
    fn what_flowed_before_does_not_count_and_nothing_after_is_lost() {
        let mut m = Meter::default();
        m.read(S, [flow(1, "nr", 1_000, 0)]);
        assert_eq!(m.total("nr"), Bytes::default());
        m.read(2 * S, [flow(1, "nr", 1_500, 20), flow(2, "wifi", 70, 0)]);
        assert_eq!((m.total("nr").sent, m.total("nr").received), (500, 20));
        assert_eq!(m.total("wifi").sent, 70);
        // Not listed any more, but not at its end either.
        m.read(3 * S, [flow(2, "wifi", 70, 0)]);
        // Its address is gone.
        m.end(3 * S, flow(1, "", 1_700, 30));
        assert_eq!((m.total("nr").sent, m.total("nr").received), (700, 30));
        // One that nobody has seen alive.
        m.end(3 * S, flow(3, "nr", 9, 1));
        assert_eq!((m.total("nr").sent, m.total("nr").received), (709, 31));
    }

    #[test]
    fn the_rate_is_that_of_the_last_second_however_many_ask() {
        let mut m = Meter::default();
        // 1 Mbit/s, then 3, read by its own clock and by two that ask at any time.
        let sent = |ms: u64| 125 * ms.min(5_000) + 375 * ms.saturating_sub(5_000);
        let mut seen = None;
        for ms in (0..9_000).step_by(50) {
            if ms % 1_000 == 0 || ms % 350 == 0 || ms % 500 == 50 {
                m.read(ms * 1_000_000, [flow(1, "nr", sent(ms), 0)]);
            }
            if ms == 150 {
                assert_eq!(m.rate_mbps("nr"), None, "too short a span");
            }
            if ms == 4_900 {
                seen = m.rate_mbps("nr");
            }
        }
        assert!((seen.unwrap() - 1.0).abs() < 0.01, "{seen:?}");
        let last = m.rate_mbps("nr").unwrap();
        assert!((last - 3.0).abs() < 0.01, "{last}");
        assert_eq!(m.rate_mbps("wifi"), Some(0.0));
    }

    #[test]
    fn what_was_sent_again_is_no_rate() {
        let mut m = Meter::default();
        m.read(0, [flow(1, "nr", 0, 0)]);
        let mut again = flow(1, "nr", 250_000, 0);
        again.bytes.retransmitted = 125_000;
        m.read(S, [again]);
        assert_eq!(m.rate_mbps("nr"), Some(1.0));
    }

    proptest! {
        /// Whatever is read when, and whichever flow ends: the sum is that of all flows.
        #[test]
        fn sums_are_exact(steps in prop::collection::vec((0u32..6, 0u64..1_000, any::<bool>()), 1..80)) {
            let mut m = Meter::default();
            let mut alive: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
            let (mut total, mut key) = (0, 100);
            m.read(0, []);
            for (t, (slot, more, end)) in (1..).zip(steps) {
                let now = alive.entry(slot).or_insert_with(|| { key += 1; (key, 0) });
                now.1 += more;
                total += more;
                if end {
                    let (key, sent) = alive.remove(&slot).unwrap();
                    m.end(t * S, flow(key, "nr", sent, 0));
                } else {
                    let all: Vec<_> = alive.values().map(|(k, n)| flow(*k, "nr", *n, 0)).collect();
                    m.read(t * S, all);
                }
            }
            m.read(100 * S, alive.values().map(|(k, n)| flow(*k, "nr", *n, 0)));
            prop_assert_eq!(m.total("nr").sent, total);
        }
    }
}
