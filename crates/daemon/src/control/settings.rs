//! Configuration in the words of the control loop.

use braid_core::control::{
    AccessSettings, CapacitySettings, PerDirection, PolicySettings, Settings,
};

use super::probe;
use crate::config::{Access, Config};

/// Returns the configuration in the words of the loop.
pub(super) fn settings(config: &Config) -> Settings {
    let probe = probe::Plan::settings(config);
    let access = |a: &Access| {
        let settings = AccessSettings {
            weight: a.weight.unwrap_or(1.0),
            backup: a.backup,
            expected: PerDirection {
                down: a.expected.down,
                up: a.expected.up,
            },
            estimators: a
                .estimator
                .names()
                .iter()
                .map(|n| (*n).to_owned())
                .collect(),
            probe,
            ..AccessSettings::new(a.kind)
        };
        (a.name.clone(), settings)
    };
    let control = &config.control;
    Settings {
        policy: PolicySettings {
            name: control.policy.as_str().to_owned(),
            capacity: CapacitySettings {
                step: control.step,
                hysteresis_percent: control.hysteresis_percent,
                ..CapacitySettings::default()
            },
        },
        accesses: config.accesses.iter().map(access).collect(),
    }
}
