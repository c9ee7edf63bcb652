//! Energy of the accesses' radios by their power models, and the device's own counters of power.
//!
//! A model is told what the interfaces of its access carried, bonded or not. Counters measure the
//! whole device or a supply of it; regression tells what of it goes with the traffic of which access.

mod counters;
mod radios;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::diagnostic::Problem;
use braid_api::{AccessEnergy, PowerCounter, Role, power_set};
use braid_core::Time;
use braid_core::energy::attribution::Rates;
use braid_core::energy::sets::ParameterSet;

use crate::DaemonError;
use crate::blocking;
use crate::config::Config;
use crate::control;
use crate::daemon::Daemon;
use crate::interfaces::{self, InterfaceBytes};
use crate::state::{lock, now};
use counters::Counters;
use radios::{Carried, Radios};

/// Energy of radios, and power of the device.
#[derive(Debug, Default)]
pub(crate) struct EnergyMeter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    radios: Radios,
    counters: Counters,
    /// Counters of interfaces, as they were read last.
    last: Option<Reading>,
}

/// Counters of interfaces at a moment.
#[derive(Debug)]
struct Reading {
    at: Time,
    bytes: BTreeMap<String, InterfaceBytes>,
}

impl EnergyMeter {
    /// Returns the energy of an access's radio; `None` where it has no model.
    pub(crate) fn of(&self, access: &str) -> Option<AccessEnergy> {
        lock(&self.0).radios.of(access)
    }

    /// Returns what the counters of power show.
    pub(crate) fn counters(&self) -> Vec<PowerCounter> {
        lock(&self.0).counters.status()
    }

    /// Returns why a counter is not read.
    pub(crate) fn notes(&self) -> Vec<String> {
        lock(&self.0).counters.trouble().collect()
    }

    /// Takes what interfaces have counted until `at`; returns the length of the interval and what
    /// each access carried in it, and `None` at the first reading.
    fn read(
        &self,
        at: Time,
        serving: &BTreeMap<String, BTreeSet<String>>,
        bytes: BTreeMap<String, InterfaceBytes>,
    ) -> Option<(Duration, BTreeMap<String, Carried>)> {
        let mut state = lock(&self.0);
        let reading = Reading { at, bytes };
        let last = state.last.replace(reading)?;
        let now = state.last.as_ref()?;
        let length = at.since(last.at);
        let carried = |names: &BTreeSet<String>| {
            let all = names.iter().filter_map(|name| {
                let after = now.bytes.get(name)?;
                let before = last.bytes.get(name);
                let before = before.filter(|b| b.index == after.index);
                let before = before.copied().unwrap_or_default();
                Some(Carried {
                    down: after.received.saturating_sub(before.received),
                    up: after.sent.saturating_sub(before.sent),
                })
            });
            all.fold(Carried::default(), Carried::plus)
        };
        let all = serving.iter();
        let all = all.map(|(access, names)| (access.clone(), carried(names)));
        Some((length, all.collect()))
    }

    /// Goes by the power models and counters of this configuration.
    fn follow(&self, config: &Config) {
        let mut state = lock(&self.0);
        let sets = config.accesses.iter();
        let sets = sets.filter_map(|a| Some((a.name.clone(), a.power_set.clone()?)));
        state.radios.follow(sets.collect());
        state.counters.follow(&config.power);
    }

    /// Forgets what interfaces have counted: nobody asks for it now.
    fn rest(&self) {
        lock(&self.0).last = None;
    }

    fn pass(&self, length: Duration, carried: &BTreeMap<String, Carried>) {
        lock(&self.0).radios.pass(length, carried);
    }
}

/// Reads the power models that a configuration names, those of files beside `file`.
///
/// # Errors
/// The access, and what is wrong with its model.
pub(crate) fn modelled(mut config: Config, file: &Path) -> Result<Config, Problem> {
    let dir = file.parent().unwrap_or(Path::new(""));
    for access in &mut config.accesses {
        let Some(name) = &access.power else { continue };
        let set = power_set::load(name, dir).map_err(|e| {
            let what = format!("access \"{}\": {e}", access.name);
            Problem::at_key(&["access", &access.name, "power"], what)
        })?;
        access.power_set = Some(set);
    }
    Ok(config)
}

/// Follows what radios take, for ever.
pub(crate) async fn follow(daemon: Arc<Daemon>) -> DaemonError {
    if daemon.shared().role == Role::Proxy {
        return std::future::pending().await;
    }
    let meter = &daemon.shared().energy;
    let mut interval = daemon.config().power.interval;
    loop {
        tokio::time::sleep(interval).await;
        let config = daemon.config();
        interval = config.power.interval;
        meter.follow(&config);
        let modelled = config.accesses.iter().any(|a| a.power_set.is_some());
        let steers = config.control.policy.rests();
        if !modelled && !config.power.counters {
            meter.rest();
            continue;
        }
        let serving = interfaces::serving(&daemon, config.accesses.iter()).await;
        let (at, bytes) = (Time::from_nanos(now()), interfaces::counters());
        let Some((length, carried)) = meter.read(at, &serving, bytes) else {
            continue;
        };
        meter.pass(length, &carried);
        if steers {
            let rates = carried.iter();
            let rates = rates.map(|(access, c)| (access.clone(), c.wire_rates(length)));
            let control = &daemon.shared().control;
            let decided = control.observe_carried(at, rates.collect());
            control::apply(&*daemon, decided).await;
        }
        if config.power.counters {
            let rates = carried.iter();
            let rates = rates.map(|(access, c)| (access.clone(), c.rates(length)));
            read_counters(&daemon, at, &rates.collect()).await;
        }
    }
}

/// Reads the counters of power at the end of an interval with these rates of accesses.
async fn read_counters(daemon: &Daemon, at: Time, rates: &BTreeMap<String, Rates>) {
    let meter = &daemon.shared().energy;
    let sources = lock(&meter.0).counters.take();
    // A sensor may take long to measure.
    let (sources, read) = blocking::run(move || counters::read(sources, at)).await;
    let observed = lock(&meter.0).counters.put(sources, read, rates);
    daemon.shared().control.observe_power(observed);
}

/// Parameter sets by access.
type Sets = BTreeMap<String, ParameterSet>;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(all: &[(&str, u32, u64, u64)]) -> BTreeMap<String, InterfaceBytes> {
        let one = |(name, index, received, sent): &(&str, u32, u64, u64)| {
            let bytes = InterfaceBytes {
                index: *index,
                received: *received,
                sent: *sent,
            };
            ((*name).to_owned(), bytes)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn an_access_has_carried_what_its_interfaces_have_since_the_reading_before() {
        let meter = EnergyMeter::default();
        let serving = BTreeMap::from([(
            "nr".to_owned(),
            BTreeSet::from(["wwan0".to_owned(), "wwan1".to_owned()]),
        )]);
        let read = |s: u64, all: &[(&str, u32, u64, u64)]| {
            meter.read(Time::from_nanos(s * 1_000_000_000), &serving, bytes(all))
        };
        assert_eq!(read(1, &[("wwan0", 4, 1000, 100), ("eth0", 2, 9, 9)]), None);
        // What a new interface has counted it has carried since.
        let all = [
            ("wwan0", 4, 1500, 130),
            ("wwan1", 5, 70, 7),
            ("eth0", 2, 99, 99),
        ];
        let (length, carried) = read(3, &all).unwrap();
        assert_eq!(length, Duration::from_secs(2));
        assert_eq!(carried["nr"], Carried { down: 570, up: 37 });
        // One that was made anew begins at nothing.
        let (_, carried) = read(4, &[("wwan0", 6, 20, 2), ("wwan1", 5, 70, 7)]).unwrap();
        assert_eq!(carried["nr"], Carried { down: 20, up: 2 });
        let (_, carried) = read(5, &[]).unwrap();
        assert_eq!(carried["nr"], Carried::default());
    }
}
