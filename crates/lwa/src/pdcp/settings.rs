//! Settings, counters and refusals of a transmitting entity.

use std::time::Duration;

use thiserror::Error;

use crate::cipher::Eea2;
use crate::wire::SnSize;
use crate::wire::data::MAX_SDU_BYTES;

/// Settings of a transmitting entity.
#[derive(Clone, Debug)]
pub struct TransmitterConfig {
    /// Length of sequence numbers.
    pub size: SnSize,
    /// discardTimer: how long a packet is kept. None keeps it until it is confirmed.
    pub discard_after: Option<Duration>,
    /// Packets that may wait for a link; more are refused.
    pub queue_packets: usize,
    /// Bytes of sent packets that are kept for a retransmission; beyond, the oldest are let go.
    pub kept_bytes: usize,
    /// Key of the direction, or none for EEA0.
    pub key: Option<Eea2>,
    /// First COUNT: zero, except in tests of the end of the numbers.
    pub first_count: u32,
}

impl Default for TransmitterConfig {
    fn default() -> Self {
        TransmitterConfig {
            size: SnSize::Bits18,
            discard_after: Some(Duration::from_millis(1500)),
            queue_packets: 1000,
            kept_bytes: 16 << 20,
            key: None,
            first_count: 0,
        }
    }
}

/// Why a packet was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PushError {
    /// The queue is full.
    #[error("send a packet over the bearer: {0} packets wait already")]
    Full(usize),
    /// The packet is larger than a PDU may carry.
    #[error("send a packet over the bearer: {0} bytes, at most {MAX_SDU_BYTES} are possible")]
    Large(usize),
    /// Every COUNT was used; TS 33.401 then wants a new key and a new bearer.
    #[error("send a packet over the bearer: all of its 2^32 numbers are used; set up a new bearer")]
    Exhausted,
}

/// Counters of a transmitting entity, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitterStats {
    /// Sent for the first time.
    pub sent: u64,
    /// Sent again with the number they had.
    pub retransmitted: u64,
    /// Discarded by the timer before they were sent.
    pub discarded: u64,
}
