//! Configuration that the emulator gets at its start.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::model::wifi::WifiSpec;
use crate::model::{LinkSpec, RateSpec, check_rate};

/// A run of the emulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulatorConfig {
    /// Names the run in logs and statistics.
    pub run_id: String,
    /// Every random draw follows from it.
    pub seed: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds at which scenario time zero lies, from
    /// which rate steps, delay steps and traces count. `None`: the start of the
    /// emulator, until it is set by command.
    #[serde(default)]
    pub epoch_ns: Option<u64>,
    /// The paths, each with a link per direction.
    pub paths: Vec<PathConfig>,
    /// Media that links share.
    #[serde(default)]
    pub media: Vec<MediumConfig>,
    /// Lines that links go through.
    #[serde(default)]
    pub backhauls: Vec<BackhaulConfig>,
    /// Complete every checksum here instead of leaving them to the receiving
    /// kernel, which then checks every byte. Costs processor time: each packet
    /// is written on its own.
    #[serde(default)]
    pub verify: bool,
    /// Writes the head of every delivered packet to this file (pcapng, one
    /// interface per link). Costs processor time.
    #[serde(default)]
    pub pcap: Option<PathBuf>,
    /// Settings that fit the loop to the machine.
    #[serde(default)]
    pub tuning: Tuning,
}

/// Two links, one per direction, between a device and a proxy. They are called
/// `<name>.down` (proxy to device) and `<name>.up`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathConfig {
    /// Unique among the paths.
    pub name: String,
    /// The device's end.
    pub device: PortConfig,
    /// The proxy's end.
    pub proxy: PortConfig,
    /// From the proxy to the device.
    pub down: LinkSpec,
    /// From the device to the proxy.
    pub up: LinkSpec,
}

/// One end of a path: a descriptor inherited from the parent process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortConfig {
    /// Number of the descriptor, 3 or higher.
    pub fd: i32,
    /// Kind of the descriptor.
    pub kind: PortKind,
}

/// Kind of a port's descriptor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PortKind {
    /// From [`super::tun::create`].
    Tun,
    /// From [`super::veth::open`].
    Packet {
        /// Hardware address of the far end of the pair, as in `02:00:00:00:00:01`.
        peer_mac: String,
    },
}

/// A medium shared by several links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediumConfig {
    /// Unique among the media.
    pub name: String,
    /// The channel.
    pub wifi: WifiSpec,
    /// Stations that contend for the channel.
    pub stations: Vec<StationConfig>,
}

/// A line that several links go through, with one queue and one rate together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackhaulConfig {
    /// Unique among the backhauls.
    pub name: String,
    /// Its capacity. The links' own rate is to be the same, so that their limits
    /// in time and their capacity are right.
    pub rate: RateSpec,
    /// The links, such as `lte.down`; a link goes through one backhaul and is
    /// then on no medium.
    pub links: Vec<String>,
}

/// A device's uplink, or an access point with the downlinks of its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationConfig {
    /// For the reader.
    pub name: String,
    /// The links it sends; a link belongs to one station of one medium.
    pub links: Vec<StationLinkConfig>,
}

/// A link on a medium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationLinkConfig {
    /// Such as `wifi.down`.
    pub link: String,
    /// Physical-layer rate towards its receiver; `None`: the medium's default.
    #[serde(default)]
    pub phy_mbps: Option<f64>,
}

/// Settings that fit the loop to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tuning {
    /// Memory for packets in flight, MiB; packets beyond are dropped and
    /// counted as `no_buffer`.
    pub memory_mib: u32,
    /// Time stands still while the loop works, as on the virtual clock: it has
    /// no latency to make up for, and each system call is dear.
    pub simulated: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            memory_mib: 1024,
            simulated: false,
        }
    }
}

impl EmulatorConfig {
    /// Finds what cannot work.
    ///
    /// # Errors
    /// Names that repeat or are empty, descriptors used twice, media that name
    /// links that do not exist or are taken, a bad hardware address.
    pub fn check(&self) -> Result<()> {
        let mut names = HashSet::new();
        let mut fds = HashSet::new();
        ensure!(
            !self.paths.is_empty(),
            "the emulator's configuration has no paths"
        );
        for p in &self.paths {
            ensure!(!p.name.is_empty(), "a path's name is empty");
            ensure!(names.insert(&p.name), "two paths are called \"{}\"", p.name);
            for port in [&p.device, &p.proxy] {
                ensure!(
                    port.fd > 2,
                    "path \"{}\": descriptor {} is standard input, output or error; pass another",
                    p.name,
                    port.fd
                );
                ensure!(
                    fds.insert(port.fd),
                    "path \"{}\": descriptor {} is used twice",
                    p.name,
                    port.fd
                );
                if let PortKind::Packet { peer_mac } = &port.kind {
                    parse_mac(peer_mac).with_context(|| format!("path \"{}\"", p.name))?;
                }
            }
        }
        let known = |link: &str| {
            link.rsplit_once('.').is_some_and(|(path, way)| {
                names.iter().any(|n| *n == path) && matches!(way, "up" | "down")
            })
        };
        let mut media = HashSet::new();
        let mut taken = HashSet::new();
        for m in &self.media {
            ensure!(media.insert(&m.name), "two media are called \"{}\"", m.name);
            for l in m.stations.iter().flat_map(|s| &s.links) {
                ensure!(
                    known(&l.link),
                    "medium \"{}\": there is no link \"{}\"",
                    m.name,
                    l.link
                );
                ensure!(
                    taken.insert(&l.link),
                    "medium \"{}\": link \"{}\" is already on a medium",
                    m.name,
                    l.link
                );
            }
        }
        let mut backhauls = HashSet::new();
        for b in &self.backhauls {
            let name = &b.name;
            ensure!(
                backhauls.insert(name),
                "two backhauls are called \"{name}\""
            );
            check_rate(&b.rate).with_context(|| format!("backhaul \"{name}\""))?;
            for l in &b.links {
                ensure!(known(l), "backhaul \"{name}\": there is no link \"{l}\"");
                ensure!(
                    taken.insert(l),
                    "backhaul \"{name}\": link \"{l}\" is already on a medium or behind a backhaul"
                );
            }
        }
        Ok(())
    }
}

/// Reads `02:00:00:00:00:01`.
///
/// # Errors
/// Anything else.
pub(crate) fn parse_mac(text: &str) -> Result<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().unwrap_or_default();
        if part.len() != 2 {
            bail!("\"{text}\" is no hardware address: expected one such as 02:00:00:00:00:01");
        }
        *byte = u8::from_str_radix(part, 16)
            .with_context(|| format!("\"{text}\" is no hardware address"))?;
    }
    ensure!(
        parts.next().is_none(),
        "\"{text}\" is no hardware address: more than six bytes"
    );
    Ok(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(edit: impl Fn(&mut serde_json::Value)) -> Result<EmulatorConfig> {
        let link = serde_json::to_value(LinkSpec::default())?;
        let path = |name: &str, fd: i32| {
            serde_json::json!({
                "name": name,
                "device": {"fd": fd, "kind": "tun"},
                "proxy": {"fd": fd + 1, "kind": {"packet": {"peer_mac": "02:00:00:00:00:0a"}}},
                "down": link, "up": link,
            })
        };
        let mut json = serde_json::json!({
            "run_id": "r", "seed": 1, "paths": [path("nr", 3), path("wifi", 5)],
            "media": [{"name": "cell", "wifi": {"standard": "802.11g"}, "stations": [
                {"name": "ap", "links": [{"link": "wifi.down"}]},
                {"name": "sta", "links": [{"link": "wifi.up", "phy_mbps": 6.0}]},
            ]}],
            "backhauls": [{"name": "core", "rate": {"constant": 1000}, "links": ["nr.down"]}],
        });
        edit(&mut json);
        let c: EmulatorConfig = serde_json::from_value(json)?;
        c.check()?;
        Ok(c)
    }

    #[test]
    fn a_good_one_passes_and_survives_json() {
        let c = config(|_| ()).unwrap();
        let text = serde_json::to_string(&c).unwrap();
        assert_eq!(serde_json::from_str::<EmulatorConfig>(&text).unwrap(), c);
        assert_eq!(c.tuning, Tuning::default());
    }

    #[test]
    fn bad_ones_say_what_is_wrong() {
        type Edit = fn(&mut serde_json::Value);
        let cases: [(Edit, &str); 10] = [
            (|c| c["paths"] = serde_json::json!([]), "no paths"),
            (
                |c| c["paths"][1]["name"] = "nr".into(),
                "two paths are called \"nr\"",
            ),
            (
                |c| c["paths"][1]["device"]["fd"] = 4.into(),
                "descriptor 4 is used twice",
            ),
            (
                |c| c["paths"][0]["device"]["fd"] = 1.into(),
                "descriptor 1 is standard",
            ),
            (
                |c| c["paths"][0]["proxy"]["kind"]["packet"]["peer_mac"] = "02:00".into(),
                "\"02:00\" is no hardware address",
            ),
            (
                |c| c["media"][0]["stations"][1]["links"][0]["link"] = "lte.up".into(),
                "no link \"lte.up\"",
            ),
            (
                |c| c["media"][0]["stations"][1]["links"][0]["link"] = "wifi.down".into(),
                "already on a medium",
            ),
            (
                |c| c["backhauls"][0]["links"][0] = "lte.up".into(),
                "backhaul \"core\": there is no link \"lte.up\"",
            ),
            (
                |c| c["backhauls"][0]["links"][0] = "wifi.up".into(),
                "already on a medium or behind a backhaul",
            ),
            (|c| c["speed"] = 1.into(), "unknown field `speed`"),
        ];
        for (edit, want) in cases {
            let e = format!("{:#}", config(edit).unwrap_err());
            assert!(e.contains(want), "{e}");
        }
    }
}
