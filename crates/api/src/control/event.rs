//! Events of paths and links, as an end tells them.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::AccessState;

/// `GET /v1/events`: what happened to paths and links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Event {
    /// Counts up from 1.
    pub seq: u64,
    /// When it was read from the kernel.
    pub t_ns: u64,
    /// The access that it concerns, if one.
    pub access: Option<String>,
    /// Kind of the event, with its details.
    #[serde(flatten)]
    pub what: EventKind,
}

/// Kind of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// An access is in another state than before.
    AccessState {
        /// Its state from now on.
        #[cfg_attr(test, schemars(schema_with = "super::openapi::access_state"))]
        state: AccessState,
        /// Why, in a sentence.
        why: String,
    },
    /// An access is so slow that the receiver's buffer limits the sum.
    AccessSlow {
        /// How slow, and what can be done, in a sentence.
        why: String,
    },
    /// The options of MPTCP are removed on the way from an access to some servers.
    MptcpRemoved {
        /// Servers that it concerns, and what comes of it, in a sentence.
        why: String,
    },
    /// A subflow makes no progress although its access answers.
    SubflowStalled {
        /// Where, and what is done about it, in a sentence.
        why: String,
    },
    /// Larger packets than the interface allows do not pass on an access, or pass again.
    PacketSize {
        /// The size, and what is done about it, in a sentence.
        why: String,
    },
    /// The configuration was read again (SIGHUP).
    Configured {
        /// Why it was not taken; absent if it was.
        error: Option<String>,
    },
}

/// The subflow of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
