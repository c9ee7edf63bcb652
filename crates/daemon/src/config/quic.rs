//! `[mpquic]`: what Multipath QUIC needs beside the accesses.

use std::net::SocketAddr;
use std::path::PathBuf;

use braid_api::{Role, SchedulerChange};
use braid_core::sched::WrrMode;
use braid_mpquic::tls::Pin;
use braid_mpquic::{Acks, Lane, Options, Steering, congestion};
use ipnet::IpNet;
use serde::Deserialize;

use super::raw::{Problem, problem};

/// The UDP port at the proxy.
const PORT: u16 = 4433;
/// Where an end keeps the key that it has made for itself.
const KEYS: &str = "/var/lib/braid";

/// `[mpquic]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quic {
    /// The UDP port at the proxy.
    pub port: u16,
    /// Lane that carries data.
    pub lane: Lane,
    /// The congestion control.
    pub cc: String,
    /// Whether what blocks the receiver is reinjected (datagram lane).
    pub reinject: bool,
    /// A path that replaces another begins with half of what that carried.
    pub resume: bool,
    /// Where acknowledgements leave (datagram lane).
    pub acks: Acks,
    /// Bytes of a stream under way, at most (datagram lane).
    pub send_window: Option<u64>,
    /// Certificate and key of this end.
    pub identity: Files,
    /// The proxy's name in its certificate.
    pub name: String,
    /// Peers that this end trusts.
    pub trust: Who,
    /// Ports of the device that go on at the proxy.
    pub forward: Vec<Forwarded>,
    /// Where the proxy connects to.
    pub allow: Vec<IpNet>,
}

/// A certificate and its private key, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// Whether the files are made if they are not there.
    pub own: bool,
}

impl Files {
    /// Returns the paths of the files that an end makes for itself.
    pub fn of(role: Role) -> Self {
        let end = match role {
            Role::Device => "device",
            Role::Proxy => "proxy",
        };
        Self {
            certificate: format!("{KEYS}/{end}.crt").into(),
            key: format!("{KEYS}/{end}.key").into(),
            own: true,
        }
    }
}

/// Peers that an end trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Peers that have one of these keys.
    Pins(Vec<Pin>),
    /// Peers with a certificate that one in this PEM file has signed.
    Authorities(PathBuf),
    /// At the proxy: everybody.
    Anyone,
}

/// `[[mpquic.forward]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forwarded {
    /// Where the device listens, TCP.
    pub listen: SocketAddr,
    /// Where the proxy connects to.
    pub to: SocketAddr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawQuic {
    port: u16,
    lane: Lane,
    cc: String,
    reinject: bool,
    resume: bool,
    acks: Acks,
    send_window: Option<u64>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    name: String,
    pins: Vec<String>,
    authorities: Option<PathBuf>,
    anyone: bool,
    forward: Vec<Forwarded>,
    allow: Vec<String>,
}

impl Default for RawQuic {
    fn default() -> Self {
        Self {
            port: PORT,
            lane: Lane::default(),
            cc: "cubic".to_owned(),
            reinject: true,
            resume: true,
            acks: Acks::default(),
            send_window: None,
            certificate: None,
            key: None,
            name: "braid".to_owned(),
            pins: Vec::new(),
            authorities: None,
            anyone: false,
            forward: Vec::new(),
            allow: Vec::new(),
        }
    }
}

pub(super) fn check(raw: RawQuic, role: Role) -> Result<Quic, Problem> {
    let at = |key: &str, what: String| problem(&["mpquic", key], what);
    if raw.port == 0 {
        return Err(at("port", "a port is 1 to 65535".to_owned()));
    }
    if !congestion::names().any(|n| n == raw.cc) {
        let known: Vec<_> = congestion::names().collect();
        let what = format!("unknown congestion control \"{}\": there are", raw.cc);
        return Err(at("cc", format!("{what} {}", known.join(", "))));
    }
    if raw
        .send_window
        .is_some_and(|w| w < Options::LEAST_SEND_WINDOW)
    {
        let what = format!("expected bytes, {} or more", Options::LEAST_SEND_WINDOW);
        return Err(at("send_window", what));
    }
    let of_datagrams = [
        ("acks", raw.acks != Acks::default()),
        ("send_window", raw.send_window.is_some()),
    ];
    if let Some((key, _)) = of_datagrams.iter().find(|(_, given)| *given)
        && raw.lane == Lane::Stream
    {
        return Err(at(key, "only the datagram lane has this".to_owned()));
    }
    let device = role == Role::Device;
    if device && !raw.allow.is_empty() {
        return Err(at(
            "allow",
            "what may be connected to is set at the proxy".to_owned(),
        ));
    }
    if !device && !raw.forward.is_empty() {
        return Err(at(
            "forward",
            "ports are forwarded from the device: set it there".to_owned(),
        ));
    }
    let allow = raw.allow.iter().map(|s| {
        super::raw::net(s)
            .ok_or_else(|| at("allow", format!("\"{s}\" is no address and no prefix")))
    });
    let allow = allow.collect::<Result<Vec<IpNet>, _>>()?;
    let identity = match (&raw.certificate, &raw.key) {
        (Some(certificate), Some(key)) => Files {
            certificate: certificate.clone(),
            key: key.clone(),
            own: false,
        },
        (None, None) => Files::of(role),
        _ => {
            return Err(at(
                if raw.key.is_some() {
                    "key"
                } else {
                    "certificate"
                },
                "a certificate and its key come together: give both, or neither".to_owned(),
            ));
        }
    };
    Ok(Quic {
        port: raw.port,
        lane: raw.lane,
        trust: who(&raw, device)?,
        cc: raw.cc,
        reinject: raw.reinject,
        resume: raw.resume,
        acks: raw.acks,
        send_window: raw.send_window,
        identity,
        name: raw.name,
        forward: raw.forward,
        allow,
    })
}

fn who(raw: &RawQuic, device: bool) -> Result<Who, Problem> {
    let at = |key: &str, what: &str| problem(&["mpquic", key], what);
    let pins = raw.pins.iter().map(|p| p.parse::<Pin>());
    let pins = pins
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| at("pins", &e.to_string()))?;
    match (pins.is_empty(), &raw.authorities, raw.anyone) {
        (false, None, false) => Ok(Who::Pins(pins)),
        (true, Some(file), false) => Ok(Who::Authorities(file.clone())),
        (true, None, true) if !device => Ok(Who::Anyone),
        (true, None, true) => Err(at("anyone", "a device must know its proxy: give its pin")),
        (true, None, false) if device => Err(at(
            "pins",
            "whom to trust is not said: give the proxy's key, pins = [\"sha256/...\"] (it prints \
             it when it starts), or authorities = \"FILE\"",
        )),
        (true, None, false) => Err(at(
            "pins",
            "whom to trust is not said: give the devices' keys, pins = [\"sha256/...\"] (they \
             print them when they start), or authorities = \"FILE\", or anyone = true",
        )),
        _ => Err(at(
            "pins",
            "of pins, authorities and anyone, only one can be said",
        )),
    }
}

/// The scheduler of a configuration or a request.
pub(crate) fn steering(
    change: &SchedulerChange,
    before: &Steering,
    lane: Lane,
) -> Result<Steering, String> {
    let foreign = [
        ("num_segments", change.num_segments.is_some()),
        ("opportunistic", change.opportunistic.is_some()),
        ("penalise", change.penalise.is_some()),
    ];
    if let Some((key, _)) = foreign.iter().find(|(_, given)| *given) {
        return Err(format!("Multipath QUIC's schedulers have no `{key}`"));
    }
    let steering = Steering {
        scheduler: change.name.clone().unwrap_or(before.scheduler.clone()),
        wrr_mode: change.wrr_mode.unwrap_or(before.wrr_mode),
        reinject: before.reinject,
    };
    steering.make(lane).map_err(|e| e.to_string())?;
    Ok(steering)
}

/// Returns the steering without any configuration.
pub(crate) fn default_steering(reinject: bool) -> Steering {
    Steering {
        scheduler: "minrtt".to_owned(),
        wrr_mode: WrrMode::WorkConserving,
        reinject,
    }
}
