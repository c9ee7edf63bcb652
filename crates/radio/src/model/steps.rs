//! Piecewise-constant functions of time.

use std::time::Duration;

use braid_core::Time;

/// A value that holds from each of some times on, optionally repeating.
#[derive(Clone, Debug)]
pub(super) struct Steps<T> {
    /// Nanoseconds, ascending, the first is zero.
    starts: Vec<u64>,
    values: Vec<T>,
    period: Option<u64>,
}

impl<T: Copy + PartialEq> Steps<T> {
    /// `points` in any order (of two at the same time the later one counts);
    /// the earliest value also holds before its time. A `period` that is not
    /// after the last point is moved there. `default` where there are no points.
    pub(super) fn new(points: &[(Duration, T)], period: Option<Duration>, default: T) -> Self {
        let mut sorted: Vec<(u64, T)> = points
            .iter()
            .map(|&(d, v)| (Time::from(d).as_nanos(), v))
            .collect();
        sorted.sort_by_key(|&(t, _)| t);
        let mut steps = Self {
            starts: Vec::with_capacity(sorted.len()),
            values: Vec::with_capacity(sorted.len()),
            period: None,
        };
        let last = sorted.last().map_or(0, |&(t, _)| t);
        for (t, v) in sorted {
            if steps.starts.last() == Some(&t) {
                steps.starts.pop();
                steps.values.pop();
            }
            if steps.values.last() != Some(&v) {
                steps.starts.push(t);
                steps.values.push(v);
            }
        }
        if steps.values.is_empty() {
            steps.starts.push(0);
            steps.values.push(default);
        }
        steps.starts[0] = 0;
        if steps.values.len() > 1 {
            steps.period = period.map(|p| Time::from(p).as_nanos().max(last.saturating_add(1)));
        }
        steps
    }

    /// One value for ever.
    pub(super) fn constant(value: T) -> Self {
        Self {
            starts: vec![0],
            values: vec![value],
            period: None,
        }
    }

    /// The repetition that `t` is in (its number and start) and the index of
    /// the step.
    pub(super) fn find(&self, t: u64) -> (u64, u64, usize) {
        let (cycle, base) = match self.period {
            Some(p) => (t / p, t / p * p),
            None => (0, 0),
        };
        // The first start is zero, so at least one start is not after `t`.
        let i = self.starts.partition_point(|&s| s <= t - base) - 1;
        (cycle, base, i)
    }

    /// The value at `t` nanoseconds.
    pub(super) fn at(&self, t: u64) -> T {
        self.values[self.find(t).2]
    }

    /// Start of each step within a repetition, in nanoseconds.
    pub(super) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Value of each step; neighbours differ.
    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    /// Length of a repetition in nanoseconds; `None`: the last value stays.
    pub(super) fn period(&self) -> Option<u64> {
        self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn finds_the_step_in_every_repetition() {
        let s = Steps::new(&[(ms(0), 1), (ms(10), 2), (ms(30), 3)], Some(ms(40)), 0);
        for (t, v) in [
            (0, 1),
            (9, 1),
            (10, 2),
            (29, 2),
            (30, 3),
            (39, 3),
            (40, 1),
            (1055, 2),
        ] {
            assert_eq!(s.at(t * 1_000_000), v, "{t} ms");
        }
        assert_eq!(s.find(50_000_000), (1, 40_000_000, 1));
    }

    #[test]
    fn copes_with_points_that_make_no_sense() {
        assert_eq!(Steps::new(&[], Some(ms(1)), 7).at(5), 7);
        let s = Steps::new(&[(ms(5), 2), (ms(3), 1), (ms(5), 4)], Some(ms(2)), 0);
        assert_eq!((s.at(0), s.at(4_000_000), s.at(5_000_000)), (1, 1, 4));
        assert_eq!(
            s.at(5_000_001),
            1,
            "the period was moved behind the last point"
        );
    }

    #[test]
    fn merges_equal_neighbours() {
        let s = Steps::new(&[(ms(0), 1), (ms(1), 1), (ms(2), 3)], None, 0);
        assert_eq!(s.starts(), [0, 2_000_000]);
        assert_eq!(s.at(u64::MAX), 3);
    }
}
