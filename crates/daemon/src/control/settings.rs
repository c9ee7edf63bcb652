//! Configuration in the words of the control loop.

use braid_core::control::{
    AccessSettings, CapacitySettings, EnergySettings, PerDirection, PolicySettings,
    SelectionSettings, Settings,
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
            power: a.power_set.as_ref().map(|set| set.parameters),
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
            energy: EnergySettings {
                keep_percent: control.energy.keep_percent,
                hold_ms: u64::try_from(control.energy.hold.as_millis()).unwrap_or(u64::MAX),
            },
            selection: SelectionSettings {
                within_percent: control.energy.within_percent,
            },
        },
        accesses: config.accesses.iter().map(access).collect(),
    }
}
