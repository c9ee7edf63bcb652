//! Sensors of `/sys/bus/iio/devices` (Documentation/ABI/testing/sysfs-bus-iio): `in_powerN_raw` times
//! `in_powerN_scale` is in mW; `in_powerN_input` is there where the driver scales.

use std::path::{Path, PathBuf};

use braid_core::Time;

use super::{PowerError, PowerSource, Scope, folders, name_of, number, text};

/// Channels of one device, at most.
const MAX_CHANNELS: u32 = 16;

/// Channel of a device.
#[derive(Debug)]
struct Channel {
    name: String,
    scope: Scope,
    value: PathBuf,
    /// Factor of a raw value; its own, or that of all channels.
    scale: Option<PathBuf>,
}

/// Channels of all devices.
pub(super) fn find(root: &Path) -> Vec<Box<dyn PowerSource>> {
    let mut found: Vec<Box<dyn PowerSource>> = Vec::new();
    for folder in folders(&root.join("bus/iio/devices")) {
        let chip = text(&folder.join("name")).unwrap_or_else(|| name_of(&folder));
        for n in 0..MAX_CHANNELS {
            let file = |what: &str| folder.join(format!("in_power{n}_{what}"));
            let (value, scale) = if file("input").is_file() {
                (file("input"), None)
            } else if file("raw").is_file() {
                let all = folder.join("in_power_scale");
                let scales = [file("scale"), all];
                // A raw value without a factor is in no unit.
                match scales.into_iter().find(|p| p.is_file()) {
                    Some(scale) => (file("raw"), Some(scale)),
                    None => continue,
                }
            } else {
                continue;
            };
            let rail = text(&file("label")).unwrap_or_else(|| format!("{chip} {n}"));
            found.push(Box::new(Channel {
                name: format!("iio/{}/{n}", name_of(&folder)),
                scope: Scope::Rail(rail),
                value,
                scale,
            }));
        }
    }
    found
}

impl PowerSource for Channel {
    fn name(&self) -> &str {
        &self.name
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn power_mw(&mut self, _now: Time) -> Result<Option<f64>, PowerError> {
        let scale = self.scale.as_deref().map_or(Ok(1.0), number)?;
        Ok(Some(number(&self.value)? * scale))
    }
}
