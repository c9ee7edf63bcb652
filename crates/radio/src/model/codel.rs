//! CoDel, controlled delay: RFC 8289, section 5 (names as there).

use std::time::Duration;

use braid_core::Time;

/// The packet at the head of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadPacket {
    pub(super) arrival: Time,
    pub(super) bytes: u64,
    /// Bytes waiting behind it.
    pub(super) behind: u64,
}

/// A queue as CoDel sees it.
pub(super) trait Standing {
    fn head(&self) -> Option<HeadPacket>;
    fn drop_head(&mut self);
}

#[derive(Clone, Debug)]
pub(super) struct Codel {
    target: Duration,
    interval: Duration,
    /// When the sojourn time will have been above target for an interval.
    first_above_time: Option<Time>,
    drop_next: Time,
    count: u64,
    lastcount: u64,
    dropping: bool,
    /// Largest packet seen.
    maxpacket: u64,
}

impl Codel {
    pub(super) fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above_time: None,
            drop_next: Time::ZERO,
            count: 0,
            lastcount: 0,
            dropping: false,
            maxpacket: 0,
        }
    }

    /// `deque` of section 5.5 up to the point of sending: drops packets off
    /// the head of `queue`; the one then at its head, if any, is to be sent at
    /// `now`.
    pub(super) fn drop_until_sendable(&mut self, now: Time, queue: &mut impl Standing) {
        let mut ok_to_drop = self.look(now, queue);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                queue.drop_head();
                self.count += 1;
                ok_to_drop = self.look(now, queue);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            queue.drop_head();
            self.look(now, queue);
            self.dropping = true;
            // Dropping again soon after: resume near the rate that worked.
            let delta = self.count - self.lastcount;
            let soon = now.since(self.drop_next) < self.interval * 16;
            self.count = if delta > 1 && soon { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
    }

    /// `dodequeue`, section 5.4: whether the head may be dropped.
    fn look(&mut self, now: Time, queue: &impl Standing) -> bool {
        let Some(head) = queue.head() else {
            self.first_above_time = None;
            return false;
        };
        self.maxpacket = self.maxpacket.max(head.bytes);
        if now.since(head.arrival) < self.target || head.behind <= self.maxpacket {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + self.interval);
                false
            }
            Some(t) => now >= t,
        }
    }

    /// Section 5.3.
    fn control_law(&self, t: Time) -> Time {
        t + self.interval.div_f64((self.count.max(1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const BYTES: u64 = 1000;

    #[derive(Default)]
    struct Fifo {
        arrivals: VecDeque<Time>,
        dropped: Vec<Time>,
    }

    impl Standing for Fifo {
        fn head(&self) -> Option<HeadPacket> {
            Some(HeadPacket {
                arrival: *self.arrivals.front()?,
                bytes: BYTES,
                behind: (self.arrivals.len() as u64 - 1) * BYTES,
            })
        }
        fn drop_head(&mut self) {
            self.dropped.extend(self.arrivals.pop_front());
        }
    }

    /// One packet leaves per ms, `arriving(ms)` arrive; returns the drop times
    /// in ms and the sojourn time of every packet sent, in ms.
    fn run(ms: u32, arriving: impl Fn(u32) -> u32) -> (Vec<u32>, Vec<f64>) {
        let mut codel = Codel::new(5 * MS, 100 * MS);
        let mut queue = Fifo::default();
        let (mut drops, mut sojourns) = (Vec::new(), Vec::new());
        for t in 0..ms {
            let now = Time::from(t * MS);
            queue.arrivals.extend((0..arriving(t)).map(|_| now));
            let before = queue.dropped.len();
            codel.drop_until_sendable(now, &mut queue);
            drops.extend((before..queue.dropped.len()).map(|_| t));
            if let Some(a) = queue.arrivals.pop_front() {
                sojourns.push(now.since(a).as_secs_f64() * 1e3);
            }
        }
        (drops, sojourns)
    }

    #[test]
    fn drops_at_the_times_of_the_control_law() {
        // A standing queue of 50 ms that nobody reacts to.
        let (drops, _) = run(600, |t| if t == 0 { 51 } else { 1 });
        // The sojourn time first reaches 5 ms at 5 ms; one interval later comes
        // the first drop, then after 100/sqrt(n) ms the next.
        let mut want = Vec::new();
        let mut t = 105.0_f64;
        for n in 1..=drops.len() {
            want.push(t.ceil() as u32);
            t += 100.0 / (n as f64).sqrt();
        }
        assert!(drops.len() > 5, "{drops:?}");
        assert_eq!(drops, want);
    }

    #[test]
    fn leaves_short_bursts_alone() {
        let (drops, _) = run(5_000, |t| if t % 200 == 0 { 80 } else { 0 });
        assert!(drops.is_empty(), "{drops:?}");
    }

    #[test]
    fn asking_twice_changes_nothing() {
        let mut codel = Codel::new(5 * MS, 100 * MS);
        let mut queue = Fifo::default();
        queue.arrivals.extend((0..400).map(|_| Time::ZERO));
        for t in 0..350_u32 {
            codel.drop_until_sendable(Time::from(t * MS), &mut queue);
            let (n, once) = (queue.dropped.len(), codel.clone());
            codel.drop_until_sendable(Time::from(t * MS), &mut queue);
            assert_eq!(queue.dropped.len(), n, "at {t} ms");
            assert_eq!(codel.drop_next, once.drop_next);
            queue.arrivals.pop_front();
        }
        assert!(!queue.dropped.is_empty());
    }
}
