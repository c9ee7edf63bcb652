//! Counters of a link.

use serde::{Deserialize, Serialize};

use super::train::{DropCause, Sink, Span};

/// Packets dropped, per cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// The queue was full.
    pub queue_full: u64,
    /// CoDel.
    pub codel: u64,
    /// Lost on the link.
    pub loss: u64,
    /// The link was down.
    pub link_down: u64,
    /// Longer than the path's MTU.
    pub too_long: u64,
    /// Given up by the medium.
    pub retry_limit: u64,
}

impl Drops {
    /// Packets dropped for `cause`.
    pub const fn of(&self, cause: DropCause) -> u64 {
        match cause {
            DropCause::QueueFull => self.queue_full,
            DropCause::Codel => self.codel,
            DropCause::Loss => self.loss,
            DropCause::LinkDown => self.link_down,
            DropCause::TooLong => self.too_long,
            DropCause::RetryLimit => self.retry_limit,
        }
    }

    /// Packets dropped for any cause.
    pub const fn total(&self) -> u64 {
        self.queue_full + self.codel + self.loss + self.link_down + self.too_long + self.retry_limit
    }

    pub(super) fn add(&mut self, cause: DropCause, packets: u64) {
        *match cause {
            DropCause::QueueFull => &mut self.queue_full,
            DropCause::Codel => &mut self.codel,
            DropCause::Loss => &mut self.loss,
            DropCause::LinkDown => &mut self.link_down,
            DropCause::TooLong => &mut self.too_long,
            DropCause::RetryLimit => &mut self.retry_limit,
        } += packets;
    }
}

/// Counters of a link since the start, and of what is on it. Bytes are
/// IP-layer bytes of wire packets. At every moment
/// `in_packets = queue_packets + in_flight_packets + out_packets + drops.total()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStats {
    /// Packets handed to the link.
    pub in_packets: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Packets that arrived at the far end.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Packets that left the queue and used the link's capacity, including
    /// those lost later. Counted when their service begins, up to 200 us of
    /// link time early.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that did not arrive.
    pub drops: Drops,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Packets in the queue.
    pub queue_packets: u64,
    /// Packets being served or under way.
    pub in_flight_packets: u64,
    /// Whether the link works.
    pub up: bool,
    /// Scenario time, nanoseconds, at which as many bytes were handed to the link as
    /// [`Network::mark`](super::Network::mark) asked for last; `None`: not yet, or nobody asked.
    #[serde(default)]
    pub marked_ns: Option<u64>,
}

impl LinkStats {
    pub(super) fn discard(&mut self, span: Span, cause: DropCause, sink: &mut dyn Sink) {
        self.drops.add(cause, span.packets().into());
        sink.discard(span, cause);
    }
}
