//! Counters of power that the device has, and what of it goes with which access.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use braid_access::power::{self, PowerError, PowerObservation, PowerSource, Scope};
use braid_api::config::Power;
use braid_api::{PowerAttribution, PowerCounter, PowerShare};
use braid_core::Time;
use braid_core::control::PowerReading;
use braid_core::energy::attribution::{Attribution, PowerSample, Rates, attribute};

/// Readings of a counter by which it is attributed: the newest.
const READINGS: usize = 600;
/// Readings between two attributions.
const ATTRIBUTE_EVERY: usize = 10;
/// Counters that are read, at most.
const MOST: usize = 16;

/// Sources that are read on another thread.
pub(super) type Sources = Vec<Box<dyn PowerSource>>;

/// Result of reading a source.
pub(super) type Read = Result<Option<PowerObservation>, PowerError>;

/// Counters of power, where they are read.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Folder below which they were found.
    root: Option<PathBuf>,
    sources: Sources,
    counters: BTreeMap<String, Counter>,
    trouble: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Counter {
    rail: Option<String>,
    /// Power at the last reading; `None` while it cannot be known.
    power_mw: Option<f64>,
    samples: VecDeque<PowerSample>,
    /// Readings since it was attributed.
    since: usize,
    attribution: Option<(usize, Attribution)>,
}

/// Reads each source.
pub(super) fn read(mut sources: Sources, at: Time) -> (Sources, Vec<(String, Read)>) {
    let read = sources.iter_mut();
    let read = read.map(|s| (s.name().to_owned(), s.observe(at)));
    let read = read.collect();
    (sources, read)
}

impl Counters {
    /// Goes by the configuration: finds the counters, or forgets them.
    pub(super) fn follow(&mut self, config: &Power) {
        let wanted = config.counters.then_some(&config.root);
        if self.root.as_ref() == wanted {
            return;
        }
        *self = Self::default();
        let Some(root) = wanted else { return };
        self.root = Some(root.clone());
        self.sources = power::discover(root);
        self.sources.truncate(MOST);
        if self.sources.is_empty() {
            let why = format!(
                "no counter of power below {}: no battery, no sensor and no rail says what this \
                 device takes; models of accesses ([access.NAME] power) need none",
                root.display()
            );
            tracing::warn!("{why}");
            self.trouble.insert(String::new(), why);
        }
    }

    /// Takes the sources out, to be read.
    pub(super) fn take(&mut self) -> Sources {
        std::mem::take(&mut self.sources)
    }

    /// Takes back the sources and what they have shown while accesses carried this.
    pub(super) fn put(
        &mut self,
        sources: Sources,
        read: Vec<(String, Read)>,
        rates: &BTreeMap<String, Rates>,
    ) -> Vec<PowerReading> {
        self.sources = sources;
        let mut observed = Vec::new();
        for (name, read) in read {
            match read {
                Ok(Some(o)) => {
                    self.trouble.remove(&name);
                    let rail = match o.scope {
                        Scope::System => None,
                        Scope::Rail(rail) => Some(rail),
                    };
                    observed.push(PowerReading {
                        source: name.clone(),
                        rail: rail.clone(),
                        power_mw: o.power_mw,
                    });
                    let sample = PowerSample {
                        power_mw: o.power_mw,
                        rates: rates.clone(),
                    };
                    self.counters
                        .entry(name)
                        .or_insert_with(|| Counter::new(rail))
                        .take(sample);
                }
                // Charged, or an energy counter at its first reading.
                Ok(None) => {
                    self.trouble.remove(&name);
                    if let Some(counter) = self.counters.get_mut(&name) {
                        counter.power_mw = None;
                    }
                }
                Err(e) => {
                    let why = e.to_string();
                    if self.trouble.get(&name) != Some(&why) {
                        tracing::warn!("{why}");
                    }
                    self.counters.remove(&name);
                    self.trouble.insert(name, why);
                }
            }
        }
        observed
    }

    /// Returns what keeps counters from being read.
    pub(super) fn trouble(&self) -> impl Iterator<Item = String> {
        self.trouble.values().cloned()
    }

    /// Returns what the counters show.
    pub(super) fn status(&self) -> Vec<PowerCounter> {
        let all = self.counters.iter();
        all.map(|(source, c)| PowerCounter {
            source: source.clone(),
            rail: c.rail.clone(),
            power_mw: c.power_mw,
            attribution: c
                .attribution
                .as_ref()
                .map(|(readings, a)| told(*readings, a)),
        })
        .collect()
    }
}

impl Counter {
    fn new(rail: Option<String>) -> Self {
        Self {
            rail,
            power_mw: None,
            samples: VecDeque::new(),
            since: 0,
            attribution: None,
        }
    }

    fn take(&mut self, sample: PowerSample) {
        self.power_mw = Some(sample.power_mw);
        if self.samples.len() == READINGS {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.since += 1;
        if self.since >= ATTRIBUTE_EVERY {
            self.since = 0;
            let samples = self.samples.make_contiguous();
            let attribution = attribute(samples);
            self.attribution = attribution.map(|a| (samples.len(), a));
        }
    }
}

fn told(readings: usize, a: &Attribution) -> PowerAttribution {
    let share = |s: &braid_core::energy::attribution::Share| PowerShare {
        in_use_mw: s.in_use_mw,
        down_mw_per_mbps: s.mw_per_mbps.down,
        up_mw_per_mbps: s.mw_per_mbps.up,
    };
    let shares = a.shares.iter();
    PowerAttribution {
        readings,
        rest_mw: a.rest_mw,
        r2: a.r2,
        accesses: shares.map(|(n, s)| (n.clone(), share(s))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// Folder with one battery that is discharged.
    fn battery(root: &std::path::Path, microwatts: u64, status: &str) {
        let dir = root.join("class/power_supply/BAT0");
        fs::create_dir_all(&dir).unwrap();
        for (file, text) in [
            ("type", "Battery"),
            ("status", status),
            ("power_now", &microwatts.to_string()),
        ] {
            fs::write(dir.join(file), format!("{text}\n")).unwrap();
        }
    }

    fn config(root: &std::path::Path, counters: bool) -> Power {
        Power {
            counters,
            root: root.to_owned(),
            ..Power::default()
        }
    }

    #[test]
    fn a_battery_is_read_attributed_and_forgotten() {
        let t = tempfile::tempdir().unwrap();
        let mut c = Counters::default();
        let step = |c: &mut Counters, second: u64, mbps: f64| {
            // 2 W, and 100 mW for each Mbit/s down.
            battery(
                t.path(),
                (2000.0 + 100.0 * mbps) as u64 * 1000,
                "Discharging",
            );
            c.follow(&config(t.path(), true));
            let at = Time::from(Duration::from_secs(second));
            let (sources, read) = read(c.take(), at);
            let down = Rates {
                down: mbps,
                up: 0.0,
            };
            c.put(sources, read, &BTreeMap::from([("lte".to_owned(), down)]))
        };
        for second in 1..=40 {
            let observed = step(&mut c, second, (second % 7) as f64);
            assert_eq!(observed.len(), 1, "{second}");
            assert_eq!(observed[0].source, "power_supply/BAT0");
        }
        let status = c.status();
        let a = status[0].attribution.as_ref().unwrap();
        assert_eq!((a.readings, &status[0].rail), (40, &None));
        assert!((a.rest_mw - 2000.0).abs() < 5.0, "{a:?}");
        let slope = a.accesses["lte"].down_mw_per_mbps;
        assert!((slope - 100.0).abs() < 2.0, "{a:?}");
        assert!(a.r2.unwrap() > 0.99);

        // On the charger nothing is known; what goes with which access stays.
        battery(t.path(), 1, "Charging");
        let (sources, read) = read(c.take(), Time::ZERO);
        assert_eq!(c.put(sources, read, &BTreeMap::new()), vec![]);
        let charged = &c.status()[0];
        assert!(charged.power_mw.is_none() && charged.attribution.is_some());
        // Pulled out.
        battery(t.path(), 1, "Discharging");
        fs::remove_file(t.path().join("class/power_supply/BAT0/power_now")).unwrap();
        let (sources, read) = super::read(c.take(), Time::ZERO);
        c.put(sources, read, &BTreeMap::new());
        assert_eq!((c.status().len(), c.trouble().count()), (0, 1));
        c.follow(&config(t.path(), false));
        assert_eq!(c.trouble().count(), 0);
    }

    #[test]
    fn a_device_without_counters_says_so() {
        let t = tempfile::tempdir().unwrap();
        let mut c = Counters::default();
        c.follow(&config(t.path(), true));
        let why = c.trouble().next().unwrap();
        assert!(why.starts_with("no counter of power below"), "{why}");
    }
}
