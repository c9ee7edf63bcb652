//! Multipath QUIC over all accesses of the case.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use braid_api::{Acks, Lane, Role, config};
use braid_core::overhead;
use braid_core::sched::WrrMode;
use braid_mpquic::tls::{Identity, Pin};
use braid_mpquic::{Error, Options, Steering, congestion};
use braid_netns::Topology;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use super::config::Configs;
use super::keys::{self, minrtt, wrr_mode};
use super::{AccessNamed, BESIDE_PORT, EngineKeys, LabEngine, PORT};
use crate::scenario::AccessSetup;
use crate::scenario::raw::RawCase;
use crate::scenario::{Case, Expect, Place, Problem, Traffic, unknown};

/// Where the device's end takes connections of its programs, to be forwarded to the proxy.
const fn at_device(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Multipath QUIC over all accesses of the case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mpquic {
    /// Lane that carries the data.
    pub lane: Lane,
    /// Whether what blocks the receiver is sent again (datagram lane).
    pub reinject: bool,
    /// Whether a path that replaces another begins with half of what that carried.
    pub resume: bool,
    /// Where acknowledgements leave (datagram lane).
    pub acks: Acks,
    /// Bytes of a stream under way, at most, if not what the receiver has room for
    /// (datagram lane).
    pub send_window: Option<u64>,
}

impl EngineKeys for Mpquic {
    const NAME: &'static str = "mpquic";

    fn parse(raw: &RawCase, _access: AccessNamed<'_>) -> Result<Self, Problem> {
        if let Some(a) = &raw.access {
            return Err(Problem::at(
                a.span(),
                "Multipath QUIC uses all accesses: to restrict it, list `accesses = [...]`",
            ));
        }
        if let Some(n) = &raw.num_segments {
            return Err(Problem::at(
                n.span(),
                "Multipath QUIC's round robin takes turns of one packet",
            ));
        }
        minrtt(raw, "only the kernel's \"minrtt\" has this")?;
        let lane = word(&raw.lane, "lane", Lane::ALL, Lane::as_str)?;
        if let Some(cc) = &raw.cc
            && !congestion::names().any(|n| n == cc.get_ref())
        {
            return Err(unknown(cc, "congestion control", congestion::names()));
        }
        let name = raw.scheduler.as_ref().map_or("minrtt", |s| s.get_ref());
        if !matches!(name, "rr" | "wrr")
            && let Some(mode) = &raw.wrr_mode
        {
            let refusal = "only the schedulers \"rr\" and \"wrr\" have this";
            return Err(Problem::at(mode.span(), refusal));
        }
        if name != "wrr"
            && let Some(w) = &raw.weights
        {
            return Err(Problem::at(
                w.span(),
                "only the scheduler \"wrr\" has weights: add scheduler = \"wrr\"",
            ));
        }
        let mode = raw.wrr_mode.as_ref().map(wrr_mode).transpose()?;
        let steering = Steering {
            scheduler: name.to_owned(),
            wrr_mode: mode.unwrap_or(WrrMode::WorkConserving),
            reinject: true,
            ..Steering::default()
        };
        if let (Err(e), Some(given)) = (steering.make(lane), &raw.scheduler) {
            return Err(match e {
                Error::UnknownScheduler { .. } => {
                    let known = braid_core::sched::SCHEDULERS.iter().map(|(n, _)| *n);
                    unknown(given, "scheduler", known)
                }
                other => Problem::at(given.span(), other.to_string()),
            });
        }
        if let Some(given) = raw.expect.as_ref().filter(|_| lane == Lane::Stream) {
            return Err(Problem::at(
                given.span(),
                "only on the datagram lane the proxy is told what the device expects",
            ));
        }
        let acks = raw.acks.as_ref().map(Spanned::span);
        let window = raw.send_window.as_ref().map(Spanned::span);
        if let Some(span) = acks.or(window).filter(|_| lane == Lane::Stream) {
            return Err(Problem::at(span, "only the datagram lane has this"));
        }
        let reinject = raw.reinject.as_ref();
        if let Some(given) = reinject.filter(|r| *r.get_ref() && lane == Lane::Stream) {
            return Err(Problem::at(
                given.span(),
                "only the datagram lane sends again what blocks the receiver",
            ));
        }
        Ok(Self {
            lane,
            reinject: reinject.map_or(lane == Lane::Datagram, |r| *r.get_ref()),
            resume: raw.resume.as_ref().is_none_or(|r| *r.get_ref()),
            acks: word(
                &raw.acks,
                "way of acknowledgements",
                Acks::ALL,
                Acks::as_str,
            )?,
            send_window: send_window(raw)?,
        })
    }
}

impl LabEngine for Mpquic {
    /// Ports of the device are forwarded one by one. Hosts need no such thing.
    fn refuses(&self, traffic: &Traffic, from: Place) -> Option<&'static str> {
        match traffic {
            Traffic::Command(_) => Some(
                "a command of yours has no way into Multipath QUIC from the device: use engine = \
                 \"mptcp\", or one of Braid's own kinds of traffic",
            ),
            _ if from == Place::Lan && self.lane == Lane::Stream && traffic.is_udp() => {
                Some("packets of hosts go on the datagram lane alone: remove lane = \"stream\"")
            }
            t if t.is_udp() && from == Place::Device => Some(
                "UDP goes over Multipath QUIC from hosts behind the device: add from = \"lan\", \
                 or use transport = \"stream\", or engine = \"tcp\" with the access that the \
                 datagrams take",
            ),
            _ => None,
        }
    }

    fn expect(&self, raw: &RawCase, seed: u64) -> Result<Option<Expect>, Problem> {
        keys::expect(raw, seed)
    }

    fn default_scheduler(&self) -> Option<&'static str> {
        Some("minrtt")
    }

    fn default_cc(&self) -> Option<&'static str> {
        Some(config::MPQUIC_CC)
    }

    fn lane(&self) -> Option<Lane> {
        Some(self.lane)
    }

    fn in_kernel(&self) -> bool {
        false
    }

    fn forwarded(&self, port: u16) -> Option<SocketAddr> {
        Some(at_device(port))
    }

    fn orders_at_both_ends(&self) -> bool {
        true
    }

    fn daemons(&self) -> braid_api::Engine {
        braid_api::Engine::Mpquic
    }

    fn configure(
        &self,
        case: &Case,
        topology: &Topology,
        dir: &Path,
        configs: &mut Configs<'_>,
    ) -> anyhow::Result<()> {
        let keys = keys(dir)?;
        let of = |role| Some(self.section(&keys, case, topology, role));
        configs.device.mpquic = of(Role::Device);
        configs.proxy.mpquic = of(Role::Proxy);
        if let Some(hosts) = &topology.hosts {
            configs.device.lan = Some(config::Lan {
                interfaces: vec![hosts.lan.name.clone()],
                kill_switch: true,
                // Nobody here asks a resolver.
                dns: false,
            });
            // Packets need a TUN device, which the machine may lack; connections do not.
            if braid_netns::tun_usable().is_ok() {
                configs.proxy.gateway = Some(config::Gateway::default());
            }
        }
        Ok(())
    }

    fn transport(&self) -> overhead::Transport {
        match self.lane {
            Lane::Stream => overhead::Transport::MpquicStream,
            Lane::Datagram => overhead::Transport::MpquicDatagram,
        }
    }

    fn single<'a>(&'a self, accesses: &'a [AccessSetup]) -> Option<&'a str> {
        match accesses {
            [only] => Some(&only.name),
            _ => None,
        }
    }
}

impl Mpquic {
    /// `[mpquic]` of an end.
    fn section(&self, keys: &Keys, case: &Case, topology: &Topology, role: Role) -> config::Mpquic {
        let (own, other) = match role {
            Role::Device => (&keys.device, &keys.proxy),
            Role::Proxy => (&keys.proxy, &keys.device),
        };
        let mut section = config::Mpquic {
            certificate: Some(own.0.clone()),
            key: Some(own.1.clone()),
            pins: vec![other.2.to_string()],
            cc: case.cc.as_deref().unwrap_or(config::MPQUIC_CC).to_owned(),
            resume: self.resume,
            lane: self.lane,
            reinject: self.reinject,
            acks: self.acks,
            send_window: self.send_window,
            ..config::Mpquic::default()
        };
        match role {
            Role::Device => {
                let beside = case.beside.as_ref().map(|_| BESIDE_PORT);
                let ports = [PORT].into_iter().chain(beside);
                section.forward.extend(ports.map(|port| config::Forward {
                    listen: at_device(port),
                    to: SocketAddr::new(topology.service, port),
                }));
            }
            Role::Proxy => {
                let server = topology.hosts.as_ref().map(|h| h.server_addr);
                let to = [topology.service].into_iter().chain(server);
                section.allow.networks.extend(to.map(Into::<IpNet>::into));
            }
        }
        section
    }
}

/// One of the words that there are.
fn word<T: Copy + Default, const N: usize>(
    given: &Option<Spanned<String>>,
    what: &str,
    all: [T; N],
    as_str: impl Fn(T) -> &'static str,
) -> Result<T, Problem> {
    let Some(given) = given else {
        return Ok(T::default());
    };
    let found = all.into_iter().find(|t| as_str(*t) == given.get_ref());
    found.ok_or_else(|| unknown(given, what, all.map(as_str)))
}

fn send_window(raw: &RawCase) -> Result<Option<u64>, Problem> {
    match &raw.send_window {
        Some(given) if given.get_ref().0.0 < Options::MIN_SEND_WINDOW => {
            let what = format!("expected {} B or more", Options::MIN_SEND_WINDOW);
            Err(Problem::at(given.span(), what))
        }
        given => Ok(given.as_ref().map(|w| w.get_ref().0.0)),
    }
}

/// Keys of both ends, made for this run.
pub(super) struct Keys {
    proxy: (PathBuf, PathBuf, Pin),
    device: (PathBuf, PathBuf, Pin),
}

/// Makes them in `dir`.
fn keys(dir: &Path) -> anyhow::Result<Keys> {
    let make = |end: &str| -> anyhow::Result<_> {
        let files = (
            dir.join(format!("{end}.crt")),
            dir.join(format!("{end}.key")),
        );
        // Those of the case before.
        let _ = std::fs::remove_file(&files.0);
        let _ = std::fs::remove_file(&files.1);
        let pin = Identity::create("braid", &files.0, &files.1)?.pin();
        Ok((files.0, files.1, pin))
    };
    Ok(Keys {
        proxy: make("proxy")?,
        device: make("device")?,
    })
}
