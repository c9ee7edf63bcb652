//! Sensors of `/sys/class/hwmon` (Documentation/hwmon/sysfs-interface), as INA219, INA226 and INA3221:
//! `powerN_input` in microwatts, or else `inN_input` (mV) times `currN_input` (mA) of one channel.

use std::path::Path;

use super::sensor::{MAX_CHANNELS, Sensor};
use super::{PowerSource, Scope, folders, name_of, text};

/// Channels of all chips.
pub(super) fn find(root: &Path) -> Vec<Box<dyn PowerSource>> {
    let mut found: Vec<Box<dyn PowerSource>> = Vec::new();
    for folder in folders(&root.join("class/hwmon")) {
        let chip = text(&folder.join("name")).unwrap_or_else(|| name_of(&folder));
        for n in 1..=MAX_CHANNELS {
            let file = |kind: &str| folder.join(format!("{kind}{n}_input"));
            let (power, volt, ampere) = (file("power"), file("in"), file("curr"));
            let (kind, factors) = if power.is_file() {
                ("power", vec![power])
            } else if volt.is_file() && ampere.is_file() {
                ("in", vec![volt, ampere])
            } else {
                continue;
            };
            let label = text(&folder.join(format!("{kind}{n}_label")));
            let rail = label.unwrap_or_else(|| format!("{chip} {n}"));
            found.push(Box::new(Sensor {
                name: format!("hwmon/{}/{n}", name_of(&folder)),
                scope: Scope::Rail(rail),
                factors,
                per_mw: 1e3,
            }));
        }
    }
    found
}
