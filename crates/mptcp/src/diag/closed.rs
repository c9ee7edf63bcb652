//! TCP sockets at their end, with their last counters: what a reader that looks from time to
//! time would miss (`SKNLGRP_INET_TCP_DESTROY` of linux/sock_diag.h).

use braid_access::multicast::{Multicast, Read, Waiting};

use super::{TcpSocket, row, tcp_socket};
use crate::error::Result;

/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`.
const GROUPS: [u32; 2] = [1, 3];

/// Subscription to the ends of TCP sockets, plain ones and subflows, of one network
/// namespace: that of the thread that opens it.
#[derive(Debug)]
pub struct ClosedSockets(Waiting);

/// Result of [`ClosedSockets::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Sockets that have ended.
    Sockets(Vec<TcpSocket>),
    /// The kernel's queue overflowed: some were lost.
    Lost,
}

impl ClosedSockets {
    /// Subscribes, inside a runtime with I/O. Needs `CAP_NET_ADMIN` in the namespace.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn open() -> Result<Self> {
        let protocol = netlink_sys::protocols::NETLINK_SOCK_DIAG;
        let ends = Multicast::join(protocol, &GROUPS, None, "the ends of TCP sockets")?;
        Ok(Self(ends.waiting()?))
    }

    /// Waits for the next ends.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn next(&mut self) -> Result<Closed> {
        let mut all = Vec::new();
        let attempted = || "read the end of a TCP socket".to_owned();
        // A row that cannot be read is one socket less, no reason to end.
        let mut each = |_: u16, message: &[u8]| {
            if let Ok((header, attributes)) = row(message, &attempted) {
                all.push(tcp_socket(&header, &attributes));
            }
        };
        Ok(match self.0.next(&mut each).await? {
            Read::Lost => Closed::Lost,
            Read::Messages | Read::Nothing => Closed::Sockets(all),
        })
    }
}
