//! Radios with their power models.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_api::AccessEnergy;
use braid_core::Rate;
use braid_core::control::PerDirection;
use braid_core::energy::attribution::Rates;
use braid_core::energy::sets::ParameterSet;
use braid_core::energy::{Energy, Interval, PowerModel};

use super::Sets;

/// Bytes that an access carried in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) down: u64,
    pub(super) up: u64,
}

impl Carried {
    pub(super) fn plus(self, more: Self) -> Self {
        Self {
            down: self.down.saturating_add(more.down),
            up: self.up.saturating_add(more.up),
        }
    }

    /// Returns the rates of an interval of this length.
    pub(super) fn wire_rates(self, length: Duration) -> PerDirection<Rate> {
        let rates = self.rates(length);
        PerDirection {
            down: Rate::from_mbps(rates.down),
            up: Rate::from_mbps(rates.up),
        }
    }

    /// Returns the rates of an interval of this length, Mbit/s.
    pub(super) fn rates(self, length: Duration) -> Rates {
        let mbps = |bytes: u64| match length.as_secs_f64() {
            0.0 => 0.0,
            s => bytes as f64 * 8e-6 / s,
        };
        Rates {
            down: mbps(self.down),
            up: mbps(self.up),
        }
    }
}

/// Radios of the accesses that have power models.
#[derive(Debug, Default)]
pub(super) struct Radios(BTreeMap<String, Radio>);

#[derive(Debug)]
struct Radio {
    set: ParameterSet,
    model: Box<dyn PowerModel>,
    energy: Energy,
    /// Mean power of the last interval.
    power_mw: f64,
}

impl Radio {
    fn new(set: ParameterSet) -> Self {
        Self {
            model: set.parameters.make(),
            set,
            energy: Energy::default(),
            power_mw: 0.0,
        }
    }
}

impl Radios {
    /// Goes by these sets from now on. A radio with another set begins anew; its energy so far stays.
    pub(super) fn follow(&mut self, sets: Sets) {
        let mut before = std::mem::take(&mut self.0);
        for (access, set) in sets {
            let radio = match before.remove(&access) {
                Some(same) if same.set == set => same,
                Some(other) => Radio {
                    energy: other.energy,
                    ..Radio::new(set)
                },
                None => Radio::new(set),
            };
            self.0.insert(access, radio);
        }
    }

    /// Passes an interval in which accesses carried this.
    pub(super) fn pass(&mut self, length: Duration, carried: &BTreeMap<String, Carried>) {
        for (access, radio) in &mut self.0 {
            let carried = carried.get(access).copied().unwrap_or_default();
            let energy = radio.model.advance(&Interval {
                length,
                down_bytes: carried.down as f64,
                up_bytes: carried.up as f64,
                ..Interval::default()
            });
            radio.power_mw = energy.mean_mw(length);
            radio.energy += energy;
        }
    }

    /// Returns the energy of an access's radio.
    pub(super) fn of(&self, access: &str) -> Option<AccessEnergy> {
        let radio = self.0.get(access)?;
        let energy = radio.energy;
        Some(AccessEnergy {
            set: radio.set.name.clone(),
            joules: energy.total_joules(),
            active_joules: energy.active_joules,
            promotion_joules: energy.promotion_joules,
            tail_joules: energy.tail_joules,
            idle_joules: energy.idle_joules,
            power_mw: radio.power_mw,
        })
    }
}

#[cfg(test)]
mod tests {
    use braid_api::power_set;

    use super::*;

    #[test]
    fn energy_only_grows_and_outlives_another_set() {
        let sets =
            |name: &str| BTreeMap::from([("lte".to_owned(), power_set::shipped(name).unwrap())]);
        let mut radios = Radios::default();
        radios.follow(sets("paper002-lte"));
        let second = Duration::from_secs(1);
        let carried = BTreeMap::from([(
            "lte".to_owned(),
            Carried {
                down: 1_000_000,
                up: 0,
            },
        )]);
        radios.pass(second, &carried);
        // 0.752 J for a MB, and 214 mW in use.
        let one = radios.of("lte").unwrap();
        assert!((one.joules - 0.966).abs() < 0.005, "{one:?}");
        assert!((one.power_mw - 966.0).abs() < 5.0, "{one:?}");
        radios.pass(second, &BTreeMap::new());
        assert_eq!(radios.of("lte").unwrap().power_mw, 0.0);
        radios.follow(sets("paper002-lte"));
        radios.follow(sets("paper002-wifi"));
        let other = radios.of("lte").unwrap();
        assert_eq!((other.joules, &*other.set), (one.joules, "paper002-wifi"));
        radios.follow(Sets::new());
        assert_eq!(radios.of("lte"), None);
    }
}
