//! `probe`: capacity from short transfers of plain TCP over the one access (paper 000,
//! sections 5 and 6.5). [`super::ProbePlan`] says when there is one.

use super::Estimator;
use crate::control::{Direction, Estimate, PerDirection, ProbeResult};
use crate::{Rate, Time};

/// Estimator of probe results: the newest counts, and its age is told.
#[derive(Debug, Default)]
pub struct Probe {
    newest: PerDirection<Option<(Time, Rate)>>,
}

impl Estimator for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn on_probe(&mut self, at: Time, result: &ProbeResult) {
        // A failed probe says nothing about capacity: whether the access works at all is for
        // liveness to find out.
        if let Some(rate) = result.rate {
            *self.newest.get_mut(result.direction) = Some((at, rate));
        }
    }

    fn on_lost(&mut self) {
        self.newest = PerDirection::default();
    }

    fn estimate(&self, direction: Direction) -> Option<Estimate> {
        let (at, capacity) = (*self.newest.get(direction))?;
        Some(Estimate {
            capacity,
            at_least: false,
            at,
            source: self.name().to_owned(),
        })
    }
}
