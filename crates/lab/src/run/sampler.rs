//! The timeline: counters of links and subflows, ten times a second.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_api::{AccessControl, Connections, ControlStatus, Subflow};
use braid_core::Time;
use braid_radio::emulator::api::Stats;

use super::capacity::Capacities;
use super::energy::Radios;
use super::radio::path_name;
use crate::scenario::{Case, Direction};
use crate::timeline::{Count, Sample, TimelineRow};

/// Names of the links that carry measured data on an access.
pub(super) fn data_links(access: &str, direction: Direction) -> Vec<String> {
    match direction {
        Direction::Down => vec![format!("{access}.down")],
        Direction::Up => vec![format!("{access}.up")],
        Direction::Both => vec![format!("{access}.down"), format!("{access}.up")],
    }
}

pub(super) fn count(stats: &Stats, access: &str, direction: Direction) -> Count {
    data_links(access, direction)
        .iter()
        .filter_map(|l| stats.links.get(l))
        .fold(
            Count {
                up: true,
                ..Count::default()
            },
            |c, l| Count {
                bytes: c.bytes + l.model.sent_bytes,
                packets: c.packets + l.model.sent_packets,
                lost: c.lost + l.model.drops.total(),
                queue_bytes: c.queue_bytes + l.model.queue_bytes,
                up: c.up && l.model.up,
            },
        )
}

/// CPU time used so far, s, where that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// By the whole machine.
    pub(super) machine: Option<f64>,
    /// By the engine's process at either end.
    pub(super) device: Option<f64>,
    pub(super) proxy: Option<f64>,
}

/// State of the sender at one moment, as it tells it.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Absent where it does not answer.
    pub(super) connections: Option<Connections>,
    /// Absent where no policy decides.
    pub(super) control: Option<ControlStatus>,
    /// Weights that it was given, of the time until then.
    pub(super) weights: BTreeMap<String, f64>,
}

impl Told {
    fn control(&self, access: &str) -> Option<&AccessControl> {
        let mut all = self.control.iter().flat_map(|c| &c.accesses);
        all.find(|a| a.name == access)
    }
}

/// Collects the rows of one case.
pub(super) struct Sampler {
    case: Case,
    capacities: Capacities,
    radios: Radios,
    repeat: u32,
    start: Time,
    rows: Vec<TimelineRow>,
    /// Link counters per access at each tick, from which windows are cut.
    counts: Vec<(Time, BTreeMap<String, Count>)>,
    /// Bytes of each bystander at each tick.
    others: Vec<BTreeMap<String, u64>>,
    busy: BTreeMap<String, (Time, f64)>,
    /// At each tick.
    cpu: Vec<Used>,
    /// Bytes that the daemon has sent again on each path that it ever had.
    sent_again: BTreeMap<(Option<u32>, u8), u64>,
}

impl Sampler {
    pub(super) fn new(case: &Case, repeat: u32, start: Time, radios: Radios) -> Self {
        Self {
            case: case.clone(),
            capacities: Capacities::new(case),
            radios,
            repeat,
            start,
            rows: Vec::new(),
            counts: Vec::new(),
            others: Vec::new(),
            busy: BTreeMap::new(),
            cpu: Vec::new(),
            sent_again: BTreeMap::new(),
        }
    }

    /// Bytes that the daemon has sent again on all paths; none where it was not asked.
    pub(super) fn sent_again(&self) -> Option<u64> {
        (!self.sent_again.is_empty()).then(|| self.sent_again.values().sum())
    }

    /// Takes the counters at `t`, and what the sender told then.
    pub(super) fn tick(&mut self, t: Time, stats: &Stats, told: &Told, cpu: Used) {
        let connections = told.connections.as_ref();
        let direction = self.case.traffic.direction();
        let until = t.since(self.start);
        let t_s = until.as_secs_f64();
        let since = self
            .counts
            .last()
            .map_or(Duration::ZERO, |c| c.0.since(self.start));
        let mut now: BTreeMap<String, Count> = BTreeMap::new();
        let before = self.counts.last().map(|c| c.1.clone()).unwrap_or_default();
        let busy = self.media(t, stats);
        for c in connections.iter().flat_map(|c| &c.connections) {
            for s in &c.subflows {
                let path = (c.token, s.local_id);
                self.sent_again.insert(path, s.retransmitted_bytes);
            }
        }
        self.radios.tick(t, stats);
        for access in &self.case.accesses {
            let c = count(stats, &access.name, direction);
            let flows: Vec<&Subflow> = connections
                .iter()
                .flat_map(|c| &c.connections)
                .flat_map(|c| &c.subflows)
                .filter(|s| s.access.as_deref() == Some(&access.name) && s.is_established())
                .collect();
            let control = told.control(&access.name);
            let decided = control.and_then(|c| c.weight);
            let sample = Sample {
                now: c,
                before: before.get(&access.name).copied().unwrap_or_default(),
                flows: &flows,
                weight: decided.or(told.weights.get(&access.name).copied()),
                capacity_mbps: self.capacities.mean_mbps(&access.name, since, until),
                estimate_mbps: control.and_then(|c| c.capacity_mbps),
                energy_joules: self.radios.newest(&access.name),
                busy: access.medium.as_ref().and_then(|m| busy.get(m).copied()),
            };
            self.rows.push(TimelineRow {
                case: self.case.name.clone(),
                repeat: self.repeat,
                t_s,
                access: access.name.clone(),
                ..TimelineRow::read(&sample)
            });
            now.insert(access.name.clone(), c);
        }
        self.cpu.push(cpu);
        self.counts.push((t, now));
        self.others.push(others(&self.case, stats));
    }

    /// Fraction of the interval in which each medium was busy.
    fn media(&mut self, t: Time, stats: &Stats) -> BTreeMap<String, f64> {
        let mut out = BTreeMap::new();
        for (name, m) in &stats.media {
            let total = m.busy.as_secs_f64();
            let (t0, busy0) = self
                .busy
                .insert(name.clone(), (t, total))
                .unwrap_or((self.start, 0.0));
            let span = t.since(t0).as_secs_f64();
            if span > 0.0 {
                out.insert(name.clone(), ((total - busy0) / span).clamp(0.0, 1.0));
            }
        }
        out
    }

    /// Numbers of the ticks nearest to two times; `None` for the start, before
    /// which nothing was counted: the models start at zero.
    fn ticks(&self, from: Time, to: Time) -> Option<(Option<usize>, usize)> {
        let away = |i: &usize, t: Time| {
            let at = self.counts[*i].0;
            if at > t { at.since(t) } else { t.since(at) }
        };
        let nearest = |t: Time| (0..self.counts.len()).min_by_key(|i| away(i, t));
        let first = match from.since(self.start).is_zero() {
            true => None,
            false => nearest(from),
        };
        Some((first, nearest(to)?))
    }

    /// IP bytes of each bystander between two times, from the nearest ticks,
    /// and the time between those.
    pub(super) fn others(&self, from: Time, to: Time) -> (BTreeMap<String, u64>, Duration) {
        let Some((first, last)) = self.ticks(from, to) else {
            return (BTreeMap::new(), Duration::ZERO);
        };
        let start = first.map_or(self.start, |i| self.counts[i].0);
        let before = |name: &String| first.and_then(|i| self.others[i].get(name)).copied();
        let bytes = self.others[last].iter().map(|(name, bytes)| {
            let b = before(name).unwrap_or_default();
            (name.clone(), bytes.saturating_sub(b))
        });
        (bytes.collect(), self.counts[last].0.since(start))
    }

    /// Bytes and packets per access between two times, from the nearest ticks.
    pub(super) fn window(&self, from: Time, to: Time) -> BTreeMap<String, (u64, u64)> {
        let Some((first, last)) = self.ticks(from, to) else {
            return BTreeMap::new();
        };
        self.counts[last]
            .1
            .iter()
            .map(|(name, c)| {
                let b = first
                    .and_then(|i| self.counts[i].1.get(name))
                    .copied()
                    .unwrap_or_default();
                (
                    name.clone(),
                    (
                        c.bytes.saturating_sub(b.bytes),
                        c.packets.saturating_sub(b.packets),
                    ),
                )
            })
            .collect()
    }

    /// CPU time between two times, from the nearest ticks.
    pub(super) fn used(&self, from: Time, to: Time) -> Used {
        let Some((first, last)) = self.ticks(from, to) else {
            return Used::default();
        };
        let first = first.unwrap_or(0);
        let ticks = self.counts[last].0.since(self.counts[first].0);
        let of = to.since(from).as_secs_f64() / ticks.as_secs_f64();
        let between = |part: fn(&Used) -> Option<f64>| {
            let used = part(&self.cpu[last])? - part(&self.cpu[first])?;
            Some(used * of).filter(|s| s.is_finite())
        };
        Used {
            machine: between(|u| u.machine),
            device: between(|u| u.device),
            proxy: between(|u| u.proxy),
        }
    }

    /// Ends the case: no tick follows.
    pub(super) fn finish(&mut self) {
        self.radios.finish();
    }

    /// Energy of the radios.
    pub(super) fn radios(&self) -> &Radios {
        &self.radios
    }

    pub(super) fn into_rows(self) -> Vec<TimelineRow> {
        self.rows
    }
}

/// Bytes that each bystander has sent or got so far, as its traffic goes.
fn others(case: &Case, stats: &Stats) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for b in &case.bystanders {
        let Some(traffic) = &b.traffic else { continue };
        for device in b.devices() {
            let counts = b.accesses.iter().map(|a| {
                let path = path_name(&device, &a.name);
                count(stats, &path, traffic.direction()).bytes
            });
            let bytes = counts.sum();
            out.insert(device, bytes);
        }
    }
    out
}
