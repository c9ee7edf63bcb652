//! Sensor whose power is a product of numbers in files.

use std::path::PathBuf;

use braid_core::Time;

use super::{PowerError, PowerSource, Scope, number};

/// Channels of one chip or device, at most.
pub(super) const MAX_CHANNELS: u32 = 16;

/// Channel of a sensor.
#[derive(Debug)]
pub(super) struct Sensor {
    /// Name of the source.
    pub(super) name: String,
    pub(super) scope: Scope,
    /// Files whose numbers are multiplied, in the order in which they are read.
    pub(super) factors: Vec<PathBuf>,
    /// Part of a milliwatt that the product counts: 1000 for microwatts.
    pub(super) per_mw: f64,
}

impl PowerSource for Sensor {
    fn name(&self) -> &str {
        &self.name
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn power_mw(&mut self, _now: Time) -> Result<Option<f64>, PowerError> {
        let numbers = self.factors.iter().map(|file| number(file));
        let product = numbers.product::<Result<f64, _>>()?;
        Ok(Some(product / self.per_mw))
    }
}
