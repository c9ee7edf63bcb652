//! Events of MPTCP connections, as the kernel reports them
//! (`mptcp_pm_events`, `enum mptcp_event_type` of `linux/mptcp_pm.h`).
//!
//! There is no event for a path that falls silent, and `SUB_PRIORITY` tells only
//! of changes that the peer made.

use std::net::{IpAddr, SocketAddr};

use braid_access::multicast::{Multicast, Read, Waiting};

use crate::error::{Error, Result};
use crate::nl::attr::{self, Attrs};
use crate::nl::genl::MptcpChannel;

const GROUP: &str = "mptcp_pm_events";

// `enum mptcp_event_attr`.
const TOKEN: u16 = 1;
const LOC_ID: u16 = 3;
const REM_ID: u16 = 4;
const SADDR4: u16 = 5;
const SADDR6: u16 = 6;
const DADDR4: u16 = 7;
const DADDR6: u16 = 8;
const SPORT: u16 = 9;
const DPORT: u16 = 10;
const BACKUP: u16 = 11;
const ERROR: u16 = 12;
const IF_IDX: u16 = 15;
const SERVER_SIDE: u16 = 18;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A connection began.
    Created,
    /// Further subflows may be opened.
    Established,
    /// A connection ended.
    Closed,
    /// The peer announced an address.
    Announced,
    /// The peer withdrew an address.
    Removed,
    /// A further subflow was joined.
    SubflowEstablished,
    /// A subflow ended.
    SubflowClosed,
    /// The peer changed a subflow's backup flag.
    SubflowPriority,
    /// A listening socket for an endpoint with a port was made.
    ListenerCreated,
    /// Such a socket was closed.
    ListenerClosed,
    /// One that this version does not know.
    Other(u8),
}

impl EventKind {
    fn from_command(cmd: u8) -> Self {
        match cmd {
            1 => Self::Created,
            2 => Self::Established,
            3 => Self::Closed,
            6 => Self::Announced,
            7 => Self::Removed,
            10 => Self::SubflowEstablished,
            11 => Self::SubflowClosed,
            13 => Self::SubflowPriority,
            15 => Self::ListenerCreated,
            16 => Self::ListenerClosed,
            other => Self::Other(other),
        }
    }
}

/// One event; what the kernel did not tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// The connection's local token.
    pub token: Option<u32>,
    /// Id of the local address.
    pub local_id: Option<u8>,
    /// Id of the remote address.
    pub remote_id: Option<u8>,
    /// This end; port 0 where none was told.
    pub local: Option<SocketAddr>,
    /// The other end; port 0 where none was told.
    pub remote: Option<SocketAddr>,
    /// Whether the subflow is a backup.
    pub backup: Option<bool>,
    /// The error number that ended the subflow.
    pub error: Option<u8>,
    /// The interface of the subflow.
    pub ifindex: Option<u32>,
    /// Whether this end accepted the connection.
    pub server_side: Option<bool>,
}

impl Event {
    /// Reads a generic netlink message of the group (without netlink's header).
    fn parse(message: &[u8]) -> Option<Self> {
        let (header, attributes) = message.split_at_checked(4)?;
        let mut event = Event {
            kind: EventKind::from_command(header[0]),
            token: None,
            local_id: None,
            remote_id: None,
            local: None,
            remote: None,
            backup: None,
            error: None,
            ifindex: None,
            server_side: None,
        };
        let (mut source, mut destination) = (None, None);
        let (mut source_port, mut destination_port) = (0, 0);
        Attrs(attributes).each(|kind, v| match kind {
            TOKEN => event.token = attr::u32_of(v),
            LOC_ID => event.local_id = attr::u8_of(v),
            REM_ID => event.remote_id = attr::u8_of(v),
            SADDR4 => source = v.first_chunk::<4>().map(|b| IpAddr::from(*b)),
            SADDR6 => {
                source = v
                    .first_chunk::<16>()
                    .map(|b| IpAddr::from(*b).to_canonical())
            }
            DADDR4 => destination = v.first_chunk::<4>().map(|b| IpAddr::from(*b)),
            DADDR6 => {
                destination = v
                    .first_chunk::<16>()
                    .map(|b| IpAddr::from(*b).to_canonical())
            }
            SPORT => source_port = attr::be16_of(v).unwrap_or(0),
            DPORT => destination_port = attr::be16_of(v).unwrap_or(0),
            BACKUP => event.backup = attr::u8_of(v).map(|b| b != 0),
            ERROR => event.error = attr::u8_of(v).filter(|&e| e != 0),
            IF_IDX => event.ifindex = attr::u32_of(v).filter(|&i| i != 0),
            SERVER_SIDE => event.server_side = attr::u8_of(v).map(|b| b != 0),
            _ => {}
        });
        event.local = source.map(|a| SocketAddr::new(a, source_port));
        event.remote = destination.map(|a| SocketAddr::new(a, destination_port));
        Some(event)
    }
}

/// A subscription to the events of one network namespace: that of the thread that opens it.
/// It never blocks.
#[derive(Debug)]
pub struct EventSocket(Multicast);

/// Result of [`EventSocket::read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Events, oldest first.
    Events(Vec<Event>),
    /// The kernel's queue overflowed: some were lost.
    Lost,
    /// Nothing for now.
    Nothing,
}

impl Batch {
    fn of(read: Read, events: Vec<Event>) -> Self {
        match read {
            Read::Messages => Self::Events(events),
            Read::Lost => Self::Lost,
            Read::Nothing => Self::Nothing,
        }
    }
}

impl EventSocket {
    /// Subscribes. Needs `CAP_NET_ADMIN` in the namespace.
    ///
    /// # Errors
    /// [`Error::Lacking`] if the kernel has no MPTCP; the kernel's refusal.
    pub fn open() -> Result<Self> {
        let group = MptcpChannel::open()?.group(GROUP).ok_or_else(|| {
            let attempted = "subscribe to the kernel's MPTCP events";
            Error::answer(attempted, format!("no multicast group {GROUP}"))
        })?;
        let protocol = netlink_sys::protocols::NETLINK_GENERIC;
        let what = "the kernel's MPTCP events";
        Ok(Self(Multicast::join(protocol, &[group], None, what)?))
    }

    /// Takes what has arrived, without waiting.
    ///
    /// # Errors
    /// The socket failed.
    pub fn read(&mut self) -> Result<Batch> {
        let mut events = Vec::new();
        let read = self.0.read(&mut |_, m| events.extend(Event::parse(m)))?;
        Ok(Batch::of(read, events))
    }
}

/// Event socket for tokio: waits without blocking the thread.
#[derive(Debug)]
pub struct AsyncEvents(Waiting);

impl AsyncEvents {
    /// Subscribes, as [`EventSocket::open`]; inside a runtime with I/O.
    ///
    /// # Errors
    /// As [`EventSocket::open`].
    pub fn open() -> Result<Self> {
        Ok(Self(EventSocket::open()?.0.waiting()?))
    }

    /// The next events, or that some were lost.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn next(&mut self) -> Result<Batch> {
        let mut events = Vec::new();
        let mut each = |_: u16, message: &[u8]| events.extend(Event::parse(message));
        let read = self.0.next(&mut each).await?;
        Ok(Batch::of(read, events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nl::attr::{bytes, emit};
    use proptest::prelude::*;

    #[test]
    fn reads_a_closed_subflow() {
        let mut message = vec![11, 1, 0, 0];
        message.extend(emit(&[
            bytes(TOKEN, &0xdead_beef_u32.to_ne_bytes()),
            bytes(LOC_ID, &[2]),
            bytes(REM_ID, &[0]),
            bytes(SADDR4, &[10, 77, 2, 2]),
            bytes(DADDR4, &[10, 77, 0, 1]),
            bytes(SPORT, &40000u16.to_be_bytes()),
            bytes(DPORT, &5201u16.to_be_bytes()),
            bytes(BACKUP, &[0]),
            bytes(ERROR, &[libc::ETIMEDOUT as u8]),
        ]));
        let e = Event::parse(&message).unwrap();
        assert_eq!(e.kind, EventKind::SubflowClosed);
        assert_eq!(e.token, Some(0xdead_beef));
        assert_eq!(e.local, Some("10.77.2.2:40000".parse().unwrap()));
        assert_eq!(e.remote, Some("10.77.0.1:5201".parse().unwrap()));
        assert_eq!(e.error, Some(110));
        assert_eq!(e.backup, Some(false));
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(b in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Event::parse(&b);
        }
    }
}
