//! Specification of one end of the traffic.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use braid_core::Time;
use serde::{Deserialize, Serialize};

use super::error::{Result, TrafficError};
use super::kind::Kind;
use super::seconds;

/// Bytes of a paced message that are not payload; see the module `message`.
pub const MESSAGE_HEADER_BYTES: u32 = 32;
/// The longest paced message over a stream, bytes.
pub const MESSAGE_MAX_BYTES: u32 = 1 << 20;

/// One end of one connection: both ends get the same values but for `role`,
/// `address` and `local`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Role of this end. The client runs on the device, the server at the proxy.
    pub role: Role,
    /// Where the server listens (port 0: any free one, told in the event
    /// `ready`), or where the client connects to.
    pub address: SocketAddr,
    /// The client's own address; source-routing then picks the access.
    #[serde(default)]
    pub local: Option<IpAddr>,
    /// Transport protocol.
    #[serde(default)]
    pub transport: Transport,
    /// Congestion control of this end's socket; `None`: the system's default.
    #[serde(default)]
    pub cc: Option<String>,
    /// Kind of traffic that is sent.
    pub traffic: Kind,
    /// Direction of the payload. Request-response goes both ways whatever is set
    /// here; video and pages are always down.
    #[serde(default)]
    pub direction: Direction,
    /// When the payload starts, ns of `CLOCK_MONOTONIC`. The server's value
    /// counts and is told to the client; `None`: when they have met.
    #[serde(default)]
    pub start_ns: Option<Time>,
    /// Time after the start that is not measured, s. Ignored for a transfer of
    /// a fixed size, which is measured from its start to its last byte.
    #[serde(rename = "warmup_s", with = "seconds", default)]
    pub warmup: Duration,
    /// From start to end, warm-up included, s. For a transfer of a fixed size
    /// the time limit.
    #[serde(rename = "duration_s", with = "seconds")]
    pub duration: Duration,
    /// How long to wait for the other end before the start, s.
    #[serde(rename = "setup_s", with = "seconds", default = "default_setup")]
    pub setup: Duration,
    /// How long to wait for late data and for the other end's goodbye after
    /// the end, s.
    #[serde(rename = "grace_s", with = "seconds", default = "default_grace")]
    pub grace: Duration,
    /// `SO_SNDBUF`, bytes; `None`: the kernel tunes it.
    #[serde(default)]
    pub sndbuf: Option<u32>,
    /// `SO_RCVBUF`, bytes; `None`: the kernel tunes it.
    #[serde(default)]
    pub rcvbuf: Option<u32>,
    /// Seed of the payload.
    #[serde(default)]
    pub seed: u64,
    /// File that gets every RTT or latency of this end as a row of CSV.
    #[serde(default)]
    pub csv: Option<PathBuf>,
}

fn default_setup() -> Duration {
    Duration::from_secs(10)
}

fn default_grace() -> Duration {
    Duration::from_secs(2)
}

/// Role of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Connects; the device.
    Client,
    /// Listens; the proxy.
    Server,
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// Multipath TCP (RFC 8684).
    Mptcp,
    /// UDP; constant bit rate and calls only.
    Udp,
}

/// Direction of the payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the server (proxy) to the client (device).
    #[default]
    Down,
    /// From the client to the server.
    Up,
    /// Both at once, on one connection.
    Both,
}

impl TrafficSpec {
    /// A specification of `traffic` with defaults for all that has one.
    pub fn new(role: Role, address: SocketAddr, traffic: Kind, duration: Duration) -> Self {
        Self {
            role,
            address,
            local: None,
            transport: Transport::default(),
            cc: None,
            traffic,
            direction: Direction::default(),
            start_ns: None,
            warmup: Duration::ZERO,
            duration,
            setup: default_setup(),
            grace: default_grace(),
            sndbuf: None,
            rcvbuf: None,
            seed: 0,
            csv: None,
        }
    }

    /// Reads JSON and checks it.
    ///
    /// # Errors
    /// Not JSON, an unknown or missing field, or a value out of range.
    pub fn from_json(text: &str) -> Result<Self> {
        let spec: Self =
            serde_json::from_str(text).map_err(|e| TrafficError::Spec(e.to_string()))?;
        spec.check()?;
        Ok(spec)
    }

    /// Whether this end sends payload.
    pub fn sends(&self) -> bool {
        self.traffic.get().sends(self.role, self.direction)
    }

    /// Whether this end receives payload.
    pub fn receives(&self) -> bool {
        let other = match self.role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        Self {
            role: other,
            ..self.clone()
        }
        .sends()
    }

    /// Label of the payload stream that this end sends.
    pub(crate) fn tx_label(&self) -> &'static str {
        match self.role {
            Role::Server => "down",
            Role::Client => "up",
        }
    }

    /// Label of the payload stream that this end receives.
    pub(crate) fn rx_label(&self) -> &'static str {
        match self.role {
            Role::Server => "up",
            Role::Client => "down",
        }
    }

    /// Size of the transfer, if it is fixed.
    pub(crate) fn fixed_bytes(&self) -> Option<u64> {
        self.traffic.get().fixed_bytes()
    }

    /// A number that both ends of the same traffic have in common (FNV-1a).
    pub(crate) fn digest(&self) -> u64 {
        let common = format!(
            "{:?} {:?} {:?} {:?} {}",
            self.traffic.get(),
            self.direction,
            self.warmup,
            self.duration,
            self.seed
        );
        common.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#""role":"client","address":"10.77.0.1:5001","duration_s":2.5"#;

    fn read(rest: &str) -> Result<TrafficSpec> {
        TrafficSpec::from_json(&format!("{{{BASE},{rest}}}"))
    }

    #[test]
    fn reads_each_kind_and_writes_it_back() {
        for kind in [
            r#"{"kind":"bulk"}"#,
            r#"{"kind":"bulk","bytes":64000000}"#,
            r#"{"kind":"request-response"}"#,
            r#"{"kind":"request-response","request_bytes":100,"response_bytes":1000}"#,
            r#"{"kind":"cbr","rate":4000000,"message_bytes":1200}"#,
            r#"{"kind":"video","bitrates":[1000000,4000000],"segment_s":2,"buffer_s":30,"startup_s":4}"#,
            r#"{"kind":"web","document_bytes":30000,"objects":60,"object_bytes":12000,"pause_s":0.5}"#,
        ] {
            let s = read(&format!(r#""traffic":{kind}"#)).unwrap();
            let text = serde_json::to_string(&s).unwrap();
            assert_eq!(TrafficSpec::from_json(&text).unwrap(), s, "{text}");
        }
    }

    #[test]
    fn ends_agree_on_who_sends() {
        let mut s = read(r#""traffic":{"kind":"bulk"}"#).unwrap();
        for (d, client) in [
            (Direction::Down, (false, true)),
            (Direction::Up, (true, false)),
            (Direction::Both, (true, true)),
        ] {
            s.direction = d;
            s.role = Role::Client;
            assert_eq!((s.sends(), s.receives()), client);
            s.role = Role::Server;
            assert_eq!((s.receives(), s.sends()), client);
        }
    }

    #[test]
    fn digest_is_common_to_both_ends_only() {
        let a = read(r#""traffic":{"kind":"bulk"}"#).unwrap();
        let mut b = a.clone();
        b.role = Role::Server;
        b.address = "[::]:0".parse().unwrap();
        assert_eq!(a.digest(), b.digest());
        b.seed = 1;
        assert_ne!(a.digest(), b.digest());
    }
}
