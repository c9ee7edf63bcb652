//! Energy of the devices' radios in a case, by the power models that the scenario names.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_core::Time;
use braid_core::energy::sets::Range;
use braid_core::energy::{Airtime, Energy, Interval, PowerModel};
use braid_radio::emulator::api::Stats;
use braid_radio::model::ReceiverStats;

use super::DEVICE;
use super::radio::{Place, path_name};
use crate::scenario::{AccessSetup, Case};
use crate::summary::EnergyUse;

/// Longer than any radio's tail.
const LONG: Duration = Duration::from_secs(3600);

/// Every radio of a case whose power is modelled.
pub(super) struct Radios {
    /// Time of the newest tick.
    at: Time,
    all: Vec<Radio>,
}

/// One radio, and its energy since the start of the case.
struct Radio {
    device: String,
    access: String,
    /// Path of the emulator.
    path: String,
    set: String,
    range: Option<Range>,
    medium: Option<Place>,
    model: Box<dyn PowerModel>,
    carried: Carried,
    start: Time,
    /// Time of each tick, and the energy from the start to it.
    ticks: Vec<(Time, Energy)>,
    /// Energy of the tail after the last tick.
    tail_joules: f64,
    /// Greatest throughput of an interval down and up, Mbit/s.
    most_mbps: (f64, f64),
}

/// Counters of a radio since the start of the case.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    down_bytes: u64,
    up_bytes: u64,
    down_packets: u64,
    up_packets: u64,
    airtime: Option<OnAir>,
}

/// Time on the air since the start of the case.
#[derive(Clone, Copy, Debug, Default)]
struct OnAir {
    sent: ReceiverStats,
    received: Duration,
}

impl Radios {
    /// Makes the models of a case that begins at `start`, all radios idle; `place` tells where
    /// on a medium a path is.
    pub(super) fn new(case: &Case, start: Time, place: impl Fn(&str) -> Option<Place>) -> Self {
        let radio = |(device, access): (String, &AccessSetup)| {
            let power = access.power.as_ref()?;
            let path = path_name(&device, &access.name);
            Some(Radio {
                medium: place(&path),
                path,
                device,
                access: access.name.clone(),
                set: power.set.clone(),
                range: power.range,
                model: power.parameters.make(),
                carried: Carried::default(),
                start,
                ticks: Vec::new(),
                tail_joules: 0.0,
                most_mbps: (0.0, 0.0),
            })
        };
        Self {
            at: start,
            all: all_accesses(case).into_iter().filter_map(radio).collect(),
        }
    }

    /// Ends the case: no tick follows.
    pub(super) fn finish(&mut self) {
        self.all.iter_mut().for_each(Radio::finish);
    }

    /// Takes the counters at `t`.
    pub(super) fn tick(&mut self, t: Time, stats: &Stats) {
        let length = t.since(self.at);
        self.at = t;
        for radio in &mut self.all {
            radio.tick(t, length, stats);
        }
    }

    /// Returns the energy of the measured device's access in the newest interval, joules.
    pub(super) fn newest(&self, access: &str) -> Option<f64> {
        let radio = self.all.iter().find(|r| r.path == access)?;
        let (_, now) = radio.ticks.last()?;
        let before = radio.ticks.iter().nth_back(1);
        Some(now.total_joules() - before.map_or(0.0, |(_, sum)| sum.total_joules()))
    }

    /// Returns the energy of each radio of the measured device between two times, from the
    /// nearest ticks.
    pub(super) fn of_device(&self, from: Time, to: Time) -> BTreeMap<String, EnergyUse> {
        let mine = self.all.iter().filter(|r| r.device == DEVICE);
        mine.map(|r| (r.access.clone(), r.between(from, to)))
            .collect()
    }

    /// Returns the same of the other devices, all radios of each together.
    pub(super) fn of_others(&self, from: Time, to: Time) -> BTreeMap<String, EnergyUse> {
        let mut out: BTreeMap<String, EnergyUse> = BTreeMap::new();
        for r in self.all.iter().filter(|r| r.device != DEVICE) {
            *out.entry(r.device.clone()).or_default() += r.between(from, to);
        }
        out
    }

    /// Returns what a reader must know: throughputs for which a set has no data.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        for r in self.all.iter().filter(|r| r.device == DEVICE) {
            let Some(range) = r.range else { continue };
            for (way, most, measured) in [
                ("down", r.most_mbps.0, range.down_mbps),
                ("up", r.most_mbps.1, range.up_mbps),
            ] {
                if most > measured * 1.001 {
                    out.push(format!(
                        "{}: {most:.1} Mbit/s {way}, and power set {} was measured up to {measured}",
                        r.access, r.set
                    ));
                }
            }
        }
        out
    }
}

impl Radio {
    fn tick(&mut self, t: Time, length: Duration, stats: &Stats) {
        let now = self.read(stats);
        let interval = interval(length, &self.carried, &now);
        self.carried = now;
        let seconds = length.as_secs_f64();
        // Ticks that come late are followed by one that is too short to tell a rate.
        if seconds > 0.01 {
            let mbps = |bytes: f64| bytes * 8e-6 / seconds;
            self.most_mbps.0 = self.most_mbps.0.max(mbps(interval.down_bytes));
            self.most_mbps.1 = self.most_mbps.1.max(mbps(interval.up_bytes));
        }
        let mut sum = self.ticks.last().map(|(_, e)| *e).unwrap_or_default();
        sum += self.model.advance(&interval);
        self.ticks.push((t, sum));
    }

    fn read(&self, stats: &Stats) -> Carried {
        let link = |way: &str| {
            let link = stats.links.get(&format!("{}.{way}", self.path));
            link.map(|l| l.model).unwrap_or_default()
        };
        let (down, up) = (link("down"), link("up"));
        let medium = self.medium.as_ref();
        let airtime = medium.and_then(|place| on_air(stats, place));
        Carried {
            // A receiver takes what arrives, a sender all that leaves.
            down_bytes: down.out_bytes,
            up_bytes: up.sent_bytes,
            down_packets: down.out_packets,
            up_packets: up.sent_packets,
            airtime,
        }
    }

    /// Adds what the radio takes until it sleeps when nothing follows.
    fn finish(&mut self) {
        self.tail_joules = self.model.advance(&Interval::silent(LONG)).tail_joules;
    }

    fn between(&self, from: Time, to: Time) -> EnergyUse {
        let last = self.ticks.last().map(|(_, e)| *e).unwrap_or_default();
        let (begin, end) = (self.until(from), self.until(to));
        let after = last - end;
        EnergyUse {
            spent: end - begin,
            tail_after_joules: after.total_joules() - after.idle_joules + self.tail_joules,
        }
    }

    /// Energy from the start of the case to the tick nearest to `t`.
    fn until(&self, t: Time) -> Energy {
        let away = |at: Time| if at > t { at.since(t) } else { t.since(at) };
        let start = (self.start, Energy::default());
        let all = std::iter::once(&start).chain(&self.ticks);
        let nearest = all.min_by_key(|(at, _)| away(*at));
        nearest.map(|(_, sum)| *sum).unwrap_or_default()
    }
}

/// Devices of a case with their accesses.
fn all_accesses(case: &Case) -> Vec<(String, &AccessSetup)> {
    let mut out: Vec<(String, &AccessSetup)> = Vec::new();
    out.extend(case.accesses.iter().map(|a| (DEVICE.to_owned(), a)));
    for b in &case.bystanders {
        for device in b.devices() {
            out.extend(b.accesses.iter().map(|a| (device.clone(), a)));
        }
    }
    out
}

fn on_air(stats: &Stats, place: &Place) -> Option<OnAir> {
    let medium = stats.media.get(&place.medium)?;
    let counts = |(station, receiver): (usize, usize)| {
        let station = medium.stations.get(station)?;
        // None yet: nothing was sent to it.
        Some(station.receivers.get(receiver).copied().unwrap_or_default())
    };
    Some(OnAir {
        sent: counts(place.up)?,
        received: counts(place.down)?.airtime,
    })
}

fn interval(length: Duration, before: &Carried, now: &Carried) -> Interval {
    let grown = |part: fn(&Carried) -> u64| part(now).saturating_sub(part(before));
    let airtime = now.airtime.map(|now_on| {
        let before_on = before.airtime.unwrap_or_default();
        Airtime {
            sending: now_on.sent.airtime.saturating_sub(before_on.sent.airtime),
            collided: now_on
                .sent
                .collided_airtime
                .saturating_sub(before_on.sent.collided_airtime),
            receiving: now_on.received.saturating_sub(before_on.received),
            frames_sent: grown(|c| c.up_packets),
            frames_received: grown(|c| c.down_packets),
        }
    });
    Interval {
        length,
        down_bytes: grown(|c| c.down_bytes) as f64,
        up_bytes: grown(|c| c.up_bytes) as f64,
        airtime,
        ..Interval::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use braid_radio::emulator::api::LinkReport;
    use braid_radio::model::{MediumStats, StationStats};

    use super::*;
    use crate::scenario::{Overrides, Scenario};

    const SCENARIO: &str = r#"
        name = "t"
        duration = "10 s"
        [medium.ap]
        standard = "802.11g"
        [access.wifi]
        kind = "wifi"
        medium = "ap"
        power = "ns3-wifi"
        [access.lte]
        kind = "lte"
        power = "paper002-lte"
        down = { rate = "10 Mbit/s" }
        [access.plain]
        kind = "5g"
        down = { rate = "10 Mbit/s" }
        [device.other]
        count = 2
        [device.other.access.lte]
        kind = "lte"
        power = "paper002-lte"
        down = { rate = "10 Mbit/s" }
        [[case]]
        name = "c"
        engine = "mptcp"
        traffic = "bulk"
    "#;

    fn case() -> Case {
        let origin = Path::new("t.toml");
        let parsed = Scenario::parse(SCENARIO, origin, Path::new("."), &Overrides::default());
        parsed.unwrap().cases.remove(0)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn carry(stats: &mut Stats, link: &str, bytes: u64) {
        let link: &mut LinkReport = stats.links.entry(link.to_owned()).or_default();
        link.model.out_bytes += bytes;
        link.model.sent_bytes += bytes;
    }

    #[test]
    fn energy_is_that_of_the_bytes_in_the_window_and_of_both_links() {
        let mut radios = Radios::new(&case(), at(1000), |_| None);
        let mut stats = Stats::default();
        for tick in 1..=100 {
            carry(&mut stats, "lte.down", 10_000);
            carry(&mut stats, "lte.up", 2_500);
            carry(&mut stats, "other-2/lte.down", 20_000);
            radios.tick(at(1000 + tick * 100), &stats);
        }
        radios.finish();
        // 0.752 J for each MB and 214 mW in use: 50 intervals of 12.5 kB are 0.47 + 1.07 J.
        let of = radios.of_device(at(3000), at(8000));
        assert_eq!(of.keys().collect::<Vec<_>>(), ["lte", "wifi"]);
        let lte = of["lte"].spent.active_joules;
        let expected = 0.625 * 0.752 + 5.0 * 0.214;
        assert!((lte / expected - 1.0).abs() < 0.01, "{lte} {expected}");
        let one = radios.newest("lte").unwrap();
        assert!((one * 50.0 / lte - 1.0).abs() < 1e-9, "{one}");
        assert_eq!(radios.newest("plain"), None);

        // All of the case is the sum of its halves.
        let whole = radios.of_device(at(1000), at(11_000))["lte"].spent;
        let half = |from, to| {
            radios.of_device(at(from), at(to))["lte"]
                .spent
                .total_joules()
        };
        let halves = half(1000, 6000) + half(6000, 11_000);
        assert!((whole.total_joules() - halves).abs() < 1e-9);

        let others = radios.of_others(at(3000), at(8000));
        assert_eq!(others.keys().collect::<Vec<_>>(), ["other-1", "other-2"]);
        let busy = others["other-2"].spent.total_joules();
        let expected = 1.0 * 0.752 + 5.0 * 0.214;
        assert!((busy / expected - 1.0).abs() < 0.01, "{busy} {expected}");
        assert_eq!(others["other-1"].spent.active_joules, 0.0);
    }

    #[test]
    fn a_station_pays_for_its_own_airtime_and_collisions() {
        let place = |path: &str| {
            (path == "wifi").then(|| Place {
                medium: "ap".to_owned(),
                down: (0, 1),
                up: (2, 0),
            })
        };
        let joules = |sent_ms: u64, collided_ms: u64, received_ms: u64| {
            let mut radios = Radios::new(&case(), at(0), place);
            let ms = Duration::from_millis;
            let receiver = |airtime, collided_airtime| ReceiverStats {
                airtime: ms(airtime),
                collided_airtime: ms(collided_airtime),
            };
            let station = |receivers| StationStats {
                receivers,
                ..StationStats::default()
            };
            let mut stats = Stats::default();
            let medium = MediumStats {
                stations: vec![
                    station(vec![receiver(90, 90), receiver(received_ms, 50)]),
                    station(vec![receiver(80, 80)]),
                    station(vec![receiver(sent_ms, collided_ms)]),
                ],
                ..MediumStats::default()
            };
            stats.media.insert("ap".to_owned(), medium);
            radios.tick(at(100), &stats);
            radios.of_device(at(0), at(100))["wifi"].spent.active_joules
        };
        let base = joules(10, 0, 10);
        // ns-3: 1140 mW sending, 939 receiving, 819 awake.
        let step = |a: f64| (a - base) * 1e5;
        assert!((step(joules(20, 0, 10)) - 321.0).abs() < 1.0);
        assert!((step(joules(10, 10, 10)) - 321.0).abs() < 1.0);
        assert!((step(joules(10, 0, 20)) - 120.0).abs() < 1.0);
    }

    #[test]
    fn the_tail_after_the_window_stands_apart() {
        let text = SCENARIO.replace("paper002-lte", "sigcomm21-lte");
        let scenario = Scenario::parse(
            &text,
            Path::new("t.toml"),
            Path::new("."),
            &Overrides::default(),
        );
        let case = scenario.unwrap().cases.remove(0);
        let mut radios = Radios::new(&case, at(0), |_| None);
        let mut stats = Stats::default();
        for tick in 1..=20 {
            if tick <= 10 {
                carry(&mut stats, "lte.down", 100_000);
            }
            radios.tick(at(tick * 100), &stats);
        }
        radios.finish();
        let shut = radios.of_device(at(0), at(1000))["lte"];
        let late = radios.of_device(at(0), at(2000))["lte"];
        assert_eq!(shut.spent.tail_joules, 0.0);
        assert!(late.spent.tail_joules > 0.1, "{late:?}");
        // Where it is cut, the whole is the same.
        assert!((shut.total_joules() - late.total_joules()).abs() < 1e-9);
        assert!(shut.tail_after_joules > late.tail_after_joules);
    }

    #[test]
    fn rates_beyond_what_a_set_was_measured_at_are_told() {
        let text = SCENARIO.replace("paper002-lte", "sigcomm21-lte");
        let scenario = Scenario::parse(
            &text,
            Path::new("t.toml"),
            Path::new("."),
            &Overrides::default(),
        );
        let case = scenario.unwrap().cases.remove(0);
        let mut radios = Radios::new(&case, at(0), |_| None);
        let mut stats = Stats::default();
        carry(&mut stats, "lte.down", 100_000);
        radios.tick(at(100), &stats);
        assert_eq!(radios.notes(), Vec::<String>::new());
        carry(&mut stats, "lte.down", 50_000_000);
        radios.tick(at(200), &stats);
        let notes = radios.notes();
        assert!(
            notes.len() == 1 && notes[0].starts_with("lte: 4000.0 Mbit/s down"),
            "{notes:?}"
        );
    }
}
