//! The JSON that an engine end speaks on its control socket.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/status`, `?connections=true` | [`Status`], with its [`Connections`] |
//! | `GET /v1/connections` | [`Connections`] |
//! | `GET /v1/counters` | [`Counters`] |
//! | `GET /v1/events?after=SEQ` | [`Events`] |
//! | `GET /v1/control` | [`ControlStatus`] |
//! | `GET /v1/rules` | [`Rules`] |
//! | `PUT /v1/accesses/{name}` with [`AccessChange`] | [`AccessStatus`] |
//! | `PUT /v1/scheduler` with [`SchedulerChange`] | [`SchedulerChange`], as it is now |
//! | `PUT /v1/priorities` with [`Priorities`] | [`Priorities`], as they are now |
//! | `PUT /v1/weights` with [`Weights`] | [`Weights`], as they are now |
//! | `PUT /v1/weights/down` with [`Weights`], at the device | [`Weights`] of downlinks, as they are now |
//! | `PUT /v1/connections/{token}/weights` with [`Weights`] | [`Weights`] of that one |
//! | `DELETE /v1/connections/{token}/weights` | [`Weights`], those of all |
//!
//! A request that fails is answered with [`ApiError`]. Times named `t_ns` are
//! `CLOCK_MONOTONIC`, so processes of one machine can compare them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

mod access;
mod decisions;
mod energy;
mod event;
#[cfg(test)]
mod openapi;
mod rules;
mod scheduler;
#[cfg(test)]
mod tests;

pub use access::{AccessAddress, AccessChange, AccessStatus, CapStatus, Expected, Ignored, Limit};
pub use braid_core::{AccessState, Engine, Role};
pub use decisions::{AccessControl, ControlStatus, ProbeControl};
pub use energy::{AccessEnergy, PowerAttribution, PowerCounter, PowerShare};
pub use event::{Event, EventKind, Events, SubflowEvent};
pub use rules::{ClassStatus, RuleCount, RuleStatus, Rules};
pub use scheduler::{Acks, Lane, SchedulerChange, Scheduling};

/// `GET /v1/status`: what this end is and has set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// Device or proxy.
    #[cfg_attr(test, schemars(schema_with = "openapi::role"))]
    pub role: Role,
    /// The engine that runs; the first one where several do.
    #[cfg_attr(test, schemars(schema_with = "openapi::engine"))]
    pub engine: Engine,
    /// Every engine that runs, in the order of the configuration; empty: `engine` alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(schema_with = "openapi::engines"))]
    pub engines: Vec<Engine>,
    /// When this was read.
    pub t_ns: u64,
    /// The accesses, in the order of the configuration.
    pub accesses: Vec<AccessStatus>,
    /// Limits of the kernel's path manager; absent without MPTCP.
    pub limits: Option<PathLimits>,
    /// The namespace's packet scheduler (`net.mptcp.scheduler`), if it has one.
    pub scheduler: Option<String>,
    /// The congestion control that new sockets get, as the kernel calls it.
    pub default_congestion_control: String,
    /// Scheduling in force, by the names of the configuration; absent where there is one path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    /// Whether this end repairs what it sees (`[manager] recover`).
    #[serde(default)]
    pub recover: bool,
    /// Interfaces that serve as no access, and why; at the device only.
    #[serde(default)]
    pub ignored: Vec<Ignored>,
    /// Why the configuration was not taken when it was last read again; absent
    /// if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
    /// Why no access reaches the proxy, in a sentence; absent where one does, and while nobody
    /// asks. At the device only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_unreachable: Option<String>,
    /// Weights of downlinks in force at the proxy, by this device's names; absent at a proxy, and
    /// where the accesses are not registered at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_weights: Option<BTreeMap<String, f64>>,
    /// Hosts and programs whose traffic goes over the bond; absent without `[lan]` and
    /// `default = "bond"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lan: Option<LanStatus>,
    /// Counters of power, where they are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power: Vec<PowerCounter>,
    /// Steps that could not be done and are not needed, and new connections that leave otherwise
    /// than the system's routes say, each in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Connections at the same moment; only where they were asked for, and absent in older
    /// daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
}

/// Hosts behind a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LanStatus {
    /// Interfaces to hosts.
    pub interfaces: Vec<String>,
    /// Whether what hosts send and cannot go over the bond is refused, also while no daemon runs.
    pub kill_switch: bool,
    /// Whether what programs of this device send goes over the bond.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub programs: bool,
    /// Whether what these send and cannot go over the bond is refused, also while no daemon runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub programs_kill_switch: bool,
    /// Connections that are open.
    pub connections: u64,
    /// Addresses that their packets have in the tunnel to the proxy, but for those of connections;
    /// empty without a tunnel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnel: Vec<IpAddr>,
    /// Why packets of theirs do not go over the bond, in a sentence; absent where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_packets: Option<String>,
}

impl Status {
    /// Returns the engines that run, at least one.
    pub fn engines(&self) -> Vec<Engine> {
        match self.engines.is_empty() {
            true => vec![self.engine],
            false => self.engines.clone(),
        }
    }
}

/// How many subflows and announced addresses a connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathLimits {
    /// Subflows beyond the first, 0 to 8.
    pub subflows: u32,
    /// Addresses of the peer that are accepted, 0 to 8.
    pub add_addr_accepted: u32,
}

/// `GET /v1/connections`: every TCP and MPTCP connection of the namespace with Multipath TCP or
/// plain TCP, every session with Multipath QUIC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Connections {
    /// When the kernel was asked.
    pub t_ns: u64,
    /// How long reading took, in microseconds.
    pub took_us: u32,
    /// The connections, in no particular order.
    pub connections: Vec<Connection>,
}

/// A connection: one MPTCP socket, or one plain TCP socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Connection {
    /// MPTCP's local token, or the number of a session of Multipath QUIC: it names one
    /// connection of this end, for as long as that lives. Absent for plain TCP.
    pub token: Option<u32>,
    /// Engine that carries it: of plain TCP that which lists it. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "openapi::optional_engine"))]
    pub engine: Option<Engine>,
    /// Whether MPTCP fell back to TCP on the wire (RFC 8684 3.7).
    pub fallback: bool,
    /// When it did, as far as the kernel tells; absent where it did not, or where that is not
    /// told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_at: Option<FallbackAt>,
    /// The inode of the socket that the application holds; 0 if it closed it.
    pub inode: u32,
    /// MPTCP-level facts; absent for plain TCP and where the kernel no longer
    /// lists the MPTCP socket.
    pub mptcp: Option<MptcpFacts>,
    /// The subflows; exactly one for plain TCP.
    pub subflows: Vec<Subflow>,
    /// Weights that hold for it alone, by access; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<BTreeMap<String, f64>>,
}

/// Moment at which a connection fell back to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FallbackAt {
    /// Before the handshake: this end did not ask for MPTCP, although the program did. The kernel
    /// leaves it out for a while after packets with it were lost (`net.mptcp.blackhole_timeout`).
    Unasked,
    /// In the handshake: what came back had no MPTCP. The peer does not do it, or something on
    /// the way removes its options.
    Handshake,
    /// After the handshake: something on the way removed or changed MPTCP's options, or the data.
    Transfer,
}

/// Facts that the kernel tells about an MPTCP connection as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MptcpFacts {
    /// Subflows beyond the first that exist now.
    pub extra_subflows: u8,
    /// All subflows that exist now (kernel 6.8 and later, else 0).
    pub subflows_total: u8,
    /// Data sent and not yet acknowledged at MPTCP level.
    pub unacked_bytes: u64,
    /// Bytes sent, without retransmissions (kernel 6.5 and later, as the next four).
    pub sent_bytes: u64,
    /// Bytes received in order.
    pub received_bytes: u64,
    /// Bytes that the peer acknowledged at MPTCP level.
    pub acked_bytes: u64,
    /// Bytes sent again on another subflow (reinjected).
    pub reinjected_bytes: u64,
    /// How often data was sent again at MPTCP level.
    pub retransmits: u32,
}

/// One subflow (or a plain TCP connection): where it runs and how it fares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Subflow {
    /// The access, by the device's address; absent if no access has it.
    pub access: Option<String>,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// MPTCP's id of the local address, 0 for the first subflow's.
    pub local_id: u8,
    /// MPTCP's id of the remote address.
    pub remote_id: u8,
    /// The TCP state, in the words of RFC 9293, lower case: `established`.
    pub state: String,
    /// We asked the peer to use this subflow only as a backup.
    pub backup_local: bool,
    /// The peer asked us to use this subflow only as a backup.
    pub backup_remote: bool,
    /// Whether the join was completed and data may flow on it.
    pub fully_established: bool,
    /// Data is outstanding and nothing has come back for as long as the kernel
    /// waits before it takes a subflow for stale. Derived; `docs/mptcp.md` says how.
    pub stale: bool,
    /// The congestion control.
    pub congestion_control: String,
    /// Smoothed round-trip time; 0 before the first sample.
    pub srtt_ms: f64,
    /// Mean deviation of the round-trip time.
    pub rttvar_ms: f64,
    /// Least round-trip time seen; absent before the first sample.
    pub min_rtt_ms: Option<f64>,
    /// How much longer the latest datagram took to the peer than on the path where it took
    /// least; on the datagram lane of Multipath QUIC.
    pub one_way_behind_ms: Option<f64>,
    /// Retransmission timeout.
    pub rto_ms: f64,
    /// Congestion window, in segments.
    pub cwnd_segments: u32,
    /// Slow-start threshold, in segments; absent while it is not set.
    pub ssthresh_segments: Option<u32>,
    /// Sending segment size.
    pub mss_bytes: u32,
    /// The rate at which the sender paces; absent without a limit.
    pub pacing_mbps: Option<f64>,
    /// The last delivery rate estimate.
    pub delivery_mbps: f64,
    /// Whether that estimate was limited by the application.
    pub delivery_app_limited: bool,
    /// Data bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Data bytes sent again.
    pub retransmitted_bytes: u64,
    /// Data bytes that the peer acknowledged.
    pub acked_bytes: u64,
    /// Data bytes received in order.
    pub received_bytes: u64,
    /// Data bytes in the send queue not sent yet.
    pub notsent_bytes: u32,
    /// Memory queued for sending, by which the stock scheduler chooses.
    pub queued_bytes: u32,
    /// Bytes that its send queue may hold (`sk_sndbuf`), and its receive queue
    /// (`sk_rcvbuf`), overhead included.
    pub send_buffer_bytes: u32,
    /// See `send_buffer_bytes`.
    pub receive_buffer_bytes: u32,
    /// Segments sent again since the start.
    pub retransmits: u32,
    /// Segments in flight.
    pub unacked_segments: u32,
    /// Segments taken for lost.
    pub lost_segments: u32,
    /// Consecutive retransmission timeouts without an answer.
    pub timeouts: u8,
    /// Since data was last sent.
    pub last_sent_ms: u32,
    /// Since an acknowledgement last came.
    pub last_ack_ms: u32,
    /// Path MTU.
    pub pmtu_bytes: u32,
}

impl Subflow {
    /// Whether it is neither being opened nor being closed (RFC 9293 3.3.2).
    pub fn is_established(&self) -> bool {
        self.state == "established"
    }
}

/// `GET /v1/counters`: the namespace's counters since its start, as the kernel
/// names them (`MPTcpExt.NoDSSInWindow`, `TcpExt.TCPTimeouts`, `Tcp.RetransSegs`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counters {
    /// When they were read.
    pub t_ns: u64,
    /// Every counter that is not zero.
    pub counters: BTreeMap<String, u64>,
}

/// `PUT /v1/weights`: the shares of accesses in what this end sends, by name, 0 or more; those not
/// named keep theirs. Counts from the next segment on. `PUT /v1/weights/down` at the device: in
/// what the proxy sends to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Weights(pub BTreeMap<String, f64>);

/// `PUT /v1/priorities`: the order of accesses by name (3GPP TS 23.501 5.32.8,
/// active-standby), 0 to 65535 or none; those not named keep theirs. The usable
/// ones of the least number carry, all others wait. Counts at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Priorities(pub BTreeMap<String, Option<u16>>);

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApiError {
    /// Message: what was attempted, on what, and what to do.
    pub error: String,
}
