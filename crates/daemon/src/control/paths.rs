//! Paths of an end from sample to sample, in the words of the control loop.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use braid_core::control::{Direction, LimitedBy, PathGone, PathMetrics, What};
use braid_core::{Rate, Time};

use super::limits::{Evidence, SlowStart, limited_by};

/// Path of either engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Subflow of Multipath TCP: this end and the other.
    Subflow(SocketAddr, SocketAddr),
    /// Session and path of Multipath QUIC.
    Path(u32, u32),
}

/// One path as its engine shows it now. Counts are from the path's begin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) key: Key,
    pub(crate) access: String,
    pub(crate) delivered_bytes: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) in_flight_bytes: u64,
    pub(crate) queued_bytes: u64,
    pub(crate) evidence: Evidence,
    /// Bytes per second, as the engine computes it.
    pub(crate) delivery_rate: Option<f64>,
    pub(crate) srtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
}

/// Path that was sampled before.
#[derive(Debug)]
struct Known {
    number: u64,
    /// Moment of the first sample. The path counts from then on: what it carried before, nobody
    /// can tell over which time.
    began: Time,
    sampled: Time,
    last: Reading,
    delivered: u64,
    lost: u64,
    slow_start: SlowStart,
}

/// Paths of one end.
#[derive(Debug)]
pub(crate) struct Paths {
    direction: Direction,
    known: BTreeMap<Key, Known>,
    /// Paths that there have been.
    numbers: u64,
}

impl Paths {
    /// Begins with none; `direction` is that in which this end sends.
    pub(crate) fn new(direction: Direction) -> Self {
        Self {
            direction,
            known: BTreeMap::new(),
            numbers: 0,
        }
    }

    /// Takes in what the engine shows at `at`: every path. Returns the observations, and the
    /// bytes that were delivered since the sample before.
    pub(crate) fn sample(&mut self, at: Time, readings: Vec<Reading>) -> (Vec<What>, u64) {
        let mut what = Vec::new();
        let mut total = 0;
        let mut before = std::mem::take(&mut self.known);
        for reading in readings {
            let known = before.remove(&reading.key);
            // One that moved to another access is another path.
            let (known, moved) = match known {
                Some(k) if k.last.access == reading.access => (Some(k), None),
                other => (None, other),
            };
            what.extend(moved.map(|k| self.gone(k)));
            let known = match known {
                Some(mut known) => {
                    let more = known.advance(at, reading, self.direction, &mut what);
                    total += more;
                    known
                }
                None => {
                    self.numbers += 1;
                    let new = Known {
                        number: self.numbers,
                        began: at,
                        sampled: at,
                        last: reading,
                        delivered: 0,
                        lost: 0,
                        slow_start: SlowStart::default(),
                    };
                    // Nothing is known yet of what it can do.
                    what.push(new.sample(self.direction, LimitedBy::Application));
                    new
                }
            };
            self.known.insert(known.last.key, known);
        }
        what.extend(before.into_values().map(|k| self.gone(k)));
        (what, total)
    }

    fn gone(&self, known: Known) -> What {
        What::PathGone(PathGone {
            access: known.last.access,
            path: known.number,
            direction: self.direction,
            began: known.began,
            delivered_bytes: known.delivered,
        })
    }
}

impl Known {
    fn advance(
        &mut self,
        at: Time,
        now: Reading,
        direction: Direction,
        what: &mut Vec<What>,
    ) -> u64 {
        let elapsed = at.since(self.sampled);
        // Counts of a path that moved to another address begin anew.
        let more = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let bytes = more(now.delivered_bytes, self.last.delivered_bytes);
        self.lost += more(now.lost_bytes, self.last.lost_bytes);
        self.delivered += bytes;
        let limited = limited_by(&self.last.evidence, &now.evidence, elapsed);
        let rtt = now.srtt.unwrap_or_default();
        let limited = self.slow_start.apply(limited, bytes, elapsed, rtt);
        (self.sampled, self.last) = (at, now);
        what.push(self.sample(direction, limited));
        bytes
    }

    fn sample(&self, direction: Direction, limited_by: LimitedBy) -> What {
        let us = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
        let rate = self.last.delivery_rate;
        What::PathSample(PathMetrics {
            access: self.last.access.clone(),
            path: self.number,
            direction,
            began: self.began,
            delivered_bytes: self.delivered,
            lost_bytes: self.lost,
            in_flight_bytes: self.last.in_flight_bytes,
            queued_bytes: self.last.queued_bytes,
            limited_by,
            delivery_rate: rate.map(|bytes| Rate::from_mbps(bytes * 8e-6)),
            srtt_us: self.last.srtt.map(us),
            min_rtt_us: self.last.min_rtt.map(us),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(path: u32, access: &str, delivered: u64, ms: u64) -> Reading {
        Reading {
            key: Key::Path(1, path),
            access: access.to_owned(),
            delivered_bytes: delivered,
            lost_bytes: 0,
            in_flight_bytes: 0,
            queued_bytes: 0,
            evidence: Evidence::Quic {
                waited: Duration::from_millis(ms),
                full: Duration::from_millis(ms),
            },
            delivery_rate: None,
            srtt: None,
            min_rtt: None,
        }
    }

    #[test]
    fn paths_count_from_their_first_sample_and_each_byte_once() {
        let mut paths = Paths::new(Direction::Down);
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let counts = |what: &[What]| -> Vec<(u64, u64)> {
            let of = |w: &What| match w {
                What::PathSample(m) => Some((m.path, m.delivered_bytes)),
                What::PathGone(g) => Some((g.path, g.delivered_bytes)),
                _ => None,
            };
            what.iter().filter_map(of).collect()
        };
        // Adopted: it has carried much before.
        let (what, total) = paths.sample(at(0), vec![reading(1, "nr", 1_000_000, 0)]);
        assert_eq!((counts(&what), total), (vec![(1, 0)], 0));
        let two = vec![reading(1, "nr", 1_030_000, 100), reading(2, "wifi", 500, 0)];
        let (what, total) = paths.sample(at(100), two);
        assert_eq!((counts(&what), total), (vec![(1, 30_000), (2, 0)], 30_000));
        // Its counts begin anew; the other one is gone.
        let (what, total) = paths.sample(at(200), vec![reading(1, "nr", 7_000, 200)]);
        assert_eq!((counts(&what), total), (vec![(1, 37_000), (2, 0)], 7_000));
        assert!(matches!(what[1], What::PathGone(_)));
        // On another access it is another path.
        let (what, _) = paths.sample(at(300), vec![reading(1, "wifi", 9_000, 300)]);
        assert_eq!(counts(&what), [(1, 37_000), (3, 0)]);
    }

    #[test]
    fn a_path_that_is_full_says_so_after_its_slow_start() {
        let mut paths = Paths::new(Direction::Up);
        let mut limits = Vec::new();
        for n in 0..6 {
            let one = reading(1, "nr", 100_000 * n, 100 * n);
            let (what, _) = paths.sample(Time::from_nanos(n * 100_000_000), vec![one]);
            let What::PathSample(m) = &what[0] else {
                panic!("{what:?}");
            };
            limits.push(m.limited_by);
        }
        use LimitedBy::{Application, Nothing, SlowStart};
        let expected = [Application, SlowStart, SlowStart, Nothing, Nothing, Nothing];
        assert_eq!(limits, expected);
    }
}
