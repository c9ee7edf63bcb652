//! Configuration of the daemons of a case, as their files have it.

use std::net::IpAddr;

use indexmap::IndexMap as Map;
use serde::Serialize;
use serde_json::{Value, json};

use super::{EngineKeys as _, Mptcp, expected};
use crate::scenario::{Action, Case, Event, PathManager};
use braid_netns::{Access, Device, Topology};

/// Configuration of a daemon.
#[derive(Serialize)]
pub(crate) struct Config {
    engine: &'static str,
    proxy: IpAddr,
    manager: Value,
    buffers: Value,
    scheduler: Value,
    /// Section of the engine's own.
    #[serde(flatten)]
    own: Map<&'static str, Value>,
    /// In the order of preference.
    access: Map<String, Value>,
}

/// Section of an engine's own, at either end.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) device: Value,
    pub(crate) proxy: Value,
}

/// Configurations of all daemons of a case.
pub(crate) struct Configs<'a> {
    pub(crate) proxy: Config,
    pub(crate) device: Config,
    /// Configuration of a second daemon at the proxy, where the first cannot serve bystanders.
    pub(crate) proxy_of_others: Option<Config>,
    /// Bystanders that use MPTCP.
    pub(crate) others: Vec<(&'a Device, Config)>,
}

impl<'a> Configs<'a> {
    /// Configurations for `case`, whose device is `device`.
    pub(crate) fn new(
        case: &Case,
        topology: &'a Topology,
        device: &Device,
        section: Option<Section>,
    ) -> Self {
        let common = Common {
            proxy: topology.service,
            // What the namespaces have been given.
            buffers: json!({
                "tcp_rmem": case.receive_buffers(),
                "tcp_wmem": case.tcp_wmem,
                "short_queues": case.short_queues,
            }),
        };
        let (at_device, at_proxy) = match section {
            Some(s) => (
                Map::from([(s.name, s.device)]),
                Map::from([(s.name, s.proxy)]),
            ),
            None => (Map::new(), Map::new()),
        };
        let others = common.others(case, topology);
        let (own, mptcp) = (case.engine.as_str(), Mptcp::NAME);
        let apart = !others.is_empty() && !case.engine.get().in_kernel();
        let engine = if others.is_empty() || apart {
            own
        } else {
            mptcp
        };
        Self {
            proxy: Config {
                own: at_proxy,
                ..common.config(engine, json!({}), accesses_at_proxy(case, device))
            },
            device: Config {
                own: at_device,
                ..common.config(own, manager(case), accesses_at_device(case, device))
            },
            // Accesses of bystanders need no names there.
            proxy_of_others: apart.then(|| common.config(mptcp, json!({}), Map::new())),
            others,
        }
    }
}

/// Values that all daemons of a case are told.
struct Common {
    proxy: IpAddr,
    buffers: Value,
}

impl Common {
    fn config(&self, engine: &'static str, manager: Value, access: Map<String, Value>) -> Config {
        Config {
            engine,
            proxy: self.proxy,
            manager,
            buffers: self.buffers.clone(),
            // Pins no weights: what a run sets ends with it, however it ends.
            scheduler: json!({ "pin": false }),
            own: Map::new(),
            access,
        }
    }

    /// The bystanders that use MPTCP, with what their daemons are told.
    fn others<'a>(&self, case: &Case, topology: &'a Topology) -> Vec<(&'a Device, Config)> {
        let users = case.bystanders.iter().filter(|b| b.mptcp);
        let names = users.flat_map(|b| b.devices());
        let devices = names.filter_map(|n| topology.device(&n));
        let config = |d: &Device| {
            let accesses = d
                .accesses
                .iter()
                .map(|a| (a.name.clone(), at_the_device(a, Some(a.device.addr), false)));
            let manager = json!({ "recover": false, "mesh": "full" });
            self.config(Mptcp::NAME, manager, accesses.collect())
        };
        devices.map(|d| (d, config(d))).collect()
    }
}

/// `[manager]` of the device.
fn manager(case: &Case) -> Value {
    // A connection cannot return to the access it began on with a full mesh
    // (see docs/mptcp.md); with one proxy address both give the same subflows.
    let mesh = match case.path_manager {
        PathManager::Kernel => "full",
        PathManager::Notified | PathManager::Braid => "pairs",
    };
    let recover = case.path_manager == PathManager::Braid;
    json!({ "recover": recover, "mesh": mesh })
}

fn accesses_at_device(case: &Case, device: &Device) -> Map<String, Value> {
    let backup = |name: &str| case.accesses.iter().any(|s| s.name == name && s.backup);
    let accesses = device.accesses.iter().map(|a| {
        // Of one that moves, whatever address it has.
        let address = (!moves(case, &a.name)).then_some(a.device.addr);
        let mut told = at_the_device(a, address, backup(&a.name));
        if let Some(expected) = expected::at_the_start(case, &a.name) {
            told["expected"] = expected;
        }
        (a.name.clone(), told)
    });
    accesses.collect()
}

fn accesses_at_proxy(case: &Case, device: &Device) -> Map<String, Value> {
    let accesses = device.accesses.iter().map(|a| {
        let first = a.device.addr;
        let network = ipnet::IpNet::new(first, a.prefix_len).map(|n| n.trunc());
        let of = match network {
            Ok(all) if moves(case, &a.name) => all.to_string(),
            _ => first.to_string(),
        };
        (a.name.clone(), json!({ "kind": a.kind, "address": of }))
    });
    accesses.collect()
}

/// Whether an access gets further addresses.
fn moves(case: &Case, access: &str) -> bool {
    let to_others = |e: &&Event| matches!(e.action, Action::Address(_));
    (case.events.iter().filter(to_others)).any(|e| e.access == access)
}

/// An access as its device's daemon is told of it.
fn at_the_device(a: &Access, address: Option<IpAddr>, backup: bool) -> Value {
    json!({
        "kind": a.kind, "interface": a.device.name,
        "address": address, "backup": backup,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_an_engine_stands_beside_the_others() {
        let common = Common {
            proxy: "10.77.0.1".parse().unwrap(),
            buffers: json!({}),
        };
        let own = Map::from([("mpquic", json!({ "lane": "stream" }))]);
        let text = |own| {
            let config = common.config("mpquic", json!({ "mesh": "full" }), Map::new());
            serde_json::to_string(&Config { own, ..config }).unwrap()
        };
        let start = r#"{"engine":"mpquic","proxy":"10.77.0.1","manager":{"mesh":"full"},"#;
        let buffers = r#""buffers":{},"scheduler":{"pin":false},"#;
        let section = r#""mpquic":{"lane":"stream"},"#;
        let end = r#""access":{}}"#;
        assert_eq!(text(own), format!("{start}{buffers}{section}{end}"));
        assert_eq!(text(Map::new()), format!("{start}{buffers}{end}"));
    }
}
