//! The engine ends of a case: one at the device, one at the proxy, driven
//! through their control sockets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use braid_api::client::Client;
use braid_api::{
    AccessChange, AccessState, AccessStatus, Connections, ControlStatus, Counters, Event,
    EventKind, Events, Expected, Priorities, Role, SchedulerChange, Status, Weights,
};
use braid_mptcp::offer::ACTIVE_STANDBY;
use braid_mptcp::weights;
use indexmap::IndexMap as Map;
use serde::Serialize;

use super::Context;
use super::DEVICE;
use super::child::{Lines, epitaph, log_sink, wait_ready, write_json};
use super::journals::{self, Journal};
use crate::engine::config::Configs;
use crate::scenario::{Case, Direction};
use braid_netns::error::LabError;
use braid_netns::{Child, Namespace, Spawn, Topology};

/// Time for a daemon to take back what it has set, and to write its journal.
const FAREWELL: Duration = Duration::from_secs(5);
/// Schedulers that go by an order of the accesses.
const BY_ORDER: [&str; 2] = [ACTIVE_STANDBY, "priority-based"];

struct End {
    /// Its drop ends the process.
    child: Child,
    client: Client,
}

/// Both ends.
pub(super) struct Ends {
    device: End,
    proxy: End,
    accesses: Vec<String>,
    /// A weight of 0 is MP_PRIO, which the proxy cannot send.
    left_out_by_device: bool,
    /// Ends of the bystanders that use MPTCP; they keep what they were given.
    others: Vec<End>,
}

impl End {
    /// Reads the events at this end; empty when it does not answer.
    async fn events(&mut self) -> Vec<Event> {
        let events = self.client.get::<Events>("/v1/events").await;
        events.map(|e| e.events).unwrap_or_default()
    }
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
        let engine = case.engine.get();
        let dir = context.run.dir();
        journals::clear(dir)?;
        let mut configs = Configs::new(case, topology, device, dir)?;
        engine.configure(case, topology, dir, &mut configs)?;
        // The proxy first: it has to allow what the device will join.
        let mut started = Vec::new();
        if let Some(config) = &configs.proxy_of_others {
            let at = &topology.proxy;
            started.push(start(context, Role::Proxy, "mptcp-proxy", at, config).await?);
        }
        let at = &topology.proxy;
        let proxy = start(context, Role::Proxy, "proxy", at, &configs.proxy).await?;
        let at = &device.namespace;
        let device = start(context, Role::Device, DEVICE, at, &configs.device).await?;
        for (other, config) in configs.others {
            let at = &other.namespace;
            started.push(start(context, Role::Device, &other.name, at, &config).await?);
        }
        let accesses = case.accesses.iter().map(|a| a.name.clone()).collect();
        let mut ends = Self {
            device,
            proxy,
            accesses,
            left_out_by_device: engine.has_subflows() && !weights::known_to_kernel(),
            others: started,
        };
        let by_order = case
            .scheduler
            .as_deref()
            .is_some_and(|s| BY_ORDER.contains(&s));
        if by_order && engine.orders_at_both_ends() {
            ends.order(case, true).await?;
        }
        if context.controls.orders(case) {
            ends.order(case, false).await?;
        } else {
            ends.schedule(case).await?;
        }
        Ok(ends)
    }

    /// Ends the daemons of `case` and returns the journals that they have left: they write the
    /// last lines at their end.
    pub(super) fn finish(mut self, case: &Case, dir: &Path) -> Result<Vec<Journal>> {
        if !case.engine.get().has_journal() {
            return Ok(Vec::new());
        }
        for end in [&mut self.device, &mut self.proxy] {
            end.child.terminate(FAREWELL)?;
        }
        journals::read(dir)
    }

    /// Why a daemon ended, if one has.
    pub(super) fn epitaph(&mut self) -> Option<anyhow::Error> {
        let both = [&mut self.device, &mut self.proxy];
        let mut all = both.into_iter().chain(&mut self.others);
        all.find_map(|end| epitaph(&mut end.child))
    }

    /// One access carries, the next waits for it to go, or to be full, and so on; backups
    /// last. With `both`, the proxy is told, too.
    async fn order(&mut self, case: &Case, both: bool) -> Result<()> {
        let (waiting, first): (Vec<_>, Vec<_>) = case.accesses.iter().partition(|a| a.backup);
        let all = first.into_iter().chain(waiting).zip(1..);
        let order = Priorities(all.map(|(a, n)| (a.name.clone(), Some(n))).collect());
        let proxy = both.then_some(&mut self.proxy);
        for end in [&mut self.device].into_iter().chain(proxy) {
            end.client.put("/v1/priorities", &order).await?;
        }
        Ok(())
    }

    /// Sets scheduler and weights at both ends: each sends something.
    async fn schedule(&mut self, case: &Case) -> Result<()> {
        if case.engine.get().default_scheduler().is_none() {
            return Ok(());
        }
        let change = case.scheduler_change();
        // Under a policy the daemons begin with it.
        if !case.policy.decides() && change != SchedulerChange::default() {
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
        let mut weights = Weights(mine.map(|(a, w)| (a.clone(), *w)).collect());
        self.device.client.put("/v1/weights", &weights).await?;
        if self.left_out_by_device {
            weights.0.retain(|_, w| *w > 0.0);
        }
        self.proxy.client.put("/v1/weights", &weights).await?;
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
            enabled: Some(enabled),
            ..AccessChange::default()
        };
        self.change(access, &change).await
    }

    /// Tells the device what to expect of an access.
    pub(super) async fn expect(&mut self, access: &str, expected: Expected) -> Result<()> {
        let change = AccessChange {
            expected: Some(expected),
            ..AccessChange::default()
        };
        self.change(access, &change).await
    }

    async fn change(&mut self, access: &str, change: &AccessChange) -> Result<()> {
        let path = format!("/v1/accesses/{access}");
        self.device.client.put(&path, change).await?;
        Ok(())
    }

    /// Subflow facts of the sender; `None` when it does not answer.
    pub(super) async fn connections(&mut self, case: &Case) -> Option<Connections> {
        self.sender(case).client.get("/v1/connections").await.ok()
    }

    /// Decisions of the sender, and the estimates behind them; `None` where no policy decides.
    pub(super) async fn control(&mut self, case: &Case) -> Option<ControlStatus> {
        if !case.policy.decides() {
            return None;
        }
        self.sender(case).client.get("/v1/control").await.ok()
    }

    /// Reads the events at the device; empty unless the engine is Multipath TCP.
    pub(super) async fn events(&mut self, case: &Case) -> Vec<Event> {
        if !case.engine.get().has_subflows() {
            return vec![];
        }
        self.device.events().await
    }

    /// Returns the sender's reports of accesses that limit the sum.
    pub(super) async fn slow_accesses(&mut self, case: &Case) -> Vec<String> {
        if !case.engine.get().has_subflows() {
            return vec![];
        }
        let all = self.sender(case).events().await;
        let note = |e: Event| match (e.access, e.what) {
            (Some(access), EventKind::AccessSlow { why }) => Some(format!("{access}: {why}")),
            _ => None,
        };
        all.into_iter().filter_map(note).collect()
    }

    /// Accesses that the device leaves out of the case, and why: a note for each reason.
    /// Those that wait as a backup, or that the run has taken down, are none.
    pub(super) async fn left_out(&mut self) -> Vec<String> {
        let status = self.device.client.get::<Status>("/v1/status").await;
        notes_on_left_out(status.map(|s| s.accesses).unwrap_or_default())
    }

    /// The processes at device and proxy.
    pub(super) fn processes(&self) -> (i32, i32) {
        (self.device.child.pid(), self.proxy.child.pid())
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

fn notes_on_left_out(accesses: Vec<AccessStatus>) -> Vec<String> {
    let mut reasons: Map<String, Vec<String>> = Map::new();
    for a in accesses {
        let out = matches!(a.state, AccessState::Ignored | AccessState::NoAddress);
        if out && a.enabled {
            reasons.entry(a.why).or_default().push(a.name);
        }
    }
    let note =
        |(why, names): (String, Vec<String>)| format!("{}: not used: {why}", names.join(", "));
    reasons.into_iter().map(note).collect()
}

async fn start(
    context: &Context<'_>,
    role: Role,
    name: &str,
    namespace: &Namespace,
    config: &impl Serialize,
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
        format!("daemon of {name}"),
        &context.options.braid,
    )
    .arg(match role {
        Role::Device => "up",
        Role::Proxy => "proxy",
    })
    .arg("--config")
    .arg(&file)
    .arg("--control")
    .arg(&socket)
    .in_namespace(namespace)
    .log(log_sink(context, Some(&lines)))
    .spawn()?;
    wait_ready(&mut child, &lines).await?;
    Ok(End {
        child,
        client: Client::new(&socket),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn access(name: &str, state: &str, why: &str) -> AccessStatus {
        serde_json::from_value(json!({
            "name": name, "kind": "lte", "address": null, "interface": name, "ifindex": null,
            "up": true, "has_address": true, "enabled": why != "off", "backup": false,
            "weight": null, "endpoint_id": null, "state": state, "why": why, "addresses": [],
        }))
        .expect("a status")
    }

    #[test]
    fn accesses_that_are_left_out_are_told_once_for_each_reason() {
        let limit = "the kernel takes 8 endpoints and others come before it";
        let notes = notes_on_left_out(vec![
            access("a1", "active", "used"),
            access("a2", "backup", "waits"),
            access("a3", "ignored", limit),
            access("a4", "no-address", "no route"),
            access("a5", "ignored", limit),
            access("a6", "ignored", "off"),
        ]);
        let wanted = [
            format!("a3, a5: not used: {limit}"),
            "a4: not used: no route".into(),
        ];
        assert_eq!(notes, wanted);
    }
}
