//! One end of the lab's own traffic, as a child process.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use braid_core::Time;

use super::Context;
use super::child::{Lines, READY, log_sink, write_json};
use braid_netns::{Child, Namespace, Spawn};
use braid_traffic::clock::now;
use braid_traffic::{Role, TrafficEvent, TrafficReport, TrafficSpec};

/// A running end.
pub(super) struct App {
    child: Child,
    lines: Arc<Lines>,
    pub(super) report: Option<TrafficReport>,
    pub(super) cpu_seconds: f64,
}

impl App {
    fn last_line(&self) -> String {
        self.child.tail().last().cloned().unwrap_or_default()
    }

    /// The next thing it says; an error when it has ended without a report.
    async fn event(&mut self) -> Result<Option<TrafficEvent>> {
        match tokio::time::timeout(Duration::from_millis(50), self.lines.next()).await {
            Ok(line) => Ok(serde_json::from_str(&line).ok()),
            Err(_) => match self.child.try_wait()? {
                None => Ok(None),
                // Its last lines may still be on their way from the pipe.
                Some(exit) => {
                    match tokio::time::timeout(Duration::from_millis(200), self.lines.next()).await
                    {
                        Ok(line) => Ok(serde_json::from_str(&line).ok()),
                        Err(_) => Err(anyhow!(
                            "{} ended ({}) without a report: {}",
                            self.child.name(),
                            exit.status,
                            self.last_line()
                        )),
                    }
                }
            },
        }
    }

    /// When the payload starts, as both ends agreed.
    pub(super) async fn connected(&mut self) -> Result<Time> {
        loop {
            match self.event().await? {
                Some(TrafficEvent::Connected { start_ns, .. }) => return Ok(start_ns),
                Some(TrafficEvent::Report(r)) => {
                    bail!(
                        "the two ends of the traffic did not meet: {}",
                        r.errors.join("; ")
                    );
                }
                _ => {}
            }
        }
    }

    pub(super) async fn until_report(&mut self) -> Result<()> {
        while self.report.is_none() {
            if let Some(TrafficEvent::Report(r)) = self.event().await? {
                self.cpu_seconds = r.cpu_seconds;
                self.report = Some(*r);
            }
        }
        Ok(())
    }
}

/// Starts the server, and when it listens the client, which connects from an address and to
/// another than the server's where that is given.
pub(super) async fn pair(
    context: &Context<'_>,
    [client, at_server]: [&Namespace; 2],
    name: &str,
    spec: TrafficSpec,
    (local, by): (Option<IpAddr>, Option<SocketAddr>),
) -> Result<(App, App)> {
    let mut server = start(context, at_server, &format!("{name}-server"), &spec)?;
    let until = now() + READY;
    loop {
        match server.event().await? {
            Some(TrafficEvent::Ready { .. }) => break,
            Some(TrafficEvent::Report(r)) => {
                bail!("{name}: the server failed: {}", r.errors.join("; "))
            }
            _ if now() > until => bail!(
                "{name}: the server was not ready within {} s",
                READY.as_secs()
            ),
            _ => {}
        }
    }
    let spec = TrafficSpec {
        role: Role::Client,
        local,
        address: by.unwrap_or(spec.address),
        ..spec
    };
    let client = start(context, client, &format!("{name}-client"), &spec)?;
    Ok((server, client))
}

fn start(
    context: &Context<'_>,
    namespace: &Namespace,
    name: &str,
    spec: &TrafficSpec,
) -> Result<App> {
    let file = context.run.dir().join(format!("{name}.json"));
    write_json(&file, spec)?;
    let lines = Lines::new();
    let child = Spawn::new(context.run.id(), name, &context.options.braid)
        .arg("__traffic")
        .arg("--spec")
        .arg(&file)
        .in_namespace(namespace)
        .log(log_sink(context, Some(&lines)))
        .spawn()?;
    Ok(App {
        child,
        lines,
        report: None,
        cpu_seconds: 0.0,
    })
}
