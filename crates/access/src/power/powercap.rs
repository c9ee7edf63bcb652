//! Energy counters of `/sys/class/powercap` (Documentation/power/powercap): RAPL packages of
//! processors. `energy_uj` counts microjoules up to `max_energy_range_uj` and begins again; power is
//! its change over time. The processor's power, not a radio's; only root may read it since Linux 5.10.

use std::path::{Path, PathBuf};

use braid_core::Time;

use super::{PowerError, PowerSource, Scope, folders, name_of, number, text};

/// Zone of a control type.
#[derive(Debug)]
struct Zone {
    name: String,
    scope: Scope,
    folder: PathBuf,
    before: Option<(Time, f64)>,
}

/// Packages; the zones inside of them (`intel-rapl:0:1`) are part of their count.
pub(super) fn find(root: &Path) -> Vec<Box<dyn PowerSource>> {
    let mut found: Vec<Box<dyn PowerSource>> = Vec::new();
    for folder in folders(&root.join("class/powercap")) {
        let zone = name_of(&folder);
        if zone.matches(':').count() == 1 && folder.join("energy_uj").exists() {
            let rail = text(&folder.join("name")).unwrap_or_else(|| zone.clone());
            found.push(Box::new(Zone {
                name: format!("powercap/{zone}"),
                scope: Scope::Rail(rail),
                folder,
                before: None,
            }));
        }
    }
    found
}

impl PowerSource for Zone {
    fn name(&self) -> &str {
        &self.name
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn power_mw(&mut self, now: Time) -> Result<Option<f64>, PowerError> {
        let energy_uj = number(&self.folder.join("energy_uj"))?;
        let Some((then, before)) = self.before.replace((now, energy_uj)) else {
            return Ok(None);
        };
        let seconds = now.since(then).as_secs_f64();
        if seconds == 0.0 {
            return Ok(None);
        }
        let mut used = energy_uj - before;
        if used < 0.0 {
            used += number(&self.folder.join("max_energy_range_uj"))?;
        }
        // Still negative: the counter was set back, not over.
        Ok((used >= 0.0).then_some(used / 1e3 / seconds))
    }
}
