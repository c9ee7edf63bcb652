//! Events of paths and links, as an end tells them.

use std::fmt;
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
    /// Time by the wall clock, milliseconds since 1970-01-01 00:00 UTC.
    #[serde(default)]
    pub unix_ms: u64,
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
    /// Nothing comes back to one of several addresses of an access, or something does again.
    AddressState {
        /// The address.
        address: IpAddr,
        /// Whether nothing comes back to it.
        silent: bool,
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
    /// A level of an access's cap was reached, or its month ended.
    AccessCap {
        /// How much is used, and what is done about it, in a sentence.
        why: String,
    },
    /// Another proxy is used from now on: the one before does not answer.
    ProxyChanged {
        /// Its addresses.
        to: Vec<IpAddr>,
    },
    /// Flows that rules send directly leave by another access from now on.
    DirectRoute {
        /// Accesses that the rules name, the preferred first.
        accesses: Vec<String>,
        /// Whether it concerns IPv6, else IPv4.
        ipv6: bool,
        /// Access by which they leave; absent: none works, and they are refused.
        by: Option<String>,
    },
    /// The configuration was read again (SIGHUP).
    Configured {
        /// Why it was not taken; absent if it was.
        error: Option<String>,
    },
}

impl EventKind {
    /// Returns whether it is about accesses or the daemon, which an operator follows, and not
    /// about single connections of the kernel.
    pub fn is_about_accesses(&self) -> bool {
        match self {
            Self::Created { .. }
            | Self::Established { .. }
            | Self::Closed { .. }
            | Self::SubflowPriority(_)
            | Self::Announced { .. }
            | Self::Removed { .. } => false,
            // Of Multipath QUIC, whose paths are as good as accesses.
            Self::SubflowEstablished(s) | Self::SubflowClosed(s) => s.token == 0,
            _ => true,
        }
    }
}

/// Describes the event in a sentence, without its access.
impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created { token } => write!(f, "connection {token} began"),
            Self::Established { token } => write!(f, "connection {token} may have more subflows"),
            Self::Closed { token } => write!(f, "connection {token} ended"),
            Self::SubflowEstablished(s) => write!(f, "{s} is up"),
            Self::SubflowClosed(s) => match s.error {
                Some(error) => write!(f, "{s} ended: {}", os_error(error)),
                None => write!(f, "{s} ended"),
            },
            Self::SubflowPriority(s) => {
                let role = if s.backup { "a backup" } else { "no backup" };
                write!(f, "{s} is {role} now")
            }
            Self::Announced { token, address, .. } => match address {
                Some(address) => write!(f, "the peer of connection {token} announced {address}"),
                None => write!(f, "the peer of connection {token} announced an address"),
            },
            Self::Removed { token, remote_id } => {
                write!(
                    f,
                    "the peer of connection {token} withdrew address {remote_id}"
                )
            }
            Self::LinkUp { interface } => write!(f, "{interface} came up"),
            Self::LinkDown { interface } => write!(f, "{interface} went down"),
            Self::AddressAdded { address } => write!(f, "{address} appeared"),
            Self::AddressRemoved { address } => write!(f, "{address} disappeared"),
            Self::AccessChanged { enabled, backup } => match (enabled, backup) {
                (false, _) => f.write_str("switched off by a request"),
                (true, true) => f.write_str("on, as a backup, by a request"),
                (true, false) => f.write_str("on by a request"),
            },
            Self::AccessState { state, why } => write!(f, "{state}: {why}"),
            Self::AddressState {
                address,
                silent: true,
            } => write!(f, "nothing comes back to {address}, while others work"),
            Self::AddressState {
                address,
                silent: false,
            } => write!(f, "{address} is used again: something comes back"),
            Self::AccessSlow { why }
            | Self::MptcpRemoved { why }
            | Self::SubflowStalled { why }
            | Self::PacketSize { why }
            | Self::AccessCap { why } => f.write_str(why),
            Self::ProxyChanged { to } => {
                let to: Vec<_> = to.iter().map(ToString::to_string).collect();
                write!(f, "the proxy {} is used from now on", to.join(" and "))
            }
            Self::DirectRoute { accesses, ipv6, by } => {
                let family = if *ipv6 { "IPv6" } else { "IPv4" };
                let rules = accesses.join(", else ");
                match by {
                    Some(by) => write!(f, "{family} of rules direct by {rules} leaves by {by}"),
                    None => write!(
                        f,
                        "{family} of rules direct by {rules} is refused: none works"
                    ),
                }
            }
            Self::Configured { error: None } => f.write_str("the configuration was read again"),
            Self::Configured { error: Some(e) } => {
                write!(f, "the configuration was not taken: {e}")
            }
        }
    }
}

fn os_error(number: u8) -> std::io::Error {
    std::io::Error::from_raw_os_error(number.into())
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

/// Names the subflow by its ends, or as a path where it has none.
impl fmt::Display for SubflowEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.local, self.remote) {
            (Some(local), Some(remote)) => {
                write!(
                    f,
                    "subflow {local} to {remote} of connection {}",
                    self.token
                )
            }
            _ if self.token == 0 => f.write_str("its path"),
            _ => write!(f, "a subflow of connection {}", self.token),
        }
    }
}
