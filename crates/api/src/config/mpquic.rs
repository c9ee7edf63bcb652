//! `[mpquic]`: what Multipath QUIC needs beside the accesses.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::allow::Allow;
use crate::diagnostic::Problem;
use crate::{Acks, Lane, Role};

/// `[mpquic]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mpquic {
    /// UDP port at the proxy, 1 to 65535.
    pub port: u16,
    /// Lane that carries data.
    pub lane: Lane,
    /// Congestion control.
    pub cc: String,
    /// Whether what blocks the receiver is reinjected (datagram lane).
    pub reinject: bool,
    /// Whether a path that replaces another begins with half of what that carried.
    pub resume: bool,
    /// Where acknowledgements leave (datagram lane).
    pub acks: Acks,
    /// Most bytes of a stream under way (datagram lane); absent: no bound of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_window: Option<u64>,
    /// Certificate of this end, PEM; with `key`. Absent: the end makes both for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Private key of this end, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The proxy's name in its certificate.
    pub name: String,
    /// Keys of the peers that this end trusts: `sha256/` and base64 each (RFC 7469).
    pub pins: Vec<String>,
    /// PEM file of the authorities that sign for the peers that this end trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
    /// Trust everybody; at the proxy only.
    pub anyone: bool,
    /// Where the proxy connects to for devices.
    pub allow: Allow,
    /// Ports of the device that go on at the proxy.
    pub forward: Vec<Forward>,
    /// Where the device serves SOCKS 5, TCP; absent: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socks: Option<SocketAddr>,
}

/// `[[mpquic.forward]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forward {
    /// Where the device listens, TCP.
    pub listen: SocketAddr,
    /// Where the proxy connects to.
    pub to: SocketAddr,
}

/// Congestion control of Multipath QUIC where none is named: that for links whose rate swings, as
/// radio does.
pub const MPQUIC_CC: &str = "swing";

impl Default for Mpquic {
    fn default() -> Self {
        Self {
            port: 4433,
            lane: Lane::default(),
            cc: MPQUIC_CC.to_owned(),
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
            allow: Allow::default(),
            forward: Vec::new(),
            socks: None,
        }
    }
}

fn at(key: &str, what: &str) -> Problem {
    Problem::at_key(&["mpquic", key], what)
}

impl Mpquic {
    pub(super) fn check(&self, role: Role) -> Result<(), Problem> {
        if self.port == 0 {
            return Err(at("port", "a port is 1 to 65535"));
        }
        let datagrams_only = [
            ("acks", self.acks != Acks::default()),
            ("send_window", self.send_window.is_some()),
        ];
        if let Some((key, _)) = datagrams_only.iter().find(|(_, given)| *given)
            && self.lane == Lane::Stream
        {
            return Err(at(key, "only the datagram lane has this"));
        }
        if role == Role::Device && !self.allow.is_empty() {
            return Err(at("allow", "what may be connected to is set at the proxy"));
        }
        if role == Role::Proxy && !self.forward.is_empty() {
            let what = "ports are forwarded from the device: set it there";
            return Err(at("forward", what));
        }
        if role == Role::Proxy && self.socks.is_some() {
            let what = "programs connect to the device: set it there";
            return Err(at("socks", what));
        }
        let alone = match (&self.certificate, &self.key) {
            (Some(_), None) => Some("certificate"),
            (None, Some(_)) => Some("key"),
            _ => None,
        };
        if let Some(key) = alone {
            let what = "a certificate and its key come together: give both, or neither";
            return Err(at(key, what));
        }
        self.check_trust(role)
    }

    /// Checks that exactly one says whom to trust, and that a device knows its proxy.
    fn check_trust(&self, role: Role) -> Result<(), Problem> {
        let given = [
            !self.pins.is_empty(),
            self.authorities.is_some(),
            self.anyone,
        ];
        match (given.iter().filter(|g| **g).count(), role) {
            (1, Role::Device) if self.anyone => {
                Err(at("anyone", "a device must know its proxy: give its pin"))
            }
            (1, _) => Ok(()),
            (0, Role::Device) => Err(at(
                "pins",
                "whom to trust is not said: give the proxy's key, pins = [\"sha256/...\"] (it \
                 prints it when it starts), or authorities = \"FILE\"",
            )),
            (0, Role::Proxy) => Err(at(
                "pins",
                "whom to trust is not said: give the devices' keys, pins = [\"sha256/...\"] \
                 (they print them when they start), or authorities = \"FILE\", or anyone = true",
            )),
            _ => Err(at(
                "pins",
                "of pins, authorities and anyone, only one can be said",
            )),
        }
    }
}
