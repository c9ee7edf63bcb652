//! Trains of packets that travel over a link.

use braid_core::Time;
use serde::{Deserialize, Serialize};

/// Packets that arrived together: a GSO super-packet, or a single packet.
/// Sizes are IP-layer bytes of the packets as they would be on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// The owner's handle of the buffer; models only pass it through.
    pub id: u32,
    /// Packets on the wire, at least 1.
    pub packets: u32,
    /// Bytes of every packet but the last.
    pub full_bytes: u32,
    /// Bytes of the last packet.
    pub last_bytes: u32,
}

impl Train {
    /// A train of one packet of `bytes`.
    pub const fn single(id: u32, bytes: u32) -> Self {
        Self {
            id,
            packets: 1,
            full_bytes: bytes,
            last_bytes: bytes,
        }
    }

    /// Bytes of the packet at `index` (from 0).
    pub const fn packet_bytes(&self, index: u32) -> u32 {
        if index + 1 == self.packets {
            self.last_bytes
        } else {
            self.full_bytes
        }
    }

    /// Bytes of the packets `first..end`.
    pub fn bytes(&self, first: u32, end: u32) -> u64 {
        if end <= first {
            return 0;
        }
        let n = u64::from(end - first);
        if end == self.packets {
            (n - 1) * u64::from(self.full_bytes) + u64::from(self.last_bytes)
        } else {
            n * u64::from(self.full_bytes)
        }
    }
}

/// The packets `first..end` of the train `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Handle of the train.
    pub id: u32,
    /// First packet.
    pub first: u32,
    /// One past the last packet.
    pub end: u32,
}

impl Span {
    /// Number of packets.
    pub const fn packets(&self) -> u32 {
        self.end - self.first
    }
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropCause {
    /// The queue was full (drop-tail).
    QueueFull,
    /// CoDel (RFC 8289) dropped it for standing too long.
    Codel,
    /// Lost on the link.
    Loss,
    /// The link was down.
    LinkDown,
    /// Longer than the path's MTU.
    TooLong,
    /// The medium gave up after its retry limit (802.11).
    RetryLimit,
}

/// Where packets that leave a model go. Every packet of every train is passed
/// to exactly one of the two methods.
pub trait Sink {
    /// `span` reaches the far end of its link at `at`, which is now or past.
    fn deliver(&mut self, at: Time, span: Span);
    /// `span` was dropped.
    fn discard(&mut self, span: Span, cause: DropCause);
}
