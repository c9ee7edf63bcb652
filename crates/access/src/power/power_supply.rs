//! Batteries of `/sys/class/power_supply` (Documentation/ABI/testing/sysfs-class-power), which UPower
//! reads too: `power_now` in microwatts, or `current_now` (microampere) times `voltage_now`
//! (microvolt).

use std::path::{Path, PathBuf};

use braid_core::Time;

use super::{PowerError, PowerSource, Scope, folders, name_of, number, text};

/// Battery.
#[derive(Debug)]
struct Battery {
    name: String,
    folder: PathBuf,
    /// Whether it has `power_now`.
    has_power: bool,
}

/// Batteries that feed the whole device; those of a mouse or a pen have the scope `Device`.
pub(super) fn find(root: &Path) -> Vec<Box<dyn PowerSource>> {
    let mut found: Vec<Box<dyn PowerSource>> = Vec::new();
    for folder in folders(&root.join("class/power_supply")) {
        let has = |file: &str| folder.join(file).is_file();
        let has_power = has("power_now");
        let battery = text(&folder.join("type")).is_some_and(|t| t == "Battery");
        let of_device = text(&folder.join("scope")).is_some_and(|t| t == "Device");
        if battery && !of_device && (has_power || has("current_now") && has("voltage_now")) {
            found.push(Box::new(Battery {
                name: format!("power_supply/{}", name_of(&folder)),
                folder,
                has_power,
            }));
        }
    }
    found
}

impl PowerSource for Battery {
    fn name(&self) -> &str {
        &self.name
    }

    fn scope(&self) -> &Scope {
        &Scope::System
    }

    /// Power is that of the device only while nothing else feeds it. Some drivers give discharge a
    /// sign, others none.
    fn power_mw(&mut self, _now: Time) -> Result<Option<f64>, PowerError> {
        let status = self.folder.join("status");
        if text(&status).is_some_and(|s| s != "Discharging") {
            return Ok(None);
        }
        let read = |file: &str| number(&self.folder.join(file));
        let mw = match self.has_power {
            true => read("power_now")? / 1e3,
            false => read("current_now")? * read("voltage_now")? / 1e9,
        };
        Ok(Some(mw.abs()))
    }
}
