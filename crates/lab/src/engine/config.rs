//! Configuration of the daemons of a case, as their files have it.

use std::net::IpAddr;

use anyhow::Result;
use braid_api::config::{Buffers, Config, DeviceAccess, Manager, Mesh, ProxyAccess, Scheduler};
use braid_api::{Engine, Expected};
use indexmap::IndexMap as Map;
use ipnet::IpNet;

use super::expected;
use crate::scenario::{Action, Case, Event, PathManager};
use braid_netns::{Access, Device, Topology};

/// Configurations of all daemons of a case.
pub(crate) struct Configs<'a> {
    pub(crate) proxy: Config<ProxyAccess>,
    pub(crate) device: Config<DeviceAccess>,
    /// Configuration of a second daemon at the proxy, where the first cannot serve bystanders.
    pub(crate) proxy_of_others: Option<Config<ProxyAccess>>,
    /// Bystanders that use MPTCP.
    pub(crate) others: Vec<(&'a Device, Config<DeviceAccess>)>,
}

impl<'a> Configs<'a> {
    /// Configurations for `case`, whose device is `device`, without what is the engine's own.
    pub(crate) fn new(case: &Case, topology: &'a Topology, device: &Device) -> Result<Self> {
        let others = others(case, topology)?;
        let own = case.engine.get();
        let apart = !others.is_empty() && !own.in_kernel();
        Ok(Self {
            proxy: Config {
                engine: match others.is_empty() || apart {
                    true => own.daemons(),
                    false => Engine::Mptcp,
                },
                access: accesses_at_proxy(case, device),
                ..common(case, topology)
            },
            device: Config {
                engine: own.daemons(),
                manager: manager(case),
                access: accesses_at_device(case, device)?,
                ..common(case, topology)
            },
            // Accesses of bystanders need no names there.
            proxy_of_others: apart.then(|| common(case, topology)),
            others,
        })
    }
}

/// Configuration that all daemons of a case have in common: Multipath TCP, no access.
fn common<A>(case: &Case, topology: &Topology) -> Config<A> {
    Config {
        proxy: vec![topology.service],
        // What the namespaces have been given.
        buffers: Buffers {
            tcp_rmem: Some(case.receive_buffers()),
            tcp_wmem: Some(case.tcp_wmem),
            short_queues: case.short_queues,
            ..Buffers::default()
        },
        // Pins no weights: what a run sets ends with it, however it ends.
        scheduler: Some(Scheduler {
            pin: Some(false),
            ..Scheduler::default()
        }),
        ..Config::default()
    }
}

/// The bystanders that use MPTCP, with what their daemons are told.
fn others<'a>(
    case: &Case,
    topology: &'a Topology,
) -> Result<Vec<(&'a Device, Config<DeviceAccess>)>> {
    let users = case.bystanders.iter().filter(|b| b.mptcp);
    let names = users.flat_map(|b| b.devices());
    let devices = names.filter_map(|n| topology.device(&n));
    let config = |d: &Device| -> Result<Config<DeviceAccess>> {
        let accesses = d.accesses.iter().map(|a| {
            let told = at_the_device(a, Some(a.device.addr))?;
            Ok((a.name.clone(), told))
        });
        Ok(Config {
            manager: Manager {
                recover: false,
                mesh: Mesh::Full,
                ..Manager::default()
            },
            access: accesses.collect::<Result<_>>()?,
            ..common(case, topology)
        })
    };
    devices.map(|d| Ok((d, config(d)?))).collect()
}

/// `[manager]` of the device.
fn manager(case: &Case) -> Manager {
    Manager {
        recover: case.path_manager == PathManager::Braid,
        // A connection cannot return to the access it began on with a full mesh
        // (see docs/mptcp.md); with one proxy address both give the same subflows.
        mesh: match case.path_manager {
            PathManager::Kernel => Mesh::Full,
            PathManager::Notified | PathManager::Braid => Mesh::Pairs,
        },
        ..Manager::default()
    }
}

fn accesses_at_device(case: &Case, device: &Device) -> Result<Map<String, DeviceAccess>> {
    let backup = |name: &str| case.accesses.iter().any(|s| s.name == name && s.backup);
    let accesses = device.accesses.iter().map(|a| {
        // Of one that moves, whatever address it has.
        let address = (!moves(case, &a.name)).then_some(a.device.addr);
        let told = DeviceAccess {
            backup: backup(&a.name),
            expected: expected::at_the_start(case, &a.name),
            ..at_the_device(a, address)?
        };
        Ok((a.name.clone(), told))
    });
    accesses.collect()
}

fn accesses_at_proxy(case: &Case, device: &Device) -> Map<String, ProxyAccess> {
    let accesses = device.accesses.iter().map(|a| {
        let first = a.device.addr;
        let network = IpNet::new(first, a.prefix_len).map(|n| n.trunc());
        let told = ProxyAccess {
            kind: a.kind,
            address: match network {
                Ok(all) if moves(case, &a.name) => all,
                _ => first.into(),
            },
            weight: None,
        };
        (a.name.clone(), told)
    });
    accesses.collect()
}

/// Whether an access gets further addresses.
fn moves(case: &Case, access: &str) -> bool {
    let to_others = |e: &&Event| matches!(e.action, Action::Address(_));
    (case.events.iter().filter(to_others)).any(|e| e.access == access)
}

/// Access as its device's daemon is told of it.
fn at_the_device(a: &Access, address: Option<IpAddr>) -> Result<DeviceAccess> {
    Ok(DeviceAccess {
        interface: a
            .device
            .name
            .parse()
            .map_err(anyhow::Error::msg::<String>)?,
        kind: a.kind,
        address,
        max_addresses: None,
        backup: false,
        priority: None,
        weight: None,
        expected: Expected::default(),
    })
}
