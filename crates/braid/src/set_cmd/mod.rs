//! `braid set`: changes a running daemon over its control API.

mod given;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use braid_api::client::{Client, segment};
use braid_api::{
    AccessChange, Engine, Expected, Limit, Priorities, Role, SchedulerChange, Weights,
};
use braid_core::sched::WrrMode;
use braid_netns::error::LabError;
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;

use self::given::{expected, once, priority, share, shown};
use crate::daemon_error::daemon;
use crate::runtime::runtime;

/// `braid set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Control socket of the daemon
    #[arg(long, value_name = "PATH", global = true, default_value = braid_api::DEFAULT_SOCKET)]
    control: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Shares of accesses; those not named keep theirs. At the device in both directions, at the
    /// proxy in what it sends
    Weights {
        /// Access and share, 0 to 1000000, one of them above 0: nr=30 wifi=100
        #[arg(required_unless_present = "reset", value_name = "NAME=W", value_parser = share)]
        weights: Vec<(String, f64)>,
        /// Of this connection alone, until it ends (braid status --connections)
        #[arg(long, value_name = "TOKEN")]
        connection: Option<u32>,
        /// Give the connection back to the weights of all
        #[arg(long, requires = "connection", conflicts_with = "weights")]
        reset: bool,
        /// In uplinks alone: in what the device sends
        #[arg(long, conflicts_with_all = ["down", "connection"])]
        up: bool,
        /// In downlinks alone: in what the proxy sends
        #[arg(long, conflicts_with = "connection")]
        down: bool,
    },
    /// Order of accesses: those of the least number carry, the others wait until all
    /// of these have gone; those not named keep theirs
    Priority {
        /// Access and number, 0 to 65535, or none: nr=1 wifi=2
        #[arg(required = true, value_name = "NAME=N", value_parser = priority)]
        priorities: Vec<(String, Option<u16>)>,
    },
    /// What accesses are expected to carry, so that new paths, and those that have not sent
    /// much yet, need not find it out from ten packets on (Multipath QUIC)
    Expect {
        /// Access and its rates down and up, Mbit/s, both anew, or none: nr=300/50 wifi=800
        /// lifi=/20 lte=none
        #[arg(required = true, value_name = "NAME=[DOWN][/UP]", value_parser = expected)]
        accesses: Vec<(String, Expected)>,
    },
    /// Greatest rates that are sent on accesses, whatever they could carry (Multipath QUIC)
    Limit {
        /// Access and its rates down and up, Mbit/s, both anew, or none: nr=20/5 lte=/1 wifi=none
        #[arg(required = true, value_name = "NAME=[DOWN][/UP]", value_parser = expected)]
        accesses: Vec<(String, Expected)>,
    },
    /// Use an access only when no other is active, or at all times
    Backup {
        /// Access
        name: String,
        /// Only when no other is active?
        #[arg(value_enum)]
        on: Switch,
    },
    /// Use an access, or leave it: connections that are on it alone end
    Access {
        /// Access
        name: String,
        /// Use it?
        #[arg(value_enum)]
        on: Use,
    },
    /// How this end shares what it sends among the accesses, for connections that begin
    /// afterwards
    Scheduler {
        /// default, wrr, ... (braid doctor says which there are)
        #[arg(required_unless_present = "mode")]
        name: Option<String>,
        /// What weighted round robin does where an access cannot carry its share; counts at
        /// once
        #[arg(long, value_enum)]
        mode: Option<Mode>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Use {
    /// Use it
    On,
    /// Leave it
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// The ratio holds: the slowest access, for its weight, limits the rest
    Strict,
    /// Every access carries what it can
    WorkConserving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Only when no other is active
    On,
    /// At all times
    Off,
}

/// Asks for the change, and prints how things are then.
///
/// # Errors
/// No daemon serves the control socket, or it refuses.
pub fn run(args: SetArgs) -> Result<ExitCode> {
    let runtime = runtime()?;
    let mut client = Client::new(&args.control);
    runtime.block_on(async {
        match args.what {
            What::Weights {
                weights,
                connection,
                reset,
                up,
                down,
            } => {
                let change = Weights(once(weights)?.into_iter().collect());
                match connection {
                    Some(token) => set_weights_of_one(&mut client, token, reset, &change).await?,
                    None => set_weights(&mut client, (up, down), &change).await?,
                }
            }
            What::Priority { priorities } => {
                let change = Priorities(once(priorities)?.into_iter().collect());
                let now: Priorities = client
                    .put_for("/v1/priorities", &change)
                    .await
                    .map_err(daemon)?;
                let number = |n: &Option<u16>| n.map_or("none".into(), |n| n.to_string());
                let all = now
                    .0
                    .iter()
                    .map(|(name, n)| format!("{name}={}", number(n)));
                braid_api::say!("priority: {}", all.collect::<Vec<_>>().join(" "));
            }
            What::Expect { accesses } => {
                let accesses = once(accesses)?;
                // One name that is wrong changes nothing.
                for (name, _) in &accesses {
                    put(&mut client, name, &AccessChange::default()).await?;
                }
                for (name, expected) in accesses {
                    let change = AccessChange {
                        expected: Some(expected),
                        ..AccessChange::default()
                    };
                    let now = put(&mut client, &name, &change).await?;
                    braid_api::say!("{name}: expected {} Mbit/s", shown(now.expected));
                }
            }
            What::Limit { accesses } => {
                let accesses = once(accesses)?;
                // One name that is wrong changes nothing.
                for (name, _) in &accesses {
                    put(&mut client, name, &AccessChange::default()).await?;
                }
                for (name, Expected { down, up }) in accesses {
                    let change = AccessChange {
                        limit: Some(Limit { down, up }),
                        ..AccessChange::default()
                    };
                    let Limit { down, up } = put(&mut client, &name, &change).await?.limit;
                    braid_api::say!("{name}: limit {} Mbit/s", shown(Expected { down, up }));
                }
            }
            What::Backup { name, on } => {
                let change = AccessChange {
                    backup: Some(on == Switch::On),
                    ..AccessChange::default()
                };
                let now = put(&mut client, &name, &change).await?;
                let is = if now.backup { "on" } else { "off" };
                braid_api::say!("{name}: backup {is}");
            }
            What::Access { name, on } => {
                let change = AccessChange {
                    enabled: Some(on == Use::On),
                    ..AccessChange::default()
                };
                let now = put(&mut client, &name, &change).await?;
                braid_api::say!("{name}: {}", if now.enabled { "on" } else { "off" });
            }
            What::Scheduler { name, mode } => {
                let change = SchedulerChange {
                    name,
                    wrr_mode: mode.map(|m| match m {
                        Mode::Strict => WrrMode::Strict,
                        Mode::WorkConserving => WrrMode::WorkConserving,
                    }),
                    ..SchedulerChange::default()
                };
                let now: SchedulerChange = client
                    .put_for("/v1/scheduler", &change)
                    .await
                    .map_err(daemon)?;
                // Kernels from before 6.8 name none.
                let name = now.name.as_deref().unwrap_or("default");
                let mode = match now.wrr_mode {
                    Some(WrrMode::Strict) => ", strict",
                    Some(WrrMode::WorkConserving) => ", work-conserving",
                    None => "",
                };
                braid_api::say!("scheduler: {name}{mode}");
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Properties of an end by which directions are chosen.
#[derive(Deserialize)]
struct End {
    role: Role,
    engine: Engine,
    /// Absent where nobody can be asked to set weights of downlinks.
    #[serde(default)]
    down_weights: Option<BTreeMap<String, f64>>,
}

/// Changes the weights of all connections, in one direction or both.
async fn set_weights(client: &mut Client, only: (bool, bool), change: &Weights) -> Result<()> {
    let end: End = client.get("/v1/status").await.map_err(daemon)?;
    let (up, down) = match (end.role, only) {
        (Role::Proxy, (true, _)) => {
            let what = "weights of uplinks: this is the proxy, and the device sets them: run it \
                        there, or leave --up out";
            return Err(LabError::BadInput(what.into()).into());
        }
        // What it sends are the downlinks.
        (Role::Proxy, _) => (true, false),
        (Role::Device, (false, false)) => (true, end.down_weights.is_some()),
        (Role::Device, only) => only,
    };
    let zero = change.0.values().any(|w| *w == 0.0);
    if zero && down && !up && end.engine != Engine::Mpquic {
        let what = "weight 0 leaves an access out in both directions (MP_PRIO): leave --down out, \
                    or take a small weight";
        return Err(LabError::BadInput(what.into()).into());
    }
    // First what another host may refuse: then nothing has changed.
    let downlinks = match down {
        true => Some(put_weights(client, DOWNLINKS, change).await),
        false => None,
    };
    let downlinks = downlinks.transpose().map_err(|e| match up {
        true => e.context("nothing was changed (--up sets those of uplinks alone)"),
        false => e,
    })?;
    if up {
        match put_weights(client, UPLINKS, change).await {
            Ok(now) => braid_api::say!("weights: {}", all(&now)),
            Err(e) => {
                if downlinks.is_some() {
                    let before = end.down_weights.unwrap_or_default();
                    let old = |name: &String| before.get(name).copied().unwrap_or(1.0);
                    let old = change.0.keys().map(|n| (n.clone(), old(n)));
                    // Its reason is no news beside the first.
                    let _ = put_weights(client, DOWNLINKS, &Weights(old.collect())).await;
                }
                return Err(e);
            }
        }
    }
    if let Some(now) = downlinks {
        braid_api::say!("weights of downlinks: {}", all(&now));
    }
    Ok(())
}

/// Requests for weights of what this end sends, and of what the proxy sends to it.
const UPLINKS: &str = "/v1/weights";
const DOWNLINKS: &str = "/v1/weights/down";

async fn put_weights(client: &mut Client, path: &str, change: &Weights) -> Result<Weights> {
    client.put_for(path, change).await.map_err(daemon)
}

/// Changes the weights of one connection.
async fn set_weights_of_one(
    client: &mut Client,
    token: u32,
    reset: bool,
    change: &Weights,
) -> Result<()> {
    let path = format!("/v1/connections/{token}/weights");
    let now = match reset {
        true => client.delete_for::<Weights>(&path).await,
        false => client.put_for::<_, Weights>(&path, change).await,
    };
    braid_api::say!("weights of {token}: {}", all(&now.map_err(daemon)?));
    Ok(())
}

fn all(weights: &Weights) -> String {
    let all = weights.0.iter().map(|(name, w)| format!("{name}={w}"));
    all.collect::<Vec<_>>().join(" ")
}

/// Changes one access.
async fn put(client: &mut Client, name: &str, change: &AccessChange) -> Result<Now> {
    let path = format!("/v1/accesses/{}", segment(name));
    client.put_for(&path, change).await.map_err(daemon)
}

/// Properties of an access that are printed.
#[derive(Deserialize)]
struct Now {
    backup: bool,
    enabled: bool,
    #[serde(default)]
    expected: Expected,
    #[serde(default)]
    limit: Limit,
}
