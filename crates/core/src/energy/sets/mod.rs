//! Parameter sets of measured devices, each named by its source and access, with what is known of
//! how well it fits. To add one: an entry in `fitted` or `published`.

mod fitted;
mod published;

use serde::{Deserialize, Serialize};

use super::Parameters;

/// Parameters of one radio, and where they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSet {
    /// Name in scenarios and flags.
    pub name: String,
    /// Device that was measured.
    pub device: String,
    /// Access that it used.
    pub access: String,
    /// Measurement or publication that the parameters come from.
    pub source: String,
    /// How well they fit, measured on what.
    pub quality: String,
    /// Parameters that nobody measured, and what stands for them; empty: none.
    pub assumed: String,
    /// Power of the device beside this radio in the measurement, mW; the parameters are without it.
    pub rest_mw: f64,
    /// Throughputs for which the fit has data; absent where there is no fit.
    pub range: Option<Range>,
    /// Parameters of the model.
    pub parameters: Parameters,
}

/// Greatest throughputs that a fit has data for, Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Towards the device.
    pub down_mbps: f64,
    /// From the device.
    pub up_mbps: f64,
}

/// Returns every set.
pub fn all() -> Vec<ParameterSet> {
    let mut sets = fitted::sets();
    sets.extend(published::sets());
    sets
}

/// Returns the set called `name`.
pub fn by_name(name: &str) -> Option<ParameterSet> {
    all().into_iter().find(|s| s.name == name)
}

/// Returns the set that stands for `model` where none is named: its first.
pub fn default_of(model: &str) -> Option<ParameterSet> {
    all().into_iter().find(|s| s.parameters.model() == model)
}
