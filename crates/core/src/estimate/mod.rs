//! Estimators: what an access can carry, from what is observed.
//!
//! An estimator belongs to one access and keeps an estimate for each direction. The control
//! loop calls it with events; it has no clock and no sockets. To add one: a file here and a
//! line in [`ESTIMATORS`].

mod delivery;
mod expected;
mod passive;
mod probe;
mod probe_plan;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

pub use delivery::{DeliveryMeter, Round};
pub use expected::Expected;
pub use passive::Passive;
pub use probe::Probe;
pub use probe_plan::{MIN_PROBE_BYTES, ProbeOrder, ProbePlan, Spending};

use crate::control::{AccessSettings, Direction, Estimate, PerDirection, ProbeResult};
use crate::{Rate, Time};

/// Estimator of one access.
pub trait Estimator: Debug + Send {
    /// Returns its name in configurations.
    fn name(&self) -> &'static str;

    /// Whether its estimates are measured, and not told.
    fn measures(&self) -> bool {
        true
    }

    /// Takes in what the access delivered in one round of samples.
    fn on_round(&mut self, _direction: Direction, _round: &Round) {}

    /// Takes in the result of a probe over the access.
    fn on_probe(&mut self, _at: Time, _result: &ProbeResult) {}

    /// Takes in the rates that the access is expected to carry from now on.
    fn on_expected(&mut self, _at: Time, _expected: PerDirection<Option<Rate>>) {}

    /// Forgets what was measured: the access can carry nothing now, and may return as another
    /// (a new cell, a new access point).
    fn on_lost(&mut self) {}

    /// Returns the estimate of `direction`; `None` while nothing is known.
    fn estimate(&self, direction: Direction) -> Option<Estimate>;
}

/// Makes an estimator for an access.
type Make = fn(&AccessSettings) -> Box<dyn Estimator>;

/// Every estimator, by name.
pub const ESTIMATORS: &[(&str, Make)] = &[
    ("passive", |_| Box::new(Passive::default())),
    ("probe", |_| Box::new(Probe::default())),
    ("expected", |access| {
        Box::new(Expected::new(access.expected))
    }),
];

/// Makes the estimator called `name`; `None` if there is none of that name.
pub fn by_name(name: &str, access: &AccessSettings) -> Option<Box<dyn Estimator>> {
    let found = ESTIMATORS.iter().find(|(n, _)| *n == name);
    found.map(|(_, make)| make(access))
}

/// Chooses among the estimates of one access, the preferred first, each with whether it was
/// measured: the first that is more than a lower bound, but of measured ones the newest; or the
/// highest lower bound where the access has carried more than that, and not before it was measured.
pub fn choose(estimates: impl Iterator<Item = (bool, Estimate)>) -> Option<Estimate> {
    let mut firm: Option<(bool, Estimate)> = None;
    let mut bound: Option<Estimate> = None;
    for (measured, e) in estimates {
        if !e.at_least {
            let first = firm.as_ref();
            let newer = |(m, f): &(bool, Estimate)| *m && measured && e.at > f.at;
            if first.is_none_or(newer) {
                firm = Some((measured, e));
            }
        } else if bound.as_ref().is_none_or(|b| e.capacity > b.capacity) {
            bound = Some(e);
        }
    }
    match (firm, bound) {
        (Some((measured, firm)), Some(bound)) => {
            let newer = !measured || bound.at >= firm.at;
            Some(match newer && bound.capacity > firm.capacity {
                true => bound,
                false => firm,
            })
        }
        (firm, bound) => firm.map(|(_, e)| e).or(bound),
    }
}
