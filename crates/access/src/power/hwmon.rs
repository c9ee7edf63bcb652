//! Sensors of `/sys/class/hwmon` (Documentation/hwmon/sysfs-interface), as INA219, INA226 and INA3221:
//! `powerN_input` in microwatts, or else `inN_input` (mV) times `currN_input` (mA) of one channel.

use std::path::{Path, PathBuf};

use braid_core::Time;

use super::{PowerError, PowerSource, Scope, folders, name_of, number, text};

/// Channels of one chip, at most.
const MAX_CHANNELS: u32 = 16;

/// Channel of a sensor.
#[derive(Debug)]
struct Channel {
    name: String,
    scope: Scope,
    what: Files,
}

#[derive(Debug)]
enum Files {
    Power(PathBuf),
    VoltageAndCurrent(PathBuf, PathBuf),
}

/// Channels of all chips.
pub(super) fn find(root: &Path) -> Vec<Box<dyn PowerSource>> {
    let mut found: Vec<Box<dyn PowerSource>> = Vec::new();
    for folder in folders(&root.join("class/hwmon")) {
        let chip = text(&folder.join("name")).unwrap_or_else(|| name_of(&folder));
        for n in 1..=MAX_CHANNELS {
            let file = |kind: &str| folder.join(format!("{kind}{n}_input"));
            let (power, volt, ampere) = (file("power"), file("in"), file("curr"));
            let (kind, what) = if power.is_file() {
                ("power", Files::Power(power))
            } else if volt.is_file() && ampere.is_file() {
                ("in", Files::VoltageAndCurrent(volt, ampere))
            } else {
                continue;
            };
            let label = text(&folder.join(format!("{kind}{n}_label")));
            let rail = label.unwrap_or_else(|| format!("{chip} {n}"));
            found.push(Box::new(Channel {
                name: format!("hwmon/{}/{n}", name_of(&folder)),
                scope: Scope::Rail(rail),
                what,
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
        let mw = match &self.what {
            Files::Power(file) => number(file)? / 1e3,
            Files::VoltageAndCurrent(volt, ampere) => number(volt)? * number(ampere)? / 1e3,
        };
        Ok(Some(mw))
    }
}
