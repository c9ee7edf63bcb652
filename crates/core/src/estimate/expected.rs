//! `expected`: capacity by contract or by the modem's word.

use super::Estimator;
use crate::control::{Direction, Estimate, PerDirection};
use crate::{Rate, Time};

/// Estimator of what was said beforehand. It holds on a lost access too: it was not measured.
#[derive(Debug)]
pub struct Expected {
    expected: PerDirection<Option<Rate>>,
    since: Time,
}

impl Expected {
    /// Expects `expected` from the beginning.
    pub fn new(expected: PerDirection<Option<Rate>>) -> Self {
        Self {
            expected,
            since: Time::ZERO,
        }
    }
}

impl Estimator for Expected {
    fn name(&self) -> &'static str {
        "expected"
    }

    fn measures(&self) -> bool {
        false
    }

    fn on_expected(&mut self, at: Time, expected: PerDirection<Option<Rate>>) {
        self.expected = expected;
        self.since = at;
    }

    fn estimate(&self, direction: Direction) -> Option<Estimate> {
        let capacity = (*self.expected.get(direction))?;
        Some(Estimate {
            capacity,
            at_least: false,
            at: self.since,
            source: self.name().to_owned(),
        })
    }
}
