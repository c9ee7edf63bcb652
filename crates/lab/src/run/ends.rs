//! The engine ends of a case: one at the device, one at the proxy, driven
//! through their control sockets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use braid_core::api::{AccessChange, Connections, Counters, SchedulerChange, Weights};
use serde_json::json;

use super::Context;
use super::DEVICE;
use super::child::{Lines, log_sink, wait_ready, write_json};
use super::client::Client;
use crate::error::LabError;
use crate::scenario::{Case, Direction, Engine, PathManager};
use crate::topology::{Access, Child, Device, Namespace, Spawn, Topology};

struct End {
    // Kept for its drop, which ends the process.
    _child: Child,
    client: Client,
}

/// Both ends.
pub(super) struct Ends {
    device: End,
    proxy: End,
    accesses: Vec<String>,
    /// Of the bystanders that use MPTCP; they keep what they were given.
    _others: Vec<End>,
}

impl Ends {
    pub(super) async fn start(
        context: &Context<'_>,
        case: &Case,
        topology: &Topology,
    ) -> Result<Self, LabError> {
        let device = topology
            .device(DEVICE)
            .ok_or_else(|| anyhow::anyhow!("the topology lacks its device"))?;
        let at_device: Vec<_> = device
            .accesses
            .iter()
            .map(|a| {
                let backup = case.accesses.iter().any(|s| s.name == a.name && s.backup);
                json!({
                    "name": a.name, "kind": a.kind, "interface": a.device.name,
                    "address": a.device.addr, "backup": backup,
                })
            })
            .collect();
        let at_proxy: Vec<_> = device
            .accesses
            .iter()
            .map(|a| json!({ "name": a.name, "kind": a.kind, "address": a.device.addr }))
            .collect();
        let engine = case.engine.as_str();
        let others = others(case, topology);
        let at_the_proxy = if others.is_empty() { engine } else { "mptcp" };
        let proxy = json!({ "role": "proxy", "engine": at_the_proxy, "accesses": at_proxy });
        // A connection cannot return to the access it began on with a full mesh
        // (see docs/mptcp.md); with one proxy address both give the same subflows.
        let full_mesh = case.path_manager == PathManager::Kernel;
        let cpe = json!({
            "role": "device", "engine": engine, "proxy": topology.service,
            "full_mesh": full_mesh, "accesses": at_device,
        });
        // The proxy first: it has to allow what the device will join.
        let proxy = start(context, "proxy", &topology.proxy, &proxy).await?;
        let device = start(context, DEVICE, &device.namespace, &cpe).await?;
        let mut started = Vec::new();
        for (other, config) in others {
            started.push(start(context, &other.name, &other.namespace, &config).await?);
        }
        let accesses = case.accesses.iter().map(|a| a.name.clone()).collect();
        let mut ends = Self {
            device,
            proxy,
            accesses,
            _others: started,
        };
        ends.schedule(case).await?;
        Ok(ends)
    }

    /// Sets scheduler and weights at both ends: each sends something.
    async fn schedule(&mut self, case: &Case) -> Result<()> {
        if case.engine != Engine::Mptcp {
            return Ok(());
        }
        let change = SchedulerChange {
            name: case.scheduler.clone(),
            wrr_mode: case.wrr_mode,
            num_segments: case.num_segments,
            opportunistic: case.opportunistic,
            penalise: case.penalise,
        };
        if change != SchedulerChange::default() {
            for end in [&mut self.device, &mut self.proxy] {
                end.client.put("/v1/scheduler", &change).await?;
            }
        }
        match &case.weights {
            Some(weights) => self.weigh(weights).await,
            None => Ok(()),
        }
    }

    /// Changes weights at both ends; those of accesses that the case does not
    /// use are left out.
    pub(super) async fn weigh(&mut self, weights: &BTreeMap<String, f64>) -> Result<()> {
        let mine = weights.iter().filter(|(a, _)| self.accesses.contains(a));
        let weights = Weights(mine.map(|(a, w)| (a.clone(), *w)).collect());
        for end in [&mut self.device, &mut self.proxy] {
            end.client.put("/v1/weights", &weights).await?;
        }
        Ok(())
    }

    /// The end that sends the measured data: schedulers run there.
    fn sender(&mut self, case: &Case) -> &mut End {
        match case.traffic.direction() {
            Direction::Up => &mut self.device,
            Direction::Down | Direction::Both => &mut self.proxy,
        }
    }

    /// Adds or deletes the endpoint of an access at the device.
    pub(super) async fn enable(&mut self, access: &str, enabled: bool) -> Result<()> {
        let change = AccessChange {
            backup: None,
            enabled: Some(enabled),
        };
        self.device
            .client
            .put(&format!("/v1/accesses/{access}"), &change)
            .await
    }

    /// Subflow facts of the sender; `None` when it does not answer.
    pub(super) async fn connections(&mut self, case: &Case) -> Option<Connections> {
        self.sender(case).client.get("/v1/connections").await.ok()
    }

    /// Kernel counters of device and proxy, those that answer, by name.
    pub(super) async fn counters(&mut self) -> Vec<(&'static str, Counters)> {
        let mut all = Vec::new();
        for (name, end) in [("device", &mut self.device), ("proxy", &mut self.proxy)] {
            if let Ok(counters) = end.client.get::<Counters>("/v1/counters").await {
                all.push((name, counters));
            }
        }
        all
    }
}

/// The bystanders that use MPTCP, with what their ends are told.
fn others<'a>(case: &Case, topology: &'a Topology) -> Vec<(&'a Device, serde_json::Value)> {
    let users = case.bystanders.iter().filter(|b| b.mptcp);
    let names = users.flat_map(|b| (1..=b.count).map(|i| format!("{}-{i}", b.name)));
    let devices = names.filter_map(|n| topology.device(&n));
    let config = |d: &Device| {
        let access = |a: &Access| {
            json!({
                "name": a.name, "kind": a.kind, "interface": a.device.name,
                "address": a.device.addr,
            })
        };
        let accesses: Vec<_> = d.accesses.iter().map(access).collect();
        json!({
            "role": "device", "engine": "mptcp", "proxy": topology.service,
            "full_mesh": true, "accesses": accesses,
        })
    };
    devices.map(|d| (d, config(d))).collect()
}

async fn start(
    context: &Context<'_>,
    name: &str,
    namespace: &Namespace,
    config: &serde_json::Value,
) -> Result<End> {
    let dir = context.run.dir();
    let (file, socket): (PathBuf, PathBuf) = (
        dir.join(format!("{name}.json")),
        dir.join(format!("{name}.sock")),
    );
    write_json(&file, config)?;
    let _ = std::fs::remove_file(&socket);
    let lines = Lines::new();
    let mut child = Spawn::new(
        context.run.id(),
        format!("end of {name}"),
        &context.options.braid,
    )
    .arg("__end")
    .arg("--config")
    .arg(&file)
    .arg("--control")
    .arg(&socket)
    .in_namespace(namespace)
    .log(log_sink(context, Some(&lines)))
    .spawn()?;
    wait_ready(&mut child, &lines).await?;
    Ok(End {
        _child: child,
        client: Client::new(&socket),
    })
}
