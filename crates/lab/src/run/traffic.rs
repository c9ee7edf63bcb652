//! The applications of a case: our own traffic or a user's command, at both
//! ends, and what they report.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result};
use braid_core::Time;
use braid_radio::model::LinkSpec;

use super::Context;
use super::DEVICE;
use super::child::log_sink;
use super::program::{App, pair};
use crate::engine::{BESIDE_PORT, PORT};
use crate::scenario::{Beside, Case, Command, Direction, Place, Traffic, queued};
use braid_netns::error::LabError;
use braid_netns::{Device, Spawn, Topology};
use braid_traffic::{
    self, CommandOutcome, CommandSpec, Role, RunningCommand, TrafficReport, TrafficSpec, Transport,
};

/// Reports of both ends of one traffic.
#[derive(Default)]
pub(super) struct Reports {
    pub(super) client: Option<TrafficReport>,
    pub(super) server: Option<TrafficReport>,
}

impl Reports {
    /// The report of the end that received the measured data.
    pub(super) fn receiver(&self, direction: Direction) -> Option<&TrafficReport> {
        match direction {
            Direction::Up => self.server.as_ref(),
            Direction::Down | Direction::Both => self.client.as_ref(),
        }
    }

    /// The report of the end that sent it.
    pub(super) fn sender(&self, direction: Direction) -> Option<&TrafficReport> {
        match direction {
            Direction::Up => self.client.as_ref(),
            Direction::Down | Direction::Both => self.server.as_ref(),
        }
    }

    /// Reports of the ends that received something.
    pub(super) fn receivers(&self, direction: Direction) -> impl Iterator<Item = &TrafficReport> {
        let (client, server) = match direction {
            Direction::Down => (self.client.as_ref(), None),
            Direction::Up => (None, self.server.as_ref()),
            Direction::Both => (self.client.as_ref(), self.server.as_ref()),
        };
        client.into_iter().chain(server)
    }
}

/// Results of the measured traffic, and of that beside it.
pub(super) struct Traffics {
    pub(super) measured: Reports,
    pub(super) beside: Option<Reports>,
    /// CPU time of the traffic's processes, s.
    pub(super) cpu_seconds: f64,
    /// Measured window, `CLOCK_MONOTONIC`.
    pub(super) window: (Time, Time),
    /// Outcome of a command that did not succeed.
    pub(super) problem: Option<String>,
}

/// Both ends of traffic of our own.
struct Pair {
    server: App,
    client: App,
}

impl Pair {
    async fn reports(&mut self) -> Result<()> {
        self.client.until_report().await?;
        self.server.until_report().await
    }

    fn finish(self) -> (Reports, f64) {
        let cpu_seconds = self.client.cpu_seconds + self.server.cpu_seconds;
        let (client, server) = (self.client.report, self.server.report);
        (Reports { client, server }, cpu_seconds)
    }
}

/// The measured applications.
enum Measured {
    Ours(Box<Pair>),
    Command {
        running: Box<RunningCommand>,
        outcome: Option<Box<CommandOutcome>>,
    },
}

/// The running applications.
pub(super) struct Apps {
    case: Case,
    measured: Measured,
    beside: Option<Pair>,
    /// Ended with the case.
    _bystanders: Vec<App>,
    started: Option<Time>,
}

impl Apps {
    pub(super) async fn start(
        context: &Context<'_>,
        case: &Case,
        topology: &Topology,
    ) -> Result<Self, LabError> {
        let device = topology
            .device(DEVICE)
            .context("the topology lacks its device")?;
        // Before what is measured, so that it meets them as they are.
        let bystanders = bystanders(context, case, topology).await?;
        let beside = match &case.beside {
            None => None,
            Some(Beside { traffic, from }) => {
                let own = Own {
                    name: "beside",
                    port: BESIDE_PORT,
                    traffic,
                    from: *from,
                };
                Some(own.start(context, case, topology).await?)
            }
        };
        let measured = match &case.traffic {
            Traffic::Command(of) => {
                let running = command(context, case, topology, device, of)?;
                Measured::Command {
                    running: Box::new(running),
                    outcome: None,
                }
            }
            ours => {
                let own = Own {
                    name: "traffic",
                    port: PORT,
                    traffic: ours,
                    from: case.from,
                };
                Measured::Ours(Box::new(own.start(context, case, topology).await?))
            }
        };
        Ok(Self {
            case: case.clone(),
            measured,
            beside,
            _bystanders: bystanders,
            started: None,
        })
    }

    /// When the payload starts: what both ends agree on, or when the command did.
    pub(super) async fn start_time(&mut self) -> Result<Time> {
        let start = match &mut self.measured {
            Measured::Command { running, .. } => running.started(),
            Measured::Ours(pair) => pair.client.connected().await?,
        };
        if let Some(beside) = &mut self.beside {
            beside.client.connected().await?;
        }
        self.started = Some(start);
        Ok(start)
    }

    /// Ends when the measured traffic, and that beside it, have reported at both ends.
    pub(super) async fn reports(&mut self) -> Result<()> {
        match &mut self.measured {
            Measured::Ours(pair) => pair.reports().await?,
            Measured::Command { running, outcome } => {
                while outcome.is_none() {
                    *outcome = running.poll()?.map(Box::new);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
        match &mut self.beside {
            Some(beside) => beside.reports().await,
            None => Ok(()),
        }
    }

    pub(super) fn finish(self) -> Result<Traffics> {
        let start = self.started.context("the traffic never started")?;
        let (beside, cpu_beside) = match self.beside.map(Pair::finish) {
            Some((reports, cpu_seconds)) => (Some(reports), cpu_seconds),
            None => (None, 0.0),
        };
        match self.measured {
            Measured::Ours(pair) => {
                let (reports, cpu_seconds) = pair.finish();
                let of = |r: &Option<TrafficReport>| {
                    r.as_ref()
                        .and_then(|r| Some((r.window_start_ns?, r.window_end_ns?)))
                };
                let (client, server) = (of(&reports.client), of(&reports.server));
                let window = match self.case.traffic.direction() {
                    Direction::Up => server.or(client),
                    Direction::Down | Direction::Both => client.or(server),
                };
                let window =
                    window.unwrap_or((start + self.case.warmup, start + self.case.duration));
                Ok(Traffics {
                    measured: reports,
                    beside,
                    cpu_seconds: cpu_seconds + cpu_beside,
                    window,
                    problem: None,
                })
            }
            Measured::Command { outcome, .. } => {
                let o = outcome.context("the command has not ended")?;
                // A command shorter than the warm-up is measured whole.
                let warm = start + self.case.warmup;
                let from = if warm < o.end { warm } else { start };
                Ok(Traffics {
                    measured: Reports::default(),
                    beside,
                    cpu_seconds: o.cpu_seconds + cpu_beside,
                    window: (from, o.end),
                    problem: o.problem,
                })
            }
        }
    }
}

/// Traffic of our own that a case asks for.
struct Own<'a> {
    /// Name of its processes.
    name: &'static str,
    port: u16,
    traffic: &'a Traffic,
    from: Place,
}

impl Own<'_> {
    /// Starts both ends where they belong.
    async fn start(&self, context: &Context<'_>, case: &Case, topology: &Topology) -> Result<Pair> {
        let device = (topology.device(DEVICE)).context("the topology lacks its device")?;
        let engine = case.engine.get();
        let (namespaces, at, ways) = match self.from {
            Place::Device => {
                let local = engine.access().map(|a| address(device, a)).transpose()?;
                let by = engine.forwarded(self.port);
                let namespaces = [&device.namespace, &topology.proxy];
                (namespaces, topology.service, (local, by))
            }
            Place::Lan => {
                let hosts = (topology.hosts.as_ref()).context("the topology lacks its hosts")?;
                let namespaces = [&hosts.host, &hosts.server];
                (namespaces, hosts.server_addr, (None, None))
            }
        };
        let transport = match self.from {
            _ if self.traffic.is_udp() => Transport::Udp,
            Place::Device => engine.sockets(),
            Place::Lan => Transport::Tcp,
        };
        let at = SocketAddr::new(at, self.port);
        let spec = own_spec(context, case, self.traffic, at, transport)?;
        let (server, client) = pair(context, namespaces, self.name, spec, ways).await?;
        Ok(Pair { server, client })
    }
}

/// Specification of traffic of the case, which waits for the slowest access.
fn own_spec(
    context: &Context<'_>,
    case: &Case,
    traffic: &Traffic,
    at: SocketAddr,
    transport: Transport,
) -> Result<TrafficSpec> {
    let slowest = (case.accesses.iter().map(longest_rtt).max()).unwrap_or_default();
    let mut spec = spec(traffic, at, transport, case)?;
    spec.cc = context.controls.of_case(case).map(str::to_owned);
    spec.warmup = case.warmup;
    spec.seed = context.scenario.seed;
    spec.setup += slowest * 8;
    spec.grace += slowest * 2;
    Ok(spec)
}

async fn bystanders(context: &Context<'_>, case: &Case, topology: &Topology) -> Result<Vec<App>> {
    let mut apps = Vec::new();
    let mut port = PORT;
    for b in &case.bystanders {
        let Some(traffic) = &b.traffic else { continue };
        for name in b.devices() {
            port += 1;
            let from = topology
                .device(&name)
                .context("the topology lacks a bystander")?;
            let transport = match traffic {
                t if t.is_udp() => Transport::Udp,
                _ if b.mptcp => Transport::Mptcp,
                _ => Transport::Tcp,
            };
            let mut spec = spec(
                traffic,
                SocketAddr::new(topology.service, port),
                transport,
                case,
            )?;
            spec.cc = (b.cc.as_deref()).map(|cc| context.controls.of_kernel(cc).to_owned());
            // Until after the end of what is measured.
            spec.duration += Duration::from_secs(5);
            let first = from.accesses.first().map(|a| a.device.addr);
            let local = first.filter(|_| !b.mptcp);
            let (server, client) = pair(
                context,
                [&from.namespace, &topology.proxy],
                &name,
                spec,
                (local, None),
            )
            .await?;
            apps.extend([server, client]);
        }
    }
    Ok(apps)
}

fn command(
    context: &Context<'_>,
    case: &Case,
    topology: &Topology,
    device: &Device,
    of: &Command,
) -> Result<RunningCommand> {
    let first = device
        .accesses
        .first()
        .context("the device has no access")?;
    let spec = CommandSpec {
        client: of.run.clone(),
        server: of.server.clone(),
        proxy: topology.service,
        device: first.device.addr,
        mptcp: case.engine.get().has_subflows(),
        limit: of.time_limit.unwrap_or(case.duration),
    };
    let _ = context.log.line(&format!("command: $ {}", of.run));
    RunningCommand::start(&spec, context.run.id(), |role, spawn| {
        let namespace = match role {
            Role::Client => &device.namespace,
            Role::Server => &topology.proxy,
        };
        let spawn: Spawn<'_> = spawn;
        spawn
            .in_namespace(namespace)
            .log(log_sink(context, None))
            .spawn()
    })
}

fn address(device: &Device, access: &str) -> Result<IpAddr> {
    let found = device.accesses.iter().find(|a| a.name == access);
    found
        .map(|a| a.device.addr)
        .with_context(|| format!("no access \"{access}\""))
}

/// An upper bound of the RTT of an access with full queues.
fn longest_rtt(a: &crate::scenario::AccessSetup) -> Duration {
    let one = |l: &LinkSpec| l.longest_delay() + queued(&l.queue);
    one(&a.down) + one(&a.up)
}

fn spec(
    traffic: &Traffic,
    at: SocketAddr,
    transport: Transport,
    case: &Case,
) -> Result<TrafficSpec> {
    let kind = traffic.ours().context("a command is no traffic of ours")?;
    let mut spec = TrafficSpec::new(Role::Server, at, kind, case.duration);
    spec.transport = transport;
    spec.direction = match traffic.direction() {
        Direction::Down => braid_traffic::Direction::Down,
        Direction::Up => braid_traffic::Direction::Up,
        Direction::Both => braid_traffic::Direction::Both,
    };
    Ok(spec)
}
