//! `[mpquic]`: what Multipath QUIC needs beside the accesses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use braid_api::config::{self, Forward};
use braid_api::diagnostic::{Problem, nearest};
use braid_api::{Role, SchedulerChange};
use braid_core::sched::WrrMode;
use braid_forward::Allowed;
use braid_forward::tunnel::gateway::Pools;
use braid_mpquic::tls::Pin;
use braid_mpquic::{Acks, Lane, Options, Steering, congestion};

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
    pub forward: Vec<Forward>,
    /// Where the device serves SOCKS 5.
    pub socks: Option<SocketAddr>,
    /// Where the proxy connects to.
    pub allow: Allowed,
    /// Networks of the addresses of devices in tunnels; absent: the proxy carries no packets.
    pub gateway: Option<Pools>,
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
        let end = role.as_str();
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

/// Returns the destinations that `allow` names.
pub(crate) fn allowed(of: config::Allow) -> Allowed {
    Allowed {
        internet: of.internet,
        networks: of.networks,
    }
}

/// Takes `[mpquic]` over, and checks it against what the engine has.
pub(super) fn take_over(
    c: config::Mpquic,
    gateway: Option<&config::Gateway>,
    role: Role,
) -> Result<Quic, Problem> {
    let at = |key: &str, what: String| Problem::at_key(&["mpquic", key], what);
    if !congestion::names().any(|n| n == c.cc) {
        let known: Vec<_> = congestion::names().collect();
        let mut what = format!("unknown congestion control \"{}\": there are ", c.cc);
        what += &known.join(", ");
        if let Some(near) = nearest(&c.cc, known) {
            what += &format!("; did you mean \"{near}\"?");
        }
        return Err(at("cc", what));
    }
    if c.send_window.is_some_and(|w| w < Options::MIN_SEND_WINDOW) {
        let what = format!("expected bytes, {} or more", Options::MIN_SEND_WINDOW);
        return Err(at("send_window", what));
    }
    let pins = c.pins.iter().map(|p| p.parse::<Pin>());
    let pins: Result<Vec<_>, _> = pins.collect();
    let pins = pins.map_err(|e| at("pins", e.to_string()))?;
    Ok(Quic {
        port: c.port,
        lane: c.lane,
        cc: c.cc,
        reinject: c.reinject,
        resume: c.resume,
        acks: c.acks,
        send_window: c.send_window,
        identity: match (c.certificate, c.key) {
            (Some(certificate), Some(key)) => Files {
                certificate,
                key,
                own: false,
            },
            _ => Files::of(role),
        },
        name: c.name,
        // The file says exactly one of them.
        trust: match (c.authorities, c.anyone) {
            (Some(file), _) => Who::Authorities(file),
            (None, true) => Who::Anyone,
            (None, false) => Who::Pins(pins),
        },
        forward: c.forward,
        socks: c.socks,
        allow: allowed(c.allow),
        gateway: gateway
            .and_then(config::Gateway::pools)
            .map(|(v4, v6)| Pools { v4, v6 }),
    })
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
        classes: before.classes.clone(),
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
        classes: BTreeMap::new(),
    }
}
