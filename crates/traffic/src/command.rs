//! A user's program as traffic: unchanged, in the namespaces of the device and,
//! for its server, of the proxy.
//!
//! Its payload is not ours to verify; what it carried is counted on the links.

use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use braid_core::Time;
use braid_mptcp::preload;

use super::clock;
use super::listening;
use super::spec::Role;
use braid_netns::{Child, Spawn};

/// Time between two looks at a server that does not listen yet.
const LOOK: Duration = Duration::from_millis(10);
/// The longest wait for a server to listen; it may be one that never does.
const LISTEN: Duration = Duration::from_secs(2);
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// A command at the device, and perhaps one at the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Shell command line at the device. In both lines `{proxy}` and
    /// `{device}` stand for the addresses below.
    pub client: String,
    /// Shell command line at the proxy, started first.
    pub server: Option<String>,
    /// The proxy's service address.
    pub proxy: IpAddr,
    /// The device's address: that of the access of a single-path case. A
    /// program that binds to it leaves by that access.
    pub device: IpAddr,
    /// Makes both programs use MPTCP ([`braid_mptcp::preload`]).
    pub mptcp: bool,
    /// From the start of the client until it is stopped.
    pub limit: Duration,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandOutcome {
    /// When the client was started, ns of `CLOCK_MONOTONIC`.
    pub start: Time,
    /// When it had ended, ns of `CLOCK_MONOTONIC`.
    pub end: Time,
    /// Whether it was stopped at the time limit.
    pub stopped: bool,
    /// Exit status of the client; `None`: a signal ended it.
    pub status: Option<i32>,
    /// CPU time of both programs and the children they waited for, s.
    pub cpu_seconds: f64,
    /// Problem, in words; being stopped at the limit is none.
    pub problem: Option<String>,
}

/// A running command. Dropping it kills both programs.
#[derive(Debug)]
pub struct RunningCommand {
    client: Child,
    server: Option<Child>,
    start: Time,
    limit: Time,
}

fn expand(line: &str, spec: &CommandSpec) -> String {
    line.replace("{proxy}", &spec.proxy.to_string())
        .replace("{device}", &spec.device.to_string())
}

fn prepare(spec: &CommandSpec, run_id: &str, role: Role, line: &str) -> Result<Spawn<'static>> {
    let name = match role {
        Role::Client => "command",
        Role::Server => "command-server",
    };
    let mut spawn = Spawn::new(run_id, name, "/bin/sh").args(["-c", &expand(line, spec)]);
    if spec.mptcp {
        let mut preloaded = Command::new("sh");
        preload::command(&mut preloaded).context("make the command use MPTCP")?;
        for (key, value) in preloaded.get_envs() {
            spawn = spawn.env(key, value.unwrap_or_default());
        }
    }
    Ok(spawn)
}

impl RunningCommand {
    /// Starts the server, waits until it listens (at most 2 s: it may be one
    /// that never does), and starts the client. `place` puts each into its
    /// namespace, says where its output goes, and spawns it.
    ///
    /// # Errors
    /// A program cannot be started, or the server ends before it listens.
    pub fn start(
        spec: &CommandSpec,
        run_id: &str,
        mut place: impl FnMut(Role, Spawn<'static>) -> Result<Child>,
    ) -> Result<Self> {
        let mut server = None;
        if let Some(line) = &spec.server {
            let prepared = prepare(spec, run_id, Role::Server, line)?;
            let mut child = place(Role::Server, prepared)?;
            wait_until_listening(&mut child, line)?;
            server = Some(child);
        }
        let prepared = prepare(spec, run_id, Role::Client, &spec.client)?;
        let client = place(Role::Client, prepared)?;
        let start = clock::now();
        Ok(Self {
            client,
            server,
            start,
            limit: start + spec.limit,
        })
    }

    /// When the client was started, ns of `CLOCK_MONOTONIC`.
    pub fn started(&self) -> Time {
        self.start
    }

    /// Whether the client has ended, or had to be stopped at its limit; returns
    /// at once otherwise.
    ///
    /// # Errors
    /// Those of waiting for a child.
    pub fn poll(&mut self) -> Result<Option<CommandOutcome>> {
        self.wait_for(Duration::ZERO)
    }

    /// Waits until the client has ended or is stopped at its limit.
    ///
    /// # Errors
    /// Those of waiting for a child.
    pub fn wait(&mut self) -> Result<CommandOutcome> {
        loop {
            let left = self.limit.since(clock::now());
            if let Some(outcome) = self.wait_for(left)? {
                return Ok(outcome);
            }
        }
    }

    fn wait_for(&mut self, time: Duration) -> Result<Option<CommandOutcome>> {
        let exit = match self.client.wait_timeout(time)? {
            Some(exit) => (exit, false),
            None if clock::now() < self.limit => return Ok(None),
            None => (self.client.terminate(GRACE)?, true),
        };
        let (exit, stopped) = exit;
        let end = clock::now();
        let mut cpu_seconds = exit.cpu_seconds();
        if let Some(server) = &mut self.server {
            // One that serves once ends by itself and may still be printing.
            let ended = match server.wait_timeout(Duration::from_millis(300))? {
                Some(exit) => exit,
                None => server.terminate(GRACE)?,
            };
            cpu_seconds += ended.cpu_seconds();
        }
        let failed = !stopped && !exit.status.success();
        let problem = failed.then(|| {
            let hint = match exit.status.code() {
                Some(127) => " (the shell did not find the program: install it)",
                _ => "",
            };
            format!(
                "the command ended with {}{hint}: {}",
                exit.status,
                last_line(&self.client)
            )
        });
        Ok(Some(CommandOutcome {
            start: self.start,
            end,
            stopped,
            status: exit.status.code(),
            cpu_seconds,
            problem,
        }))
    }
}

fn wait_until_listening(server: &mut Child, line: &str) -> Result<()> {
    let give_up = clock::now() + LISTEN;
    while clock::now() < give_up {
        if let Some(exit) = server.wait_timeout(LOOK)? {
            bail!(
                "the server command `{line}` ended ({}) before it listened: {}",
                exit.status,
                last_line(server)
            );
        }
        if listening::group_listens(server.pid()) {
            break;
        }
    }
    Ok(())
}

fn last_line(child: &Child) -> String {
    child.tail().pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_addresses() {
        let spec = CommandSpec {
            client: String::new(),
            server: None,
            proxy: "10.77.0.1".parse().unwrap(),
            device: "10.77.1.2".parse().unwrap(),
            mptcp: false,
            limit: Duration::from_secs(1),
        };
        let line = expand("iperf3 -c {proxy} -B {device}; echo ${x} {proxy}", &spec);
        assert_eq!(
            line,
            "iperf3 -c 10.77.0.1 -B 10.77.1.2; echo ${x} 10.77.0.1"
        );
    }
}
