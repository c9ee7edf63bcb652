//! Whether a description of a link makes sense.
//!
//! The models cope with any description (see each of them); this is for
//! telling the user.

use std::time::Duration;

use braid_core::Rate;
use thiserror::Error;

use super::spec::{DelaySpec, LinkChange, LinkSpec, LossSpec, QueueSpec, RateSpec};

/// Fastest rate that a link may have: 1000 Gbit/s, as in a scenario.
const MAX_RATE: Rate = Rate::from_bps(1_000_000_000_000);

/// A property of a link that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{property} of the link: {given}; expected {expected}")]
pub struct SpecError {
    /// Property of the link, such as `loss`.
    pub property: &'static str,
    /// Value that was given.
    pub given: String,
    /// Values that are possible.
    pub expected: &'static str,
}

fn err<T>(
    property: &'static str,
    given: impl Into<String>,
    expected: &'static str,
) -> Result<T, SpecError> {
    Err(SpecError {
        property,
        given: given.into(),
        expected,
    })
}

/// Checks the times of steps: the first zero, ascending, the period after them.
fn check_steps<T>(
    property: &'static str,
    points: &[(Duration, T)],
    period: Option<Duration>,
) -> Result<(), SpecError> {
    let Some((first, _)) = points.first() else {
        return err(property, "no steps", "at least one step");
    };
    if !first.is_zero() {
        return err(
            property,
            format!("first step at {first:?}"),
            "the first step at 0 s",
        );
    }
    for pair in points.windows(2) {
        if pair[1].0 <= pair[0].0 {
            let given = format!("a step at {:?} after one at {:?}", pair[1].0, pair[0].0);
            return err(property, given, "ascending times");
        }
    }
    let last = points[points.len() - 1].0;
    match period {
        Some(p) if p <= last => err(
            property,
            format!("period {p:?} with a step at {last:?}"),
            "a period longer than the time of the last step",
        ),
        _ => Ok(()),
    }
}

/// Least MTU of IPv4 (RFC 791).
const MIN_MTU: u32 = 68;

fn check_mtu(mtu: Option<u32>) -> Result<(), SpecError> {
    match mtu {
        Some(m) if m < MIN_MTU => err("mtu", format!("{m} bytes"), "at least 68 (RFC 791)"),
        _ => Ok(()),
    }
}

/// Checks a capacity.
///
/// # Errors
/// Steps or delivery opportunities out of order or none, or a rate above
/// 1000 Gbit/s.
pub fn check_rate(spec: &RateSpec) -> Result<(), SpecError> {
    let fits = |r: &Rate| {
        if *r > MAX_RATE {
            return err("rate", r.to_string(), "at most 1000 Gbit/s");
        }
        Ok(())
    };
    match spec {
        RateSpec::Unlimited => Ok(()),
        RateSpec::Constant(r) => fits(r),
        RateSpec::Steps { points, period } => {
            check_steps("rate", points, *period)?;
            points.iter().try_for_each(|(_, r)| fits(r))
        }
        RateSpec::Opportunities { ms, packet_bytes } => {
            if ms.is_empty() || *packet_bytes == 0 {
                let given = format!("{} opportunities of {packet_bytes} bytes", ms.len());
                return err("rate", given, "at least one opportunity of at least a byte");
            }
            match ms.windows(2).find(|w| w[1] < w[0]) {
                Some(w) => err(
                    "rate",
                    format!("an opportunity at {} ms after one at {} ms", w[1], w[0]),
                    "ascending milliseconds",
                ),
                None => Ok(()),
            }
        }
    }
}

impl DelaySpec {
    /// # Errors
    /// Steps out of order, or none.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Constant(_) => Ok(()),
            Self::Steps { points, period } => check_steps("delay", points, *period),
        }
    }
}

impl LossSpec {
    /// # Errors
    /// A probability that is not between 0 and 1; steps out of order, or none.
    pub fn check(&self) -> Result<(), SpecError> {
        let all = match *self {
            Self::None => vec![],
            Self::Bernoulli(p) => vec![p],
            Self::Steps { ref points, period } => {
                check_steps("loss", points, period)?;
                points.iter().map(|p| p.1).collect()
            }
            Self::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => vec![good_to_bad, bad_to_good, loss_good, loss_bad],
        };
        match all.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            Some(p) => err("loss", p.to_string(), "probabilities from 0 to 1"),
            None => Ok(()),
        }
    }
}

impl QueueSpec {
    /// # Errors
    /// CoDel with a target or interval of zero.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Codel {
                target, interval, ..
            } if target.is_zero() || interval.is_zero() => err(
                "queue",
                format!("CoDel with target {target:?}, interval {interval:?}"),
                "both above zero (RFC 8289: 5 ms and 100 ms)",
            ),
            _ => Ok(()),
        }
    }
}

impl LinkSpec {
    /// # Errors
    /// The first property that cannot be.
    pub fn check(&self) -> Result<(), SpecError> {
        check_rate(&self.rate)?;
        self.delay.check()?;
        self.loss.check()?;
        self.queue.check()?;
        check_mtu(self.mtu)
    }
}

impl LinkChange {
    /// # Errors
    /// The new value cannot be.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Rate(spec) => check_rate(spec),
            Self::Delay(spec) => spec.check(),
            Self::Loss(spec) => spec.check(),
            Self::Queue(spec) => spec.check(),
            Self::Mtu(mtu) => check_mtu(*mtu),
            Self::Jitter(_) | Self::Down | Self::Up => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn says_what_is_wrong_and_what_would_be_right() {
        let steps = |times: &[u32], period: Option<u32>| {
            let points = times.iter().map(|t| (*t * MS, MS)).collect();
            let period = period.map(|p| p * MS);
            DelaySpec::Steps { points, period }.check()
        };
        assert_eq!(steps(&[0, 5], Some(6)), Ok(()));
        for (times, period, says) in [
            (&[][..], None, "at least one step"),
            (&[1], None, "first step at 1ms"),
            (&[0, 5, 5], None, "a step at 5ms after one at 5ms"),
            (&[0, 5], Some(5), "period 5ms with a step at 5ms"),
        ] {
            let e = steps(times, period).unwrap_err().to_string();
            assert!(
                e.starts_with("delay of the link: ") && e.contains(says),
                "{e}"
            );
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        let opportunities = |ms: &[u64], packet_bytes| RateSpec::Opportunities {
            ms: ms.to_vec(),
            packet_bytes,
        };
        assert_eq!(check_rate(&opportunities(&[1, 1, 2], 1504)), Ok(()));
        for bad in [
            opportunities(&[], 1504),
            opportunities(&[1], 0),
            opportunities(&[2, 1], 1504),
            RateSpec::Constant(Rate::from_bps(1_000_000_000_001)),
        ] {
            assert!(LinkChange::Rate(bad.clone()).check().is_err(), "{bad:?}");
        }
        let steps = |points: Vec<(Duration, f64)>| LossSpec::Steps {
            points,
            period: None,
        };
        assert_eq!(steps(vec![(Duration::ZERO, 0.5)]).check(), Ok(()));
        assert!(steps(vec![(MS, 0.5)]).check().is_err());
        for p in [f64::NAN, -0.1, 1.1] {
            assert!(LinkChange::Loss(LossSpec::Bernoulli(p)).check().is_err());
            assert!(steps(vec![(Duration::ZERO, p)]).check().is_err());
        }
        let codel = QueueSpec::Codel {
            target: Duration::ZERO,
            interval: 100 * MS,
            limit_packets: 1,
        };
        assert!(LinkChange::Queue(codel).check().is_err());
        assert_eq!(LinkSpec::default().check(), Ok(()));
    }
}
