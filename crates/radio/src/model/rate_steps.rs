//! The integral of a piecewise-constant rate, and its inverse, in integers:
//! units of 10^-9 bit (bit/s x ns).

use super::steps::Steps;

#[derive(Clone, Debug)]
pub(super) struct RateSteps {
    /// Bits per second.
    steps: Steps<u64>,
    /// Capacity from the start of a repetition to the start of each step.
    before: Vec<u128>,
    /// Capacity of one repetition.
    total: u128,
}

impl RateSteps {
    pub(super) fn new(steps: Steps<u64>) -> Self {
        let ends = steps.starts().iter().skip(1).copied().chain(steps.period());
        let mut before = vec![0];
        let mut sum = 0;
        for ((start, end), &bps) in steps.starts().iter().zip(ends).zip(steps.values()) {
            sum += u128::from(bps) * u128::from(end - start);
            before.push(sum);
        }
        before.truncate(steps.starts().len());
        Self {
            steps,
            before,
            total: sum,
        }
    }

    /// Bits per second at `t` nanoseconds.
    pub(super) fn rate(&self, t: u64) -> u64 {
        self.steps.at(t)
    }

    /// Capacity from time zero to `t`.
    pub(super) fn until(&self, t: u64) -> u128 {
        let (cycle, base, i) = self.steps.find(t);
        let within = t - base - self.steps.starts()[i];
        u128::from(cycle) * self.total
            + self.before[i]
            + u128::from(self.steps.values()[i]) * u128::from(within)
    }

    /// The first time by which `amount` has passed since time zero.
    pub(super) fn reached(&self, amount: u128) -> Option<u64> {
        if amount == 0 {
            return Some(0);
        }
        let (base, rest) = match self.steps.period() {
            Some(_) if self.total == 0 => return None,
            Some(p) => {
                let cycles = (amount - 1) / self.total;
                (cycles.checked_mul(p.into())?, amount - cycles * self.total)
            }
            None => (0, amount),
        };
        // `before[0]` is zero and `rest` is not.
        let i = self.before.partition_point(|&b| b < rest) - 1;
        let bps = u128::from(self.steps.values()[i]);
        if bps == 0 {
            return None;
        }
        let within = (rest - self.before[i]).div_ceil(bps);
        u64::try_from(base + u128::from(self.steps.starts()[i]) + within).ok()
    }

    /// The first time from `t` on at which the rate is not zero.
    pub(super) fn flowing(&self, t: u64) -> Option<u64> {
        let (_, base, i) = self.steps.find(t);
        let values = self.steps.values();
        if values[i] > 0 {
            return Some(t);
        }
        let next = |range: std::ops::Range<usize>| range.clone().find(|&j| values[j] > 0);
        if let Some(j) = next(i + 1..values.len()) {
            return base.checked_add(self.steps.starts()[j]);
        }
        let j = next(0..i)?;
        base.checked_add(self.steps.period()?)?
            .checked_add(self.steps.starts()[j])
    }

    /// The rate at `t`, or where it is zero the nearest earlier one that is not.
    pub(super) fn nominal(&self, t: u64) -> u64 {
        let values = self.steps.values();
        let i = self.steps.find(t).2;
        let earlier = values[..=i].iter().rev();
        let wrapped = values[i..].iter().rev();
        earlier
            .chain(wrapped)
            .copied()
            .find(|&v| v > 0)
            .unwrap_or(0)
    }
}
