//! Sensors of `/sys/bus/iio/devices` (Documentation/ABI/testing/sysfs-bus-iio): `in_powerN_raw` times
//! `in_powerN_scale` is in mW; `in_powerN_input` is there where the driver scales.

use std::path::Path;

use super::sensor::{MAX_CHANNELS, Sensor};
use super::{PowerSource, Scope, folders, name_of, text};

/// Channels of all devices.
pub(super) fn find(root: &Path) -> Vec<Box<dyn PowerSource>> {
    let mut found: Vec<Box<dyn PowerSource>> = Vec::new();
    for folder in folders(&root.join("bus/iio/devices")) {
        let chip = text(&folder.join("name")).unwrap_or_else(|| name_of(&folder));
        for n in 0..MAX_CHANNELS {
            let file = |what: &str| folder.join(format!("in_power{n}_{what}"));
            let factors = if file("input").is_file() {
                vec![file("input")]
            } else if file("raw").is_file() {
                let all = folder.join("in_power_scale");
                let scales = [file("scale"), all];
                // A raw value without a factor is in no unit.
                match scales.into_iter().find(|p| p.is_file()) {
                    Some(scale) => vec![scale, file("raw")],
                    None => continue,
                }
            } else {
                continue;
            };
            let rail = text(&file("label")).unwrap_or_else(|| format!("{chip} {n}"));
            found.push(Box::new(Sensor {
                name: format!("iio/{}/{n}", name_of(&folder)),
                scope: Scope::Rail(rail),
                factors,
                per_mw: 1.0,
            }));
        }
    }
    found
}
