//! Settings of an end and its bearers.

use std::time::Duration;

use thiserror::Error;

use crate::cipher::Eea2;
use crate::reorder::UnknownReordering;
use crate::steer::UnknownSteering;
use crate::wire::SnSize;
use crate::wire::gtp::USER_DATA_BYTES;
use crate::wire::lwaap::{DrbId, HEADER_BYTES};

/// Bytes that a packet of a bearer gets at most over UDP and IPv4: these, GTP-U with the Xw-U
/// number, LWAAP, and PDCP with 18 bits. The bearer's MTU is smaller by so much.
pub const OVERHEAD_BYTES: usize = 20 + 8 + USER_DATA_BYTES + HEADER_BYTES + 3;

/// How frames look on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// GTP-U with Xw-U frames, to be sent over UDP: passes routers, and knows the link's queue.
    Gtp,
    /// LWAAP alone, to be sent as an Ethernet frame of type 0x9E65. Probes do not exist there;
    /// LWA status reports tell what arrived. Nothing in a frame tells frames before a
    /// re-establishment from those behind it: where that changes keys, empty the link first.
    Ethernet,
}

/// Settings of one bearer at one end.
#[derive(Clone, Debug)]
pub struct BearerConfig {
    /// Identity.
    pub drb: DrbId,
    /// Length of sequence numbers; both ends must agree.
    pub size: SnSize,
    /// Steering of what this end sends, as [`crate::steer::parse`] reads it.
    pub steering: String,
    /// Reordering time of what this end receives, as [`crate::reorder::parse`] reads it.
    pub reordering: String,
    /// discardTimer of what this end sends.
    pub discard_after: Option<Duration>,
    /// Packets that may wait for a link.
    pub queue_packets: usize,
    /// Bytes that may wait for a gap, and that are kept for retransmission.
    pub buffer_bytes: usize,
    /// Key of what this end sends; none for EEA0.
    pub send_key: Option<Eea2>,
    /// Key of what this end receives; none for EEA0.
    pub receive_key: Option<Eea2>,
    /// First COUNT of both directions: zero, except in tests.
    pub first_count: u32,
}

impl BearerConfig {
    /// A bearer with numbers of 18 bits, not ciphered.
    pub fn new(drb: DrbId, steering: &str, reordering: &str) -> Self {
        BearerConfig {
            drb,
            size: SnSize::Bits18,
            steering: steering.to_owned(),
            reordering: reordering.to_owned(),
            discard_after: Some(Duration::from_millis(1500)),
            queue_packets: 1000,
            buffer_bytes: 16 << 20,
            send_key: None,
            receive_key: None,
            first_count: 0,
        }
    }
}

/// Settings of one end.
#[derive(Clone, Debug)]
pub struct EndConfig {
    /// Bearers, each with another identity.
    pub bearers: Vec<BearerConfig>,
    /// First of the tunnel identities; both ends must agree. A re-establishment uses the next two.
    pub teid: u32,
    /// Frames per link, LTE first.
    pub framing: [Framing; 2],
    /// Interval of probes of both links, where no steering wants them more often.
    pub probe_interval: Duration,
    /// Interval of delivery statuses while packets arrive.
    pub delivery_interval: Duration,
    /// Interval of PDCP status reports while packets arrive.
    pub status_interval: Duration,
    /// Bytes that this end wants in flight per link at most (desired buffer size).
    pub desired_buffer_bytes: u32,
    /// Whether packets that a link is reported to have lost are sent again over either link.
    pub resend_lost: bool,
}

impl EndConfig {
    /// The node: its bearers are steered over both links.
    pub fn node(bearers: Vec<BearerConfig>) -> Self {
        EndConfig {
            bearers,
            teid: 0x1000,
            framing: [Framing::Gtp; 2],
            probe_interval: Duration::from_millis(100),
            delivery_interval: Duration::from_millis(5),
            status_interval: Duration::from_millis(20),
            desired_buffer_bytes: u32::MAX,
            resend_lost: false,
        }
    }

    /// The UE. With the steering `lte` its uplink leaves Wi-Fi alone, as in the LWA testbed.
    pub fn ue(bearers: Vec<BearerConfig>) -> Self {
        EndConfig::node(bearers)
    }
}

/// Why an end could not be made from its settings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Two bearers of one identity.
    #[error("bearer {0}: stands twice; each bearer needs an identity of its own")]
    Twice(u8),
    /// No bearer.
    #[error("set up an end without bearers: name at least one")]
    Empty,
    /// Steering that does not exist.
    #[error(transparent)]
    Steering(#[from] UnknownSteering),
    /// Reordering time that does not exist.
    #[error(transparent)]
    Reordering(#[from] UnknownReordering),
}
