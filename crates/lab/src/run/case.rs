//! One case, from an empty machine to its result and back.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use braid_core::Time;
use serde::{Deserialize, Serialize};

use super::daemons::Ends;
use super::energy::Radios;
use super::events::Schedule;
use super::journals::Journal;
use super::radio::Radio;
use super::sampler::{Sampler, Told, Used};
use super::traffic::Apps;
use super::{Context, DEVICE, Progress, kernel_counters, result};
use crate::cpu;
use crate::scenario::{Case, Traffic};
use crate::summary::{CaseResult, EventRow, TimelineRow};
use braid_netns::error::LabError;
use braid_netns::{AccessSpec, DeviceSpec, Family, HostsSpec, Topology, TopologySpec};
use braid_traffic::clock::now;

/// How often the loop looks at the time when nothing happens.
const TICK: Duration = Duration::from_millis(100);
/// How often it looks whether a process has died.
const LOOK: Duration = Duration::from_millis(50);
/// How long the traffic may take to report after its end.
const PATIENCE: Duration = Duration::from_secs(15);

/// Result and rows that a case leaves behind.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) result: CaseResult,
    pub(super) timeline: Vec<TimelineRow>,
    pub(super) events: Vec<EventRow>,
    #[serde(default)]
    pub(super) journals: Vec<Journal>,
}

pub(super) async fn run(
    context: &Context<'_>,
    case: &Case,
    repeat: u32,
    progress: &mut dyn Progress,
) -> Result<Measured, LabError> {
    let log = &context.log;
    let _ = log.line(&format!("case \"{}\", repeat {repeat}", case.name));
    let topology = Topology::build(&topology_spec(context, case))?;
    for note in &topology.notes {
        let _ = log.line(&format!("topology: {note}"));
    }
    let mut radio = Radio::start(context, case, repeat, &topology).await?;
    let mut ends = Ends::start(context, case, &topology).await?;
    let mut apps = Apps::start(context, case, &topology).await?;
    let mut interrupt = context.interrupt.clone();

    let start = tokio::select! {
        met = apps.start_time() => met?,
        died = died(&mut radio, &mut ends) => return Err(died.into()),
        _ = interrupt.wait_for(|i| *i) => return Err(LabError::Interrupted),
    };
    let mut stage = Stage {
        context,
        case,
        repeat,
        start,
        topology: &topology,
        radio: &mut radio,
        ends: &mut ends,
    };
    let measured = stage.measure(apps, progress).await;
    // What else failed then failed because of it, and what did not was cut short.
    match epitaph(&mut radio, &mut ends) {
        Some(died) if !matches!(measured, Err(LabError::Interrupted)) => return Err(died.into()),
        _ => {}
    }
    let mut measured = measured?;
    measured.journals = ends.finish(case, context.run.dir())?;
    Ok(measured)
}

/// Why the emulator or a daemon ended, if one has.
fn epitaph(radio: &mut Radio, ends: &mut Ends) -> Option<anyhow::Error> {
    radio.epitaph().or_else(|| ends.epitaph())
}

/// Ends when one of them does, with the reason.
async fn died(radio: &mut Radio, ends: &mut Ends) -> anyhow::Error {
    loop {
        if let Some(reason) = epitaph(radio, ends) {
            return reason;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A case that is set up.
struct Stage<'a, 'c> {
    context: &'a Context<'c>,
    case: &'a Case,
    repeat: u32,
    start: Time,
    topology: &'a Topology,
    radio: &'a mut Radio,
    ends: &'a mut Ends,
}

impl Stage<'_, '_> {
    async fn measure(
        &mut self,
        mut apps: Apps,
        progress: &mut dyn Progress,
    ) -> Result<Measured, LabError> {
        let (case, start) = (self.case, self.start);
        self.radio.set_epoch(start).await?;
        let left_out = self.ends.left_out().await;
        let radios = Radios::new(case, start, |path| self.radio.place(path));
        let mut sampler = Sampler::new(case, self.repeat, start, radios);
        let mut schedule = Schedule::new(case, self.repeat, start);
        schedule.arm(self.radio).await?;
        self.watch(&mut apps, &mut sampler, &mut schedule, progress)
            .await?;

        let stats = self.radio.stats().await?;
        schedule.watch(&stats);
        let told = Told {
            connections: None,
            control: self.ends.control(case).await,
            weights: schedule.weights.clone(),
        };
        sampler.tick(now(), &stats, &told, self.cpu());
        sampler.finish();
        let counters = self.ends.counters().await;
        for (end, counters) in &counters {
            let _ = self
                .context
                .log
                .line(&kernel_counters::counters_line(end, counters));
        }
        let slow = self.ends.slow_accesses(case).await;
        if !schedule.outages.is_empty() {
            schedule.hear(&self.ends.events(case).await);
        }
        let traffic = apps.finish()?;
        let inputs = result::Inputs {
            case,
            repeat: self.repeat,
            start,
            sampler: &sampler,
            schedule: &schedule,
            traffic: &traffic,
            stats: &stats,
            counters: &counters,
            ipv6: self.context.scenario.network.ipv6,
            mtu: self.context.scenario.network.mtu,
        };
        let mut result = result::assemble(&inputs, self.radio)
            .await
            .context("read the emulator's counters")?;
        result.notes.extend(self.topology.notes.iter().cloned());
        result.notes.extend(left_out);
        result.notes.extend(slow);
        if let Some(why) = self.context.controls.long_queues(case) {
            result
                .notes
                .push(format!("subflows have long queues: {why}"));
        }
        if let Some(cc) = self.context.controls.usual_cc(case) {
            result.cc = Some(cc.into());
        }
        if self.context.controls.stands_in(case) {
            result.cc = Some("wrr".into());
            if let Some(cc) = &case.cc {
                result.notes.push(format!(
                    "on this kernel weights take the place of the congestion control {cc}"
                ));
            }
        }
        let mut events = schedule.rows();
        events.extend(result::pauses(case, self.repeat, &stats));
        events.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
        Ok(Measured {
            result,
            timeline: sampler.into_rows(),
            events,
            journals: Vec::new(),
        })
    }

    /// Reads the CPU time used so far; inside of a guest none of it counts.
    fn cpu(&self) -> Used {
        if self.context.simulated {
            return Used::default();
        }
        let (device, proxy) = self.ends.processes();
        Used {
            machine: cpu::busy_seconds(),
            device: cpu::process_seconds(device).ok(),
            proxy: cpu::process_seconds(proxy).ok(),
        }
    }

    /// Samples and carries out events until the traffic has reported.
    async fn watch(
        &mut self,
        apps: &mut Apps,
        sampler: &mut Sampler,
        schedule: &mut Schedule,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let mut interrupt = self.context.interrupt.clone();
        let end = self.start + self.case.duration;
        let mut next_tick = self.start + TICK;
        loop {
            let wake = next_tick.min(schedule.next());
            tokio::select! {
                biased;
                _ = interrupt.wait_for(|i| *i) => return Err(LabError::Interrupted),
                died = died(self.radio, self.ends) => return Err(died.into()),
                done = apps.reports() => return Ok(done?),
                () = tokio::time::sleep(wake.since(now())) => {}
            }
            let t = now();
            let weights = schedule.weights.clone();
            schedule
                .run(t, self.topology, self.radio, self.ends)
                .await?;
            if t >= next_tick {
                let stats = self.radio.stats().await?;
                schedule.watch(&stats);
                let told = Told {
                    connections: self.ends.connections(self.case).await,
                    control: self.ends.control(self.case).await,
                    weights,
                };
                sampler.tick(t, &stats, &told, self.cpu());
                progress.elapsed(t.since(self.start));
                while next_tick <= t {
                    next_tick += TICK;
                }
            }
            if t > end + PATIENCE {
                return Err(anyhow!(
                    "the traffic of case \"{}\" did not report within {} s of its end; see run.log",
                    self.case.name,
                    PATIENCE.as_secs()
                )
                .into());
            }
        }
    }
}

fn topology_spec(context: &Context<'_>, case: &Case) -> TopologySpec {
    let accesses = |list: &[crate::scenario::AccessSetup]| -> Vec<AccessSpec> {
        list.iter()
            .map(|a| AccessSpec {
                name: a.name.clone(),
                kind: a.kind,
            })
            .collect()
    };
    let mut mine: Vec<AccessSpec> = accesses(&case.accesses);
    if let Some(access) = case.engine.get().access() {
        // A program that binds to no address takes the first access.
        mine.sort_by_key(|a| a.name != access);
    }
    let mut devices = vec![DeviceSpec {
        name: DEVICE.into(),
        accesses: mine,
    }];
    for b in &case.bystanders {
        for name in b.devices() {
            devices.push(DeviceSpec {
                name,
                accesses: accesses(&b.accesses),
            });
        }
    }
    let hosts = case.has_hosts().then(|| HostsSpec {
        // Of a plain path packets have to come back. Everything else brings its own way, and what
        // would leave past that shall find none.
        routed_by: case.engine.get().access().map(str::to_owned),
    });
    let network = &context.scenario.network;
    let mut spec = TopologySpec::new(context.run.id().to_owned(), devices);
    spec.family = if network.ipv6 {
        Family::Ipv6
    } else {
        Family::Ipv4
    };
    spec.prefix = network
        .prefix
        .and_then(|(addr, len)| ipnet::IpNet::new(addr, len).ok());
    spec.mtu = network.mtu;
    spec.hosts = hosts;
    spec.tcp_rmem = case.receive_buffers();
    spec.tcp_wmem = case.tcp_wmem;
    spec.ports = context.options.ports;
    let cc = context.controls.of_case(case);
    if let (Traffic::Command(_), Some(cc)) = (&case.traffic, cc) {
        // A command's sockets are not ours to set, but their default is.
        spec.sysctls
            .insert("net.ipv4.tcp_congestion_control".into(), cc.to_owned());
    }
    spec
}
