//! Configuration of the daemons of a case, as their files have it.

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result};
use braid_api::config::{
    Buffers, Config, Control, DeviceAccess, Estimator, Manager, Mesh, NAMESPACES_CC, Policy,
    ProxyAccess, Scheduler, Transfers,
};
use braid_api::{Engine, Expected, Limit, Role, SchedulerChange, power_set};
use indexmap::IndexMap as Map;
use ipnet::IpNet;

use super::expected;
use crate::run::journals;
use crate::scenario::{Action, Case, Event, PathManager, Power, Traffic};
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
    /// The daemons write their journals to `dir`.
    pub(crate) fn new(
        case: &Case,
        topology: &'a Topology,
        device: &Device,
        dir: &Path,
    ) -> Result<Self> {
        let others = others(case, topology)?;
        let own = case.engine.get();
        let apart = !others.is_empty() && !own.in_kernel();
        let at_proxy = match others.is_empty() || apart {
            true => own.daemons(),
            false => Engine::Mptcp,
        };
        Ok(Self {
            proxy: Config {
                engine: Some(at_proxy),
                access: accesses_at_proxy(case, device),
                scheduler: Some(scheduler(case, at_proxy)),
                control: control(case, dir, Role::Proxy),
                ..common(case, topology)
            },
            device: Config {
                engine: Some(own.daemons()),
                manager: manager(case),
                scheduler: Some(scheduler(case, own.daemons())),
                control: control(case, dir, Role::Device),
                access: accesses_at_device(case, device, dir)?,
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
        proxy: vec![topology.service.into()],
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
            cc: cc(case),
            ..Scheduler::default()
        }),
        ..Config::default()
    }
}

/// `[scheduler]` of the measured device and its proxy. Under a policy it stands in their files,
/// for the policy to set weights from the first connection on; all else is a request.
fn scheduler(case: &Case, engine: Engine) -> Scheduler {
    let change = match case.policy.decides() {
        true => case.scheduler_change(),
        false => SchedulerChange::default(),
    };
    Scheduler {
        name: change.name,
        wrr_mode: change.wrr_mode,
        num_segments: change.num_segments,
        opportunistic: change.opportunistic,
        penalise: change.penalise,
        pin: Some(false),
        cc: cc(case).filter(|_| engine == Engine::Mptcp),
    }
}

/// Returns the congestion control that a daemon of Multipath TCP gives the namespace. The lab's
/// own sockets ask for theirs; a user's program has what the daemon brings.
fn cc(case: &Case) -> Option<String> {
    let is_users = matches!(case.traffic, Traffic::Command(_));
    (!is_users).then(|| NAMESPACES_CC.to_owned())
}

/// `[control]` of the measured device and its proxy.
fn control(case: &Case, dir: &Path, role: Role) -> Control {
    let journal = case.engine.get().has_journal();
    // Radios rest at the device, by its decision; the proxy shares among those that carry.
    let policy = match role {
        Role::Proxy if case.policy.rests() => Policy::Capacity,
        _ => case.policy,
    };
    Control {
        policy,
        journal: journal.then(|| journals::path(dir, role)),
        journal_bytes: journals::LIMIT,
        probe: case
            .probes
            .clone()
            .map_or_else(Transfers::default, |t| Transfers {
                serve: role == Role::Proxy,
                ledger: dir.join("probes.json"),
                ..t
            }),
        ..Control::default()
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

fn accesses_at_device(
    case: &Case,
    device: &Device,
    dir: &Path,
) -> Result<Map<String, DeviceAccess>> {
    let accesses = device.accesses.iter().map(|a| {
        let setup = case.accesses.iter().find(|s| s.name == a.name);
        // Of one that moves, whatever address it has.
        let address = (!moves(case, &a.name)).then_some(a.device.addr);
        let told = DeviceAccess {
            backup: setup.is_some_and(|s| s.backup),
            estimator: setup.map(|s| s.estimator).unwrap_or_default(),
            expected: expected::at_the_start(case, &a.name),
            power: match setup.and_then(|s| s.power.as_ref()) {
                Some(power) if case.policy.rests() => Some(power_file(power, &a.name, dir)?),
                _ => None,
            },
            ..at_the_device(a, address)?
        };
        Ok((a.name.clone(), told))
    });
    accesses.collect()
}

/// Writes the power model of an access for its daemon; returns the name of the file.
fn power_file(power: &Power, access: &str, dir: &Path) -> Result<String> {
    let path = dir.join(format!("power-{access}.toml"));
    std::fs::write(&path, power_set::to_text(&power.set, power.parameters))
        .with_context(|| format!("write the power model {}", path.display()))?;
    Ok(path.display().to_string())
}

fn accesses_at_proxy(case: &Case, device: &Device) -> Map<String, ProxyAccess> {
    let accesses = device.accesses.iter().map(|a| {
        let setup = case.accesses.iter().find(|s| s.name == a.name);
        let first = a.device.addr;
        let network = IpNet::new(first, a.prefix_len).map(|n| n.trunc());
        let told = ProxyAccess {
            kind: a.kind,
            address: match network {
                Ok(all) if moves(case, &a.name) => all,
                _ => first.into(),
            },
            weight: None,
            estimator: match setup.map(|s| s.estimator).unwrap_or_default() {
                // Expectations are the device's.
                Estimator::Expected => Estimator::default(),
                other => other,
            },
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
        limit: Limit::default(),
        estimator: Estimator::default(),
        cap: None,
        power: None,
    })
}

#[cfg(test)]
mod tests {
    use braid_core::sched::WrrMode;

    use super::*;
    use crate::scenario::{Overrides, Scenario};

    #[test]
    fn a_policy_stands_in_the_files_of_the_daemons() {
        let text = r#"
name = "t"
duration = "2 s"
policy = "capacity"
[access.a]
kind = "5g"
down = { rate = "10 Mbit/s" }
[[case]]
name = "capacity"
engine = "mptcp"
wrr_mode = "strict"
traffic = "bulk"
[[case]]
name = "static"
engine = "mpquic"
policy = "static"
scheduler = "wrr"
traffic = "bulk"
[[case]]
name = "probed"
engine = "mptcp"
estimator = "probe"
traffic = "bulk"
[[case]]
name = "one path"
engine = "tcp"
access = "a"
traffic = "bulk"
"#;
        let dir = Path::new("/run/t");
        let s = Scenario::parse(text, Path::new("t.toml"), dir, &Overrides::default()).unwrap();
        let of = |case: &Case| Config::<ProxyAccess> {
            engine: Some(Engine::Mptcp),
            scheduler: Some(scheduler(case, Engine::Mptcp)),
            control: control(case, dir, Role::Proxy),
            ..Config::default()
        };
        let [capacity, fixed, probed, one_path] = [0, 1, 2, 3].map(|i| of(&s.cases[i]));
        capacity.check().unwrap();
        assert_eq!(capacity.control.policy, Policy::Capacity);
        let journal = Some(dir.join("proxy.jsonl"));
        assert_eq!(capacity.control.journal, journal);
        let begins_with = capacity.scheduler.unwrap();
        assert_eq!(begins_with.name.as_deref(), Some("wrr"));
        assert_eq!(begins_with.wrr_mode, Some(WrrMode::Strict));
        // Requests bring what other cases have.
        assert_eq!(fixed.control.policy, Policy::Static);
        assert_eq!(fixed.control.journal, journal);
        assert_eq!(
            fixed.scheduler.unwrap().change(),
            SchedulerChange::default()
        );
        assert_eq!(one_path.control.journal, None);
        let cc = |engine| scheduler(&s.cases[1], engine).cc;
        assert_eq!(cc(Engine::Mptcp).as_deref(), Some("default"));
        assert_eq!(cc(Engine::Mpquic), None);
        probed.check().unwrap();
        assert!(probed.control.probe.serve && !capacity.control.probe.serve);
        let device = control(&s.cases[2], dir, Role::Device).probe;
        assert!(!device.serve && device.hour_bytes > 1 << 40);
    }
}
