//! The JSON that an engine end speaks on its control socket.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/status` | [`Status`] |
//! | `GET /v1/connections` | [`Connections`] |
//! | `GET /v1/counters` | [`Counters`] |
//! | `GET /v1/events?after=SEQ` | [`Events`] |
//! | `PUT /v1/accesses/{name}` with [`AccessChange`] | [`AccessStatus`] |
//! | `PUT /v1/scheduler` with [`SchedulerChange`] | [`SchedulerChange`], as it is now |
//! | `PUT /v1/weights` with [`Weights`] | [`Weights`], as they are now |
//!
//! A request that fails is answered with [`ApiError`]. Times named `t_ns` are
//! `CLOCK_MONOTONIC`, so processes of one machine can compare them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::AccessKind;

/// Which engine an end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Plain TCP on one access: nothing is set up, only observed.
    Tcp,
    /// The kernel's Multipath TCP with its in-kernel path manager.
    Mptcp,
}

/// Which end of the accesses a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The end that has the accesses (a CPE, a vehicle).
    Device,
    /// The end in the network.
    Proxy,
}

/// `GET /v1/status`: what this end is and has set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Device or proxy.
    pub role: Role,
    /// The engine that runs.
    pub engine: Engine,
    /// When this was read.
    pub t_ns: u64,
    /// The accesses, in the order of the configuration.
    pub accesses: Vec<AccessStatus>,
    /// What the kernel's path manager may do; absent without MPTCP.
    pub limits: Option<PathLimits>,
    /// The namespace's packet scheduler (`net.mptcp.scheduler`), if it has one.
    pub scheduler: Option<String>,
    /// The congestion control that new sockets get.
    pub default_congestion_control: String,
}

/// How many subflows and announced addresses a connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathLimits {
    /// Subflows beyond the first, 0 to 8.
    pub subflows: u32,
    /// Addresses of the peer that are accepted, 0 to 8.
    pub add_addr_accepted: u32,
}

/// One access as an end sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Its technology.
    pub kind: AccessKind,
    /// This access's address at the device.
    pub address: IpAddr,
    /// The interface; absent at the proxy, which has none per access.
    pub interface: Option<String>,
    /// The interface's index now; absent while it does not exist.
    pub ifindex: Option<u32>,
    /// Administratively up and with a carrier; at the proxy always true.
    pub up: bool,
    /// Whether the interface has the address now; at the proxy always true.
    pub has_address: bool,
    /// Whether new subflows may use it (an endpoint is set).
    pub enabled: bool,
    /// Whether it is used only when no other access is.
    pub backup: bool,
    /// Its share of the traffic where the scheduler knows weights.
    pub weight: Option<f64>,
    /// The path manager's endpoint for it, if one is set.
    pub endpoint_id: Option<u8>,
}

/// `GET /v1/connections`: every TCP and MPTCP connection of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
pub struct Connection {
    /// MPTCP's local token; absent for plain TCP.
    pub token: Option<u32>,
    /// Whether MPTCP fell back to TCP on the wire (RFC 8684 3.7).
    pub fallback: bool,
    /// The inode of the socket that the application holds; 0 if it closed it.
    pub inode: u32,
    /// MPTCP-level facts; absent for plain TCP and where the kernel no longer
    /// lists the MPTCP socket.
    pub mptcp: Option<MptcpFacts>,
    /// The subflows; exactly one for plain TCP.
    pub subflows: Vec<Subflow>,
}

/// What the kernel tells about an MPTCP connection as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// `GET /v1/counters`: the namespace's counters since its start, as the kernel
/// names them (`MPTcpExt.NoDSSInWindow`, `TcpExt.TCPTimeouts`, `Tcp.RetransSegs`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// When they were read.
    pub t_ns: u64,
    /// Every counter that is not zero.
    pub counters: BTreeMap<String, u64>,
}

/// `GET /v1/events`: what happened to paths and links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Pass this as `after` to get only newer ones.
    pub next: u64,
    /// How many events after `after` were already forgotten, or lost because
    /// the kernel's queue was full.
    pub missed: u64,
    /// The events, oldest first.
    pub events: Vec<Event>,
}

/// Something that happened to a path or a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up from 1.
    pub seq: u64,
    /// When it was read from the kernel.
    pub t_ns: u64,
    /// The access that it concerns, if one.
    pub access: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub what: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// An MPTCP connection began.
    Created {
        /// The connection.
        token: u32,
    },
    /// Further subflows may be opened.
    Established {
        /// The connection.
        token: u32,
    },
    /// An MPTCP connection ended.
    Closed {
        /// The connection.
        token: u32,
    },
    /// A further subflow was joined.
    SubflowEstablished(SubflowEvent),
    /// A subflow ended.
    SubflowClosed(SubflowEvent),
    /// The peer changed a subflow's backup flag.
    SubflowPriority(SubflowEvent),
    /// The peer announced an address.
    Announced {
        /// The connection.
        token: u32,
        /// The peer's id of the address.
        remote_id: u8,
        /// The address, where told.
        address: Option<IpAddr>,
    },
    /// The peer withdrew an address.
    Removed {
        /// The connection.
        token: u32,
        /// The peer's id of the address.
        remote_id: u8,
    },
    /// An access's interface came up.
    LinkUp {
        /// The interface.
        interface: String,
    },
    /// An access's interface went down.
    LinkDown {
        /// The interface.
        interface: String,
    },
    /// An address appeared on an access's interface.
    AddressAdded {
        /// The address.
        address: IpAddr,
    },
    /// An access's address disappeared.
    AddressRemoved {
        /// The address.
        address: IpAddr,
    },
    /// An access was changed over this interface.
    AccessChanged {
        /// Whether new subflows may use it now.
        enabled: bool,
        /// Whether it is a backup now.
        backup: bool,
    },
}

/// The subflow of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubflowEvent {
    /// The connection.
    pub token: u32,
    /// Id of the local address.
    pub local_id: u8,
    /// Id of the remote address.
    pub remote_id: u8,
    /// This end.
    pub local: Option<SocketAddr>,
    /// The other end.
    pub remote: Option<SocketAddr>,
    /// Whether it is a backup.
    pub backup: bool,
    /// The error (errno) that ended it, if one did.
    pub error: Option<u8>,
}

/// `PUT /v1/accesses/{name}`: what to change; what is absent stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessChange {
    /// Use it only when no other access is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Add (true) or delete (false) its endpoint; deleting ends its subflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// `PUT /v1/scheduler`: how this end shares its sending among the accesses. It
/// counts for connections that begin afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerChange {
    /// The packet scheduler, as the kernel calls it; what is absent stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How round robin treats full windows; counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrr_mode: Option<WrrMode>,
    /// Segments of a turn of round robin, 1 to 255; counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_segments: Option<u8>,
    /// Whether a fast subflow of `minrtt` repeats what slower ones block the
    /// receive window with (opportunistic retransmission); counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opportunistic: Option<bool>,
    /// Whether the windows of those are halved (penalisation); counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalise: Option<bool>,
}

/// What a round-robin scheduler does when the window of the path whose turn it
/// is has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrrMode {
    /// Waits: the shares are exact, and the slowest path, for its weight, limits
    /// the rest (MPTCP v0.96: `cwnd_limited` N).
    Strict,
    /// Passes it over: every window is filled (MPTCP v0.96: `cwnd_limited` Y).
    WorkConserving,
}

impl WrrMode {
    /// The word that scenarios and the API use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::WorkConserving => "work-conserving",
        }
    }
}

/// `PUT /v1/weights`: the shares of accesses by name, 0 or more; those not
/// named keep theirs. Counts from the next segment on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weights(pub BTreeMap<String, f64>);

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// What was attempted, on what, and what to do.
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_flat_json() {
        let e = Event {
            seq: 7,
            t_ns: 1,
            access: Some("wifi".into()),
            what: EventKind::LinkDown {
                interface: "wlan0".into(),
            },
        };
        let v = serde_json::to_value(&e).unwrap();
        assert_eq!(v["event"], "link_down");
        assert_eq!(v["interface"], "wlan0");
        assert_eq!(serde_json::from_value::<Event>(v).unwrap(), e);
    }

    #[test]
    fn an_unknown_change_is_an_error() {
        assert!(serde_json::from_str::<AccessChange>("{\"bakup\": true}").is_err());
        let c: AccessChange = serde_json::from_str("{\"backup\": true}").unwrap();
        assert_eq!(
            c,
            AccessChange {
                backup: Some(true),
                enabled: None
            }
        );
    }
}
