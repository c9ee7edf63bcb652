//! The emulator of a case.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use braid_core::Time;
use braid_radio::emulator::api::{CapacityQuery, Stats};
use braid_radio::emulator::{
    BackhaulConfig, Client, EmulatorConfig, MediumConfig, PathConfig, StationConfig,
    StationLinkConfig, Tuning,
};
use braid_radio::model::wifi::WifiSpec;
use braid_radio::model::{LinkChange, LinkSpec};

use super::Context;
use super::DEVICE;
use super::child::{Lines, epitaph, log_sink, wait_ready, write_json};
use crate::scenario::{AccessSetup, Case};
use braid_netns::error::LabError;
use braid_netns::{Access, Child, Spawn, Topology};

/// The emulator process and a client of it.
pub(super) struct Radio {
    child: Child,
    client: Client,
    media: Vec<MediumConfig>,
}

/// Place of a path on a medium, by which its counters are found.
pub(super) struct Place {
    /// Name of the medium.
    pub(super) medium: String,
    /// Station and receiver of the downlink.
    pub(super) down: (usize, usize),
    /// Station and receiver of the uplink.
    pub(super) up: (usize, usize),
}

/// Name of an access's path in the emulator: the access, and for bystanders
/// the device before it.
pub(super) fn path_name(device: &str, access: &str) -> String {
    if device == DEVICE {
        access.to_owned()
    } else {
        format!("{device}/{access}")
    }
}

impl Radio {
    pub(super) async fn start(
        context: &Context<'_>,
        case: &Case,
        repeat: u32,
        topology: &Topology,
    ) -> Result<Self, LabError> {
        let config = config(context, case, repeat, topology)?;
        config
            .check()
            .map_err(|e| LabError::BadInput(format!("case \"{}\": {e:#}", case.name)))?;
        let dir = context.run.dir();
        let (file, socket) = (dir.join("radio.json"), dir.join("radio.sock"));
        write_json(&file, &config)?;
        let _ = std::fs::remove_file(&socket);
        let lines = Lines::new();
        let mut spawn = Spawn::new(context.run.id(), "emulator", &context.options.braid)
            .arg("__radio")
            .arg("--config")
            .arg(&file)
            .arg("--control")
            .arg(&socket)
            .log(log_sink(context, Some(&lines)));
        for access in topology.devices.iter().flat_map(|d| &d.accesses) {
            spawn = spawn
                .inherit(&access.ports.device)
                .inherit(&access.ports.proxy);
        }
        let mut child = spawn.spawn()?;
        wait_ready(&mut child, &lines).await?;
        Ok(Self {
            child,
            client: Client::new(socket),
            media: config.media,
        })
    }

    /// Returns where on a medium a path is, if one serves it.
    pub(super) fn place(&self, path: &str) -> Option<Place> {
        self.media.iter().find_map(|m| {
            let place = |way: &str| {
                let link = format!("{path}.{way}");
                m.stations.iter().enumerate().find_map(|(s, station)| {
                    let receiver = station.links.iter().position(|l| l.link == link)?;
                    Some((s, receiver))
                })
            };
            Some(Place {
                medium: m.name.clone(),
                down: place("down")?,
                up: place("up")?,
            })
        })
    }

    /// Why the emulator ended, if it has.
    pub(super) fn epitaph(&mut self) -> Option<anyhow::Error> {
        epitaph(&mut self.child)
    }

    pub(super) async fn set_epoch(&self, start: Time) -> Result<()> {
        self.client
            .set_epoch(Some(start.as_nanos()))
            .await
            .map(drop)
    }

    pub(super) async fn stats(&self) -> Result<Stats> {
        self.client.stats().await
    }

    /// Changes a link `at` after the epoch.
    pub(super) async fn change(&self, link: &str, change: &LinkChange, at: Duration) -> Result<()> {
        let at_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.client.change(link, change, Some(at_ns)).await
    }

    /// Asks the emulator to note when `bytes` more were handed to a link.
    pub(super) async fn mark(&self, link: &str, bytes: u64) -> Result<()> {
        self.client.mark(link, bytes).await
    }

    /// Bits that a link could carry between two times since the epoch; `None`:
    /// no limit of its own.
    pub(super) async fn capacity(
        &self,
        link: &str,
        from: Duration,
        to: Duration,
    ) -> Result<Option<f64>> {
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        self.client
            .capacity(&CapacityQuery {
                link: link.to_owned(),
                from_ns: ns(from),
                to_ns: ns(to),
            })
            .await
    }
}

fn config(
    context: &Context<'_>,
    case: &Case,
    repeat: u32,
    topology: &Topology,
) -> Result<EmulatorConfig> {
    let mut paths = Vec::new();
    let mut members: Vec<Member<'_>> = Vec::new();
    let mut backhauls: Vec<BackhaulConfig> = Vec::new();
    for device in &topology.devices {
        for access in &device.accesses {
            let setup = setup_of(case, &device.name, &access.name)?;
            let name = path_name(&device.name, &access.name);
            if let Some(medium) = &setup.medium {
                members.push(Member {
                    medium,
                    path: name.clone(),
                    setup,
                });
            }
            if let Some(b) = &setup.backhaul {
                for (way, link) in [("down", &setup.down), ("up", &setup.up)] {
                    go_through(&mut backhauls, format!("{b}.{way}"), link, &name, way);
                }
            }
            paths.push(path(name, access, setup));
        }
    }
    let media = context
        .scenario
        .media
        .iter()
        .filter(|(name, _)| members.iter().any(|m| m.medium == *name))
        .map(|(name, medium)| medium_config(name, medium, &members))
        .collect();
    Ok(EmulatorConfig {
        run_id: context.run.id().to_owned(),
        // Repeats are independent samples, and yet each can be run again.
        seed: context.scenario.seed.wrapping_add(u64::from(repeat) - 1),
        epoch_ns: None,
        paths,
        media,
        backhauls,
        verify: false,
        pcap: None,
        tuning: Tuning {
            simulated: context.simulated,
            ..Tuning::default()
        },
    })
}

/// Routes the link `path.way` through the backhaul `name`, whose rate it bears.
fn go_through(
    backhauls: &mut Vec<BackhaulConfig>,
    name: String,
    link: &LinkSpec,
    path: &str,
    way: &str,
) {
    let link_name = format!("{path}.{way}");
    match backhauls.iter_mut().find(|b| b.name == name) {
        Some(b) => b.links.push(link_name),
        None => backhauls.push(BackhaulConfig {
            name,
            rate: link.rate.clone(),
            links: vec![link_name],
        }),
    }
}

struct Member<'a> {
    medium: &'a str,
    path: String,
    setup: &'a AccessSetup,
}

fn setup_of<'a>(case: &'a Case, device: &str, access: &str) -> Result<&'a AccessSetup> {
    let list = if device == DEVICE {
        &case.accesses
    } else {
        let kind = device.rsplit_once('-').map_or(device, |(k, _)| k);
        match case.bystanders.iter().find(|b| b.name == kind) {
            Some(b) => &b.accesses,
            None => bail!("no device \"{kind}\" in the case"),
        }
    };
    list.iter()
        .find(|a| a.name == access)
        .with_context(|| format!("no access \"{access}\" of device \"{device}\" in the case"))
}

fn path(name: String, access: &Access, setup: &AccessSetup) -> PathConfig {
    PathConfig {
        name,
        device: access.ports.device.config(),
        proxy: access.ports.proxy.config(),
        down: setup.down.clone(),
        up: setup.up.clone(),
    }
}

/// The access point contends as one station with all its downlinks; each
/// device's uplink is a station of its own.
fn medium_config(name: &str, wifi: &WifiSpec, members: &[Member<'_>]) -> MediumConfig {
    let mine = || members.iter().filter(|m| m.medium == name);
    let link = |m: &Member<'_>, way: &str| StationLinkConfig {
        link: format!("{}.{way}", m.path),
        phy_mbps: m.setup.phy_rate.map(braid_core::Rate::as_mbps),
    };
    let mut stations = vec![StationConfig {
        name: "access point".into(),
        links: mine().map(|m| link(m, "down")).collect(),
    }];
    stations.extend(mine().map(|m| StationConfig {
        name: m.path.clone(),
        links: vec![link(m, "up")],
    }));
    MediumConfig {
        name: name.to_owned(),
        wifi: wifi.clone(),
        stations,
    }
}
