//! Capacity of a link, and the server that uses it up.
//!
//! All sums are integers in units of 10^-9 bit (bit/s x ns), and what a service
//! time rounded up to a nanosecond leaves over is passed on to the next one: a
//! busy link sends exactly at its rate, however long it runs.

use std::sync::Arc;
use std::time::Duration;

use braid_core::{Rate, Time};

use super::opportunities::Opportunities;
use super::rate_steps::RateSteps;
use super::spec::RateSpec;
use super::steps::Steps;

/// Units of capacity per byte.
const BYTE: u128 = 8_000_000_000;

/// Fastest rate; beyond it sums could overflow.
const MAX_BPS: u64 = 1_000_000_000_000_000;

/// Returns the rate `t` after the start of the run; none without a limit. Of delivery
/// opportunities it is the mean over the second around that.
pub fn rate_at(spec: &RateSpec, t: Duration) -> Option<Rate> {
    Capacity::new(spec).rate_at(Time::from(t))
}

/// Capacity of a link as a function of the time since the start of the run.
#[derive(Clone, Debug)]
pub(super) struct Capacity(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Unlimited,
    Steps(RateSteps),
    Opportunities(Opportunities),
}

impl Capacity {
    /// The capacity that `spec` describes; nonsense (no points, no
    /// opportunities) counts as zero capacity.
    pub(super) fn new(spec: &RateSpec) -> Self {
        let bps = |r: &Rate| r.as_bps().min(MAX_BPS);
        let steps = |s| Kind::Steps(RateSteps::new(s));
        Self(match spec {
            RateSpec::Unlimited => Kind::Unlimited,
            RateSpec::Constant(r) => steps(Steps::constant(bps(r))),
            RateSpec::Steps { points, period } => {
                let points: Vec<_> = points.iter().map(|(t, r)| (*t, bps(r))).collect();
                steps(Steps::new(&points, *period, 0))
            }
            RateSpec::Opportunities { ms, packet_bytes } => {
                match Opportunities::new(ms, *packet_bytes) {
                    Some(o) => Kind::Opportunities(o),
                    None => steps(Steps::constant(0)),
                }
            }
        })
    }

    /// Whether there is no limit.
    pub(super) fn unlimited(&self) -> bool {
        matches!(self.0, Kind::Unlimited)
    }

    /// The momentary rate; `None`: no limit. For delivery opportunities the
    /// mean over the second around `t`.
    pub(super) fn rate_at(&self, t: Time) -> Option<Rate> {
        let t = t.as_nanos();
        match &self.0 {
            Kind::Unlimited => None,
            Kind::Steps(s) => Some(Rate::from_bps(s.rate(t))),
            Kind::Opportunities(o) => Some(Rate::from_bps(o.rate_around(t))),
        }
    }

    /// The rate by which a queue is measured in time: [`Capacity::rate_at`],
    /// but through a pause of the rate that before it, so that a pause does
    /// not empty the queue.
    pub(super) fn nominal_at(&self, t: Time) -> Option<Rate> {
        match &self.0 {
            Kind::Steps(s) => Some(Rate::from_bps(s.nominal(t.as_nanos()))),
            _ => self.rate_at(t),
        }
    }

    /// Bits that could pass from `from` until before `to`.
    pub(super) fn bits_between(&self, from: Time, to: Time) -> f64 {
        if to <= from {
            return 0.0;
        }
        let (a, b) = (from.as_nanos(), to.as_nanos());
        match &self.0 {
            Kind::Unlimited => f64::INFINITY,
            Kind::Steps(s) => (s.until(b) - s.until(a)) as f64 / 1e9,
            Kind::Opportunities(o) => (o.before(b) - o.before(a)) as f64 * o.bytes() as f64 * 8.0,
        }
    }
}

/// Serves one thing after another with a [`Capacity`].
///
/// While the queue is never empty every service begins where the last one
/// finished; [`Server::idle`] says that it was not so.
#[derive(Clone, Debug)]
pub(super) struct Server {
    capacity: Arc<Capacity>,
    /// Capacity used by nobody yet: of the nanosecond, or of the delivery
    /// opportunity, in which the last service finished.
    credit: u128,
    /// First delivery opportunity that was not used.
    next: u64,
}

impl Server {
    pub(super) fn new(capacity: Arc<Capacity>) -> Self {
        Self {
            capacity,
            credit: 0,
            next: 0,
        }
    }

    pub(super) fn capacity(&self) -> &Arc<Capacity> {
        &self.capacity
    }

    /// The queue ran empty: what was left over is gone.
    pub(super) fn idle(&mut self) {
        self.credit = 0;
    }

    /// When the service of `bytes` that wait since `t` begins; `None` if it
    /// would never finish.
    pub(super) fn begin(&self, t: Time, bytes: u64) -> Option<Time> {
        let start = match &self.capacity.0 {
            Kind::Unlimited => return Some(t),
            Kind::Steps(s) => Time::from_nanos(s.flowing(t.as_nanos())?),
            Kind::Opportunities(_) if self.credit > 0 => t,
            Kind::Opportunities(o) => Time::from_nanos(o.time(self.first_from(o, t))).max(t),
        };
        self.finish(start, bytes).map(|_| start)
    }

    /// When `bytes` whose service begins at `start` have passed; `None`: never.
    pub(super) fn finish(&self, start: Time, bytes: u64) -> Option<Time> {
        let need = (u128::from(bytes) * BYTE).saturating_sub(self.credit);
        if need == 0 {
            return Some(start);
        }
        let end = match &self.capacity.0 {
            Kind::Unlimited => return Some(start),
            Kind::Steps(s) => s.reached(s.until(start.as_nanos()) + need)?,
            Kind::Opportunities(o) => {
                let n = need.div_ceil(u128::from(o.bytes()) * BYTE);
                let last = self.first_from(o, start) + u64::try_from(n).ok()? - 1;
                o.time(last)
            }
        };
        (end < u64::MAX).then(|| Time::from_nanos(end).max(start))
    }

    /// Bytes whose service begins at `start` and finishes by `until`.
    pub(super) fn room(&self, start: Time, until: Time) -> u64 {
        let amount = match &self.capacity.0 {
            Kind::Unlimited => return u64::MAX,
            Kind::Steps(s) => s.until(until.as_nanos()) - s.until(start.as_nanos()),
            Kind::Opportunities(o) => {
                let n = o
                    .up_to(until.as_nanos())
                    .saturating_sub(self.first_from(o, start));
                u128::from(n) * u128::from(o.bytes()) * BYTE
            }
        };
        u64::try_from((amount + self.credit) / BYTE).unwrap_or(u64::MAX)
    }

    /// Serves `bytes` from `start` on; returns when they have passed
    /// ([`Time::MAX`]: never, see [`Server::begin`]).
    pub(super) fn serve(&mut self, start: Time, bytes: u64) -> Time {
        let Some(end) = self.finish(start, bytes) else {
            return Time::MAX;
        };
        let used = u128::from(bytes) * BYTE;
        let need = used.saturating_sub(self.credit);
        let had = match &self.capacity.0 {
            Kind::Unlimited => return end,
            Kind::Steps(s) => s.until(end.as_nanos()) - s.until(start.as_nanos()),
            Kind::Opportunities(_) if need == 0 => 0,
            Kind::Opportunities(o) => {
                let each = u128::from(o.bytes()) * BYTE;
                let n = need.div_ceil(each);
                self.next = self.first_from(o, start) + n as u64;
                n * each
            }
        };
        self.credit = (self.credit + had).saturating_sub(used);
        end
    }

    fn first_from(&self, o: &Opportunities, t: Time) -> u64 {
        if o.time(self.next) >= t.as_nanos() {
            self.next
        } else {
            self.next.max(o.before(t.as_nanos()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn server(spec: &RateSpec) -> Server {
        Server::new(Arc::new(Capacity::new(spec)))
    }

    fn steps(points: &[(u32, u64)], period: Option<u32>) -> RateSpec {
        RateSpec::Steps {
            points: points
                .iter()
                .map(|&(t, bps)| (t * MS, Rate::from_bps(bps)))
                .collect(),
            period: period.map(|p| p * MS),
        }
    }

    #[test]
    fn a_pause_only_pauses() {
        // 1 kB per ms, then nothing for 5 ms, repeated every 10 ms.
        let mut s = server(&steps(&[(0, 8_000_000), (5, 0)], Some(10)));
        let at = |ms: u32| Time::from(ms * MS);
        assert_eq!(s.begin(at(7), 100), Some(at(10)));
        assert_eq!(s.serve(at(4), 2000), at(11));
        assert_eq!(s.room(at(11), at(23)), 4000 + 3000);
        assert_eq!(s.capacity().rate_at(at(6)), Some(Rate::ZERO));
        assert_eq!(s.capacity().nominal_at(at(6)).unwrap().as_bps(), 8_000_000);
        assert_eq!(s.capacity().bits_between(at(4), at(21)), 56_000.0);
    }

    #[test]
    fn never_is_not_a_time() {
        let at = |ms: u32| Time::from(ms * MS);
        let ending = server(&steps(&[(0, 8_000_000), (5, 0)], None));
        assert_eq!(ending.begin(at(1), 4000), Some(at(1)));
        assert_eq!(ending.begin(at(1), 4001), None);
        assert_eq!(ending.begin(at(6), 1), None);
        for none in [
            RateSpec::Constant(Rate::ZERO),
            steps(&[(0, 0), (5, 0)], Some(10)),
            steps(&[], None),
            RateSpec::Opportunities {
                ms: vec![],
                packet_bytes: 1504,
            },
        ] {
            assert_eq!(server(&none).begin(at(1), 1), None, "{none:?}");
        }
    }

    #[test]
    fn opportunities_unused_are_lost_and_leftovers_kept_while_busy() {
        let spec = RateSpec::Opportunities {
            ms: vec![1, 2, 2, 10],
            packet_bytes: 1000,
        };
        let mut s = server(&spec);
        let at = |ms: u32| Time::from(ms * MS);
        assert_eq!(s.begin(at(0), 1500), Some(at(1)));
        assert_eq!(s.serve(at(1), 1500), at(2));
        // 500 bytes left of the first at 2 ms, and all of the second.
        assert_eq!(s.room(at(2), at(2)), 1500);
        assert_eq!(s.serve(at(2), 400), at(2));
        assert_eq!(s.serve(at(2), 400), at(2));
        s.idle();
        assert_eq!(s.serve(at(5), 1), at(10), "what was left at 2 ms is gone");
        s.idle();
        assert_eq!(
            s.begin(at(12), 1),
            Some(at(12)),
            "the trace repeats after 10 ms"
        );
        assert_eq!(s.serve(at(12), 3001), at(21));
    }

    fn any_steps() -> impl Strategy<Value = RateSpec> {
        let point = (
            1u64..400_000,
            prop_oneof![1 => Just(0), 4 => 1_000u64..3_000_000_000],
        );
        (prop::collection::vec(point, 1..6), any::<bool>()).prop_map(|(gaps, repeat)| {
            let mut t = 0;
            let mut points = Vec::new();
            for (gap, bps) in gaps {
                points.push((Duration::from_nanos(t), Rate::from_bps(bps)));
                t += gap;
            }
            // Not all zero, so that everything passes in the end.
            points.push((Duration::from_nanos(t), Rate::from_bps(7_777_777)));
            RateSpec::Steps {
                points,
                period: repeat.then(|| Duration::from_nanos(t + 1000)),
            }
        })
    }

    proptest! {
        #[test]
        fn a_busy_server_uses_its_capacity_to_the_nanosecond(
            spec in any_steps(),
            sizes in prop::collection::vec(1u64..70_000, 1..40),
            start in 0u64..3_000_000,
        ) {
            let mut s = server(&spec);
            let capacity = Arc::clone(s.capacity());
            let start = s.begin(Time::from_nanos(start), 1).unwrap();
            let (mut at, mut bits) = (start, 0.0);
            for bytes in sizes {
                let begin = s.begin(at, bytes).unwrap();
                let room = s.room(begin, s.finish(begin, bytes).unwrap());
                prop_assert!(room >= bytes, "{} < {}", room, bytes);
                at = s.serve(begin, bytes);
                bits += bytes as f64 * 8.0;
                prop_assert!(capacity.bits_between(start, at) >= bits - 1e-6);
                let just_before = at - Duration::from_nanos(1);
                prop_assert!(capacity.bits_between(start, just_before) < bits + 1e-6);
            }
        }

        #[test]
        fn capacity_adds_up(spec in any_steps(), a in 0u64..5_000_000, b in 0u64..5_000_000, c in 0u64..5_000_000) {
            let mut t = [a, b, c].map(Time::from_nanos);
            t.sort();
            let cap = Capacity::new(&spec);
            let parts = cap.bits_between(t[0], t[1]) + cap.bits_between(t[1], t[2]);
            prop_assert!((parts - cap.bits_between(t[0], t[2])).abs() < 1e-3);
            prop_assert_eq!(cap.bits_between(t[1], t[0]), 0.0);
        }
    }
}
