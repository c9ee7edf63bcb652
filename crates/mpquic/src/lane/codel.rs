//! CoDel (RFC 8289): keeps the time that messages of a flow wait near a target, by dropping or
//! marking one now and then, and more often the longer that does not help.

use std::time::{Duration, Instant};

/// Time that messages may wait for long.
const TARGET: Duration = Duration::from_millis(5);
/// Time in which senders answer: a round trip of the widest kind.
const INTERVAL: Duration = Duration::from_millis(100);

/// State of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Codel {
    /// Time at which the wait will have been above the target for an interval.
    first_above: Option<Instant>,
    /// Time of the next drop; only while it drops.
    next: Option<Instant>,
    /// Time of the drop that was next when it ended to drop.
    left_off: Option<Instant>,
    /// Drops since it began to.
    count: u32,
    /// Drops of the time before.
    last_count: u32,
}

impl Codel {
    /// Whether a message that has waited since `since` is to be dropped, or marked, now that it would
    /// leave; `short`: it is all that the queue has, or nearly.
    pub(super) fn drops(&mut self, since: Instant, short: bool, now: Instant) -> bool {
        let above = self.is_above(since, short, now);
        let Some(next) = self.next else {
            if above {
                self.begin(now);
            }
            return above;
        };
        if !above {
            self.left_off = self.next.take();
            return false;
        }
        if now < next {
            return false;
        }
        self.count += 1;
        self.next = Some(law(next, self.count));
        true
    }

    /// Whether the wait has been above the target for an interval.
    fn is_above(&mut self, since: Instant, short: bool, now: Instant) -> bool {
        if short || now.duration_since(since) < TARGET {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + INTERVAL);
                false
            }
            Some(at) => now >= at,
        }
    }

    /// Begins to drop: where it left off, if that was not long ago (RFC 8289 5.5).
    fn begin(&mut self, now: Instant) {
        let delta = self.count.saturating_sub(self.last_count);
        let recently = self.left_off.is_some_and(|at| now < at + 16 * INTERVAL);
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.last_count = self.count;
        self.next = Some(law(now, self.count));
    }
}

/// Time of the drop after one at `at` (RFC 8289 3.3).
fn law(at: Instant, count: u32) -> Instant {
    at + INTERVAL.div_f64(f64::from(count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Times at which it drops messages that have all waited so long, one each millisecond.
    fn drops(waited: Duration, ms: u32) -> Vec<u32> {
        let (mut codel, begin) = (Codel::default(), Instant::now() + Duration::from_secs(1));
        let at = |ms| begin + MS * ms;
        let dropped = |ms: &u32| codel.drops(at(*ms) - waited, false, at(*ms));
        (0..ms).filter(dropped).collect()
    }

    #[test]
    fn what_waits_no_longer_than_the_target_is_left_alone() {
        assert_eq!(drops(MS * 4, 10_000), [0; 0]);
    }

    #[test]
    fn drops_come_closer_by_the_square_root() {
        let all = drops(MS * 20, 1000);
        assert_eq!(all[..4], [100, 200, 271, 329]);
        assert!(all.len() > 14 && all.len() < 30, "{}", all.len());
    }

    /// Time to the second drop of an overload that begins so long after another of two seconds.
    fn second_after(rest: u32) -> u32 {
        let begin = Instant::now() + Duration::from_secs(1);
        let (mut codel, at) = (Codel::default(), |ms| begin + MS * ms);
        let mut drops = |ms, waited| codel.drops(at(ms) - waited, false, at(ms));
        for ms in 0..2000 {
            drops(ms, MS * 20);
        }
        drops(2000, MS);
        let again = 2000 + rest..5000 + rest;
        let dropped: Vec<_> = again.filter(|ms| drops(*ms, MS * 20)).collect();
        dropped[1] - dropped[0]
    }

    #[test]
    fn it_goes_on_where_it_left_off_not_long_ago_alone() {
        assert!(second_after(1000) < 40, "{}", second_after(1000));
        assert_eq!(second_after(3000), 100);
    }

    #[test]
    fn a_short_queue_ends_it() {
        let mut codel = Codel::default();
        let begin = Instant::now() + Duration::from_secs(1);
        for ms in 0..200 {
            codel.drops(begin, false, begin + MS * ms);
        }
        assert!(codel.next.is_some());
        assert!(!codel.drops(begin, true, begin + MS * 200));
        assert!(codel.next.is_none());
    }
}
